//! Terminal output without its escape sequences: colours split a name from its value.
//!
//! Removes CSI and OSC sequences and lone two-byte escapes; what they would do on a screen is not replayed.

use memchr::memchr;

use super::View;

const ESC: u8 = 0x1b;
/// A control sequence longer than this is taken for text.
const MAX_CSI_BYTES: usize = 64;
/// A window title or link longer than this is taken for text.
const MAX_OSC_BYTES: usize = 4096;

/// The text without escape sequences, if it has any.
pub(crate) fn without_colours(text: &[u8]) -> Option<View> {
    let mut next = memchr(ESC, text)?;
    let mut view = View::default();
    let mut done = 0;
    loop {
        view.push_literal(text.get(done..next).unwrap_or_default(), done);
        done = next + sequence_length(text.get(next..).unwrap_or_default());
        match memchr(ESC, text.get(done..).unwrap_or_default()) {
            Some(distance) => next = done + distance,
            None => break,
        }
    }
    view.push_literal(text.get(done..).unwrap_or_default(), done);
    Some(view)
}

/// Length of the escape sequence that begins `text`; a lone ESC is one byte.
fn sequence_length(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => {
            let body = text.get(2..).unwrap_or_default();
            let end = body.iter().take(MAX_CSI_BYTES).position(|byte| (0x40..=0x7e).contains(byte));
            end.map_or(1, |end| end + 3)
        }
        Some(b']') => {
            let body = text.get(2..).unwrap_or_default();
            let end = body.iter().take(MAX_OSC_BYTES).position(|&byte| byte == 0x07 || byte == ESC);
            match end {
                Some(end) if body.get(end) == Some(&ESC) => end + 4,
                Some(end) => end + 3,
                None => 1,
            }
        }
        Some(b'(' | b')') => 3,
        _ => 1,
    }
    .min(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        without_colours(text.as_bytes()).map_or_else(
            || text.to_owned(),
            |view| String::from_utf8_lossy(view.text()).into_owned(),
        )
    }

    #[test]
    fn ansi_escape_sequences_are_stripped_and_text_stays() {
        assert_eq!(plain("\x1b[1;32mTOKEN\x1b[0m=\x1b[33mabc\x1b[m"), "TOKEN=abc");
        assert_eq!(plain("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07"), "link");
        assert_eq!(plain("a\x1b(Bb"), "ab");
        assert_eq!(plain("cut \x1b[12"), "cut [12");
        assert_eq!(plain("\x1b"), "");
    }
}
