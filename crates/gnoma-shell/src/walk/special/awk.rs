//! `awk`: a program is read far enough to see that it only prints.
//!
//! Running, piping, reading by name and writing by name are found as tokens; where the grammar is ambiguous
//! (is `/` a division or an expression?) the program is not surely harmless.

use std::str::Chars;

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::facts_of::{CommandFacts, is_nowhere};
use super::brackets::after_list;
use crate::expand::Field;
use crate::facts::{Effect, Risk};
use crate::programs::Role;

/// What a program does beside printing.
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
    /// `||`, `|&`, `>>` and other signs of two characters.
    Double([char; 2]),
    Newline,
}

pub(super) fn look(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.options(call);
    let mut programs: Vec<&Field> = Vec::new();
    for given in &call.sorted.options {
        if matches!(given.name.as_str(), "e" | "source") {
            programs.extend(given.values.last());
        }
    }
    let elsewhere = !programs.is_empty() || call.sorted.has(&["f", "file"]);
    let own = usize::from(!elsewhere);
    programs.extend(call.sorted.operands.first().filter(|_| !elsewhere));
    for operand in call.sorted.operands.iter().skip(own) {
        let assigns = operand.start().split_once('=').is_some_and(|(name, _)| !name.contains('/'));
        if !assigns {
            walker.act(call, Role::Read, operand, &mut facts);
        }
    }
    // Several are one program, as lines of it.
    match programs.iter().map(|program| program.known()).collect::<Option<Vec<_>>>() {
        Some(texts) => judge(walker, call, &texts.join("\n"), &mut facts),
        None => facts.add(Effect::Unknown("awk: what its program does is not known".to_owned())),
    }
    facts
}

fn judge(walker: &mut Walker<'_>, call: &ProgramCall<'_>, text: &str, facts: &mut CommandFacts) {
    for finding in findings(text) {
        match finding {
            AwkFinding::Environment => facts.add(Effect::Secret("the environment".to_owned())),
            AwkFinding::Strange(why) => facts.add(Effect::Unknown(format!("awk: {why}"))),
            AwkFinding::Write(file) if file.starts_with("/inet") => {
                facts.add(Effect::Network(file.split('/').nth(4).map(str::to_owned)));
                facts.at_least(Risk::Critical);
            }
            AwkFinding::Write(file) if is_nowhere(&file) && file != "-" => {}
            AwkFinding::Write(file) => walker.act(call, Role::Write, &Field::Known(file), facts),
        }
    }
}

fn findings(program: &str) -> Vec<AwkFinding> {
    let tokens = match tokens(program) {
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
                "getline" if reads_by_name(&tokens, at) => {
                    findings.push(AwkFinding::Strange("`getline` reads a file"));
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

/// Whether `<` follows `getline`, with or without a variable between.
fn reads_by_name(tokens: &[Token], at: usize) -> bool {
    let after = tokens.get(at + 1..).unwrap_or_default();
    let end = after.iter().position(|token| matches!(token, Token::Sign(';' | '}')));
    after.get(..end.unwrap_or(after.len())).unwrap_or_default().contains(&Token::Sign('<'))
}

/// Splits a program; an error says what cannot be read for certain.
fn tokens(program: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut letters = program.chars();
    while let Some(letter) = letters.next() {
        let next = letters.clone().next();
        match letter {
            ' ' | '\t' | '\r' => {}
            '\n' => tokens.push(Token::Newline),
            '\\' if next == Some('\n') => {
                letters.next();
            }
            '#' => {
                take_while(&mut letters, |letter| letter != '\n');
            }
            '"' => {
                tokens.push(Token::Text(quoted(&mut letters, '"').ok_or("a text is not closed")?));
            }
            '/' if divides(tokens.last())? => tokens.push(Token::Sign('/')),
            '/' => {
                let after = after_expression(letters.as_str());
                letters = after.ok_or("an expression is not surely read")?.chars();
                tokens.push(Token::Expression);
            }
            '0'..='9' => {
                take_while(&mut letters, |letter| letter.is_ascii_alphanumeric() || letter == '.');
                tokens.push(Token::Number);
            }
            _ if letter.is_ascii_alphabetic() || letter == '_' => {
                let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let rest = take_while(&mut letters, is_name);
                tokens.push(Token::Name(format!("{letter}{rest}")));
            }
            '|' | '>' | '&' if next == Some(letter) || (letter == '|' && next == Some('&')) => {
                tokens.push(Token::Double([letter, next.unwrap_or(letter)]));
                letters.next();
            }
            '+' | '-' if next == Some(letter) => return_step(&mut tokens, &mut letters),
            _ if letter.is_ascii_graphic() => tokens.push(Token::Sign(letter)),
            _ => return Err("it has characters that are no program text"),
        }
    }
    Ok(tokens)
}

/// Whether a `/` divides and does not begin an expression.
fn divides(last: Option<&Token>) -> Result<bool, &'static str> {
    match last {
        Some(Token::Sign(')')) => Err("`/` after `)` may be a division or an expression"),
        Some(Token::Number | Token::Text(_) | Token::Expression | Token::Sign(']' | '$')) => {
            Ok(true)
        }
        Some(Token::Name(name)) => Ok(!is_keyword(name)),
        _ => Ok(false),
    }
}

/// `++` and `--` change nothing in what a following `/` means: they are left out.
fn return_step(tokens: &mut Vec<Token>, letters: &mut Chars<'_>) {
    letters.next();
    if !matches!(tokens.last(), Some(Token::Name(_) | Token::Sign(']' | ')'))) {
        tokens.push(Token::Sign('+'));
    }
}

/// Takes the letters at the front that are wanted.
fn take_while<'t>(letters: &mut Chars<'t>, is_wanted: impl Fn(char) -> bool) -> &'t str {
    let text = letters.as_str();
    let rest = text.trim_start_matches(is_wanted);
    *letters = rest.chars();
    text.get(..text.len() - rest.len()).unwrap_or_default()
}

fn is_keyword(name: &str) -> bool {
    matches!(
        name,
        "print"
            | "printf"
            | "return"
            | "in"
            | "case"
            | "do"
            | "else"
            | "exit"
            | "getline"
            | "BEGIN"
            | "END"
    )
}

fn quoted(letters: &mut impl Iterator<Item = char>, end: char) -> Option<String> {
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

/// The text after an expression.
fn after_expression(text: &str) -> Option<&str> {
    let mut letters = text.chars();
    loop {
        match letters.next()? {
            '\\' => {
                letters.next()?;
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
    fn programs_that_only_print_are_harmless() {
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
        ] {
            assert_eq!(findings(program), [], "{program}");
        }
    }

    #[test]
    fn programs_that_do_more_are_found() {
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
        ] {
            assert_ne!(findings(program), [], "{program}");
        }
    }
}
