//! Bytes from a pipe to text, wherever the reads cut them.

/// Bytes read at once: what a pipe holds on Linux.
const READ_BYTES: usize = 64 * 1024;

/// Turns bytes into text. Invalid bytes become U+FFFD; a character that a read cut in two waits for
/// its rest.
#[derive(Debug)]
pub(super) struct Utf8Decoder {
    raw: Vec<u8>,
    text: String,
}

impl Utf8Decoder {
    pub(super) fn new() -> Self {
        Self { raw: Vec::with_capacity(READ_BYTES), text: String::new() }
    }

    /// Returns the buffer to which bytes that are read are appended; [`take_text`](Self::take_text) empties it again.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.raw
    }

    /// The text of what was read since the last time. At the `end` nothing is held back.
    pub(super) fn take_text(&mut self, end: bool) -> &str {
        self.text.clear();
        let mut held_bytes = 0;
        let mut chunks = self.raw.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if !end && chunks.peek().is_none() && may_be_continued(invalid) {
                held_bytes = invalid.len();
            } else if !invalid.is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        self.raw.drain(..self.raw.len() - held_bytes);
        &self.text
    }
}

/// Reports whether more bytes could complete these bytes to a character.
fn may_be_continued(bytes: &[u8]) -> bool {
    str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let sound = "[aé€🦀]{1,4}".prop_map(String::into_bytes);
        let any = prop::collection::vec(any::<u8>(), 0..6);
        prop::collection::vec(prop_oneof![sound, any], 0..6).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn utf8_decoder_gives_the_same_text_for_any_chunk_boundaries(bytes in bytes(), size in 1_usize..5) {
            let mut decoder = Utf8Decoder::new();
            let mut text = String::new();
            for chunk in bytes.chunks(size) {
                decoder.buffer().extend_from_slice(chunk);
                text.push_str(decoder.take_text(false));
            }
            text.push_str(decoder.take_text(true));
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }
}
