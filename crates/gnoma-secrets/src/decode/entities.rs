//! HTML and XML character references in text: `&quot;`, `&amp;`, `&#61;`, `&#x3d;`.
//!
//! Only those that stand for signs of ASCII: they are what keeps a name from its value.

use memchr::memchr;

use super::{View, regions::lines_with};

const NAMED: &[(&[u8], u8)] = &[
    (b"quot", b'"'),
    (b"apos", b'\''),
    (b"amp", b'&'),
    (b"lt", b'<'),
    (b"gt", b'>'),
    (b"nbsp", b' '),
    (b"equals", b'='),
    (b"colon", b':'),
];
/// Longest reference, with `&` and `;`.
const MAX_REFERENCE_BYTES: usize = 9;

/// The lines that hold a reference, decoded.
pub(crate) fn decode(text: &[u8]) -> Option<View> {
    let regions = lines_with(text, |from| next_reference(text, from).map(|(at, ..)| at));
    if regions.is_empty() {
        return None;
    }
    let mut view = View::default();
    for region in regions {
        view.push_line_break(region.start);
        let mut done = region.start;
        while let Some((at, sign, end)) =
            next_reference(text, done).filter(|(.., end)| *end <= region.end)
        {
            view.push_literal(text.get(done..at).unwrap_or_default(), done);
            view.push(&[sign], at..end);
            done = end;
        }
        view.push_literal(text.get(done..region.end).unwrap_or_default(), done);
    }
    Some(view)
}

/// Returns the start of the next reference, the byte that it stands for, and its end.
fn next_reference(text: &[u8], mut from: usize) -> Option<(usize, u8, usize)> {
    loop {
        let at = from + memchr(b'&', text.get(from..)?)?;
        if let Some((sign, length)) = parse_reference(text.get(at..)?) {
            return Some((at, sign, at + length));
        }
        from = at + 1;
    }
}

fn parse_reference(text: &[u8]) -> Option<(u8, usize)> {
    let end = text.iter().take(MAX_REFERENCE_BYTES).position(|&byte| byte == b';')?;
    let name = text.get(1..end)?;
    let sign = match name.strip_prefix(b"#") {
        Some(number) => parse_code_point(number)?,
        None => NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?.1,
    };
    Some((sign, end + 1))
}

fn parse_code_point(number: &[u8]) -> Option<u8> {
    let number = std::str::from_utf8(number).ok()?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u8::from_str_radix(hex, 16),
        None => number.parse(),
    };
    code.ok().filter(u8::is_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_entities_are_decoded() {
        let view = decode(b"x &amp y &quot;a&quot;&#58;&#x3D; &unknown;").unwrap();
        assert_eq!(view.text(), b"x &amp y \"a\":= &unknown;");
        assert!(decode(b"a && b; c & d;").is_none());
    }
}
