//! Text inside string literals: `\"`, `\n`, `\u0041`, `\x41`, one level for each view.
//!
//! JSON, C, Rust, Python and JavaScript agree on these; notations of one language alone are left out.

use memchr::memchr;

use super::{View, regions::lines_with};

/// Hexadecimal digits of `\u`.
const UNICODE_DIGITS: usize = 4;
/// Hexadecimal digits of `\x`.
const BYTE_DIGITS: usize = 2;

/// The lines that hold a backslash, one level of escapes taken off.
pub(crate) fn decode(text: &[u8]) -> Option<View> {
    let regions = lines_with(text, |from| Some(from + memchr(b'\\', text.get(from..)?)?));
    if regions.is_empty() {
        return None;
    }
    let mut view = View::default();
    for region in regions {
        view.push_line_break(region.start);
        let mut done = region.start;
        while let Some(distance) = memchr(b'\\', text.get(done..region.end).unwrap_or_default()) {
            let at = done + distance;
            view.push_literal(text.get(done..at).unwrap_or_default(), done);
            done = push_escape(text.get(at..region.end).unwrap_or_default(), at, &mut view);
        }
        view.push_literal(text.get(done..region.end).unwrap_or_default(), done);
    }
    Some(view)
}

/// Adds what the escape at the start of `text` stands for; returns where it ends in the original.
fn push_escape(text: &[u8], at: usize, view: &mut View) -> usize {
    let Some(&kind) = text.get(1) else {
        view.push_literal(text, at);
        return at + text.len();
    };
    let simple = match kind {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'f' => 0x0c,
        b'0' => 0,
        b'u' => return push_code(text, at, UNICODE_DIGITS, view),
        b'x' => return push_code(text, at, BYTE_DIGITS, view),
        other => other,
    };
    view.push(&[simple], at..at + 2);
    at + 2
}

fn push_code(text: &[u8], at: usize, digits: usize, view: &mut View) -> usize {
    let code = text
        .get(2..2 + digits)
        .and_then(|digits| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
    match code.and_then(char::from_u32) {
        Some(letter) => {
            let mut buffer = [0; 4];
            view.push(letter.encode_utf8(&mut buffer).as_bytes(), at..at + 2 + digits);
            at + 2 + digits
        }
        None => {
            view.push(text.get(1..2).unwrap_or_default(), at..at + 2);
            at + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(text: &str) -> String {
        String::from_utf8_lossy(decode(text.as_bytes()).unwrap_or_default().text()).into_owned()
    }

    #[test]
    fn backslash_escapes_are_decoded_one_level_at_a_time() {
        assert_eq!(once(r#"a\\\"b"#), r#"a\"b"#);
        assert_eq!(once(r"k\u003dv\x41\n."), "k=vA\n.");
        assert_eq!(once("plain\nwith \\t tab\nplain"), "with \t tab");
        assert_eq!(once(r"cut \u00"), "cut u00");
        assert_eq!(once("end\\"), "end\\");
    }
}
