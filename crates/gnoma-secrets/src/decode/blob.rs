//! Text hidden in runs of base64 or hexadecimal digits.
//!
//! A run is decoded only if its beginning decodes to text: hashes, keys, identifiers and pictures do
//! not. A finding inside covers the whole run, since no part of it can be read or restored alone.

use std::ops::Range;

use super::View;
use crate::keywords::{MIN_RUN_BYTES, run_end};

/// Shortest run of base64: a name, a sign and a password.
const MIN_BASE64_BYTES: usize = MIN_RUN_BYTES;
/// Shortest run of hexadecimal digits.
const MIN_HEX_BYTES: usize = 32;
/// Decoded bytes that have to be text before the rest is decoded.
const PROBE_BYTES: usize = 9;
/// Runs that are longer map byte by byte, so that one finding does not cover a whole file.
const MAX_OPAQUE_BYTES: usize = 8 << 10;
/// A line of wrapped base64 is at least this long.
const MIN_WRAPPED_LINE_BYTES: usize = 60;
/// Blanks and line breaks between two lines of wrapped base64.
const MAX_WRAP_BYTES: usize = 32;
/// Marks at the beginning of a line of a diff; one of several versions has several.
const MAX_MARK_BYTES: usize = 2;

/// The texts in runs of base64, standard or for URLs, wrapped or not, and of hexadecimal digits. `runs` is
/// where long runs of token characters begin, which these are among.
pub(crate) fn decode(text: &[u8], runs: &[usize]) -> Option<View> {
    let mut view = View::default();
    let mut from = 0;
    for &start in runs {
        from = start.max(from);
        let end = run_end(text, from);
        while let Some(run) = next_run(text.get(..end)?, from) {
            from = run.end;
            let digits = text.get(run.clone()).unwrap_or_default();
            let mark = diff_mark(text, run.start);
            let unmarked = digits.get(mark.len()..).unwrap_or_default();
            if BASE64.begins_with_text(digits) {
                from = push_lines(text, run, b"", &mut view);
            } else if !mark.is_empty() && BASE64.begins_with_text(unmarked) {
                from = push_lines(text, run.start + mark.len()..run.end, mark, &mut view);
            } else if digits.len() >= MIN_HEX_BYTES && HEX.begins_with_text(digits) {
                push_run(text, &[run], &HEX, &mut view);
            }
        }
    }
    (!view.is_empty()).then_some(view)
}

/// Returns the marks that a diff put before the line that begins at `start`: they are digits of base64, too.
fn diff_mark(text: &[u8], start: usize) -> &[u8] {
    let before = text.get(..start).unwrap_or_default();
    let line = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    if before.get(line..).is_some_and(|before| before.iter().all(|byte| is_margin(*byte))) {
        let marks = text.get(start..).unwrap_or_default();
        let count = marks.iter().take(MAX_MARK_BYTES).take_while(|byte| is_mark(**byte)).count();
        return marks.get(..count).unwrap_or_default();
    }
    b""
}

/// Adds a run and the lines that it goes on over, each behind `mark`; returns where it ends.
fn push_lines(text: &[u8], run: Range<usize>, mark: &[u8], view: &mut View) -> usize {
    let mut lines = vec![run];
    while let Some(last) = lines.last().filter(|last| last.len() >= MIN_WRAPPED_LINE_BYTES) {
        let Some(next) = next_line(text, last.end, mark) else { break };
        lines.push(next);
    }
    let end = lines.last().map_or(0, |last| last.end);
    push_run(text, &lines, &BASE64, view);
    end
}

/// The digits on the next line, behind its margin and `mark`.
fn next_line(text: &[u8], end: usize, mark: &[u8]) -> Option<Range<usize>> {
    let rest = text.get(end..)?;
    let mut gap = 0;
    let mut has_break = false;
    for &byte in rest.iter().take(MAX_WRAP_BYTES) {
        has_break |= byte == b'\n';
        // What stands before a line break ends the digits, what stands behind it is a margin.
        if !(byte.is_ascii_whitespace() || has_break && is_margin(byte)) {
            break;
        }
        gap += 1;
    }
    let start = end + gap;
    let start = start + text.get(start..)?.strip_prefix(mark).map(|_| mark.len())?;
    let digits = digits_from(text, start);
    (gap > 0 && digits > 0).then_some(start..start + digits)
}

