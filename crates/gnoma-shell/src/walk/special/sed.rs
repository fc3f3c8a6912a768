//! `sed`: a script is read far enough to see that it only edits what it prints.
//!
//! Whatever is not surely harmless is unknown: `e` runs commands, `w` and `W` write, `r` and `R` read files.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use super::brackets::after_list;
use crate::expand::Field;
use crate::facts::Effect;
use crate::programs::Role;

/// A file a script touches.
#[derive(Debug, PartialEq, Eq)]
enum SedFileAccess {
    Read(String),
    Write(String),
}

pub(super) fn analyse_sed(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = walker.generic_facts(call);
    let scripts: Vec<&Field> = call
        .sorted
        .options
        .iter()
        .filter(|given| matches!(given.name.as_str(), "e" | "expression"))
        .filter_map(|given| given.values.last())
        .collect();
    let given_elsewhere = call.sorted.has_option(&["f", "file"]);
    let operand = call.sorted.operands.first().filter(|_| scripts.is_empty() && !given_elsewhere);
    let open = |script: &&Field| script.known_text().is_some_and(|text| text.ends_with('\\'));
    if scripts.iter().any(open) {
        facts.add(Effect::Unknown("sed: a script continues in the next one".to_owned()));
    }
    for script in scripts.into_iter().chain(operand) {
        judge_script(walker, call, script, &mut facts);
    }
    facts
}

fn judge_script(
    walker: &mut Walker<'_>,
    call: &ProgramCall<'_>,
    script: &Field,
    facts: &mut CommandFacts,
) {
    let Some(text) = script.known_text() else {
        facts.add(Effect::Unknown(format!("sed: gnoma does not know what script `{script}` does")));
        return;
    };
    let mut reader = SedReader { rest: text, touches: Vec::new() };
    if reader.parse_script().is_none() {
        facts.add(Effect::Unknown(format!("sed: script `{text}` may do harm")));
    }
    for touch in reader.touches {
        let (role, file) = match touch {
            SedFileAccess::Read(file) => (Role::Read, file),
            SedFileAccess::Write(file) => (Role::Write, file),
        };
        walker.apply_role(call, role, &Field::Known(file), facts);
    }
}

struct SedReader<'t> {
    rest: &'t str,
    touches: Vec<SedFileAccess>,
}

impl<'t> SedReader<'t> {
    /// Reads all commands; `None` at the first that is not harmless.
    fn parse_script(&mut self) -> Option<()> {
        loop {
            self.skip_letters(&[' ', '\t', '\n', ';', '}']);
            if self.rest.is_empty() {
                return Some(());
            }
            self.parse_command()?;
        }
    }

    fn parse_command(&mut self) -> Option<()> {
        if self.rest.starts_with('#') {
            self.take_line();
            return Some(());
        }
        self.parse_addresses()?;
        match self.next()? {
            '{' => Some(()),
            'p' | 'P' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'n' | 'N' | '=' | 'z' | 'F' => {
                self.end_of_command()
            }
            'q' | 'Q' | 'l' | 'L' => {
                self.skip_letters(&[' ']);
                self.skip_digits();
                self.end_of_command()
            }
            'b' | 't' | 'T' | ':' => {
                // What follows a blank after a label is a command to some; nobody writes it so.
                let rest = self.rest.trim_start_matches(' ');
                let is_label = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let rest = rest.trim_start_matches(is_label);
                let ends = rest.is_empty() || rest.starts_with(['\n', ';', '}']);
                self.rest = rest;
                ends.then_some(())
            }
            'a' | 'i' | 'c' => self.skip_text(),
            's' => self.parse_substitute(),
            'y' => {
                let delimiter = self.next()?;
                self.skip_past(delimiter, false)?;
                self.skip_past(delimiter, false)?;
                self.end_of_command()
            }
            'r' | 'R' => self.parse_file_name(SedFileAccess::Read),
            'w' | 'W' => self.parse_file_name(SedFileAccess::Write),
            _ => None,
        }
    }

    /// A file name up to the end of the line.
    fn parse_file_name(&mut self, touch: fn(String) -> SedFileAccess) -> Option<()> {
        let file = self.take_line().trim_start().to_owned();
        self.touches.push(touch(file));
        Some(())
    }

    fn parse_addresses(&mut self) -> Option<()> {
        if self.parse_address()? {
            self.skip_letters(&[' ']);
            if self.rest.starts_with(',') {
                self.next();
                self.skip_letters(&[' ', '+', '~']);
                self.parse_address()?;
            }
        }
        self.skip_letters(&[' ', '\t', '!']);
        Some(())
    }

