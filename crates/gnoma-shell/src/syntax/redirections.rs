//! `>`, `<` and their relatives.

use super::cursor::{CONTINUATION, ParseResult, Parser, is_metacharacter, is_name};
use super::pieces::Shape;
use super::{Descriptor, Redirection, Target, Word, WordPart, WordPartKind};

/// Longest first, so that the first that fits is the one bash reads.
const OPERATORS: [&str; 12] =
    ["&>>", "&>", "<<<", "<<-", "<<", "<&", "<>", "<", ">>", ">&", ">|", ">"];

impl Parser<'_> {
    pub(super) fn parse_redirection(&mut self) -> ParseResult<Option<Redirection>> {
        let start = self.next_start();
        let descriptor = self.parse_descriptor()?;
        let Some(first) = self.peek() else { return Ok(None) };
        let operator = OPERATORS
            .into_iter()
            .find(|operator| operator.starts_with(first) && self.looking_at(operator).is_some());
        let Some(operator) = operator else { return Ok(None) };
        if matches!(operator, "<" | ">") && self.peek_second() == Some('(') {
            self.at = start;
            return Ok(None);
        }
        self.eat(operator);
        self.count_node()?;
        let is_output = matches!(descriptor, None | Some(Descriptor::Number(1)));
        let target = self.parse_target(operator, is_output)?;
        Ok(Some(Redirection { span: self.span_from(start), descriptor, target }))
    }

    /// A number or `{name}` directly before an operator. Stays where it is when there is none.
    fn parse_descriptor(&mut self) -> ParseResult<Option<Descriptor>> {
        let start = self.at;
        self.skip_while(|found| found.is_ascii_digit());
        if self.at > start && self.at_descriptor_operator() {
            let digits =
                self.text.get(start..self.at).unwrap_or_default().replace(CONTINUATION, "");
            return match digits.parse() {
                Ok(number) => Ok(Some(Descriptor::Number(number))),
                Err(_) => {
                    Err(self.ambiguous_error(start, "a descriptor that is not a small number"))
                }
            };
        }
        self.at = start;
        if self.peek() == Some('{') {
            self.at += 1;
            self.skip_while(|found| found != '}' && !is_metacharacter(found));
            let name = self.text.get(start + 1..self.at).unwrap_or_default();
            if self.peek() == Some('}') && is_name(name) {
                self.at += 1;
                if self.at_descriptor_operator() {
                    return Ok(Some(Descriptor::Variable(name.to_owned())));
                }
            }
            self.at = start;
        }
        Ok(None)
    }

    /// True if an operator stands here that takes a descriptor, and not `<(`.
    fn at_descriptor_operator(&mut self) -> bool {
        matches!(self.peek(), Some('<' | '>')) && self.peek_second() != Some('(')
    }

    fn parse_target(&mut self, operator: &str, is_output: bool) -> ParseResult<Target> {
        self.skip_blanks();
        if matches!(operator, "<<" | "<<-") {
            return self.here_document(operator == "<<-").map(Target::HereDocument);
        }
        let duplicates = matches!(operator, "<&" | ">&");
        if duplicates && self.peek() == Some('-') {
            return self.closed_descriptor(operator);
        }
        if !self.at_word() {
            return Err(self.expected_error("a file name"));
        }
        let start = self.at;
        let shape = if operator == "<<<" { Shape::Value } else { Shape::Plain };
        let word = self.parse_word(shape)?;
        if operator == ">&" && is_output {
            self.require_certain_file(start, &word)?;
        }
        let is_number = word.plain_text().is_some_and(is_number);
        if !(duplicates && is_number) {
            self.require_no_descriptor(start, word.plain_text())?;
        }
        Ok(match operator {
            "<" => Target::Read(word),
            ">" => Target::Write(word),
            ">|" => Target::Clobber(word),
            ">>" => Target::Append(word),
            "<>" => Target::ReadWrite(word),
            "<&" => Target::DuplicateInput(word),
            ">&" => Target::DuplicateOutput(word),
            "&>" => Target::WriteBoth(word),
            "&>>" => Target::AppendBoth(word),
            _ => Target::HereString(word),
        })
    }

    /// `>&-`: bash takes the `-` alone, whatever follows.
    fn closed_descriptor(&mut self, operator: &str) -> ParseResult<Target> {
        let start = self.at;
        self.bump();
        if !self.at_word_end() {
            return Err(self.ambiguous_error(start, "a closed descriptor that something follows"));
        }
        let span = self.span_from(start);
        let part = WordPart { span, kind: WordPartKind::Literal("-".to_owned()) };
        let word = Word { span, parts: vec![part] };
        Ok(match operator {
            "<&" => Target::DuplicateInput(word),
            _ => Target::DuplicateOutput(word),
        })
    }

    /// bash expands a file name after `>&` twice, so that quotes do not keep commands in it from running.
    fn require_certain_file(&self, at: usize, word: &Word) -> ParseResult<()> {
        let parts = match word.parts.as_slice() {
            [WordPart { kind: WordPartKind::Tilde(_), .. }, rest @ ..] => rest,
            parts => parts,
        };
        let name = Word { span: word.span, parts: parts.to_vec() }.constant_text();
        if name.is_some_and(|name| !name.contains(|found| "$`\\'\"*?[{~<>".contains(found))) {
            return Ok(());
        }
        Err(self.ambiguous_error(at, "a name that is expanded twice"))
    }

    /// In `> 2> x` bash takes `2` for a descriptor, so that a name is missing.
    pub(super) fn require_no_descriptor(
        &mut self,
        at: usize,
        text: Option<&str>,
    ) -> ParseResult<()> {
        let is_descriptor = text.is_some_and(|text| {
            let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
            is_number(text) || name.is_some_and(is_name)
        });
        if is_descriptor && matches!(self.peek(), Some('<' | '>')) {
            return Err(self.ambiguous_error(at, "a file name, or a descriptor"));
        }
        Ok(())
    }
}

fn is_number(text: &str) -> bool {
    text.chars().all(|found| found.is_ascii_digit())
}