/// True if the byte can stand before the lines of quotes, tables and graphs of commits.
fn is_margin(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'>' | b'<' | b'|' | b'*')
}

fn is_mark(byte: u8) -> bool {
    matches!(byte, b'+' | b'-')
}

/// A way to write bytes with few characters.
struct Notation {
    /// The value of each byte as a digit, [`NONE`] for bytes that are no digits.
    values: [u8; 256],
    bits: u32,
}

const NONE: u8 = 0xff;

static BASE64: Notation = Notation { values: base64_values(), bits: 6 };

static HEX: Notation = Notation { values: hex_values(), bits: 4 };

const fn base64_values() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = values_of(alphabet);
    values[b'-' as usize] = 62;
    values[b'_' as usize] = 63;
    values
}

const fn hex_values() -> [u8; 256] {
    let mut values = values_of(b"0123456789abcdef");
    let mut letter = b'A';
    while letter <= b'F' {
        values[letter as usize] = letter - b'A' + 10;
        letter += 1;
    }
    values
}

const fn values_of(alphabet: &[u8]) -> [u8; 256] {
    let mut values = [NONE; 256];
    let mut index = 0;
    while index < alphabet.len() {
        values[alphabet[index] as usize] = index as u8;
        index += 1;
    }
    values
}

/// The next run of base64 digits, which hexadecimal ones are too, that is long enough.
fn next_run(text: &[u8], from: usize) -> Option<Range<usize>> {
    let mut low = from;
    loop {
        let part = text.get(low..low + MIN_BASE64_BYTES)?;
        // Backwards: what is left of the last other byte cannot be a part of a run.
        match part.iter().rposition(|&byte| !BASE64.is_digit(byte)) {
            Some(gap) => low += gap + 1,
            None => return Some(low..low + digits_from(text, low)),
        }
    }
}

fn digits_from(text: &[u8], from: usize) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.iter().take_while(|&&byte| BASE64.is_digit(byte)).count()
}

impl Notation {
    fn is_digit(&self, byte: u8) -> bool {
        self.values[usize::from(byte)] != NONE
    }

    /// Calls `push` with each decoded byte and the place of the digit that completes it.
    fn decode<'t>(
        &self,
        digits: impl Iterator<Item = (usize, &'t u8)>,
        mut push: impl FnMut(u8, usize) -> bool,
    ) {
        let (mut bits, mut held) = (0_u32, 0_u32);
        for (place, &digit) in digits {
            let value = self.values[usize::from(digit)];
            if value == NONE {
                continue;
            }
            bits = (bits << self.bits | u32::from(value)) & 0xffff;
            held += self.bits;
            if held >= 8 {
                held -= 8;
                if !push((bits >> held) as u8, place) {
                    return;
                }
            }
        }
    }

    /// True if the beginning decodes to text.
    fn begins_with_text(&self, digits: &[u8]) -> bool {
        let mut seen = 0;
        self.decode(digits.iter().enumerate(), |byte, _| {
            let good = is_text(byte);
            seen += usize::from(good);
            good && seen < PROBE_BYTES
        });
        seen == PROBE_BYTES
    }
}

