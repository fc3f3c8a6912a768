//! Groups, conditions, loops, `case`, functions and coprocesses.

use super::cursor::{ParseResult, Parser, is_blank, is_name};
use super::pieces::Shape;
use super::{CaseArm, CaseEnding, Command, CommandKind, Loop, Script, Word};

/// Words that begin a command which is not simple.
const BEGINNING: [&str; 8] = ["{", "[[", "if", "for", "select", "case", "while", "until"];

impl Parser<'_> {
    /// A command that begins with a reserved word or a parenthesis, if one stands here.
    pub(super) fn parse_compound(&mut self) -> ParseResult<Option<CommandKind>> {
        if self.peek() == Some('(') {
            return self.parse_parenthesis().map(Some);
        }
        let Some(word) = self.reserved_word() else { return Ok(None) };
        if !BEGINNING.contains(&word) {
            return Ok(None);
        }
        self.take_reserved(word);
        let kind = match word {
            "{" => self.braced_body().map(CommandKind::Group),
            "[[" => self.parse_test(),
            "if" => self.if_command(),
            "for" => self.for_command(),
            "select" => self.select_command(),
            "case" => self.case_command(),
            _ => self.while_command(word == "until"),
        };
        kind.map(Some)
    }

    /// Parses the text after `{`, with its `}`.
    fn braced_body(&mut self) -> ParseResult<Script> {
        let body = self.parse_body()?;
        self.require_reserved("}", "`}`")?;
        Ok(body)
    }

    /// `((…))` or `( … )`.
    fn parse_parenthesis(&mut self) -> ParseResult<CommandKind> {
        let Some(inside) = self.looking_at("((") else { return self.parse_subshell() };
        let close = self.arithmetic_closing(inside, ')', "`((`")?;
        if let Some(end) = self.doubly_closed(close) {
            self.move_to(inside);
            let arithmetic = self.arithmetic_to(close)?;
            self.move_to(end);
            self.reserved = true;
            return Ok(CommandKind::Arithmetic(arithmetic));
        }
        self.require_subshell_end(inside - 1, close)?;
        self.parse_subshell()
    }

    /// bash tells `((` from two subshells by quotes and parentheses alone. The subshell that begins at
    /// `start` must end where bash thinks that it does.
    fn require_subshell_end(&mut self, start: usize, close: usize) -> ParseResult<()> {
        self.count_reread(close - start)?;
        let outer = (self.at, std::mem::take(&mut self.pending));
        self.at = start;
        self.parse_nested(Self::parse_subshell)?;
        let end = self.consumed_end();
        (self.at, self.pending) = outer;
        if end != close + 1 {
            return Err(self.ambiguous_error(start, "arithmetic, or a subshell without a blank"));
        }
        Ok(())
    }

    fn parse_subshell(&mut self) -> ParseResult<CommandKind> {
        self.bump();
        let body = self.parse_body()?;
        self.expect(')', "`)`")?;
        self.reserved = true;
        Ok(CommandKind::Subshell(body))
    }

    fn if_command(&mut self) -> ParseResult<CommandKind> {
        let mut branches = Vec::new();
        loop {
            let condition = self.parse_body()?;
            self.require_reserved("then", "`then`")?;
            branches.push((condition, self.parse_body()?));
            if !(self.reserved && self.take_reserved("elif")) {
                break;
            }
        }
        let has_else = self.reserved && self.take_reserved("else");
        let otherwise = if has_else { Some(self.parse_body()?) } else { None };
        self.require_reserved("fi", "`fi`")?;
        Ok(CommandKind::If { branches, otherwise })
    }

    fn while_command(&mut self, until: bool) -> ParseResult<CommandKind> {
        let condition = self.parse_body()?;
        let body = self.do_body()?;
        Ok(CommandKind::While { until, condition, body })
    }

    fn do_body(&mut self) -> ParseResult<Script> {
        self.require_reserved("do", "`do`")?;
        let body = self.parse_body()?;
        self.require_reserved("done", "`done`")?;
        Ok(body)
    }

    fn for_command(&mut self) -> ParseResult<CommandKind> {
        self.skip_blanks();
        if self.looking_at("((").is_some() {
            return self.arithmetic_for();
        }
        self.named_loop().map(CommandKind::For)
    }

    fn select_command(&mut self) -> ParseResult<CommandKind> {
        self.skip_blanks();
        self.named_loop().map(CommandKind::Select)
    }

    fn named_loop(&mut self) -> ParseResult<Loop> {
        let word = self.parse_word(Shape::Plain)?;
        let name = word.plain_text().filter(|name| is_name(name));
        let Some(name) = name.map(str::to_owned) else {
            return Err(self.ambiguous_error(word.span.start, "a loop needs a variable's name"));
        };
        self.reserved = false;
        self.skip_blanks();
        let words = self.loop_words()?;
        let body = self.loop_body()?;
        Ok(Loop { name, words, body })
    }

    /// Parses the text between a loop's name and its body.
    fn loop_words(&mut self) -> ParseResult<Option<Vec<Word>>> {
        if self.loop_separator()? {
            return Ok(None);
        }
        self.skip_lines()?;
        if !self.take_reserved("in") {
            return Ok(None);
        }
        let mut words = Vec::new();
        self.skip_blanks();
        while self.at_word() {
            words.push(self.parse_word(Shape::Plain)?);
            self.skip_blanks();
        }
        self.reserved = false;
        if !self.loop_separator()? && self.peek() != Some('\n') {
            return Err(self.expected_error("`;` or a line end"));
        }
        self.skip_lines()?;
        Ok(Some(words))
    }

    fn loop_separator(&mut self) -> ParseResult<bool> {
        if self.peek() != Some(';') || matches!(self.peek_second(), Some(';' | '&')) {
            return Ok(false);
        }
        self.bump();
        self.reserved = true;
        self.skip_lines()?;
        Ok(true)
    }

    /// `do … done` or `{ … }`.
    fn loop_body(&mut self) -> ParseResult<Script> {
        if self.reserved && self.take_reserved("{") {
            return self.braced_body();
        }
        self.reserved = true;
        self.do_body()
    }

    fn arithmetic_for(&mut self) -> ParseResult<CommandKind> {
        let start = self.at;
        self.eat("((");
        let close = self.arithmetic_closing(self.at, ')', "`((`")?;
        let Some(end) = self.doubly_closed(close) else {
            return Err(self.unterminated_error(start, "`((`"));
        };
        let header = self.arithmetic_header(close)?;
        self.move_to(end);
        self.reserved = true;
        self.skip_blanks();
        self.loop_separator()?;
        self.skip_lines()?;
        Ok(CommandKind::ArithmeticFor { header, body: self.loop_body()? })
    }

    fn case_command(&mut self) -> ParseResult<CommandKind> {
        self.skip_blanks();
        let subject = self.parse_word(Shape::Pattern)?;
        self.skip_lines()?;
        if !self.take_reserved("in") {
            return Err(self.expected_error("`in`"));
        }
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take_reserved("esac") {
                return Ok(CommandKind::Case { subject, arms });
            }
            let (arm, has_ending) = self.case_arm()?;
            arms.push(arm);
            if !has_ending {
                self.require_reserved("esac", "`esac`")?;
                return Ok(CommandKind::Case { subject, arms });
            }
        }
    }

    fn case_arm(&mut self) -> ParseResult<(CaseArm, bool)> {
        let start = self.next_start();
        if self.eat("(") {
            self.skip_blanks();
        }
        let mut patterns = vec![self.parse_word(Shape::Pattern)?];
        self.skip_blanks();
        while self.eat("|") {
            self.skip_blanks();
            patterns.push(self.parse_word(Shape::Pattern)?);
            self.skip_blanks();
        }
        self.expect(')', "`)` after a pattern")?;
        let body = self.parse_statements()?;
        let ending = if self.eat(";;&") {
            Some(CaseEnding::TryNext)
        } else if self.eat(";;") {
            Some(CaseEnding::Done)
        } else if self.eat(";&") {
            Some(CaseEnding::FallThrough)
        } else {
            None
        };
        let span = self.span_from(start);
        let arm = CaseArm { span, patterns, body, ending: ending.unwrap_or(CaseEnding::Done) };
        Ok((arm, ending.is_some()))
    }

    /// `function name [()] body`.
    pub(super) fn function_keyword(&mut self, start: usize) -> ParseResult<Command> {
        self.take_reserved("function");
        self.skip_blanks();
        let word = self.parse_word(Shape::Plain)?;
        self.skip_blanks();
        let body = self.at;
        if self.eat("(") {
            self.skip_while(is_blank);
            if !self.eat(")") {
                self.at = body;
            }
        }
        self.function_body(start, &word)
    }

    /// Parses the function after `name`, if a parenthesis follows the name.
    pub(super) fn function_parentheses(
        &mut self,
        start: usize,
        name: &Word,
    ) -> ParseResult<Command> {
        self.bump();
        self.skip_blanks();
        self.expect(')', "`)` of a function")?;
        self.function_body(start, name)
    }

    fn function_body(&mut self, start: usize, word: &Word) -> ParseResult<Command> {
        let Some(name) = word.plain_text().map(str::to_owned) else {
            return Err(self.ambiguous_error(word.span.start, "a function needs a plain name"));
        };
        self.reserved = true;
        self.skip_lines()?;
        let body_start = self.next_start();
        let Some(kind) = self.parse_compound()? else {
            return Err(self.expected_error("a function's body"));
        };
        let body = Box::new(self.with_redirections(body_start, kind)?);
        let kind = CommandKind::Function { name, body };
        Ok(self.without_redirections(start, kind))
    }

    pub(super) fn parse_coprocess(&mut self) -> ParseResult<CommandKind> {
        self.take_reserved("coproc");
        self.skip_blanks();
        let start = self.next_start();
        if let Some(kind) = self.parse_compound()? {
            let body = Box::new(self.with_redirections(start, kind)?);
            return Ok(CommandKind::Coprocess { name: None, body });
        }
        if let Some(name) = self.coprocess_name() {
            let start = self.next_start();
            if let Some(kind) = self.parse_compound()? {
                let body = Box::new(self.with_redirections(start, kind)?);
                return Ok(CommandKind::Coprocess { name: Some(name), body });
            }
        }
        self.at = start;
        self.require_plain_coprocess()?;
        self.reserved = false;
        let body = Box::new(self.parse_simple_command(start)?);
        if matches!(body.kind, CommandKind::Function { .. }) {
            return Err(self.ambiguous_error(start, "a function cannot be a coprocess"));
        }
        Ok(CommandKind::Coprocess { name: None, body })
    }

    /// The first word of a coprocess may be a name, and the second is a reserved one then.
    fn require_plain_coprocess(&mut self) -> ParseResult<()> {
        let start = self.next_start();
        self.reserved = true;
        let mut is_plain = self.reserved_word().is_none();
        if is_plain && self.at_word() {
            self.parse_word(Shape::Plain)?;
            self.count_reread(self.at - start)?;
            self.skip_blanks();
            is_plain = self.reserved_word().is_none() && !self.at_subscript();
        }
        if !is_plain {
            return Err(self.ambiguous_error(start, "a coprocess that may have a name"));
        }
        self.at = start;
        Ok(())
    }

    fn at_subscript(&mut self) -> bool {
        let start = self.at;
        let is_named = !self.parse_name().is_empty() && self.peek() == Some('[');
        self.at = start;
        is_named
    }

    fn coprocess_name(&mut self) -> Option<String> {
        if self.reserved_word().is_some() {
            return None;
        }
        let name = self.parse_name();
        let is_whole = self.peek().is_some_and(|found| found == ' ' || found == '\t');
        self.skip_blanks();
        (is_whole && !name.is_empty()).then_some(name)
    }
}
