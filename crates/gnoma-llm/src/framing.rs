//! Detects the framing of an answer (SSE, JSON lines, JSON) and splits it into records.
//!
//! The first byte tells, not the content type: servers send event streams as `text/plain` and JSON as
//! `application/octet-stream`.

use std::borrow::Cow;

use crate::{
    characters::mark_fragments,
    dialect::Frame,
    objects::{SplitError, Splitter},
    sse::{SseDecoder, SseEvent},
};

const BOM: &[u8] = b"\xEF\xBB\xBF";
/// Most characters that are shown of an answer in no known form.
const MAX_SHOWN_CHARS: usize = 80;

/// An answer of a server that cannot be cut into records.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// A record of an event stream is too long.
    #[error("a record of the answer is longer than gnoma accepts")]
    LongRecord,
    /// An object of an answer in JSON is too long.
    #[error("the answer is longer than gnoma accepts")]
    LongAnswer,
    /// Something other than an object stands in an answer in JSON.
    #[error("the answer is not JSON: expected an object, found `{}`", found.escape_ascii())]
    NoObject {
        /// The byte in the place of an object.
        found: u8,
    },
    /// The answer is the page of a proxy or of a wrong address.
    #[error("the server answered with an HTML page, not with a model's answer")]
    HtmlPage,
    /// The answer is compressed.
    #[error("the answer is compressed, which gnoma does not ask for")]
    Compressed,
    /// The answer is in no known form.
    #[error("the answer is neither JSON nor an event stream: it begins with `{start}`")]
    UnknownForm {
        /// The beginning of the first line of the answer, with unprintable characters escaped.
        start: String,
    },
}

gnoma_core::debug_as_display!(FramingError);

/// A record as text; fragments of characters in it are marked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The name of the SSE event.
    pub event: Cow<'a, str>,
    /// The text of the record.
    pub data: Cow<'a, str>,
    /// The body is JSON, not SSE.
    pub whole: bool,
}

impl Record<'_> {
    /// The record as decoders take it.
    #[must_use]
    pub fn as_frame(&self) -> Frame<'_> {
        Frame { event: &self.event, data: &self.data, whole: self.whole }
    }
}

#[derive(Debug)]
enum FramingForm {
    Sse(SseDecoder),
    Objects(Splitter),
}

/// Cuts an answer's bytes into records.
#[derive(Debug, Default)]
pub struct Framer {
    form: Option<FramingForm>,
    received: bool,
    /// A record held a fragment of a character.
    has_fragments: bool,
}

impl Framer {
    /// Takes the next bytes. Call [`next_record`](Self::next_record) until it gives `None` before feeding more.
    ///
    /// # Errors
    /// When the body is HTML, the page of a proxy or a wrong address, or nothing that is known.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), FramingError> {
        self.received |= !bytes.is_empty();
        let bytes = if self.form.is_some() { bytes } else { without_blank(bytes) };
        if self.form.is_none() && !bytes.is_empty() {
            self.form = Some(detect_form(bytes)?);
        }
        match &mut self.form {
            Some(FramingForm::Sse(decoder)) => decoder.feed(bytes),
            Some(FramingForm::Objects(splitter)) => splitter.feed(bytes),
            None => (),
        }
        Ok(())
    }

    /// The next whole record.
    ///
    /// # Errors
    /// When a record outgrows its limit or the body turns into something else.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, FramingError> {
        match &mut self.form {
            None => Ok(None),
            Some(FramingForm::Sse(decoder)) => match decoder.next() {
                Ok(Some(event)) => Ok(Some(sse_record(event, &mut self.has_fragments))),
                Ok(None) => Ok(None),
                Err(_) => Err(FramingError::LongRecord),
            },
            Some(FramingForm::Objects(splitter)) => match splitter.next() {
                Ok(Some(object)) => {
                    let (data, has_fragments) = mark_fragments(object);
                    self.has_fragments |= has_fragments;
                    Ok(Some(Record { event: Cow::Borrowed(""), data, whole: true }))
                }
                Ok(None) => Ok(None),
                Err(SplitError::TooLong) => Err(FramingError::LongAnswer),
                Err(SplitError::Unexpected(found)) => Err(FramingError::NoObject { found }),
            },
        }
    }

    /// The record an ended stream leaves unfinished, if it may be one.
    pub fn unfinished_record(&mut self) -> Option<Record<'_>> {
        match &mut self.form {
            Some(FramingForm::Sse(decoder)) => {
                let event = decoder.unfinished_event()?;
                Some(sse_record(event, &mut self.has_fragments))
            }
            Some(FramingForm::Objects(_)) | None => None,
        }
    }

    /// Reports whether a record so far held a fragment of a character.
    #[must_use]
    pub fn has_fragments(&self) -> bool {
        self.has_fragments
    }

    /// Reports whether anything arrived at all.
    #[must_use]
    pub fn has_received(&self) -> bool {
        self.received
    }

    /// Reports whether the end of the connection cuts a JSON object in two.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(&self.form, Some(FramingForm::Objects(splitter)) if !splitter.is_between())
    }
}

