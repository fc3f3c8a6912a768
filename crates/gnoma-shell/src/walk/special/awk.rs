//! `awk`: a program is read far enough to see that it only prints.
//!
//! Running, piping, reading by name and writing by name are found as tokens. The kinds of awk split programs
//! differently, so a program is harmless only when all of them would split it alike: a `/` of which they
//! would disagree whether it divides, a number that runs into a name, or an escape that is none in one of
//! them makes it unknown.

use std::str::Chars;

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::{CommandFacts, is_nowhere};
use super::brackets::after_list;
use crate::expand::Field;
use crate::facts::{Effect, Risk};
use crate::programs::Role;

/// The words of the language that are no variables, besides those after which an operand begins.
const BUILTINS: &[&str] = &[
    "case",
    "BEGIN",
    "END",
    "BEGINFILE",
    "ENDFILE",
    "and",
    "asort",
    "asorti",
    "atan2",
    "break",
    "close",
    "compl",
    "continue",
    "cos",
    "default",
    "delete",
    "exit",
    "exp",
    "fflush",
    "for",
    "func",
    "function",
    "gensub",
    "getline",
    "gsub",
    "if",
    "index",
    "int",
    "length",
    "log",
    "lshift",
    "match",
    "mktime",
    "next",
    "nextfile",
    "or",
    "patsplit",
    "rand",
    "rshift",
    "sin",
    "split",
    "sprintf",
    "sqrt",
    "srand",
    "strftime",
    "strtonum",
    "sub",
    "substr",
    "switch",
    "system",
    "systime",
    "tolower",
    "toupper",
    "typeof",
    "while",
    "xor",
    "isarray",
];

/// An effect of an awk program in addition to printing.
#[derive(Debug, PartialEq, Eq)]
enum AwkFinding {
    Write(String),
    Environment,
    Strange(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Number,
    Text(String),
    Expression,
    Sign(char),
    /// An increment or decrement: `++` or `--`.
    Step,
    /// `||`, `|&`, `>>` and other signs of two characters.
    Double([char; 2]),
    Newline,
}

pub(super) fn analyse_awk(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.option_facts(call);
    let mut programs: Vec<&Field> = Vec::new();
    for given in &call.sorted.options {
        if matches!(given.name.as_str(), "e" | "source") {
            programs.extend(given.values.last());
        }
    }
    let elsewhere = !programs.is_empty() || call.sorted.has_option(&["f", "file"]);
    let own = usize::from(!elsewhere);
    programs.extend(call.sorted.operands.first().filter(|_| !elsewhere));
    for operand in call.sorted.operands.iter().skip(own) {
        let assigns =
            operand.known_start().split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        if !assigns {
            walker.apply_role(call, Role::Read, operand, &mut facts);
        }
    }
    // Several are one program, as lines of it.
    match programs.iter().map(|program| program.known_text()).collect::<Option<Vec<_>>>() {
        Some(texts) => judge_program(walker, call, &texts.join("\n"), &mut facts),
        None => {
            facts.add(Effect::Unknown("awk: gnoma does not know what its program does".to_owned()));
        }
    }
    facts
}

fn judge_program(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    text: &str,
    facts: &mut CommandFacts,
) {
    for finding in scan_program(text) {
        match finding {
            AwkFinding::Environment => facts.add(Effect::Settings("the environment".to_owned())),
            AwkFinding::Strange(why) => facts.add(Effect::Unknown(format!("awk: {why}"))),
            AwkFinding::Write(file) if file.starts_with("/inet") => {
                facts.add(Effect::Network(file.split('/').nth(4).map(str::to_owned)));
                facts.at_least(Risk::Critical);
            }
            AwkFinding::Write(file) if is_nowhere(&file) && file != "-" => {}
            AwkFinding::Write(file) => {
                walker.apply_role(call, Role::Write, &Field::Known(file), facts);
            }
        }
    }
}

fn scan_program(program: &str) -> Vec<AwkFinding> {
    let tokens = match split_tokens(program) {
        Ok(tokens) => tokens,
        Err(why) => return vec![AwkFinding::Strange(why)],
    };
    let mut findings = Vec::new();
    // In a print statement, and how deep in its parentheses.
    let mut printing: Option<usize> = None;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        match token {
            Token::Name(name) => match name.as_str() {
                "system" => findings.push(AwkFinding::Strange("`system` runs a command")),
                "getline" if tokens.contains(&Token::Sign('<')) => {
                    findings.push(AwkFinding::Strange("`getline` may read a file"));
                }
                "ENVIRON" | "PROCINFO" | "SYMTAB" => findings.push(AwkFinding::Environment),
                "ARGV" => findings.push(AwkFinding::Strange("`ARGV` names the files it reads")),
                "print" | "printf" => printing = Some(0),
                _ => {}
            },
            Token::Sign('|') | Token::Double(['|', '&']) => {
                findings.push(AwkFinding::Strange("`|` runs a command"));
            }
            Token::Sign('@') => findings.push(AwkFinding::Strange("`@` loads or calls by name")),
            // A line break does not end it: after a comma and some others the next line belongs to it.
            Token::Sign(';' | '}' | '{') => printing = None,
            Token::Sign('(') => printing = printing.map(|depth| depth + 1),
            Token::Sign(')') => printing = printing.map(|depth| depth.saturating_sub(1)),
            Token::Sign('>') | Token::Double(['>', '>']) if printing == Some(0) => {
                let ends = tokens
                    .get(at + 2)
                    .is_none_or(|after| matches!(after, Token::Sign(';' | '}') | Token::Newline));
                findings.push(match next {
                    Some(Token::Text(file)) if ends && !file.contains('\\') => {
                        AwkFinding::Write(file.clone())
                    }
                    _ => AwkFinding::Strange("`>` writes a file"),
                });
            }
            _ => {}
        }
    }
    findings
}

