//! Text in which only expansions have a meaning: double quotes, here-documents, arithmetic.

use super::cursor::{Parse, Parser};
use super::pieces::Pieces;
use super::{Arithmetic, Part, PartKind, Word};

/// Where such a text ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// At `"`.
    DoubleQuote,
    /// At the end of the text.
    Text,
    /// At a place that brackets tell. Quotes there do not keep expansions from running.
    Place(usize),
}

impl Fence {
    /// What a backslash takes the meaning from.
    fn escapes(self, found: char) -> bool {
        match self {
            Self::DoubleQuote => matches!(found, '$' | '`' | '"' | '\\'),
            Self::Text => matches!(found, '$' | '`' | '\\'),
            Self::Place(_) => matches!(found, '$' | '`' | '"' | '\\' | '}'),
        }
    }

    /// Whether `\"` in backquotes loses its backslash; `None` when that cannot be told.
    fn unescapes_quotes(self) -> Option<bool> {
        match self {
            Self::DoubleQuote => Some(true),
            Self::Text => Some(false),
            Self::Place(_) => None,
        }
    }
}

impl Parser<'_> {
    pub(super) fn quoted(&mut self, fence: Fence) -> Parse<Vec<Part>> {
        let mut pieces = Pieces::default();
        while let Some(found) = self.peek() {
            match fence {
                Fence::DoubleQuote if found == '"' => break,
                Fence::Place(end) if self.at >= end => break,
                _ => self.quoted_piece(found, fence, &mut pieces)?,
            }
        }
        if let Fence::Place(end) = fence {
            self.require_place(end)?;
        }
        Ok(pieces.finish())
    }

    fn quoted_piece(&mut self, found: char, fence: Fence, pieces: &mut Pieces) -> Parse<()> {
        let start = self.at;
        match found {
            '\\' => {
                self.bump_raw();
                match self.peek_raw() {
                    Some(next) if fence.escapes(next) => {
                        self.bump_raw();
                        pieces.literal(next.encode_utf8(&mut [0; 4]), self.span_from(start));
                    }
                    _ => pieces.literal("\\", self.span_from(start)),
                }
                Ok(())
            }
            '$' => match self.dollar(Some(fence))? {
                Some(kind) => self.push_part(pieces, start, kind),
                None => self.literal_character(pieces),
            },
            '`' => {
                let unescapes = fence.unescapes_quotes();
                let script = self.nested(|parser| parser.backquoted(unescapes))?;
                self.push_part(pieces, start, PartKind::CommandSubstitution(script))
            }
            _ => self.literal_character(pieces),
        }
    }

    /// A word in which only expansions have a meaning, up to `close`.
    pub(super) fn quoted_word_to(&mut self, close: usize) -> Parse<Word> {
        self.count_node()?;
        let start = self.at;
        let parts = self.quoted(Fence::Place(close))?;
        Ok(Word { span: self.span(start, close), parts })
    }

    /// Calculated text up to `close`.
    pub(super) fn arithmetic_to(&mut self, close: usize) -> Parse<Arithmetic> {
        let start = self.at;
        let parts = self.nested(|parser| parser.quoted(Fence::Place(close)))?;
        Ok(Arithmetic { span: self.span(start, close), parts })
    }

    /// `[…]` after a name, with the brackets.
    pub(super) fn subscript(&mut self) -> Parse<Word> {
        self.bump();
        let close = self.expansion_closing(self.at, ']', "`[`")?;
        let word = self.quoted_word_to(close)?;
        self.bump();
        if word.parts.is_empty() {
            return Err(self.ambiguous(close, "an empty subscript"));
        }
        Ok(word)
    }
}
