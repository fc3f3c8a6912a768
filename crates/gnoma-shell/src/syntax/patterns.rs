//! `[…]`, `@(…)` and `~`.

use super::WordPartKind;
use super::cursor::{ParseResult, Parser, continues_name, is_metacharacter, is_name};
use super::pieces::{BracePieces, Shape};

/// The greatest distance at which the end of `[…]` is looked for.
const MAX_BRACKET_BYTES: usize = 200;

impl Parser<'_> {
    pub(super) fn extended_glob(&mut self, operator: char) -> ParseResult<WordPartKind> {
        self.bump();
        self.bump();
        let close = self.find_closing(self.at, ')', "a pattern in parentheses")?;
        let mut alternatives = vec![self.parse_word(Shape::Alternative)?];
        while self.peek() == Some('|') {
            self.bump();
            alternatives.push(self.parse_word(Shape::Alternative)?);
        }
        self.require_place(close)?;
        if self.at == close && alternatives.iter().all(|word| word.parts.is_empty()) {
            return Err(self.ambiguous_error(close, "a pattern or a function"));
        }
        self.bump();
        Ok(WordPartKind::ExtendedGlob { operator, alternatives })
    }

    /// `[…]`, or `[` alone when it cannot be told what is in it.
    pub(super) fn parse_bracket(
        &mut self,
        shape: Shape,
        pieces: &mut BracePieces,
    ) -> ParseResult<()> {
        let start = self.at;
        let rest = self.text_from(start);
        let length = match bracket_length(rest, shape, pieces.has_brace) {
            Bracket::Closed(length) => length,
            Bracket::Unclear => 1,
            Bracket::Open => return self.literal_character(pieces),
        };
        self.move_to(start + length);
        let text = rest.get(..length).unwrap_or_default().to_owned();
        self.push_part(pieces, start, WordPartKind::Glob(text))
    }

    pub(super) fn parse_tilde(
        &mut self,
        shape: Shape,
        pieces: &mut BracePieces,
    ) -> ParseResult<()> {
        let start = self.at;
        let mut user = String::new();
        self.bump();
        while let Some(found) = self.peek().filter(|found| is_user_character(*found)) {
            self.bump();
            user.push(found);
        }
        let ends = match self.peek() {
            None | Some('/' | ':') => true,
            Some('{') if shape.has_braces() => {
                return Err(self.ambiguous_error(start, "a home that depends on braces"));
            }
            Some(found) => shape.is_ended_by(found) || is_metacharacter(found),
        };
        if ends {
            return self.push_part(pieces, start, WordPartKind::Tilde(user));
        }
        pieces.push_literal(&format!("~{user}"), self.span_from(start));
        Ok(())
    }
}

/// The meaning of a `[` in a word.
enum Bracket {
    /// A set of this many bytes.
    Closed(usize),
    /// Perhaps a set: quotes, expansions or braces stand in it.
    Unclear,
    /// The `[` begins no set.
    Open,
}

fn bracket_length(text: &str, shape: Shape, in_braces: bool) -> Bracket {
    let (mut in_class, mut has_class) = (false, false);
    for (at, found) in text.char_indices().skip(1) {
        let set = text.get(1..at).unwrap_or_default();
        match found {
            ':' if set.ends_with('[') => (in_class, has_class) = (true, true),
            ']' if in_class => in_class = !set.ends_with(':'),
            ']' if matches!(set, "" | "!" | "^") => {}
            ']' => return Bracket::Closed(at + 1),
            '\'' | '"' | '\\' | '$' | '`' | '{' => return Bracket::Unclear,
            ',' | '}' | '.' if in_braces => return Bracket::Unclear,
            _ if shape.is_ended_by(found) => break,
            _ if at > MAX_BRACKET_BYTES => return Bracket::Unclear,
            _ => {}
        }
    }
    if has_class { Bracket::Unclear } else { Bracket::Open }
}

fn is_user_character(found: char) -> bool {
    continues_name(found) || matches!(found, '.' | '+' | '-')
}

/// True if a home (`~`) may stand here: at the start, and where a value begins in what looks like an assignment.
pub(super) fn tilde_may_follow(shape: Shape, pieces: &BracePieces) -> bool {
    match shape {
        Shape::Alternative | Shape::RegexGroup => false,
        Shape::Value => pieces.is_empty() || pieces.text.ends_with(':'),
        Shape::Plain
        | Shape::Declaration
        | Shape::Pattern
        | Shape::Operand
        | Shape::Replaced
        | Shape::Regex => pieces.is_empty() || begins_value(pieces),
    }
}

fn begins_value(pieces: &BracePieces) -> bool {
    let before = match pieces.pieces.first().map(|piece| &piece.part.kind) {
        None => pieces.text.as_str(),
        Some(WordPartKind::Literal(text)) => text,
        Some(_) => return false,
    };
    let is_assignment = before
        .split_once('=')
        .is_some_and(|(name, _)| is_name(name.strip_suffix('+').unwrap_or(name)));
    is_assignment && (pieces.text.ends_with(':') || pieces.text().is_some_and(ends_at_equals))
}

fn ends_at_equals(text: &str) -> bool {
    text.find('=').is_some_and(|at| at + 1 == text.len())
}
