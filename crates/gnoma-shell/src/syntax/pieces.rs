//! Where a text ends, what has a meaning in it, and the parts it is collected into.

use super::cursor::is_metacharacter;
use super::{Span, WordPart, WordPartKind};

/// The kind of a text, which decides its end and the characters with a meaning in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An argument of a command.
    Plain,
    /// An argument that may be `name=( … )`.
    Declaration,
    /// The value of an assignment, or a word that is compared: neither braces nor patterns.
    Value,
    /// A pattern: no braces.
    Pattern,
    /// After the operator of `${x#…}`.
    Operand,
    /// After the operator of `${x/…}`, up to a second `/`.
    Replaced,
    /// One alternative of `@(a|b)`.
    Alternative,
    /// A regular expression after `=~`.
    Regex,
    /// In parentheses after `=~`.
    RegexGroup,
}

impl Shape {
    pub(super) fn is_ended_by(self, found: char) -> bool {
        match self {
            Self::Plain | Self::Declaration | Self::Value | Self::Pattern => {
                is_metacharacter(found)
            }
            Self::Operand => found == '}',
            Self::Replaced => matches!(found, '}' | '/'),
            Self::Alternative => matches!(found, '|' | ')'),
            Self::Regex => is_metacharacter(found) && !matches!(found, '(' | '|'),
            Self::RegexGroup => found == ')',
        }
    }

    /// True if it is a word of the grammar, which cannot be empty and ends at blanks.
    pub(super) fn is_word(self) -> bool {
        matches!(self, Self::Plain | Self::Declaration | Self::Pattern | Self::Regex)
    }

    pub(super) fn has_globs(self) -> bool {
        !matches!(self, Self::Value | Self::Regex | Self::RegexGroup)
    }

    pub(super) fn has_extended_globs(self) -> bool {
        self.has_globs() && !matches!(self, Self::Operand | Self::Replaced)
    }

    pub(super) fn has_braces(self) -> bool {
        matches!(self, Self::Plain | Self::Declaration)
    }
}

/// A character that braces may make something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Open,
    Close,
    Comma,
    /// Two dots in a range: `..`.
    Dots,
}

/// A part, or a character of its own that braces may make something of.
#[derive(Debug)]
pub(super) struct BracePiece {
    pub(super) part: WordPart,
    pub(super) mark: Option<Mark>,
}

/// The pieces of a word that are being collected; neighbouring characters become one literal.
#[derive(Default)]
pub(super) struct BracePieces {
    pub(super) pieces: Vec<BracePiece>,
    pub(super) text: String,
    pub(super) span: Span,
    pub(super) has_brace: bool,
}

impl BracePieces {
    pub(super) fn push_literal(&mut self, text: &str, span: Span) {
        if self.text.is_empty() {
            self.span = span;
        }
        self.text.push_str(text);
        self.span.end = span.end;
    }

    pub(super) fn push(&mut self, part: WordPart) {
        self.push_piece(part, None);
    }

    pub(super) fn push_piece(&mut self, part: WordPart, mark: Option<Mark>) {
        self.flush();
        self.has_brace |= mark == Some(Mark::Open);
        self.pieces.push(BracePiece { part, mark });
    }

    pub(super) fn flush(&mut self) {
        if !self.text.is_empty() {
            let kind = WordPartKind::Literal(std::mem::take(&mut self.text));
            self.pieces.push(BracePiece { part: WordPart { span: self.span, kind }, mark: None });
        }
    }

    /// The parts, with braces as plain text.
    pub(super) fn into_parts(mut self) -> Vec<WordPart> {
        self.flush();
        join_literals(self.pieces.into_iter().map(|piece| piece.part).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.text.is_empty()
    }

    /// The text up to here when there was nothing but text.
    pub(super) fn text(&self) -> Option<&str> {
        self.pieces.is_empty().then_some(self.text.as_str())
    }

    /// True if the last piece was `{`, or `,` after one.
    pub(super) fn begins_alternative(&self) -> bool {
        let last = self.pieces.last().and_then(|piece| piece.mark);
        self.text.is_empty() && matches!(last, Some(Mark::Open | Mark::Comma))
    }
}

/// Parts with neighbouring literals made one.
pub(super) fn join_literals(parts: Vec<WordPart>) -> Vec<WordPart> {
    let mut joined: Vec<WordPart> = Vec::with_capacity(parts.len());
    for part in parts {
        match (joined.last_mut(), &part.kind) {
            (
                Some(WordPart { span, kind: WordPartKind::Literal(text) }),
                WordPartKind::Literal(more),
            ) => {
                text.push_str(more);
                span.end = part.span.end;
            }
            _ => joined.push(part),
        }
    }
    joined
}