/// Splits a program; an error says what cannot be read for certain.
fn split_tokens(program: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut letters = program.chars();
    while let Some(letter) = letters.next() {
        let next = letters.clone().next();
        match letter {
            ' ' | '\t' => {}
            '\n' => tokens.push(Token::Newline),
            '\\' if next == Some('\n') => {
                letters.next();
            }
            '#' => {
                take_while(&mut letters, |letter| letter != '\n');
            }
            '"' => tokens.push(take_text(&mut letters)?),
            '/' if is_division(tokens.last())? => tokens.push(Token::Sign('/')),
            '/' => {
                let after = after_expression(letters.as_str());
                letters = after.ok_or("gnoma may misread an expression")?.chars();
                tokens.push(Token::Expression);
            }
            '0'..='9' | '.' => {
                take_number(letter, &mut letters)?;
                tokens.push(Token::Number);
            }
            _ if letter.is_ascii_alphabetic() || letter == '_' => {
                tokens.push(take_name(letter, &mut letters));
            }
            '|' | '>' | '&' if next == Some(letter) || (letter == '|' && next == Some('&')) => {
                tokens.push(Token::Double([letter, next.unwrap_or(letter)]));
                letters.next();
            }
            '+' | '-' if next == Some(letter) => {
                letters.next();
                tokens.push(Token::Step);
            }
            _ if letter.is_ascii_graphic() && letter != '\\' => tokens.push(Token::Sign(letter)),
            _ => return Err("it has characters that no program can have"),
        }
    }
    Ok(tokens)
}

/// Takes a text after its first quote.
fn take_text(letters: &mut Chars<'_>) -> Result<Token, &'static str> {
    quoted_text(letters, '"').map(Token::Text).ok_or("a text is not closed")
}

/// Takes a name that begins with this letter.
fn take_name(first: char, letters: &mut Chars<'_>) -> Token {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    Token::Name(format!("{first}{}", take_while(letters, is_name)))
}

/// Takes a plain decimal number. What directly follows one that is written differently, such as `0x1f` or
/// `1system(…)`, belongs to it in one awk and not in another.
fn take_number(first: char, letters: &mut Chars<'_>) -> Result<(), &'static str> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let mut digits = usize::from(first != '.') + take_while(letters, is_digit).len();
    if first != '.' && letters.as_str().starts_with('.') {
        letters.next();
        digits += take_while(letters, is_digit).len();
    }
    if let Some(exponent) = letters.as_str().strip_prefix(['e', 'E']) {
        let power = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if power.starts_with(is_digit) {
            *letters = power.chars();
            take_while(letters, is_digit);
        }
    }
    let runs_on = letters
        .as_str()
        .starts_with(|letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.'));
    if digits == 0 || runs_on { Err("gnoma may misread a number") } else { Ok(()) }
}

/// Reports whether a `/` divides and does not begin an expression. It is not certain after tokens that the kinds of
/// awk treat differently, or that no real program has there.
fn is_division(last: Option<&Token>) -> Result<bool, &'static str> {
    const UNSURE: &str = "`/` may be a division or an expression";
    match last {
        Some(Token::Name(name)) if begins_operand(name) => Ok(false),
        Some(Token::Name(name)) if is_builtin(name) => Err(UNSURE),
        Some(Token::Number | Token::Sign(']') | Token::Name(_)) => Ok(true),
        None | Some(Token::Newline | Token::Double(_)) => Ok(false),
        Some(Token::Sign(sign)) if "{};,(!~?:=<>&|+-*%^".contains(*sign) => Ok(false),
        Some(Token::Sign(_) | Token::Step | Token::Text(_) | Token::Expression) => Err(UNSURE),
    }
}

/// Takes the letters at the front that are wanted.
fn take_while<'t>(letters: &mut Chars<'t>, is_wanted: impl Fn(char) -> bool) -> &'t str {
    let text = letters.as_str();
    let rest = text.trim_start_matches(is_wanted);
    *letters = rest.chars();
    text.get(..text.len() - rest.len()).unwrap_or_default()
}

