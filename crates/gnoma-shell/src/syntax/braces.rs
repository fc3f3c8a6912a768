//! `{a,b}` and `{1..9}`, told from plain braces once a word is read.
//!
//! bash expands braces before anything else and by their balance alone, so `{a,{b}c}` has two
//! alternatives while `{a,{b}` is plain text.

use super::cursor::{ParseResult, Parser};
use super::limits::MAX_BRACES;
use super::pieces::{BracePiece, Mark, join_literals};
use super::{Operation, Span, Word, WordPart, WordPartKind};

impl Parser<'_> {
    /// Parts of a word, with the braces in it.
    pub(super) fn parse_brace_groups(
        &mut self,
        pieces: &[BracePiece],
    ) -> ParseResult<Vec<WordPart>> {
        if pieces.iter().filter(|piece| piece.mark.is_some()).count() > MAX_BRACES {
            return Err(self.limit_error("braces in a word", MAX_BRACES));
        }
        let mut parts = Vec::new();
        let mut rest = pieces;
        while let Some(pair) = first_pair(rest) {
            parts.extend(parts_without_marks(pair.before));
            self.parse_brace_pair(&pair, &mut parts)?;
            rest = pair.after;
        }
        parts.extend(parts_without_marks(rest));
        Ok(join_literals(parts))
    }

    fn parse_brace_pair(&mut self, pair: &Pair<'_>, parts: &mut Vec<WordPart>) -> ParseResult<()> {
        let (open, close) = (&pair.open.part, &pair.close.part);
        let span = Span { start: open.span.start, end: close.span.end };
        if pair.inner.iter().any(|piece| piece.mark == Some(Mark::Comma)) {
            let words = self.parse_nested(|parser| parser.parse_alternatives(pair))?;
            self.count_node()?;
            parts.push(WordPart { span, kind: WordPartKind::BraceList(words) });
            return Ok(());
        }
        match brace_range(pair.inner) {
            Range::Text(text) if is_range(&text) => {
                parts.push(WordPart { span, kind: WordPartKind::BraceRange(text) });
            }
            Range::Text(_) | Range::No => {
                parts.push(open.clone());
                parts.extend(parts_without_marks(pair.inner));
                parts.push(close.clone());
            }
            Range::Unclear => {
                return Err(
                    self.ambiguous_error(self.at, "a range in braces with commands or commas")
                );
            }
        }
        Ok(())
    }

    fn parse_alternatives(&mut self, pair: &Pair<'_>) -> ParseResult<Vec<Word>> {
        let mut words = Vec::new();
        let mut place = pair.open.part.span.end;
        let mut level = 0_usize;
        for pieces in pair.inner.split_inclusive(|piece| is_outer_comma(piece, &mut level)) {
            let (pieces, comma) = match pieces.split_last() {
                Some((last, before)) if last.mark == Some(Mark::Comma) => (before, Some(last)),
                _ => (pieces, None),
            };
            words.push(self.parse_alternative(pieces, place)?);
            place = comma.map_or(place, |comma| comma.part.span.end);
        }
        if pair.inner.last().is_some_and(|last| last.mark == Some(Mark::Comma)) {
            words.push(self.parse_alternative(&[], place)?);
        }
        Ok(words)
    }

    fn parse_alternative(&mut self, pieces: &[BracePiece], place: usize) -> ParseResult<Word> {
        self.count_node()?;
        let end = pieces.last().map_or(place, |last| last.part.span.end);
        Ok(Word { span: Span { start: place, end }, parts: self.parse_brace_groups(pieces)? })
    }
}

fn parts_without_marks(pieces: &[BracePiece]) -> impl Iterator<Item = WordPart> {
    pieces.iter().map(|piece| piece.part.clone())
}

/// A `{` and the `}` that closes it.
struct Pair<'a> {
    before: &'a [BracePiece],
    open: &'a BracePiece,
    inner: &'a [BracePiece],
    close: &'a BracePiece,
    after: &'a [BracePiece],
}

/// The first `{` that is closed. Where a text begins with `{}` that is none.
fn first_pair(pieces: &[BracePiece]) -> Option<Pair<'_>> {
    (0..pieces.len()).find_map(|at| {
        let (before, from) = pieces.split_at_checked(at)?;
        let (open, rest) = from.split_first()?;
        let is_empty = at == 0 && rest.first().is_some_and(|next| next.mark == Some(Mark::Close));
        if open.mark != Some(Mark::Open) || is_empty {
            return None;
        }
        let (inner, from) = rest.split_at_checked(find_closing_brace(rest)?)?;
        let (close, after) = from.split_first()?;
        Some(Pair { before, open, inner, close, after })
    })
}

/// Returns the index of the `}` that balances; a brace pair closes only after a comma or `..`.
fn find_closing_brace(pieces: &[BracePiece]) -> Option<usize> {
    let (mut level, mut closes) = (0_usize, false);
    for (at, piece) in pieces.iter().enumerate() {
        match piece.mark {
            Some(Mark::Open) => level += 1,
            Some(Mark::Close) if level > 0 => level -= 1,
            Some(Mark::Close) if closes => return Some(at),
            Some(Mark::Comma) if level == 0 => closes = true,
            Some(Mark::Dots) if level == 0 => {
                closes |= pieces.get(at + 1).is_some_and(|next| next.mark != Some(Mark::Close));
            }
            _ => {}
        }
    }
    None
}

/// True if the piece is a comma of the outermost braces. The function is called for one piece after the other.
fn is_outer_comma(piece: &BracePiece, level: &mut usize) -> bool {
    match piece.mark {
        Some(Mark::Open) => *level += 1,
        Some(Mark::Close) => *level = level.saturating_sub(1),
        Some(Mark::Comma) => return *level == 0,
        Some(Mark::Dots) | None => {}
    }
    false
}

/// The content of braces without a comma.
enum Range {
    /// The content is unquoted text only.
    Text(String),
    /// The content cannot be a range.
    No,
    /// bash drops the braces when it finds a comma anywhere, also in quotes and commands.
    Unclear,
}

fn brace_range(pieces: &[BracePiece]) -> Range {
    let mut text = Some(String::new());
    for piece in pieces {
        match &piece.part.kind {
            WordPartKind::Literal(more) => text.iter_mut().for_each(|text| text.push_str(more)),
            WordPartKind::SingleQuoted(quoted) if !quoted.contains(',') => text = None,
            WordPartKind::Parameter(parameter)
                if parameter.operation == Operation::Value && parameter.subscript.is_none() =>
            {
                text = None;
            }
            _ => return Range::Unclear,
        }
    }
    text.map_or(Range::No, Range::Text)
}

fn is_range(text: &str) -> bool {
    let mut ends = text.split("..");
    let (Some(first), Some(last)) = (ends.next(), ends.next()) else { return false };
    let step_is_number = ends.next().is_none_or(is_number);
    let is_letters = is_letter(first) && is_letter(last);
    step_is_number && ends.next().is_none() && (is_letters || is_number(first) && is_number(last))
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.chars().all(|found| found.is_ascii_digit())
}

fn is_letter(text: &str) -> bool {
    text.len() == 1 && text.chars().all(|found| found.is_ascii_alphabetic())
}
