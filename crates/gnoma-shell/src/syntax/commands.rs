//! Commands: which kind stands here, and simple ones.

use super::cursor::{
    CONTINUATION, ParseResult, Parser, continues_name, is_metacharacter, starts_name,
};
use super::pieces::Shape;
use super::{
    AssignedValue, Assignment, Command, CommandKind, Redirection, SimpleCommand, Span, Word,
    WordPart, WordPartKind,
};

/// Programs of the shell itself whose arguments may be `name=( … )`.
const DECLARING: [&str; 5] = ["declare", "export", "local", "readonly", "typeset"];

/// The places where `name=( … )` may stand in a simple command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrays {
    /// Before the first word.
    Assigned,
    /// Also in the arguments of the command.
    Declared,
    /// No more: bash forgets that they may after some words and redirections.
    Refused,
}

impl Arrays {
    fn after_word(self, word: &Word) -> Self {
        let is_process =
            |part: &WordPart| matches!(part.kind, WordPartKind::ProcessSubstitution { .. });
        let declares = self == Self::Declared
            || self == Self::Assigned
                && word.plain_text().is_some_and(|name| DECLARING.contains(&name));
        if declares && !word.parts.iter().any(is_process) { Self::Declared } else { Self::Refused }
    }
}

impl Parser<'_> {
    pub(super) fn parse_command(&mut self) -> ParseResult<Command> {
        self.count_node()?;
        self.skip_blanks();
        let start = self.next_start();
        if let Some(kind) = self.parse_nested(Self::parse_compound)? {
            return self.with_redirections(start, kind);
        }
        if self.reserved_word() == Some("coproc") {
            let kind = self.parse_nested(Self::parse_coprocess)?;
            return Ok(self.without_redirections(start, kind));
        }
        if let Some(word) = self.reserved_word() {
            return match word {
                "function" => self.parse_nested(|parser| parser.function_keyword(start)),
                // In a pipe and at the start of a substitution it is a plain word.
                "time" => self.parse_simple_command(start),
                _ => Err(self.expected_error("a command")),
            };
        }
        self.parse_simple_command(start)
    }

    /// A command that is not simple, with what follows it.
    pub(super) fn with_redirections(
        &mut self,
        start: usize,
        kind: CommandKind,
    ) -> ParseResult<Command> {
        let written = self.span_from(start);
        let mut redirections = Vec::new();
        self.skip_blanks();
        while let Some(redirection) = self.parse_redirection()? {
            redirections.push(redirection);
            self.reserved = false;
            self.skip_blanks();
        }
        Ok(Command { span: self.span_from(start), written, kind, redirections })
    }

    /// A command whose redirections belong to its body.
    pub(super) fn without_redirections(&self, start: usize, kind: CommandKind) -> Command {
        let span = self.span_from(start);
        Command { span, written: span, kind, redirections: Vec::new() }
    }

    /// Assignments, words and redirections, or `name() …`.
    pub(super) fn parse_simple_command(&mut self, start: usize) -> ParseResult<Command> {
        let mut simple = SimpleCommand::default();
        let mut redirections: Vec<Redirection> = Vec::new();
        let mut arrays = Arrays::Assigned;
        loop {
            self.skip_blanks();
            if let Some(redirection) = self.parse_redirection()? {
                if !simple.words.is_empty() || !simple.assignments.is_empty() {
                    arrays = Arrays::Refused;
                }
                redirections.push(redirection);
            } else if let Some(assignment) = self.prefix_assignment(&simple, arrays)? {
                simple.assignments.push(assignment);
            } else if self.at_word() {
                let declares = arrays == Arrays::Declared;
                let word =
                    self.parse_word(if declares { Shape::Declaration } else { Shape::Plain })?;
                arrays = arrays.after_word(&word);
                simple.words.push(word);
            } else {
                break;
            }
            self.reserved = false;
        }
        if self.peek() == Some('(') {
            return self.simple_or_function(start, &simple, &redirections);
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && redirections.is_empty() {
            return Err(self.expected_error("a command"));
        }
        let span = self.span_from(start);
        let written = written_span(&simple).unwrap_or(span);
        Ok(Command { span, written, kind: CommandKind::Simple(simple), redirections })
    }

    /// A parenthesis after words: `name()`, or wrong.
    fn simple_or_function(
        &mut self,
        start: usize,
        simple: &SimpleCommand,
        redirections: &[Redirection],
    ) -> ParseResult<Command> {
        match simple.words.as_slice() {
            [name] if simple.assignments.is_empty() && redirections.is_empty() => {
                self.parse_nested(|parser| parser.function_parentheses(start, name))
            }
            _ => Err(self.expected_error("an argument")),
        }
    }

    /// True if a word begins here.
    pub(super) fn at_word(&mut self) -> bool {
        match self.peek() {
            None => false,
            Some('<' | '>') => self.peek_second() == Some('('),
            Some(found) => !is_metacharacter(found),
        }
    }

    fn prefix_assignment(
        &mut self,
        simple: &SimpleCommand,
        arrays: Arrays,
    ) -> ParseResult<Option<Assignment>> {
        if !simple.words.is_empty() || !self.peek().is_some_and(starts_name) {
            return Ok(None);
        }
        let start = self.at;
        let name = self.parse_name();
        let mut subscript = None;
        if self.peek() == Some('[') {
            if arrays == Arrays::Refused {
                return Err(self.ambiguous_error(start, "a subscript after a redirection"));
            }
            subscript = Some(self.parse_nested(Self::parse_subscript)?);
        }
        let append = self.looking_at("+=").is_some() && self.eat("+");
        if !self.eat("=") {
            return self.retreat_to(start);
        }
        let value = if self.peek() == Some('(') {
            if arrays == Arrays::Refused {
                return Err(self.expected_error("a value"));
            }
            AssignedValue::Array(self.parse_nested(Self::parse_array)?)
        } else {
            AssignedValue::Word(self.parse_word(Shape::Value)?)
        };
        self.count_node()?;
        let span = self.span_from(start);
        Ok(Some(Assignment { span, name, subscript, append, value }))
    }

    /// Goes back to `start`, where a plain word follows. bash takes what looked like a subscript for a
    /// part of that word whatever it holds, so it may hold nothing special.
    pub(super) fn retreat_to<T>(&mut self, start: usize) -> ParseResult<Option<T>> {
        let text =
            self.text.get(start..self.consumed_end()).unwrap_or_default().replace(CONTINUATION, "");
        let is_special = |found| is_metacharacter(found) || "'\"`\\".contains(found);
        if text.contains(is_special) {
            return Err(self.ambiguous_error(start, "a subscript with blanks, quotes or operators"));
        }
        self.at = start;
        Ok(None)
    }

    /// A variable's name; empty when none stands here.
    pub(super) fn parse_name(&mut self) -> String {
        let mut name = String::new();
        while let Some(found) = self.peek().filter(|found| {
            if name.is_empty() { starts_name(*found) } else { continues_name(*found) }
        }) {
            self.bump();
            name.push(found);
        }
        name
    }
}

/// From the first assignment or word to the last.
fn written_span(simple: &SimpleCommand) -> Option<Span> {
    let assignments = simple.assignments.iter().map(|assignment| assignment.span);
    let mut spans = assignments.chain(simple.words.iter().map(|word| word.span));
    let first = spans.next()?;
    let end = spans.last().unwrap_or(first).end;
    Some(Span { start: first.start, end })
}
