//! A tree as short text, so that tests can say what they expect.

use gnoma_shell::syntax::{
    ArrayElement, AssignedValue, Assignment, CaseEnding, Command, CommandKind, Condition,
    Descriptor, Loop, Operation, Pipeline, Redirection, Script, Statement, Target, Test, Word,
    WordPart, WordPartKind, parse,
};

/// The tree of a text, or why there is none.
pub(crate) fn sketch(text: &str) -> String {
    match parse(text) {
        Ok(tree) => script(&tree),
        Err(error) => format!("error: {error}"),
    }
}

pub(crate) fn script(script: &Script) -> String {
    list(&script.statements, "; ", statement)
}

fn list<T>(items: &[T], between: &str, show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(between)
}

fn statement(statement: &Statement) -> String {
    let mut text = pipeline(&statement.first);
    for (condition, next) in &statement.rest {
        text += match condition {
            Condition::AfterSuccess => " && ",
            Condition::AfterFailure => " || ",
        };
        text += &pipeline(next);
    }
    text + if statement.background { " &" } else { "" }
}

fn pipeline(pipeline: &Pipeline) -> String {
    let mut text = String::new();
    text += if pipeline.timed { "time " } else { "" };
    text += if pipeline.negated { "! " } else { "" };
    for (at, stage) in pipeline.stages.iter().enumerate() {
        text += if at > 0 { " | " } else { "" };
        text += &command(&stage.command);
        text += if stage.pipes_errors { " 2>&1" } else { "" };
    }
    text
}

fn command(command: &Command) -> String {
    let mut text = kind(&command.kind);
    for redirection in &command.redirections {
        text += " ";
        text += &redirected(redirection);
    }
    text
}

fn kind(kind: &CommandKind) -> String {
    match kind {
        CommandKind::Simple(simple) => {
            let mut items: Vec<String> = simple.assignments.iter().map(assignment).collect();
            items.extend(simple.words.iter().map(word));
            format!("({})", items.join(" "))
        }
        CommandKind::Group(body) => format!("group[{}]", script(body)),
        CommandKind::Subshell(body) => format!("subshell[{}]", script(body)),
        CommandKind::If { branches, otherwise } => {
            let branches =
                list(branches, " ", |(test, body)| format!("{}: {}", script(test), script(body)));
            let otherwise = otherwise.as_ref().map(|body| format!(" else: {}", script(body)));
            format!("if[{branches}{}]", otherwise.unwrap_or_default())
        }
        CommandKind::While { until, condition, body } => {
            let name = if *until { "until" } else { "while" };
            format!("{name}[{}: {}]", script(condition), script(body))
        }
        CommandKind::For(each) => format!("for[{}]", looped(each)),
        CommandKind::Select(each) => format!("select[{}]", looped(each)),
        CommandKind::ArithmeticFor { header, body } => {
            format!("for[{}: {}]", list(header, "; ", |part| parts(&part.parts)), script(body))
        }
        CommandKind::Case { subject, arms } => {
            let arms = list(arms, "", |arm| {
                let ending = match arm.ending {
                    CaseEnding::Done => ";;",
                    CaseEnding::FallThrough => ";&",
                    CaseEnding::TryNext => ";;&",
                };
                format!(" {}) {}{ending}", list(&arm.patterns, "|", word), script(&arm.body))
            });
            format!("case[{}{arms}]", word(subject))
        }
        CommandKind::Function { name, body } => format!("function[{name} {}]", command(body)),
        CommandKind::Arithmetic(text) => format!("arithmetic[{}]", parts(&text.parts)),
        CommandKind::Test(test) => format!("test[{}]", tested(test)),
        CommandKind::Coprocess { name, body } => {
            format!("coproc[{} {}]", name.as_deref().unwrap_or("-"), command(body))
        }
    }
}

fn looped(each: &Loop) -> String {
    let words = each.words.as_ref().map_or("-".to_owned(), |words| list(words, " ", word));
    format!("{} in {words}: {}", each.name, script(&each.body))
}

fn tested(test: &Test) -> String {
    match test {
        Test::Word(operand) => word(operand),
        Test::Unary(operator, operand) => format!("{operator} {}", word(operand)),
        Test::Binary(both) => {
            format!("{} {} {}", word(&both.left), both.operator, word(&both.right))
        }
        Test::Not(inner) => format!("! {}", tested(inner)),
        Test::And(tests) => list(tests, " && ", tested),
        Test::Or(tests) => list(tests, " || ", tested),
        Test::Group(inner) => format!("({})", tested(inner)),
    }
}

fn assignment(assignment: &Assignment) -> String {
    let subscript = assignment.subscript.as_ref().map(|key| format!("[{}]", word(key)));
    let append = if assignment.append { "+" } else { "" };
    let value = match &assignment.value {
        AssignedValue::Word(value) => word(value),
        AssignedValue::Array(elements) => array(elements),
    };
    format!("{}{}{append}={value}", assignment.name, subscript.unwrap_or_default())
}

