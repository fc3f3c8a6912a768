//! Here-documents: the delimiter where they are asked for, the body after that line.

use std::sync::{Arc, OnceLock};

use super::cursor::{ParseResult, Parser, PendingHereDocument, is_metacharacter};
use super::quoted::QuoteEnd;
use super::substitutions::ExtractedText;
use super::{HereDocument, Word, WordPart, WordPartKind};

impl Parser<'_> {
    /// Parses the here-document after `<<`.
    pub(super) fn here_document(&mut self, strips_tabs: bool) -> ParseResult<HereDocument> {
        let at = self.at;
        let (delimiter, quoted) = self.here_delimiter()?;
        self.require_no_descriptor(at, (!quoted).then_some(&delimiter))?;
        let body = Arc::new(OnceLock::new());
        self.pending.push(PendingHereDocument {
            delimiter: delimiter.clone(),
            quoted,
            strips_tabs,
            at,
            body: Arc::clone(&body),
        });
        Ok(HereDocument { delimiter, quoted, strips_tabs, body })
    }

    /// The delimiter's text and whether any of it is quoted.
    fn here_delimiter(&mut self) -> ParseResult<(String, bool)> {
        let (mut delimiter, mut quoted) = (String::new(), false);
        while let Some(found) = self.peek().filter(|found| !is_metacharacter(*found)) {
            match found {
                '$' | '`' => {
                    return Err(self.ambiguous_error(self.at, "an expansion in a delimiter"));
                }
                '\'' => {
                    delimiter.push_str(&self.single_quoted()?);
                    quoted = true;
                }
                '"' => {
                    delimiter.push_str(&self.plain_double_quoted()?);
                    quoted = true;
                }
                '\\' => {
                    self.bump_raw();
                    delimiter.extend(self.bump_raw());
                    quoted = true;
                }
                _ => {
                    self.bump();
                    delimiter.push(found);
                }
            }
        }
        if !self.at_word_end() {
            return Err(self.ambiguous_error(self.at, "an expansion in a delimiter"));
        }
        if delimiter.is_empty() && !quoted {
            return Err(self.expected_error("a delimiter"));
        }
        if delimiter.contains('\n') {
            return Err(self.ambiguous_error(self.at, "a delimiter of more than one line"));
        }
        Ok((delimiter, quoted))
    }

    fn plain_double_quoted(&mut self) -> ParseResult<String> {
        let start = self.at;
        self.bump_raw();
        let rest = self.text_from(self.at);
        let text = rest.split_once('"').map(|(text, _)| text);
        let Some(text) = text else { return Err(self.unterminated_error(start, "a double quote")) };
        if text.contains(['$', '`', '\\']) {
            return Err(self.ambiguous_error(start, "an expansion in a delimiter"));
        }
        self.move_to(self.at + text.len() + 1);
        Ok(text.to_owned())
    }

    pub(super) fn require_no_pending(&self) -> ParseResult<()> {
        match self.pending.first() {
            Some(pending) => Err(self.unterminated_error(pending.at, "a here-document")),
            None => Ok(()),
        }
    }

    /// Reads the bodies that begin where a line has just ended.
    pub(super) fn read_here_documents(&mut self) -> ParseResult<()> {
        for pending in std::mem::take(&mut self.pending) {
            let word = self.parse_nested(|parser| parser.here_body(&pending))?;
            pending.body.get_or_init(|| word);
        }
        Ok(())
    }

    fn here_body(&mut self, pending: &PendingHereDocument) -> ParseResult<Word> {
        let start = self.at;
        let mut body = ExtractedText::default();
        loop {
            let line_start = self.at;
            if self.peek_raw().is_none() {
                return Err(self.unterminated_error(pending.at, "a here-document"));
            }
            let (line, ended) = self.here_line(pending);
            if line.text == pending.delimiter {
                body.places.push(self.original_place(line_start));
                break;
            }
            self.require_no_early_end(line_start, &line.text, &pending.delimiter)?;
            body.text.push_str(&line.text);
            body.places.extend(line.places);
            if ended {
                body.push('\n', self.original_place(self.at - 1));
            }
        }
        let end = body.places.last().copied().unwrap_or_default();
        let mut word = self.here_word(&body, pending.quoted)?;
        word.span = super::Span { start: self.original_place(start), end };
        Ok(word)
    }

    fn here_word(&mut self, body: &ExtractedText, quoted: bool) -> ParseResult<Word> {
        self.count_node()?;
        let mut inner = self.sub_parser(&body.text, &body.places);
        inner.in_quotes = true;
        let span = inner.span_between(0, body.text.len());
        let parts = if !quoted {
            inner.parse_quoted(QuoteEnd::Text)?
        } else if body.text.is_empty() {
            Vec::new()
        } else {
            vec![WordPart { span, kind: WordPartKind::SingleQuoted(body.text.clone()) }]
        };
        Ok(Word { span, parts })
    }

    /// A line without its end, and whether it had one. Unless the delimiter is quoted, a backslash at
    /// the end joins it with the next.
    fn here_line(&mut self, pending: &PendingHereDocument) -> (ExtractedText, bool) {
        let mut line = ExtractedText::default();
        if pending.strips_tabs {
            self.skip_raw_while(|found| found == '\t');
        }
        while let Some(found) = self.peek_raw() {
            let place = self.original_place(self.at);
            self.at += found.len_utf8();
            match found {
                '\n' => return (line, true),
                '\\' if !pending.quoted => self.here_escape(place, &mut line),
                _ => line.push(found, place),
            }
        }
        (line, false)
    }

    fn here_escape(&mut self, place: usize, line: &mut ExtractedText) {
        let next_place = self.original_place(self.at);
        let Some(next) = self.peek_raw() else { return line.push('\\', place) };
        self.at += next.len_utf8();
        if next != '\n' {
            line.push('\\', place);
            line.push(next, next_place);
        }
    }

    /// Within `$( )` bash also takes a line for the last one that only begins with the delimiter, if a
    /// `)` follows.
    fn require_no_early_end(&self, at: usize, line: &str, delimiter: &str) -> ParseResult<()> {
        let is_early = self.substitutions > 0
            && line.strip_prefix(delimiter).is_some_and(|rest| rest.contains(')'));
        if is_early {
            return Err(self.ambiguous_error(at, "a line that may end a here-document"));
        }
        Ok(())
    }
}