/// Adds what the lines of a run stand for. Padding belongs to it.
fn push_run(text: &[u8], lines: &[Range<usize>], notation: &Notation, view: &mut View) {
    let (Some(first), Some(end)) = (lines.first(), lines.last().map(|line| line.end)) else {
        return;
    };
    let digits =
        lines.iter().flat_map(|line| line.clone().zip(text.get(line.clone()).unwrap_or_default()));
    let padding = text.get(end..).unwrap_or_default();
    let padding = padding.iter().take(2).take_while(|&&byte| byte == b'=').count();
    view.push_line_break(first.start);
    if lines.iter().map(ExactSizeIterator::len).sum::<usize>() > MAX_OPAQUE_BYTES {
        let mut last = first.start;
        notation.decode(digits, |byte, at| {
            view.push(&[byte], last..at + 1);
            last = at;
            true
        });
        return;
    }
    let mut decoded = Vec::new();
    notation.decode(digits, |byte, _| {
        decoded.push(byte);
        true
    });
    view.push(&decoded, first.start..end + padding);
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use base64::prelude::*;

    use super::*;
    use crate::keywords::Keywords;

    fn decode(text: &[u8]) -> Option<View> {
        let mut runs = Vec::new();
        Keywords::new([]).for_each_hit(text, &mut runs, &mut |_, _| ());
        super::decode(text, &runs)
    }

    const PLAIN: &str = "user: someone\npassphrase: with a value\n";

    #[test]
    fn base64_run_is_decoded_in_place_with_its_padding() {
        for encoded in [BASE64_STANDARD.encode(PLAIN), BASE64_URL_SAFE.encode(PLAIN)] {
            let text = format!("echo {encoded} | base64 -d");
            let view = decode(text.as_bytes()).unwrap();
            assert_eq!(view.text(), PLAIN.as_bytes());
            assert_eq!(view.origin(3..4), 5..5 + encoded.len());
        }
    }

    #[test]
    fn wrapped_base64_lines_are_decoded_as_one_run() {
        let encoded = BASE64_STANDARD.encode(PLAIN.repeat(5));
        let lines: Vec<String> = encoded
            .as_bytes()
            .chunks(64)
            .map(|line| format!("  {}", String::from_utf8_lossy(line)))
            .collect();
        let view = decode(lines.join("\n").as_bytes()).unwrap();
        assert_eq!(view.text(), PLAIN.repeat(5).as_bytes());
    }

    #[test]
    fn diff_markers_are_not_base64_digits() {
        let encoded = BASE64_STANDARD.encode(PLAIN.repeat(5));
        for (first, mark) in
            [("", "+"), ("", "-"), ("", "++"), ("| ", "+"), ("> ", ""), ("    ", "+")]
        {
            for width in [64, 76, 500] {
                let lines = encoded.as_bytes().chunks(width);
                let lines =
                    lines.map(|line| format!("{first}{mark}{}\n", String::from_utf8_lossy(line)));
                let text =
                    format!("@@ -0,0 +1,4 @@\n{}@@ -9,1 +9,1 @@\n", lines.collect::<String>());
                let view = decode(text.as_bytes()).unwrap();
                assert_eq!(view.text(), PLAIN.repeat(5).as_bytes(), "{text}");
            }
        }
        // Old lines and new ones are two texts.
        let (old, new) = (
            BASE64_STANDARD.encode(PLAIN),
            BASE64_STANDARD.encode("another text, quite long enough"),
        );
        let view = decode(format!("-{old}\n+{new}\n").as_bytes()).unwrap();
        assert_eq!(view.text(), format!("{PLAIN}\nanother text, quite long enough").as_bytes());
    }

    #[test]
    fn hexadecimal_text_is_decoded_and_hashes_are_not() {
        let hex: String = PLAIN.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(decode(hex.as_bytes()).unwrap().text(), PLAIN.as_bytes());
        assert!(
            decode(b"d41d8cd98f00b204e9800998ecf8427e d41d8cd98f00b204e9800998ecf8427e").is_none()
        );
    }

    #[test]
    fn decoded_base64_maps_back_to_its_source_bytes() {
        let plain = "0123456789abcdef".repeat(1024);
        let encoded = BASE64_STANDARD.encode(&plain);
        let view = decode(encoded.as_bytes()).unwrap();
        let origin = view.origin(3000..3016);
        assert!(
            origin.contains(&4000) && origin.contains(&4020) && origin.len() < 30,
            "{origin:?}"
        );
    }
}
