//! Percent-encoded text, as in URLs and forms.

use memchr::memchr;

use super::{View, regions::lines_with};

/// The lines that hold a percent-encoded byte, decoded.
pub(crate) fn decode(text: &[u8]) -> Option<View> {
    let regions = lines_with(text, |from| next_code(text, from));
    if regions.is_empty() {
        return None;
    }
    let mut view = View::default();
    for region in regions {
        view.push_line_break(region.start);
        let mut done = region.start;
        while let Some(at) = next_code(text, done).filter(|at| at + 3 <= region.end) {
            view.push_literal(text.get(done..at).unwrap_or_default(), done);
            view.push(&[code_at(text, at).unwrap_or_default()], at..at + 3);
            done = at + 3;
        }
        view.push_literal(text.get(done..region.end).unwrap_or_default(), done);
    }
    Some(view)
}

/// Returns the offset of the next `%XX`.
fn next_code(text: &[u8], mut from: usize) -> Option<usize> {
    loop {
        let at = from + memchr(b'%', text.get(from..)?)?;
        if code_at(text, at).is_some() {
            return Some(at);
        }
        from = at + 1;
    }
}

/// The byte that `%XX` at `at` stands for. Digits after `%` in prose ("50%20 of") do no harm.
fn code_at(text: &[u8], at: usize) -> Option<u8> {
    let digits = text.get(at + 1..at + 3)?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoding_is_decoded_and_other_percent_signs_stay() {
        let view = decode(b"a=1\nq%3Dx%2fy 5% %zz\nb").unwrap();
        assert_eq!(view.text(), b"q=x/y 5% %zz");
        assert_eq!(view.origin(1..2), 5..8);
        assert!(decode(b"100% of %s").is_none());
    }
}
