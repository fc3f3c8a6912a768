//! Small pieces of wording and cutting that several file tools share.

use std::io::{self, Read};

use gnoma_core::text_truncation::head_chars;
use tokio_util::sync::CancellationToken;

/// Returns the number of lines in `content`; the last may lack its line end.
pub(super) fn line_count(content: &[u8]) -> usize {
    let ends = memchr::memchr_iter(b'\n', content).count();
    ends + usize::from(content.last().is_some_and(|&last| last != b'\n'))
}

/// Number of the line, counted from 1, that the byte at `offset` is on.
pub(super) fn line_of(content: &[u8], offset: usize) -> usize {
    let before = content.get(..offset).unwrap_or(content);
    memchr::memchr_iter(b'\n', before).count() + 1
}

/// `text` cut between two words after `max` characters or fewer, and whether something was cut.
pub(super) fn truncate_chars(text: &str, max: usize) -> (&str, bool) {
    let kept = head_chars(text, max);
    (kept, kept.len() < text.len())
}

/// `3 lines`, `1 line`.
pub(super) fn format_count(count: usize, one: &str) -> String {
    match count {
        1 => format!("1 {one}"),
        _ if one.ends_with("ch") => format!("{count} {one}es"),
        _ => format!("{count} {one}s"),
    }
}

/// `line 4`, `lines 4–7`.
pub(super) fn line_range(first: usize, last: usize) -> String {
    if first == last { format!("line {first}") } else { format!("lines {first}–{last}") }
}

/// A reader that fails once the call it works for is cancelled.
pub(super) struct StoppableReader<'a, R> {
    inner: R,
    stop: &'a CancellationToken,
}

impl<'a, R> StoppableReader<'a, R> {
    pub(super) fn new(inner: R, stop: &'a CancellationToken) -> Self {
        Self { inner, stop }
    }
}

impl<R: Read> Read for StoppableReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("stopped"));
        }
        self.inner.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_with_and_without_a_final_line_end() {
        for (content, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
            assert_eq!(line_count(content.as_bytes()), lines, "{content:?}");
        }
    }

    #[test]
    fn counts_read_like_english() {
        assert_eq!(format_count(1, "line"), "1 line");
        assert_eq!(format_count(0, "match"), "0 matches");
        assert_eq!(format_count(2, "byte"), "2 bytes");
        assert_eq!(line_range(4, 4), "line 4");
    }

    #[test]
    fn cutting_never_splits_a_character() {
        assert_eq!(truncate_chars("äöü", 2), ("äö", true));
        assert_eq!(truncate_chars("äöü", 3), ("äöü", false));
    }

    #[test]
    fn cancelled_reader_fails() {
        let stop = CancellationToken::new();
        stop.cancel();
        let mut out = Vec::new();
        let read = StoppableReader::new(&b"abc"[..], &stop).read_to_end(&mut out);
        assert!(read.is_err());
    }
}