/// `bytes` without the white space and the byte order mark that may come before all else.
fn without_blank(bytes: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || BOM.contains(byte);
    let start = bytes.iter().position(|byte| !is_blank(byte)).unwrap_or(bytes.len());
    bytes.get(start..).unwrap_or_default()
}

/// Returns the framing of an answer that begins with `bytes`.
fn detect_form(bytes: &[u8]) -> Result<FramingForm, FramingError> {
    match bytes.first().copied().unwrap_or_default() {
        b'{' | b'[' => Ok(FramingForm::Objects(Splitter::default())),
        b'<' => Err(FramingError::HtmlPage),
        // How the fields and the comments of an event stream begin.
        b'd' | b'e' | b'i' | b'r' | b':' => Ok(FramingForm::Sse(SseDecoder::default())),
        0x1f => Err(FramingError::Compressed),
        _ => Err(FramingError::UnknownForm { start: show_first_line(bytes) }),
    }
}

/// The beginning of the first line, for people.
fn show_first_line(bytes: &[u8]) -> String {
    let line = bytes.split(|byte| matches!(byte, b'\r' | b'\n')).next().unwrap_or_default();
    match std::str::from_utf8(line) {
        Ok(text) => text.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect(),
        Err(_) => line.iter().take(MAX_SHOWN_CHARS).copied().map(show_byte).collect(),
    }
}

fn show_byte(byte: u8) -> String {
    byte.escape_ascii().to_string()
}

fn sse_record<'a>(event: SseEvent<'a>, has_fragments: &mut bool) -> Record<'a> {
    let (data, is_marked) = mark_fragments(event.data);
    *has_fragments |= is_marked;
    Record { event: String::from_utf8_lossy(event.event), data, whole: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(pieces: &[&[u8]]) -> Vec<String> {
        let mut framer = Framer::default();
        let mut records = Vec::new();
        for piece in pieces {
            framer.feed(piece).unwrap();
            while let Some(record) = framer.next_record().unwrap() {
                records.push(record.data.into_owned());
            }
        }
        records
    }

    /// Also where the cut falls into the byte order mark.
    #[test]
    fn stream_framing_skips_leading_bom_and_white_space() {
        for blank in ["", "\u{FEFF}", "\u{FEFF}\r\n\r\n", "\n \t", " "] {
            for (body, record) in [("data: x\n\n", "x"), ("{}\n", "{}")] {
                let body = format!("{blank}{body}").into_bytes();
                let single: Vec<_> = body.chunks(1).collect();
                assert_eq!(records(&[&body]), [record], "{blank:?}");
                assert_eq!(records(&single), [record], "{blank:?}");
            }
        }
    }
}
