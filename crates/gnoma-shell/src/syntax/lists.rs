//! Blanks, comments, line ends and reserved words; lists of statements and pipelines.

use super::cursor::{ParseResult, Parser, is_blank};
use super::{Condition, Pipeline, PipelineStage, Script, Span, Statement};

/// Words that mean something where a command may begin.
pub(super) const RESERVED: [&str; 22] = [
    "!", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "time", "until", "while", "{", "}", "]]",
];

/// Words that end a list of statements.
const CLOSING: [&str; 8] = ["do", "done", "elif", "else", "esac", "fi", "then", "}"];

impl Parser<'_> {
    /// The text to its end.
    pub(super) fn whole_script(&mut self) -> ParseResult<Script> {
        let script = self.parse_statements()?;
        if self.peek().is_some() {
            return Err(self.expected_error("a command"));
        }
        self.require_no_pending()?;
        Ok(script)
    }

    /// Statements up to something that only whoever called knows to be right or wrong.
    pub(super) fn parse_statements(&mut self) -> ParseResult<Script> {
        self.reserved = true;
        let mut statements: Vec<Statement> = Vec::new();
        loop {
            self.skip_lines()?;
            if self.at_list_end() {
                break;
            }
            let mut statement = self.parse_statement()?;
            self.skip_blanks();
            let ended = self.statement_ending(&mut statement);
            statements.push(statement);
            if !ended && !self.at_list_end() && self.peek() != Some('\n') {
                return Err(self.expected_error("`;`, `&`, `|` or a line end"));
            }
        }
        let span = match (statements.first(), statements.last()) {
            (Some(first), Some(last)) => Span { start: first.span.start, end: last.span.end },
            _ => self.span_between(self.at, self.at),
        };
        Ok(Script { span, statements })
    }

    /// Statements of which there must be one.
    pub(super) fn parse_body(&mut self) -> ParseResult<Script> {
        let script = self.parse_statements()?;
        if script.statements.is_empty() {
            return Err(self.expected_error("a command"));
        }
        Ok(script)
    }

    fn statement_ending(&mut self, statement: &mut Statement) -> bool {
        if self.peek() == Some('&') {
            self.bump();
            statement.background = true;
        } else if self.peek() == Some(';') && !matches!(self.peek_second(), Some(';' | '&')) {
            self.bump();
        } else {
            return false;
        }
        self.reserved = true;
        true
    }

    fn at_list_end(&mut self) -> bool {
        match self.peek() {
            None | Some(')') => true,
            Some(';') => matches!(self.peek_second(), Some(';' | '&')),
            Some(_) => self.reserved_word().is_some_and(|word| CLOSING.contains(&word)),
        }
    }

    fn parse_statement(&mut self) -> ParseResult<Statement> {
        let start = self.next_start();
        let first = self.parse_pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let condition = if self.eat("&&") {
                Condition::AfterSuccess
            } else if self.eat("||") {
                Condition::AfterFailure
            } else {
                break;
            };
            self.reserved = true;
            self.skip_lines()?;
            rest.push((condition, self.parse_pipeline()?));
        }
        Ok(Statement { span: self.span_from(start), first, rest, background: false })
    }

    fn parse_pipeline(&mut self) -> ParseResult<Pipeline> {
        let start = self.next_start();
        let (timed, negated) = self.pipeline_prefix()?;
        let mut stages = Vec::new();
        loop {
            let command = self.parse_command()?;
            self.skip_blanks();
            let pipes_errors = self.eat("|&");
            let goes_on = pipes_errors || (self.looking_at("||").is_none() && self.eat("|"));
            stages.push(PipelineStage { command, pipes_errors });
            if !goes_on {
                break;
            }
            self.reserved = true;
            self.skip_lines()?;
        }
        Ok(Pipeline { span: self.span_from(start), timed, negated, stages })
    }

    /// Parses `time` and `!` before a pipeline, and reports whether `time` stands here and whether the number of
    /// `!` is odd.
    fn pipeline_prefix(&mut self) -> ParseResult<(bool, bool)> {
        let (mut timed, mut negated) = (false, false);
        let mut time_is_word = std::mem::take(&mut self.opens_substitution);
        loop {
            match self.reserved_word() {
                Some("!") => {
                    if self.looking_at("!(").is_some() {
                        let why = "a pattern, or a negated subshell without a blank";
                        return Err(self.ambiguous_error(self.at, why));
                    }
                    self.take_reserved("!");
                    negated = !negated;
                }
                Some("time") if !time_is_word => {
                    self.take_reserved("time");
                    timed = true;
                    self.skip_time_options();
                }
                _ => return Ok((timed, negated)),
            }
            time_is_word = false;
            self.skip_blanks();
        }
    }

    fn skip_time_options(&mut self) {
        for option in ["-p", "--"] {
            self.skip_blanks();
            if let Some(end) = self.whole_word(option) {
                self.move_to(end);
            }
        }
    }

    /// Leaves blanks and a comment behind. Only called where a token may begin.
    pub(super) fn skip_blanks(&mut self) {
        self.skip_while(is_blank);
        if self.peek() == Some('#') {
            self.skip_raw_while(|found| found != '\n');
        }
    }

    /// Leaves blanks, comments and line ends behind, and reads here-documents that follow.
    pub(super) fn skip_lines(&mut self) -> ParseResult<()> {
        self.skip_blanks();
        while self.peek() == Some('\n') {
            self.at += 1;
            self.reserved = true;
            self.opens_substitution = false;
            self.read_here_documents()?;
            self.skip_blanks();
        }
        Ok(())
    }

    /// The reserved word that stands here, where one may.
    pub(super) fn reserved_word(&mut self) -> Option<&'static str> {
        if !self.reserved {
            return None;
        }
        let first = self.peek()?;
        RESERVED.into_iter().find(|word| word.starts_with(first) && self.whole_word(word).is_some())
    }

    /// Returns the end of `word` if it stands here unquoted and whole.
    pub(super) fn whole_word(&mut self, word: &str) -> Option<usize> {
        let end = self.looking_at(word)?;
        let here = std::mem::replace(&mut self.at, end);
        let is_whole = self.at_word_end();
        self.at = here;
        is_whole.then_some(end)
    }

    /// Takes a reserved word when it stands here.
    pub(super) fn take_reserved(&mut self, word: &str) -> bool {
        let Some(end) = self.whole_word(word) else { return false };
        self.move_to(end);
        self.reserved = true;
        true
    }

    /// Takes a reserved word that must stand here.
    pub(super) fn require_reserved(&mut self, word: &str, name: &'static str) -> ParseResult<()> {
        if self.reserved && self.take_reserved(word) {
            return Ok(());
        }
        Err(self.expected_error(name))
    }
}