/// Words after which an operand begins.
fn begins_operand(name: &str) -> bool {
    matches!(name, "print" | "printf" | "return" | "in" | "else" | "do")
}

/// Reports whether a name is a word of the language and no variable: what a `/` after one of them is depends on the
/// awk.
fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

fn quoted_text(letters: &mut impl Iterator<Item = char>, end: char) -> Option<String> {
    let mut text = String::new();
    loop {
        match letters.next()? {
            '\\' => {
                text.push('\\');
                text.push(letters.next()?);
            }
            '\n' => return None,
            letter if letter == end => return Some(text),
            letter => text.push(letter),
        }
    }
}

/// The text after an expression. A `/` between brackets ends it in one awk and not in another.
fn after_expression(text: &str) -> Option<&str> {
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '\\' => {
                letters.next().filter(|escaped| *escaped != '\n')?;
            }
            '\n' => return None,
            '/' => return Some(letters.as_str()),
            '[' => letters = after_list(letters.as_str(), '/')?.chars(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn awk_programs_that_only_print_are_read_only() {
        for program in [
            "{print $1}",
            "$3>1000{print $1}",
            "NR==1{next} {s+=$2} END{print s/NR}",
            "/foo|bar/",
            "1",
            "{print ($1 > 2) ? \"a\" : \"b\"}",
            "BEGIN{FS=\":\"} {a[$1]++} END{for (k in a) print k, a[k]}",
            "{gsub(/\"/, \"\"); print}",
            "NR>5 && NR<9",
            "{printf \"%s\\n\", $2}",
            "!seen[$0]++",
            "{print a / b}",
            "length($0) > 80",
            "{while ((getline line) > 0) n++}",
            "{print $1; if ($2 > 3) print \"x\"}",
            "/[[:alpha:]_]+/ {print}",
            "$2 ~ /[^,]*$/ {\n  print $1,\n    $2\n}",
            "{print $1/2, $NF/1e3, a[1]/.5}",
            "!/^#/ && /a[^\\/]b/{n++} END{print n+0}",
            "$1 ~ /x/ || $2 == \"y\" {print length($0)}",
        ] {
            assert_eq!(scan_program(program), [], "{program}");
        }
    }

    #[test]
    fn awk_programs_that_run_or_write_are_not_read_only() {
        for program in [
            "BEGIN{system(\"id\")}",
            "{print > \"/tmp/x\"}",
            "BEGIN{\"id\"|getline x; print x}",
            "{print | \"sh\"}",
            "{print >> $1}",
            "@load \"x\"",
            "BEGIN{print ENVIRON[\"X\"]}",
            "BEGIN{getline x < \"/etc/shadow\"}",
            "{print |& \"sh\"}",
            "{a / system(\"id\") / b}",
            "(x) / 1; system(\"id\") /",
            "BEGIN{ARGV[1]=\"/etc/shadow\"}",
            "{printf(\"x\") > \"out\"}",
            "{print $1, $2 > $3}",
            "\"unclosed",
            "{print $1,\n$2 > \"out\"}",
            "{printf(\"%s\",\n$2) > \"out\"}",
            "/[]/]\"/{system(\"id\")} /\"/",
            "/[[.].]/]\"/{system(\"id\")} /\"/",
            "BEGIN{getline x[1,\n2] < \"f\"}",
            "BEGIN{x=1system(\"id\")}",
            "BEGIN{x=1e1system(\"id\")}",
            "BEGIN{x=.5system(\"id\")}",
            "BEGIN{x=0x1fsystem(\"id\")}",
            "BEGIN{x=1.2.3system(\"id\")}",
            "{z=$/\"/; system(\"id\"); z=$/\"/}",
            "{getline /\"/; system(\"id\"); x=/\"/}",
            "BEGIN{while((3getline < \".env\")>0)print}",
            "{x=length /\"/; system(\"id\"); y=/\"/}",
            "{x++ /\"/; system(\"id\"); y=/\"/}",
            "{x=\"a\" /\"/; system(\"id\"); y=/\"/}",
            "/[/]\"/{system(\"id\")} /\"/",
            "/a\\\n\"/{system(\"id\")} /\"/",
            "{x = \\/\"/; system(\"id\"); y=/\"/}",
            "/[\\]\"/]/{system(\"id\")} /\"/",
        ] {
            assert_ne!(scan_program(program), [], "{program}");
        }
    }
}
