//! Output of any size in bounded memory: the beginning and the end are kept, as a terminal would show them.

use std::collections::VecDeque;

use gnoma_core::{terminal_text::TerminalText, text_truncation};

/// Bytes kept from the beginning of an output that is too long.
const HEAD_BYTES: usize = 10_000;
/// Bytes kept from its end, where commands say how it went.
const TAIL_BYTES: usize = 20_000;

/// Bytes kept from both ends of an output that is put aside and read piece by piece.
const STORED_HEAD_BYTES: usize = 300_000;
const STORED_TAIL_BYTES: usize = 700_000;

/// The first and the last bytes of everything that was pushed.
#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    head_limit: usize,
    tail_limit: usize,
    total_bytes: u64,
}

/// A capture of what a terminal would show of everything that was pushed.
#[derive(Debug)]
pub(super) struct ScreenCapture {
    screen: TerminalText,
    lines: Capture,
}

impl ScreenCapture {
    /// An empty capture with the limits for what a model reads.
    pub(super) fn new() -> Self {
        Self { screen: TerminalText::default(), lines: Capture::new() }
    }

    /// An empty capture for a result that is put aside.
    pub(super) fn for_result_store() -> Self {
        Self { lines: Capture::for_result_store(), ..Self::new() }
    }

    /// Adds output of the command.
    pub(super) fn push(&mut self, text: &str) {
        self.screen.push(text, |line| self.lines.push(line));
    }

    /// Returns what was captured since the last call and empties the capture.
    pub(super) fn take_text(&mut self) -> String {
        self.screen.finish(|line| self.lines.push(line));
        self.lines.take_text()
    }
}

impl Capture {
    /// An empty capture with the limits for what a model reads.
    fn new() -> Self {
        Self::with_limits(HEAD_BYTES, TAIL_BYTES)
    }

    /// An empty capture for a result that is put aside.
    fn for_result_store() -> Self {
        Self::with_limits(STORED_HEAD_BYTES, STORED_TAIL_BYTES)
    }

    /// Cut to what a model reads at once, unless it is already.
    pub(super) fn truncate_text(text: String) -> String {
        /// The line in place of what was left out.
        const LINE_BYTES: usize = 64;
        if text.len() <= HEAD_BYTES + TAIL_BYTES + LINE_BYTES {
            return text;
        }
        let mut capture = Self::new();
        capture.push(&text);
        capture.text()
    }

    fn with_limits(head_limit: usize, tail_limit: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), head_limit, tail_limit, total_bytes: 0 }
    }

    /// Adds output. How it is cut into pushes makes no difference.
    fn push(&mut self, text: &str) {
        self.total_bytes += text.len() as u64;
        let room = self.head_limit - self.head.len();
        let (head, rest) = text.as_bytes().split_at_checked(room).unwrap_or((text.as_bytes(), &[]));
        self.head.extend_from_slice(head);
        let newest = rest.len().min(self.tail_limit);
        let surplus = (self.tail.len() + newest).saturating_sub(self.tail_limit);
        self.tail.drain(..surplus);
        self.tail.extend(rest.iter().skip(rest.len() - newest));
    }

    /// Returns the captured text, with a line in place of what was left out, and without the last line break: every
    /// command ends with one and it says nothing.
    fn text(&self) -> String {
        let (older, newer) = self.tail.as_slices();
        if self.total_bytes == (self.head.len() + self.tail.len()) as u64 {
            let whole = [&self.head, older, newer].concat();
            return without_line_break(&String::from_utf8_lossy(&whole)).to_owned();
        }
        // Of a character that a limit cut in two nothing is kept; apart from that the text is sound.
        let tail = [older, newer].concat();
        let head = self.head.utf8_chunks().next();
        let head = head.map_or("", |chunk| chunk.valid());
        let tail = tail.utf8_chunks().last().map_or("", |chunk| chunk.valid());
        // A secret that a limit cut in two would not be recognised any more.
        let (head, tail) =
            (text_truncation::before_last_word(head), text_truncation::skip_partial_word(tail));
        let left_out = self.total_bytes - (head.len() + tail.len()) as u64;
        let (head, tail) = (without_line_break(head), without_line_break(tail));
        format!("{head}\n[... {left_out} bytes left out ...]\n{tail}")
    }

    /// Returns what was captured since the last call and empties the capture.
    fn take_text(&mut self) -> String {
        let text = self.text();
        *self = Self::with_limits(self.head_limit, self.tail_limit);
        text
    }
}

fn without_line_break(text: &str) -> &str {
    text.strip_suffix('\n').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: usize = 10;
    const TAIL: usize = 12;

    fn captured(chunks: &[impl AsRef<str>]) -> Capture {
        let mut capture = Capture::with_limits(HEAD, TAIL);
        for chunk in chunks {
            capture.push(chunk.as_ref());
        }
        capture
    }

    /// Splits a text at the marker line; the number of bytes that were left out.
    fn parts(text: &str) -> (&str, usize, &str) {
        let (head, rest) = text.split_once("[... ").unwrap();
        let (number, tail) = rest.split_once(" bytes left out ...]\n").unwrap();
        (head, number.parse().unwrap(), tail)
    }

    proptest! {
        #[test]
        fn captured_output_is_the_same_for_any_chunk_boundaries(chunks in prop::collection::vec("[a-cé€🦀\n]{0,9}", 0..9)) {
            let whole = chunks.concat();
            prop_assert_eq!(captured(&chunks).text(), captured(&[&whole]).text());
        }

        #[test]
        fn captured_output_within_the_limit_is_complete(text in "[a-cé€🦀\n]{0,7}") {
            prop_assume!(text.len() <= HEAD + TAIL);
            let expected = text.strip_suffix('\n').unwrap_or(&text);
            prop_assert_eq!(captured(&[&text]).text(), expected);
        }

        #[test]
        fn captured_output_above_the_limit_retains_both_ends_and_counts_the_rest(text in "[a-cé€🦀]{30,90}") {
            let captured = captured(&[&text]).text();
            let (head, left_out, tail) = parts(&captured);
            let head = head.strip_suffix('\n').unwrap();
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert_eq!(head.len() + left_out + tail.len(), text.len());
            let kept = |c: char| !c.is_ascii();
            prop_assert!(head.len() > HEAD - 4 || !text.chars().take(HEAD).all(kept));
            prop_assert!(!head.ends_with(['a', 'b', 'c']) && !tail.starts_with(['a', 'b', 'c']));
        }

        #[test]
        fn output_capture_memory_is_bounded(chunks in prop::collection::vec("[a-z]{0,60}", 0..30)) {
            let capture = captured(&chunks);
            prop_assert!(capture.head.len() <= HEAD && capture.tail.len() <= TAIL);
        }
    }

    #[test]
    fn take_text_empties_the_output_capture() {
        let mut capture = captured(&["one\n"]);
        assert_eq!(capture.take_text(), "one");
        capture.push("two");
        assert_eq!(capture.take_text(), "two");
        assert_eq!(capture.take_text(), "");
    }
}
