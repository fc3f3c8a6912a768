//! Cuts a JSON body into its top-level objects.
//!
//! One splitter for all bodies that are not SSE: a whole answer (one object, pretty-printed or not),
//! lines of objects (Ollama), one growing array of objects (Gemini without `alt=sse`). It balances
//! brackets and knows strings; whether an object is sound JSON is for its reader to say.

use memchr::memchr2;

/// Largest object we hold.
pub(crate) const MAX_OBJECT_BYTES: usize = 64 << 20;

/// The error in a stream at a place where an object should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitError {
    /// An object longer than [`MAX_OBJECT_BYTES`].
    TooLong,
    /// A byte that starts no object.
    Unexpected(u8),
}

/// Cuts a byte stream into objects, wherever the stream itself is cut.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    buffer: Vec<u8>,
    /// Start of the object being read, or of what has not been looked at.
    start: usize,
    /// The number of bytes of the buffer that have been scanned.
    scanned: usize,
    depth: usize,
    /// Inside of the list around the objects.
    in_list: bool,
    in_string: bool,
    escaped: bool,
}

impl Splitter {
    /// Takes the next bytes. Call [`next`](Self::next) until it gives `None` before feeding more.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole object.
    ///
    /// # Errors
    /// When an object is too long, or something else stands in its place.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, SplitError> {
        if self.depth == 0 && !self.find_start()? {
            return Ok(None);
        }
        while let Some(byte) = self.next_byte() {
            if self.ends_object(byte) {
                let object = self.start..self.scanned;
                self.start = self.scanned;
                return Ok(Some(&self.buffer[object]));
            }
        }
        let held = self.buffer.len() - self.start;
        if held > MAX_OBJECT_BYTES { Err(SplitError::TooLong) } else { Ok(None) }
    }

    /// Reports whether the stream may end here.
    pub(crate) fn is_between(&self) -> bool {
        self.depth == 0 && !self.in_list
    }

    /// Skips to the next object; array brackets and commas around objects are read over.
    fn find_start(&mut self) -> Result<bool, SplitError> {
        while let Some(&byte) = self.buffer.get(self.scanned) {
            match byte {
                b'{' => {
                    self.start = self.scanned;
                    return Ok(true);
                }
                b'[' => self.in_list = true,
                b']' => self.in_list = false,
                b' ' | b'\t' | b'\r' | b'\n' | b',' | 0xEF | 0xBB | 0xBF => (),
                other => return Err(SplitError::Unexpected(other)),
            }
            self.scanned += 1;
        }
        self.start = self.scanned;
        Ok(false)
    }

    /// The next byte that may mean something: the words in a string are jumped over.
    fn next_byte(&mut self) -> Option<u8> {
        if self.in_string && !self.escaped {
            let rest = self.buffer.get(self.scanned..)?;
            self.scanned += memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
        }
        let byte = *self.buffer.get(self.scanned)?;
        self.scanned += 1;
        Some(byte)
    }

    /// Looks at one byte of an object; true when it is the object's last.
    fn ends_object(&mut self, byte: u8) -> bool {
        if self.in_string {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => (),
            }
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => (),
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(pieces: &[&[u8]]) -> Result<Vec<String>, SplitError> {
        let mut splitter = Splitter::default();
        let mut objects = Vec::new();
        for piece in pieces {
            splitter.feed(piece);
            while let Some(object) = splitter.next()? {
                objects.push(String::from_utf8_lossy(object).into_owned());
            }
        }
        Ok(objects)
    }

    #[test]
    fn json_object_splitter_reads_lines_arrays_and_pretty_objects() {
        let lines = b"{\"a\":\"}\\\"\"}\n{\"b\":[{}]}\n";
        assert_eq!(split(&[lines]).unwrap(), ["{\"a\":\"}\\\"\"}", "{\"b\":[{}]}"]);
        assert_eq!(split(&[b"[{\"a\":1}\n,\n{\"b\":2}]"]).unwrap(), ["{\"a\":1}", "{\"b\":2}"]);
        assert_eq!(split(&[b"{\n  \"a\": {}\n}"]).unwrap(), ["{\n  \"a\": {}\n}"]);
        assert_eq!(split(&[b"oops"]), Err(SplitError::Unexpected(b'o')));
    }

    #[test]
    fn unclosed_json_object_or_array_is_truncated() {
        let ends_well = |stream: &[u8]| {
            let mut splitter = Splitter::default();
            splitter.feed(stream);
            while splitter.next().unwrap().is_some() {}
            splitter.is_between()
        };
        for whole in [&b"{\"a\":[]}\n"[..], b"[{},{}]\n", b"{}{}"] {
            assert!(ends_well(whole));
        }
        for cut in [&b"{\"a\":["[..], b"[{}", b"[{},"] {
            assert!(!ends_well(cut));
        }
    }

    proptest! {
        /// Wherever the stream is cut, the objects are the same.
        #[test]
        fn json_object_splitter_gives_the_same_objects_for_any_chunking(stream in "[\\[\\]{}\", \\\\a]{0,60}", cut in 0_usize..60) {
            let bytes = stream.as_bytes();
            let (left, right) = bytes.split_at(cut.min(bytes.len()));
            let single: Vec<_> = bytes.chunks(1).collect();
            prop_assert_eq!(split(&[left, right]), split(&[bytes]));
            prop_assert_eq!(split(&single), split(&[bytes]));
        }
    }
}