fn array(elements: &[ArrayElement]) -> String {
    let shown = list(elements, " ", |element| {
        let append = if element.append { "+" } else { "" };
        let key = element.subscript.as_ref().map(|key| format!("[{}]{append}=", word(key)));
        format!("{}{}", key.unwrap_or_default(), word(&element.value))
    });
    format!("({shown})")
}

fn redirected(redirection: &Redirection) -> String {
    let descriptor = match &redirection.descriptor {
        None => String::new(),
        Some(Descriptor::Number(number)) => number.to_string(),
        Some(Descriptor::Variable(name)) => format!("{{{name}}}"),
    };
    let operator = match &redirection.target {
        Target::Read(_) => "<",
        Target::Write(_) => ">",
        Target::Clobber(_) => ">|",
        Target::Append(_) => ">>",
        Target::ReadWrite(_) => "<>",
        Target::DuplicateInput(_) => "<&",
        Target::DuplicateOutput(_) => ">&",
        Target::WriteBoth(_) => "&>",
        Target::AppendBoth(_) => "&>>",
        Target::HereString(_) => "<<<",
        Target::HereDocument(document) => {
            let body = document.body().map(word).unwrap_or_default();
            return format!("{descriptor}<<{}[{body}]", document.delimiter);
        }
    };
    format!("{descriptor}{operator}{}", redirection.target.word().map(word).unwrap_or_default())
}

pub(crate) fn word(word: &Word) -> String {
    parts(&word.parts)
}

fn parts(pieces: &[WordPart]) -> String {
    list(pieces, "", part)
}

fn part(part: &WordPart) -> String {
    match &part.kind {
        WordPartKind::Literal(text) => text.clone(),
        WordPartKind::SingleQuoted(text) => format!("'{text}'"),
        WordPartKind::AnsiQuoted(text) => format!("$'{}'", text.as_deref().unwrap_or("?")),
        WordPartKind::DoubleQuoted(inner) => format!("\"{}\"", parts(inner)),
        WordPartKind::LocaleQuoted(inner) => format!("$\"{}\"", parts(inner)),
        WordPartKind::Parameter(parameter) => {
            let bang = if parameter.indirect { "!" } else { "" };
            let key = parameter.subscript.as_ref().map(|key| format!("[{}]", word(key)));
            let name = &parameter.name;
            let key = key.unwrap_or_default();
            format!("${{{bang}{name}{key}{}}}", operation(&parameter.operation))
        }
        WordPartKind::CommandSubstitution(inner) => format!("$<{}>", script(inner)),
        WordPartKind::Arithmetic(text) => format!("$calc[{}]", parts(&text.parts)),
        WordPartKind::ProcessSubstitution { readable, script: inner } => {
            format!("{}<{}>", if *readable { "from" } else { "to" }, script(inner))
        }
        WordPartKind::Glob(text) => format!("«{text}»"),
        WordPartKind::ExtendedGlob { operator, alternatives } => {
            format!("«{operator}({})»", list(alternatives, "|", word))
        }
        WordPartKind::BraceList(words) => format!("{{{}}}", list(words, ",", word)),
        WordPartKind::BraceRange(text) => format!("{{{text}}}"),
        WordPartKind::Tilde(user) => format!("home<{user}>"),
        WordPartKind::Array(elements) => array(elements),
    }
}

fn operation(operation: &Operation) -> String {
    match operation {
        Operation::Value => String::new(),
        Operation::Length => " length".to_owned(),
        Operation::Names => " names".to_owned(),
        Operation::Keys => " keys".to_owned(),
        Operation::Default(operand) => format!(" default {}", word(operand)),
        Operation::AssignDefault(operand) => format!(" assign {}", word(operand)),
        Operation::Require(operand) => format!(" require {}", word(operand)),
        Operation::Alternative(operand) => format!(" alternative {}", word(operand)),
        Operation::RemovePrefix(operand) => format!(" without-prefix {}", word(operand)),
        Operation::RemoveSuffix(operand) => format!(" without-suffix {}", word(operand)),
        Operation::Replace { pattern, replacement } => {
            let replacement = replacement.as_ref().map(word).unwrap_or_default();
            format!(" replace {} by {replacement}", word(pattern))
        }
        Operation::ChangeCase(operand) => format!(" case {}", word(operand)),
        Operation::Substring { offset, length } => {
            let length = length.as_ref().map(|length| parts(&length.parts)).unwrap_or_default();
            format!(" from {} take {length}", parts(&offset.parts))
        }
        Operation::Transform(letter) => format!(" transform {letter}"),
    }
}
