//! Server-sent events, as far as model servers use them.
//!
//! Source: the WHATWG HTML standard, section 9.2 "Server-sent events". Lines end in LF, CRLF or CR;
//! `id` and `retry` are read over; a byte order mark is the framer's to take off. Sans-IO: bytes in,
//! events out.

use memchr::{memchr, memchr2};
use serde::de::IgnoredAny;

/// Longest event we hold. Whole answers in one event (images) fit.
pub(crate) const MAX_EVENT_BYTES: usize = 32 << 20;

/// The stream holds an event longer than [`MAX_EVENT_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

/// One server-sent event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SseEvent<'a> {
    /// The name of the event; empty when it has none.
    pub event: &'a [u8],
    /// The data lines of the event, joined by LF.
    pub data: &'a [u8],
}

/// Cuts a byte stream into events, wherever the stream itself is cut.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    buffer: Vec<u8>,
    /// Start of the first line not read.
    at: usize,
    /// Up to here `buffer` holds no line end.
    scanned: usize,
    event: Vec<u8>,
    data: Data,
    /// The number of data lines of the event.
    data_lines: usize,
    /// The event in `event` and `data` has been given out.
    taken: bool,
}

/// The data of the event that is being read.
#[derive(Debug, Default)]
enum Data {
    /// No data line yet.
    #[default]
    Nothing,
    /// One line, still in the buffer: nearly every event, and no copy.
    Line { start: usize, end: usize },
    /// Several lines, or one that its buffer was taken from under.
    Joined(Vec<u8>),
}

impl SseDecoder {
    /// Takes the next bytes. Call [`next`](Self::next) until it gives `None` before feeding more.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.forget_taken();
        if let Data::Line { start, end } = self.data {
            self.data = Data::Joined(self.buffer[start..end].to_vec());
        }
        self.buffer.drain(..self.at);
        self.scanned -= self.at;
        self.at = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole event.
    ///
    /// # Errors
    /// When an event outgrows [`MAX_EVENT_BYTES`].
    pub(crate) fn next(&mut self) -> Result<Option<SseEvent<'_>>, TooLong> {
        self.forget_taken();
        while let Some((end, after)) = self.next_line() {
            let start = self.at;
            if self.begins_record(start, end) {
                self.taken = true;
                return Ok(Some(self.current_event()));
            }
            self.at = after;
            self.scanned = after;
            if start < end {
                self.read_field(start, end);
            } else if matches!(self.data, Data::Nothing) {
                self.event.clear();
            } else {
                self.taken = true;
                return Ok(Some(self.current_event()));
            }
        }
        let joined = if let Data::Joined(data) = &self.data { data.len() } else { 0 };
        let held = joined + self.buffer.len() - self.at;
        if held > MAX_EVENT_BYTES { Err(TooLong) } else { Ok(None) }
    }

    /// The event that an ended stream leaves without its blank line.
    pub(crate) fn unfinished_event(&mut self) -> Option<SseEvent<'_>> {
        self.feed(b"\n\n");
        self.next().ok().flatten()
    }

    /// The next line as its end and the start of the one after. A CR at the very end waits for the
    /// LF that may follow.
    fn next_line(&mut self) -> Option<(usize, usize)> {
        let Some(found) = memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let end = self.scanned + found;
        self.scanned = end;
        match (self.buffer[end], self.buffer.get(end + 1)) {
            (b'\r', None) => None,
            (b'\r', Some(b'\n')) => Some((end, end + 2)),
            _ => Some((end, end + 1)),
        }
    }

    fn read_field(&mut self, start: usize, end: usize) {
        let line = &self.buffer[start..end];
        let colon = memchr(b':', line).unwrap_or(line.len());
        let mut value = (start + colon + 1).min(end);
        if value < end && self.buffer[value] == b' ' {
            value += 1;
        }
        let value = data_value(line).map_or(value, |data| end - data.len());
        match &line[..colon] {
            b"data" => self.data_line(value, end),
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(&self.buffer[value..end]);
            }
            // Not of the standard: so llama.cpp and its kin tell of a failure in mid-stream.
            b"error" => {
                self.event.clear();
                self.event.extend_from_slice(b"error");
                self.data_line(value, end);
            }
            _ => (),
        }
    }

    /// Reports whether a line begins a record although the one before, which is whole, has no blank line behind it:
    /// some servers send none.
    fn begins_record(&self, start: usize, end: usize) -> bool {
        if self.data_lines != 1 || data_value(&self.buffer[start..end]).is_none() {
            return false;
        }
        let known = self.current_event().data;
        (known.starts_with(b"{") || known == b"null")
            && serde_json::from_slice::<IgnoredAny>(known).is_ok()
    }

    fn data_line(&mut self, start: usize, end: usize) {
        self.data_lines += 1;
        let line = &self.buffer[start..end];
        match &mut self.data {
            Data::Nothing => self.data = Data::Line { start, end },
            Data::Line { start: first, end: first_end } => {
                let first = &self.buffer[*first..*first_end];
                self.data = Data::Joined([first, b"\n", line].concat());
            }
            Data::Joined(data) => {
                data.push(b'\n');
                data.extend_from_slice(line);
            }
        }
    }

    fn current_event(&self) -> SseEvent<'_> {
        let data = match &self.data {
            Data::Nothing => &[],
            Data::Line { start, end } => &self.buffer[*start..*end],
            Data::Joined(data) => data.as_slice(),
        };
        SseEvent { event: &self.event, data }
    }

    fn forget_taken(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.event.clear();
            self.data = Data::Nothing;
            self.data_lines = 0;
        }
    }
}

