//! The place in the text, and how much may still be read.
//!
//! A backslash before a line end joins two lines anywhere but in quotes, so looking at a character steps
//! over it. Texts within a text (backquotes, here-documents) are read by a parser of their own whose
//! places are those of the whole.

use std::sync::{Arc, OnceLock};

use super::error::{ParseError, ParseErrorKind};
use super::limits::{MAX_DEPTH, MAX_NODES, MAX_REREAD_BYTES};
use super::{Span, Word};

pub(super) type ParseResult<T> = Result<T, ParseError>;

/// A backslash and a line end, which join two lines.
pub(super) const CONTINUATION: &str = "\\\n";

/// A here-document whose body is still to come.
pub(super) struct PendingHereDocument {
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strips_tabs: bool,
    pub(super) at: usize,
    pub(super) body: Arc<OnceLock<Word>>,
}

/// The resources that a whole text may use up, shared by the texts within it.
#[derive(Default)]
pub(super) struct ParseBudget {
    depth: usize,
    nodes: usize,
    reread: usize,
}

pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    /// For each byte of `text` and its end, the byte of the whole; `None` when they are the same.
    places: Option<&'a [usize]>,
    budget: &'a mut ParseBudget,
    pub(super) at: usize,
    /// End of the last character that belongs to something.
    consumed: usize,
    /// True if a word that follows may be a reserved one.
    pub(super) reserved: bool,
    /// True if no text stands between `$(` and here: in that case `time` is a plain word.
    pub(super) opens_substitution: bool,
    /// Here-documents whose bodies begin after this line.
    pub(super) pending: Vec<PendingHereDocument>,
    /// Within double quotes or a here-document, also in an expansion there.
    pub(super) in_quotes: bool,
    /// The number of `$( )` and the like that are open in this text.
    pub(super) substitutions: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, budget: &'a mut ParseBudget) -> Self {
        Parser {
            text,
            places: None,
            budget,
            at: 0,
            consumed: 0,
            reserved: true,
            opens_substitution: false,
            pending: Vec::new(),
            in_quotes: false,
            substitutions: 0,
        }
    }

    /// A parser for a text that was taken out of this one; `places` are places of the whole.
    pub(super) fn sub_parser<'b>(&'b mut self, text: &'b str, places: &'b [usize]) -> Parser<'b> {
        Parser { places: Some(places), ..Parser::new(text, self.budget) }
    }

    /// The next character. Joined lines before it are left behind.
    pub(super) fn peek(&mut self) -> Option<char> {
        self.at = self.skip_continuations(self.at);
        self.peek_raw()
    }

    /// The next character as written.
    pub(super) fn peek_raw(&self) -> Option<char> {
        self.text_from(self.at).chars().next()
    }

    /// The character after the next one.
    pub(super) fn peek_second(&mut self) -> Option<char> {
        let first = self.peek()?;
        let second = self.skip_continuations(self.at + first.len_utf8());
        self.text_from(second).chars().next()
    }

    /// Text from a place on.
    pub(super) fn text_from(&self, from: usize) -> &'a str {
        self.text.get(from..).unwrap_or_default()
    }

    fn skip_continuations(&self, mut at: usize) -> usize {
        while self.text_from(at).starts_with(CONTINUATION) {
            at += CONTINUATION.len();
        }
        at
    }

    /// Takes the next character as part of something.
    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.advance_past(next);
        Some(next)
    }

    /// Takes the next character as written.
    pub(super) fn bump_raw(&mut self) -> Option<char> {
        let next = self.peek_raw()?;
        self.advance_past(next);
        Some(next)
    }

    fn advance_past(&mut self, next: char) {
        self.at += next.len_utf8();
        self.consumed = self.at;
    }

    /// Leaves characters behind that belong to nothing.
    pub(super) fn skip_while(&mut self, skipped: impl Fn(char) -> bool) {
        while let Some(next) = self.peek().filter(|next| skipped(*next)) {
            self.at += next.len_utf8();
        }
    }

    /// Leaves characters behind as written.
    pub(super) fn skip_raw_while(&mut self, skipped: impl Fn(char) -> bool) {
        while let Some(next) = self.peek_raw().filter(|next| skipped(*next)) {
            self.at += next.len_utf8();
        }
    }

    /// True if a word cannot continue here.
    pub(super) fn at_word_end(&mut self) -> bool {
        match self.peek() {
            None => true,
            Some('<' | '>') => self.peek_second() != Some('('),
            Some(found) => is_metacharacter(found),
        }
    }

    /// Returns the end of `wanted` if the text continues with it.
    pub(super) fn looking_at(&self, wanted: &str) -> Option<usize> {
        let mut at = self.at;
        for character in wanted.chars() {
            at = self.skip_continuations(at);
            if !self.text_from(at).starts_with(character) {
                return None;
            }
            at += character.len_utf8();
        }
        Some(at)
    }

    /// Takes `wanted` when the text goes on with it.
    pub(super) fn eat(&mut self, wanted: &str) -> bool {
        let Some(end) = self.looking_at(wanted) else { return false };
        self.move_to(end);
        true
    }

    /// Takes everything up to a place.
    pub(super) fn move_to(&mut self, end: usize) {
        self.at = end;
        self.consumed = end;
    }

    /// Takes `wanted` or fails.
    pub(super) fn expect(&mut self, wanted: char, name: &'static str) -> ParseResult<()> {
        if self.peek() == Some(wanted) {
            self.bump();
            return Ok(());
        }
        Err(self.expected_error(name))
    }

    /// Returns the offset of the next character.
    pub(super) fn next_start(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// End of what was taken last.
    pub(super) fn consumed_end(&self) -> usize {
        self.consumed
    }

    /// From `start` to what was taken last, in places of the whole.
    pub(super) fn span_from(&self, start: usize) -> Span {
        self.span_between(start, self.consumed.max(start))
    }

    pub(super) fn span_between(&self, start: usize, end: usize) -> Span {
        Span { start: self.original_place(start), end: self.original_place(end) }
    }

    /// A place of this text as a place of the whole.
    pub(super) fn original_place(&self, at: usize) -> usize {
        match self.places {
            None => at,
            Some(places) => places.get(at).or(places.last()).copied().unwrap_or_default(),
        }
    }

    /// Runs `read` one level deeper.
    pub(super) fn parse_nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<T> {
        if self.budget.depth == MAX_DEPTH {
            return Err(self.limit_error("levels of nesting", MAX_DEPTH));
        }
        self.budget.depth += 1;
        let result = read(self);
        self.budget.depth -= 1;
        result
    }

    /// Counts one more node.
    pub(super) fn count_node(&mut self) -> ParseResult<()> {
        self.budget.nodes += 1;
        if self.budget.nodes > MAX_NODES {
            return Err(self.limit_error("words and parts", MAX_NODES));
        }
        Ok(())
    }

    /// Counts text that is read again.
    pub(super) fn count_reread(&mut self, bytes: usize) -> ParseResult<()> {
        self.budget.reread += bytes;
        if self.budget.reread > MAX_REREAD_BYTES {
            return Err(self.limit_error("bytes that are read again", MAX_REREAD_BYTES));
        }
        Ok(())
    }

    pub(super) fn expected_error(&mut self, wanted: &'static str) -> ParseError {
        let found = self.peek();
        self.error_at(self.at, ParseErrorKind::Expected { wanted, found })
    }

    pub(super) fn unterminated_error(&self, start: usize, what: &'static str) -> ParseError {
        self.error_at(start, ParseErrorKind::Unterminated(what))
    }

    pub(super) fn ambiguous_error(&self, at: usize, why: &'static str) -> ParseError {
        self.error_at(at, ParseErrorKind::Ambiguous(why))
    }

    pub(super) fn limit_error(&self, what: &'static str, limit: usize) -> ParseError {
        self.error_at(self.at, ParseErrorKind::Limit { what, limit })
    }

    fn error_at(&self, at: usize, kind: ParseErrorKind) -> ParseError {
        ParseError { at: self.original_place(at), kind }
    }
}

/// Ends a word unless quoted.
pub(super) fn is_metacharacter(found: char) -> bool {
    matches!(found, ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')
}

pub(super) fn is_blank(found: char) -> bool {
    matches!(found, ' ' | '\t')
}

pub(super) fn starts_name(found: char) -> bool {
    found.is_ascii_alphabetic() || found == '_'
}

pub(super) fn continues_name(found: char) -> bool {
    found.is_ascii_alphanumeric() || found == '_'
}

/// True if a text is a variable's name.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(starts_name) && text.chars().all(continues_name)
}
