//! `( … )` after `name=`.

use super::cursor::{ParseResult, Parser};
use super::pieces::Shape;
use super::{ArrayElement, Word};

impl Parser<'_> {
    /// Elements in parentheses, with these.
    pub(super) fn parse_array(&mut self) -> ParseResult<Vec<ArrayElement>> {
        let start = self.at;
        let is_awaited = !self.pending.is_empty();
        let reserved = self.reserved;
        let mut elements = Vec::new();
        self.bump();
        loop {
            self.skip_array_blanks(start, is_awaited)?;
            match self.peek() {
                None => return Err(self.unterminated_error(start, "`(` of an array")),
                Some(')') => break,
                Some(_) => elements.push(self.array_element()?),
            }
        }
        self.bump();
        self.reserved = reserved;
        if !self.at_word_end() {
            return Err(self.ambiguous_error(self.at, "text directly after an array"));
        }
        Ok(elements)
    }

    fn skip_array_blanks(&mut self, start: usize, is_awaited: bool) -> ParseResult<()> {
        self.skip_blanks();
        while self.peek() == Some('\n') {
            self.at += 1;
            self.require_one_line(start, is_awaited)?;
            self.skip_blanks();
        }
        Ok(())
    }

    fn array_element(&mut self) -> ParseResult<ArrayElement> {
        let start = self.at;
        if self.peek() == Some('[')
            && let Some(element) = self.keyed_element()?
        {
            return Ok(element);
        }
        if !self.at_word() {
            return Err(self.expected_error("an element or `)`"));
        }
        let value = self.parse_word(Shape::Plain)?;
        let span = self.span_from(start);
        Ok(ArrayElement { span, subscript: None, append: false, value })
    }

    /// Parses an array element of the form `[key]=value`.
    fn keyed_element(&mut self) -> ParseResult<Option<ArrayElement>> {
        let start = self.at;
        let subscript: Word = self.parse_nested(Self::parse_subscript)?;
        let append = self.looking_at("+=").is_some() && self.eat("+");
        if !self.eat("=") {
            return self.retreat_to(start);
        }
        let value = self.parse_word(Shape::Value)?;
        let span = self.span_from(start);
        Ok(Some(ArrayElement { span, subscript: Some(subscript), append, value }))
    }
}
