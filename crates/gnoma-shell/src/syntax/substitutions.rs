//! Commands within words: `$( )`, `<( )`, `>( )` and backquotes.

use super::Script;
use super::cursor::{ParseResult, Parser};

impl Parser<'_> {
    /// Statements between `open` and `)`.
    pub(super) fn parse_substitution(&mut self, open: &'static str) -> ParseResult<Script> {
        let start = self.at;
        let (reserved, pending) = (self.reserved, std::mem::take(&mut self.pending));
        let in_quotes = std::mem::take(&mut self.in_quotes);
        self.eat(open);
        let close = self.doubtful_close(open)?;
        self.substitutions += 1;
        self.opens_substitution = true;
        let script = self.parse_nested(Self::parse_statements)?;
        self.substitutions -= 1;
        self.require_no_pending()?;
        match self.peek() {
            None => return Err(self.unterminated_error(start, open)),
            Some(')') => self.bump(),
            Some(_) => return Err(self.expected_error("a command or `)`")),
        };
        if close.is_some_and(|close| self.consumed_end() != close + 1) {
            return Err(self.ambiguous_error(start, "arithmetic, or a subshell without a blank"));
        }
        self.require_one_line(start, !pending.is_empty())?;
        (self.reserved, self.pending) = (reserved, pending);
        self.in_quotes = in_quotes;
        Ok(script)
    }

    /// After two parentheses without a blank bash goes by brackets alone; where it finds the end.
    fn doubtful_close(&mut self, open: &'static str) -> ParseResult<Option<usize>> {
        if self.peek() == Some('(') {
            self.find_closing(self.at, ')', open).map(Some)
        } else {
            Ok(None)
        }
    }

    /// A line end within a construct cannot be told from the one that a here-document waits for.
    pub(super) fn require_one_line(&self, start: usize, is_awaited: bool) -> ParseResult<()> {
        let text = self.text.get(start..self.at).unwrap_or_default();
        if is_awaited && text.contains('\n') {
            return Err(
                self.ambiguous_error(start, "a line break in brackets before a here-document")
            );
        }
        Ok(())
    }

    /// Statements between backquotes. `unescapes_quotes` says whether `\"` means `"` there.
    pub(super) fn parse_backquoted(
        &mut self,
        unescapes_quotes: Option<bool>,
    ) -> ParseResult<Script> {
        let start = self.at;
        let mut inner = ExtractedText::default();
        self.bump_raw();
        loop {
            let at = self.at;
            match self.bump_raw() {
                None => return Err(self.unterminated_error(start, "a backquote")),
                Some('`') => {
                    inner.places.push(self.original_place(at));
                    break;
                }
                Some('\\') => self.backquoted_escape(at, unescapes_quotes, &mut inner)?,
                Some(found) => inner.push(found, self.original_place(at)),
            }
        }
        self.sub_parser(&inner.text, &inner.places).whole_script()
    }

    fn backquoted_escape(
        &mut self,
        at: usize,
        unescapes_quotes: Option<bool>,
        inner: &mut ExtractedText,
    ) -> ParseResult<()> {
        let place = self.original_place(at);
        let Some(found) = self.bump_raw() else {
            return Err(self.unterminated_error(at, "a backquote"));
        };
        match found {
            '\n' => {}
            '$' | '`' | '\\' => inner.push(found, place),
            '"' if unescapes_quotes.is_none() => {
                return Err(self.ambiguous_error(at, "`\\\"` in backquotes within an expansion"));
            }
            '"' if unescapes_quotes == Some(true) => inner.push(found, place),
            _ => {
                inner.push('\\', place);
                inner.push(found, self.original_place(at + 1));
            }
        }
        Ok(())
    }
}

/// A text that was taken out of another, and where each of its bytes stood.
#[derive(Default)]
pub(super) struct ExtractedText {
    pub(super) text: String,
    pub(super) places: Vec<usize>,
}

impl ExtractedText {
    pub(super) fn push(&mut self, found: char, place: usize) {
        self.text.push(found);
        self.places.extend(place..place + found.len_utf8());
    }
}