    /// One address; whether there is one.
    fn parse_address(&mut self) -> Option<bool> {
        match self.rest.chars().next()? {
            '0'..='9' => {
                self.skip_digits();
                if self.rest.starts_with('~') {
                    self.next();
                    self.skip_digits();
                }
            }
            '$' => {
                self.next();
            }
            '/' => {
                self.next();
                self.skip_past('/', true)?;
                self.skip_letters(&['I', 'M']);
            }
            '\\' => {
                self.next();
                let delimiter = self.next()?;
                self.skip_past(delimiter, true)?;
                self.skip_letters(&['I', 'M']);
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn parse_substitute(&mut self) -> Option<()> {
        let delimiter = self.next()?;
        if matches!(delimiter, '\n' | '\\') {
            return None;
        }
        self.skip_past(delimiter, true)?;
        self.skip_past(delimiter, false)?;
        while let Some(flag) = self.rest.chars().next() {
            match flag {
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {
                    self.next();
                }
                'w' => {
                    self.next();
                    let file = self.take_line().trim_start().to_owned();
                    self.touches.push(SedFileAccess::Write(file));
                    return Some(());
                }
                _ => break,
            }
        }
        self.end_of_command()
    }

    /// Text of `a`, `i` and `c`: to the end of the line, lines that end in a backslash go on. Whether several
    /// backslashes are one that stands for itself differs.
    fn skip_text(&mut self) -> Option<()> {
        loop {
            let line = self.take_line();
            let backslashes = line.len() - line.trim_end_matches('\\').len();
            match backslashes {
                0 => return Some(()),
                1 if self.rest.is_empty() => return Some(()),
                1 => {}
                _ => return None,
            }
        }
    }

    fn end_of_command(&mut self) -> Option<()> {
        self.skip_letters(&[' ', '\t']);
        match self.rest.chars().next() {
            None | Some('\n' | ';' | '}' | '#') => Some(()),
            Some(_) => None,
        }
    }

    /// Skips to after `delimiter`; a backslash takes the next character with it. In a `[ ]` of an expression
    /// a delimiter is text to some and an end to others: such a script is not read.
    fn skip_past(&mut self, delimiter: char, is_expression: bool) -> Option<()> {
        loop {
            match self.next()? {
                '\\' => {
                    self.next()?;
                }
                '\n' if is_expression => return None,
                letter if letter == delimiter => return Some(()),
                '[' if is_expression => self.rest = after_list(self.rest, delimiter)?,
                _ => {}
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let mut letters = self.rest.chars();
        let letter = letters.next();
        self.rest = letters.as_str();
        letter
    }

    fn skip_letters(&mut self, letters: &[char]) {
        self.rest = self.rest.trim_start_matches(letters);
    }

    fn skip_digits(&mut self) {
        self.rest = self.rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    }

    fn take_line(&mut self) -> &'t str {
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harmless(script: &str) -> bool {
        let mut reader = SedReader { rest: script, touches: Vec::new() };
        reader.parse_script().is_some() && reader.touches.is_empty()
    }

    #[test]
    fn sed_scripts_that_only_print_are_read_only() {
        for script in [
            "1,5p",
            "$p",
            "s/a/b/",
            "s/a/b/g;s#x/y#z#2p",
            "/x/,/y/p",
            "/a\\/b/d",
            "$!N;P;D",
            "y/abc/xyz/",
            "1~2d",
            "/re/I!d",
            "{p;p}",
            "/a/{s/b/c/;p}",
            "a text; e id",
            "s/[0-9]*//",
            "10q",
            "0,/x/d",
            "5,+3p",
            "=",
            "",
            "/a/{\np\n}",
            "\\,x,p",
            "s/\\n/ /g",
            ":a;N;$!ba;s/\\n/ /g",
        ] {
            assert!(harmless(script), "{script}");
        }
    }

    #[test]
    fn sed_scripts_that_run_or_access_files_are_not_read_only() {
        for script in [
            "1e id",
            "e",
            "s/a/b/e",
            "s/a/b/ge",
            "w out",
            "$!{w out\n}",
            "s/a/b/w out",
            "r /etc/passwd",
            "R x",
            "1!G;h;$!d;w x",
            "W x",
            "s/a/b/W out",
            "xp",
            "p e",
            "v e",
            "{w x",
            "/[/]/e",
            "s",
            "k",
            "/a/e id",
            "1,5e",
            "a\\\ntext\ne id",
            "a foo\\\\\ne id",
            "s/[]/]/x/e",
            "}e id",
            "bx;e id",
            "y/a/b/;e",
            "#n\ne id",
        ] {
            assert!(!harmless(script), "{script}");
        }
    }
}
