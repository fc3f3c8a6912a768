//! Words and other text in which quotes, patterns and braces have a meaning.

use super::braces::Mark;
use super::cursor::{Parse, Parser, continues_name, is_metacharacter, is_name};
use super::quoted::Fence;
use super::{Part, PartKind, Span, Word};

/// How far the end of `[…]` is looked for.
const MAX_BRACKET_BYTES: usize = 200;

/// Where a text ends and what has a meaning in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An argument.
    Plain,
    /// An argument that may be `name=( … )`.
    Declaration,
    /// The value of an assignment, or a word that is compared: neither braces nor patterns.
    Value,
    /// A pattern: no braces.
    Pattern,
    /// After the operator of `${x#…}`.
    Operand,
    /// The same up to a `/`.
    Replaced,
    /// One of `@(a|b)`.
    Alternative,
    /// After `=~`.
    Regex,
    /// In parentheses after `=~`.
    RegexGroup,
}

impl Shape {
    fn ends(self, found: char) -> bool {
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

    /// Whether it is a word of the grammar, which cannot be empty and ends at blanks.
    fn is_word(self) -> bool {
        matches!(self, Self::Plain | Self::Declaration | Self::Pattern | Self::Regex)
    }

    fn has_globs(self) -> bool {
        !matches!(self, Self::Value | Self::Regex | Self::RegexGroup)
    }

    fn has_extended_globs(self) -> bool {
        self.has_globs() && !matches!(self, Self::Operand | Self::Replaced)
    }

    fn has_braces(self) -> bool {
        matches!(self, Self::Plain | Self::Declaration)
    }
}

/// A part, or a character of its own that braces may make something of.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) part: Part,
    pub(super) mark: Option<Mark>,
}

/// What is being collected; neighbouring characters become one literal.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: Vec<Piece>,
    text: String,
    span: Span,
    has_brace: bool,
}

impl Pieces {
    pub(super) fn literal(&mut self, text: &str, span: Span) {
        if self.text.is_empty() {
            self.span = span;
        }
        self.text.push_str(text);
        self.span.end = span.end;
    }

    pub(super) fn push(&mut self, part: Part) {
        self.push_piece(part, None);
    }

    fn push_piece(&mut self, part: Part, mark: Option<Mark>) {
        self.flush();
        self.has_brace |= mark == Some(Mark::Open);
        self.pieces.push(Piece { part, mark });
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let kind = PartKind::Literal(std::mem::take(&mut self.text));
            self.pieces.push(Piece { part: Part { span: self.span, kind }, mark: None });
        }
    }

    /// The parts, with braces as plain text.
    pub(super) fn finish(mut self) -> Vec<Part> {
        self.flush();
        joined(self.pieces.into_iter().map(|piece| piece.part).collect())
    }

    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.text.is_empty()
    }

    /// The text up to here when there was nothing but text.
    fn text(&self) -> Option<&str> {
        self.pieces.is_empty().then_some(self.text.as_str())
    }

    /// Whether the last thing was `{`, or `,` after one.
    fn begins_alternative(&self) -> bool {
        let last = self.pieces.last().and_then(|piece| piece.mark);
        self.text.is_empty() && matches!(last, Some(Mark::Open | Mark::Comma))
    }
}

/// Parts with neighbouring literals made one.
pub(super) fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (joined.last_mut(), &part.kind) {
            (Some(Part { span, kind: PartKind::Literal(text) }), PartKind::Literal(more)) => {
                text.push_str(more);
                span.end = part.span.end;
            }
            _ => joined.push(part),
        }
    }
    joined
}