/// The value of a data line. Some proxies frame records that are framed already.
fn data_value(line: &[u8]) -> Option<&[u8]> {
    let mut value = line.strip_prefix(b"data:")?;
    loop {
        value = value.strip_prefix(b" ").unwrap_or(value);
        match value.strip_prefix(b"data:") {
            Some(inner) => value = inner,
            None => return Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut decoder = SseDecoder::default();
        let mut events = Vec::new();
        for piece in pieces {
            decoder.feed(piece);
            while let Some(event) = decoder.next().unwrap() {
                events.push((text(event.event), text(event.data)));
            }
        }
        while let Some(event) = decoder.unfinished_event() {
            events.push((text(event.event), text(event.data)));
        }
        events
    }

    fn pair(event: &str, data: &str) -> (String, String) {
        (event.to_owned(), data.to_owned())
    }

    #[test]
    fn sse_decoder_follows_the_html_standard() {
        let stream = b": hello\r\nevent: add\r\ndata: 1\r\ndata\ndata:2\n\nid: 7\n\ndata: x\r\r\
            event: lost\n\ndata:  two spaces\n\ndata: end";
        let expected =
            [pair("add", "1\n\n2"), pair("", "x"), pair("", " two spaces"), pair("", "end")];
        assert_eq!(decode(&[stream]), expected);
    }

    #[test]
    fn sse_error_field_is_an_error_event() {
        let stream = b"data: a\n\nerror: {\"code\":500}\n\n";
        let expected = [pair("", "a"), pair("error", "{\"code\":500}")];
        assert_eq!(decode(&[stream]), expected);
    }

    #[test]
    fn sse_records_without_blank_lines_or_with_double_data_are_decoded() {
        let records = [pair("", r#"{"a":"1"}"#), pair("", r#"{"b":2}"#), pair("", "[DONE]")];
        let bare = b"data: {\"a\":\"1\"}\ndata: {\"b\":2}\ndata: [DONE]";
        let single: Vec<_> = bare.chunks(1).collect();
        assert_eq!(decode(&[bare]), records);
        assert_eq!(decode(&single), records);
        let twice = b"data: data: {\"a\":\"1\"}\n\ndata:data:{\"b\":2}\n\ndata: [DONE]\n\n";
        assert_eq!(decode(&[twice]), records);
        let joined = b"data: {\"a\":[\ndata: {},\ndata: {\"b\":1}]}\n\n";
        assert_eq!(decode(&[joined]), [pair("", "{\"a\":[\n{},\n{\"b\":1}]}")]);
    }

    #[test]
    fn sse_line_over_the_size_limit_is_an_error() {
        let mut decoder = SseDecoder::default();
        decoder.feed(&vec![b'x'; MAX_EVENT_BYTES + 1]);
        assert_eq!(decoder.next(), Err(TooLong));
    }

    proptest! {
        /// Wherever the stream is cut, the events are the same.
        #[test]
        fn sse_decoder_gives_the_same_events_for_any_chunking(
            stream in "([a-e: \n\r]|data: |event: |\r\n){0,60}",
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            let single: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(decode(&pieces), decode(&[bytes]));
            prop_assert_eq!(decode(&single), decode(&[bytes]));
        }
    }
}
