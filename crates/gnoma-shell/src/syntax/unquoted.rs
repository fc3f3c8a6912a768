//! Words and other text in which quotes, patterns and braces have a meaning.

use super::cursor::{ParseResult, Parser, is_name};
use super::patterns::tilde_may_follow;
use super::pieces::Mark;
use super::pieces::{BracePieces, Shape};
use super::quoted::QuoteEnd;
use super::{Word, WordPart, WordPartKind};

impl Parser<'_> {
    pub(super) fn parse_word(&mut self, shape: Shape) -> ParseResult<Word> {
        self.count_node()?;
        let start = self.next_start();
        let parts = self.parse_unquoted(shape)?;
        if parts.is_empty() && shape.is_word() {
            return Err(self.expected_error("a word"));
        }
        // An empty value lies before a joined line that follows it, not after.
        let start = if parts.is_empty() { self.consumed_end().min(start) } else { start };
        Ok(Word { span: self.span_from(start), parts })
    }

    fn parse_unquoted(&mut self, shape: Shape) -> ParseResult<Vec<WordPart>> {
        let mut pieces = BracePieces::default();
        while let Some(found) = self.peek() {
            if self.special_word_part(found, shape, &mut pieces)? {
                continue;
            }
            if shape.is_ended_by(found) {
                break;
            }
            self.unquoted_piece(found, shape, &mut pieces)?;
        }
        if pieces.has_brace {
            pieces.flush();
            return self.parse_brace_groups(&pieces.pieces);
        }
        Ok(pieces.into_parts())
    }

    /// Parses a part that begins with a character that otherwise ends a word.
    fn special_word_part(
        &mut self,
        found: char,
        shape: Shape,
        pieces: &mut BracePieces,
    ) -> ParseResult<bool> {
        match found {
            '<' | '>' if self.peek_second() == Some('(') => {
                self.process_substitution(found, shape, pieces)?;
            }
            '(' if shape == Shape::Declaration && is_array_start(pieces) => {
                let start = self.at;
                let elements = self.parse_nested(Self::parse_array)?;
                self.push_part(pieces, start, WordPartKind::Array(elements))?;
            }
            '(' if matches!(shape, Shape::Regex | Shape::RegexGroup) => {
                self.parse_nested(|parser| parser.regex_group(pieces))?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn unquoted_piece(
        &mut self,
        found: char,
        shape: Shape,
        pieces: &mut BracePieces,
    ) -> ParseResult<()> {
        let start = self.at;
        if shape.has_extended_globs()
            && matches!(found, '?' | '*' | '+' | '@' | '!')
            && self.peek_second() == Some('(')
        {
            let kind = self.parse_nested(|parser| parser.extended_glob(found))?;
            return self.push_part(pieces, start, kind);
        }
        match found {
            '\\' => self.parse_escaped(pieces),
            '\'' => {
                let text = self.single_quoted()?;
                self.push_part(pieces, start, WordPartKind::SingleQuoted(text))
            }
            '"' => {
                let parts = self.double_quoted()?;
                self.push_part(pieces, start, WordPartKind::DoubleQuoted(parts))
            }
            '`' => {
                let script = self.parse_nested(|parser| parser.parse_backquoted(Some(false)))?;
                self.push_part(pieces, start, WordPartKind::CommandSubstitution(script))
            }
            '$' => match self.parse_dollar(None)? {
                Some(kind) => self.push_part(pieces, start, kind),
                None => self.literal_character(pieces),
            },
            '*' | '?' if shape.has_globs() => {
                self.bump();
                self.push_part(pieces, start, WordPartKind::Glob(found.to_string()))
            }
            '[' if shape.has_globs() => self.parse_bracket(shape, pieces),
            '{' | '}' | ',' | '.' if shape.has_braces() => self.brace_mark(found, pieces),
            '~' if pieces.begins_alternative() => {
                Err(self.ambiguous_error(start, "a home that depends on braces"))
            }
            '~' if tilde_may_follow(shape, pieces) => self.parse_tilde(shape, pieces),
            _ => self.literal_character(pieces),
        }
    }

    /// A character that braces may make something of.
    fn brace_mark(&mut self, found: char, pieces: &mut BracePieces) -> ParseResult<()> {
        let (mark, text) = match found {
            '{' => (Mark::Open, "{"),
            '}' if pieces.has_brace => (Mark::Close, "}"),
            ',' if pieces.has_brace => (Mark::Comma, ","),
            '.' if pieces.has_brace && self.peek_second() == Some('.') => (Mark::Dots, ".."),
            _ => return self.literal_character(pieces),
        };
        let start = self.at;
        self.eat(text);
        let kind = WordPartKind::Literal(text.to_owned());
        pieces.push_piece(WordPart { span: self.span_from(start), kind }, Some(mark));
        Ok(())
    }

    pub(super) fn push_part(
        &mut self,
        pieces: &mut BracePieces,
        start: usize,
        kind: WordPartKind,
    ) -> ParseResult<()> {
        self.count_node()?;
        pieces.push(WordPart { span: self.span_from(start), kind });
        Ok(())
    }

    pub(super) fn literal_character(&mut self, pieces: &mut BracePieces) -> ParseResult<()> {
        let start = self.at;
        if let Some(found) = self.bump() {
            pieces.push_literal(found.encode_utf8(&mut [0; 4]), self.span_from(start));
        }
        Ok(())
    }

    fn parse_escaped(&mut self, pieces: &mut BracePieces) -> ParseResult<()> {
        let start = self.at;
        self.bump_raw();
        // At the end of the text it stands for itself.
        let found = self.bump_raw().unwrap_or('\\');
        pieces.push_literal(found.encode_utf8(&mut [0; 4]), self.span_from(start));
        Ok(())
    }

    fn process_substitution(
        &mut self,
        found: char,
        shape: Shape,
        pieces: &mut BracePieces,
    ) -> ParseResult<()> {
        if !shape.is_word() && shape != Shape::Value {
            return Err(self.ambiguous_error(self.at, "a process substitution within an expansion"));
        }
        let start = self.at;
        let readable = found == '<';
        let script = self.parse_substitution(if readable { "<(" } else { ">(" })?;
        self.push_part(pieces, start, WordPartKind::ProcessSubstitution { readable, script })
    }

    /// Fails unless the grammar came to `close`, where brackets alone say that this ends.
    pub(super) fn require_place(&mut self, close: usize) -> ParseResult<()> {
        if self.next_start() == close {
            return Ok(());
        }
        Err(self.ambiguous_error(close, "quotes and brackets cross"))
    }

    fn regex_group(&mut self, pieces: &mut BracePieces) -> ParseResult<()> {
        let close = self.find_closing(self.at + 1, ')', "`(`")?;
        self.literal_character(pieces)?;
        for part in self.parse_unquoted(Shape::RegexGroup)? {
            pieces.push(part);
        }
        self.require_place(close)?;
        self.literal_character(pieces)
    }

    /// Parses text in single quotes: `'…'`.
    pub(super) fn single_quoted(&mut self) -> ParseResult<String> {
        let start = self.at;
        self.bump_raw();
        let rest = self.text_from(self.at);
        let Some(length) = rest.find('\'') else {
            return Err(self.unterminated_error(start, "a single quote"));
        };
        self.move_to(self.at + length + 1);
        Ok(rest.get(..length).unwrap_or_default().to_owned())
    }

    /// Parses parts in double quotes: `"…"`.
    pub(super) fn double_quoted(&mut self) -> ParseResult<Vec<WordPart>> {
        let start = self.at;
        self.bump();
        let in_quotes = std::mem::replace(&mut self.in_quotes, true);
        let parts = self.parse_nested(|parser| parser.parse_quoted(QuoteEnd::DoubleQuote))?;
        self.in_quotes = in_quotes;
        if self.bump() != Some('"') {
            return Err(self.unterminated_error(start, "a double quote"));
        }
        Ok(parts)
    }
}

fn is_array_start(pieces: &BracePieces) -> bool {
    let written = pieces.span.end - pieces.span.start;
    let text = pieces.text().filter(|text| text.len() == written);
    text.and_then(|text| text.strip_suffix('='))
        .is_some_and(|text| is_name(text.strip_suffix('+').unwrap_or(text)))
}
