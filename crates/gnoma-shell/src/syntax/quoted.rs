//! Text in which only expansions have a meaning: double quotes, here-documents, arithmetic.

use super::cursor::{ParseResult, Parser};
use super::pieces::BracePieces;
use super::{Arithmetic, Word, WordPart, WordPartKind};

/// The end of such a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuoteEnd {
    /// The text ends at `"`.
    DoubleQuote,
    /// At the end of the text.
    Text,
    /// At a place that brackets tell. Quotes there do not keep expansions from running.
    Place(usize),
}

impl QuoteEnd {
    /// True if a backslash takes the special meaning from the character.
    fn can_escape(self, found: char) -> bool {
        match self {
            Self::DoubleQuote => matches!(found, '$' | '`' | '"' | '\\'),
            Self::Text => matches!(found, '$' | '`' | '\\'),
            Self::Place(_) => matches!(found, '$' | '`' | '"' | '\\' | '}'),
        }
    }

    /// True if `\"` in backquotes loses its backslash; `None` if that cannot be told.
    fn unescapes_quotes(self) -> Option<bool> {
        match self {
            Self::DoubleQuote => Some(true),
            Self::Text => Some(false),
            Self::Place(_) => None,
        }
    }
}

impl Parser<'_> {
    pub(super) fn parse_quoted(&mut self, fence: QuoteEnd) -> ParseResult<Vec<WordPart>> {
        let mut pieces = BracePieces::default();
        while let Some(found) = self.peek() {
            match fence {
                QuoteEnd::DoubleQuote if found == '"' => break,
                QuoteEnd::Place(end) if self.at >= end => break,
                _ => self.quoted_piece(found, fence, &mut pieces)?,
            }
        }
        if let QuoteEnd::Place(end) = fence {
            self.require_place(end)?;
        }
        Ok(pieces.into_parts())
    }

    fn quoted_piece(
        &mut self,
        found: char,
        fence: QuoteEnd,
        pieces: &mut BracePieces,
    ) -> ParseResult<()> {
        let start = self.at;
        match found {
            '\\' => {
                self.bump_raw();
                match self.peek_raw() {
                    Some(next) if fence.can_escape(next) => {
                        self.bump_raw();
                        pieces.push_literal(next.encode_utf8(&mut [0; 4]), self.span_from(start));
                    }
                    _ => pieces.push_literal("\\", self.span_from(start)),
                }
                Ok(())
            }
            '$' => match self.parse_dollar(Some(fence))? {
                Some(kind) => self.push_part(pieces, start, kind),
                None => self.literal_character(pieces),
            },
            '`' => {
                let unescapes = fence.unescapes_quotes();
                let script = self.parse_nested(|parser| parser.parse_backquoted(unescapes))?;
                self.push_part(pieces, start, WordPartKind::CommandSubstitution(script))
            }
            _ => self.literal_character(pieces),
        }
    }

    /// A word in which only expansions have a meaning, up to `close`.
    pub(super) fn quoted_word_to(&mut self, close: usize) -> ParseResult<Word> {
        self.count_node()?;
        let start = self.at;
        let parts = self.parse_quoted(QuoteEnd::Place(close))?;
        Ok(Word { span: self.span_between(start, close), parts })
    }

    /// Calculated text up to `close`.
    pub(super) fn arithmetic_to(&mut self, close: usize) -> ParseResult<Arithmetic> {
        let start = self.at;
        let parts = self.parse_nested(|parser| parser.parse_quoted(QuoteEnd::Place(close)))?;
        Ok(Arithmetic { span: self.span_between(start, close), parts })
    }

    /// `[…]` after a name, with the brackets.
    pub(super) fn parse_subscript(&mut self) -> ParseResult<Word> {
        self.bump();
        let close = self.expansion_closing(self.at, ']', "`[`")?;
        let word = self.quoted_word_to(close)?;
        self.bump();
        if word.parts.is_empty() {
            return Err(self.ambiguous_error(close, "an empty subscript"));
        }
        Ok(word)
    }
}