impl Parser<'_> {
    pub(super) fn word(&mut self, shape: Shape) -> Parse<Word> {
        self.count_node()?;
        let start = self.start();
        let parts = self.unquoted(shape)?;
        if parts.is_empty() && shape.is_word() {
            return Err(self.expected("a word"));
        }
        Ok(Word { span: self.span_from(start), parts })
    }

    fn unquoted(&mut self, shape: Shape) -> Parse<Vec<Part>> {
        let mut pieces = Pieces::default();
        while let Some(found) = self.peek() {
            if self.special_word_part(found, shape, &mut pieces)? {
                continue;
            }
            if shape.ends(found) {
                break;
            }
            self.unquoted_piece(found, shape, &mut pieces)?;
        }
        if pieces.has_brace {
            pieces.flush();
            return self.grouped(&pieces.pieces);
        }
        Ok(pieces.finish())
    }

    /// What begins with a character that otherwise ends a word.
    fn special_word_part(&mut self, found: char, shape: Shape, pieces: &mut Pieces) -> Parse<bool> {
        match found {
            '<' | '>' if self.peek_second() == Some('(') => {
                self.process_substitution(found, shape, pieces)?;
            }
            '(' if shape == Shape::Declaration && is_array_start(pieces) => {
                let start = self.at;
                let elements = self.nested(Self::array)?;
                self.push_part(pieces, start, PartKind::Array(elements))?;
            }
            '(' if matches!(shape, Shape::Regex | Shape::RegexGroup) => {
                self.nested(|parser| parser.regex_group(pieces))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unquoted_piece(&mut self, found: char, shape: Shape, pieces: &mut Pieces) -> Parse<()> {
        let start = self.at;
        if shape.has_extended_globs()
            && matches!(found, '?' | '*' | '+' | '@' | '!')
            && self.peek_second() == Some('(')
        {
            let kind = self.nested(|parser| parser.extended_glob(found))?;
            return self.push_part(pieces, start, kind);
        }
        match found {
            '\\' => self.escaped(pieces),
            '\'' => {
                let text = self.single_quoted()?;
                self.push_part(pieces, start, PartKind::SingleQuoted(text))
            }
            '"' => {
                let parts = self.double_quoted()?;
                self.push_part(pieces, start, PartKind::DoubleQuoted(parts))
            }
            '`' => {
                let script = self.nested(|parser| parser.backquoted(Some(false)))?;
                self.push_part(pieces, start, PartKind::CommandSubstitution(script))
            }
            '$' => match self.dollar(None)? {
                Some(kind) => self.push_part(pieces, start, kind),
                None => self.literal_character(pieces),
            },
            '*' | '?' if shape.has_globs() => {
                self.bump();
                self.push_part(pieces, start, PartKind::Glob(found.to_string()))
            }
            '[' if shape.has_globs() => self.bracket(shape, pieces),
            '{' | '}' | ',' | '.' if shape.has_braces() => self.brace_mark(found, pieces),
            '~' if pieces.begins_alternative() => {
                Err(self.ambiguous(start, "a home that depends on braces"))
            }
            '~' if tilde_may_follow(shape, pieces) => self.tilde(shape, pieces),
            _ => self.literal_character(pieces),
        }
    }

    /// A character that braces may make something of.
    fn brace_mark(&mut self, found: char, pieces: &mut Pieces) -> Parse<()> {
        let (mark, text) = match found {
            '{' => (Mark::Open, "{"),
            '}' if pieces.has_brace => (Mark::Close, "}"),
            ',' if pieces.has_brace => (Mark::Comma, ","),
            '.' if pieces.has_brace && self.peek_second() == Some('.') => (Mark::Dots, ".."),
            _ => return self.literal_character(pieces),
        };
        let start = self.at;
        self.eat(text);
        let kind = PartKind::Literal(text.to_owned());
        pieces.push_piece(Part { span: self.span_from(start), kind }, Some(mark));
        Ok(())
    }

    pub(super) fn push_part(
        &mut self,
        pieces: &mut Pieces,
        start: usize,
        kind: PartKind,
    ) -> Parse<()> {
        self.count_node()?;
        pieces.push(Part { span: self.span_from(start), kind });
        Ok(())
    }

    pub(super) fn literal_character(&mut self, pieces: &mut Pieces) -> Parse<()> {
        let start = self.at;
        if let Some(found) = self.bump() {
            pieces.literal(found.encode_utf8(&mut [0; 4]), self.span_from(start));
        }
        Ok(())
    }

    fn escaped(&mut self, pieces: &mut Pieces) -> Parse<()> {
        let start = self.at;
        self.bump_raw();
        // At the end of the text it stands for itself.
        let found = self.bump_raw().unwrap_or('\\');
        pieces.literal(found.encode_utf8(&mut [0; 4]), self.span_from(start));
        Ok(())
    }

    fn process_substitution(
        &mut self,
        found: char,
        shape: Shape,
        pieces: &mut Pieces,
    ) -> Parse<()> {
        if !shape.is_word() && shape != Shape::Value {
            return Err(self.ambiguous(self.at, "a process substitution within an expansion"));
        }
        let start = self.at;
        let readable = found == '<';
        let script = self.substitution(if readable { "<(" } else { ">(" })?;
        self.push_part(pieces, start, PartKind::ProcessSubstitution { readable, script })
    }

    fn extended_glob(&mut self, operator: char) -> Parse<PartKind> {
        self.bump();
        self.bump();
        let close = self.closing(self.at, ')', "a pattern in parentheses")?;
        let mut alternatives = vec![self.word(Shape::Alternative)?];
        while self.peek() == Some('|') {
            self.bump();
            alternatives.push(self.word(Shape::Alternative)?);
        }
        self.require_place(close)?;
        if self.at == close && alternatives.iter().all(|word| word.parts.is_empty()) {
            return Err(self.ambiguous(close, "a pattern or a function"));
        }
        self.bump();
        Ok(PartKind::ExtendedGlob { operator, alternatives })
    }

    /// Fails unless the grammar came to `close`, where brackets alone say that this ends.
    pub(super) fn require_place(&mut self, close: usize) -> Parse<()> {
        if self.start() == close {
            return Ok(());
        }
        Err(self.ambiguous(close, "quotes and brackets cross"))
    }

    fn regex_group(&mut self, pieces: &mut Pieces) -> Parse<()> {
        let close = self.closing(self.at + 1, ')', "`(`")?;
        self.literal_character(pieces)?;
        for part in self.unquoted(Shape::RegexGroup)? {
            pieces.push(part);
        }
        self.require_place(close)?;
        self.literal_character(pieces)
    }

    /// `[…]`, or `[` alone when it cannot be told what is in it.
    fn bracket(&mut self, shape: Shape, pieces: &mut Pieces) -> Parse<()> {
        let start = self.at;
        let rest = self.rest(start);
        let length = match bracket_length(rest, shape, pieces.has_brace) {
            Bracket::Closed(length) => length,
            Bracket::Unclear => 1,
            Bracket::Open => return self.literal_character(pieces),
        };
        self.move_to(start + length);
        let text = rest.get(..length).unwrap_or_default().to_owned();
        self.push_part(pieces, start, PartKind::Glob(text))
    }

    fn tilde(&mut self, shape: Shape, pieces: &mut Pieces) -> Parse<()> {
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
                return Err(self.ambiguous(start, "a home that depends on braces"));
            }
            Some(found) => shape.ends(found) || is_metacharacter(found),
        };
        if ends {
            return self.push_part(pieces, start, PartKind::Tilde(user));
        }
        pieces.literal(&format!("~{user}"), self.span_from(start));
        Ok(())
    }

    /// `'…'`
    pub(super) fn single_quoted(&mut self) -> Parse<String> {
        let start = self.at;
        self.bump_raw();
        let rest = self.rest(self.at);
        let Some(length) = rest.find('\'') else {
            return Err(self.unterminated(start, "a single quote"));
        };
        self.move_to(self.at + length + 1);
        Ok(rest.get(..length).unwrap_or_default().to_owned())
    }

    /// `"…"`
    pub(super) fn double_quoted(&mut self) -> Parse<Vec<Part>> {
        let start = self.at;
        self.bump();
        let parts = self.nested(|parser| parser.quoted(Fence::DoubleQuote))?;
        if self.bump() != Some('"') {
            return Err(self.unterminated(start, "a double quote"));
        }
        Ok(parts)
    }
}

/// What a `[` begins.
enum Bracket {
    /// A set of this many bytes.
    Closed(usize),
    /// Perhaps a set: quotes, expansions or braces stand in it.
    Unclear,
    /// Nothing.
    Open,
}

fn bracket_length(text: &str, shape: Shape, in_braces: bool) -> Bracket {
    let mut class = false;
    for (at, found) in text.char_indices().skip(1) {
        let set = text.get(1..at).unwrap_or_default();
        match found {
            ':' if set.ends_with('[') => class = true,
            ']' if class => class = !set.ends_with(':'),
            ']' if matches!(set, "" | "!" | "^") => {}
            ']' => return Bracket::Closed(at + 1),
            '\'' | '"' | '\\' | '$' | '`' | '{' => return Bracket::Unclear,
            ',' | '}' | '.' if in_braces => return Bracket::Unclear,
            _ if shape.ends(found) => return Bracket::Open,
            _ if at > MAX_BRACKET_BYTES => return Bracket::Unclear,
            _ => {}
        }
    }
    Bracket::Open
}

fn is_user_character(found: char) -> bool {
    continues_name(found) || matches!(found, '.' | '+' | '-')
}

/// Whether a home may stand here: at the start, and where a value begins in what looks like an
/// assignment.
fn tilde_may_follow(shape: Shape, pieces: &Pieces) -> bool {
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

fn begins_value(pieces: &Pieces) -> bool {
    let before = match pieces.pieces.first().map(|piece| &piece.part.kind) {
        None => pieces.text.as_str(),
        Some(PartKind::Literal(text)) => text,
        Some(_) => return false,
    };
    let is_assignment = before
        .split_once('=')
        .is_some_and(|(name, _)| is_name(name.strip_suffix('+').unwrap_or(name)));
    is_assignment
        && (pieces.text.ends_with(':') || pieces.text().is_some_and(|text| ends_at_equals(text)))
}

fn ends_at_equals(text: &str) -> bool {
    text.find('=').is_some_and(|at| at + 1 == text.len())
}

fn is_array_start(pieces: &Pieces) -> bool {
    let written = pieces.span.end - pieces.span.start;
    let text = pieces.text().filter(|text| text.len() == written);
    text.and_then(|text| text.strip_suffix('='))
        .is_some_and(|text| is_name(text.strip_suffix('+').unwrap_or(text)))
}
