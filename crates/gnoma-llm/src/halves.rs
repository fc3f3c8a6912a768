//! Halves of characters.
//!
//! JSON escapes a character outside of the basic plane as two halves, and servers that cut a model's
//! words anywhere send one without the other. A strict reader refuses the whole record for that.

use std::borrow::Cow;

use memchr::memchr;

/// Bytes of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// What stands for half a character: the escaped replacement character.
const REPLACEMENT: &str = "\\ufffd";

/// `json` with every half that has lost its other one replaced.
pub(crate) fn mended(json: Cow<'_, str>) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(start) = next_escape(&json, at) {
        at = match unit(&json, start) {
            None => start + 2,
            Some(0xD800..=0xDBFF) if has_second_half(&json, start + ESCAPE_BYTES) => {
                start + 2 * ESCAPE_BYTES
            }
            Some(0xD800..=0xDFFF) => {
                out.push_str(json.get(copied..start).unwrap_or_default());
                out.push_str(REPLACEMENT);
                copied = start + ESCAPE_BYTES;
                copied
            }
            Some(_) => start + ESCAPE_BYTES,
        };
    }
    if copied == 0 {
        return json;
    }
    out.push_str(json.get(copied..).unwrap_or_default());
    Cow::Owned(out)
}

fn next_escape(json: &str, from: usize) -> Option<usize> {
    Some(from + memchr(b'\\', json.as_bytes().get(from..)?)?)
}

/// The UTF-16 unit that is escaped at `start`, if one is.
fn unit(json: &str, start: usize) -> Option<u16> {
    let digits = json.get(start..start + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

fn has_second_half(json: &str, start: usize) -> bool {
    matches!(unit(json, start), Some(0xDC00..=0xDFFF))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_lost_halves_are_replaced() {
        for (json, mended) in [
            (r#""plain \n é""#, r#""plain \n é""#),
            (r#""\ud83e\udd80 \u00e9""#, r#""\ud83e\udd80 \u00e9""#),
            (r#""a\uD83E""#, r#""a\ufffd""#),
            (r#""\udd80b""#, r#""\ufffdb""#),
            (r#""\ud83e\ud83e\udd80""#, r#""\ufffd\ud83e\udd80""#),
            (r#""\\ud83e""#, r#""\\ud83e""#),
            (r#""\ud83"#, r#""\ud83"#),
        ] {
            assert_eq!(super::mended(Cow::Borrowed(json)), mended);
        }
    }

    proptest! {
        /// A text of any escapes can be read afterwards.
        #[test]
        fn what_is_mended_can_be_read(text in "([a\u{e9}]|\\\\[n\\\\]|\\\\u[dD][89abcdef]0[0-9]){0,12}") {
            let json = format!("\"{text}\"");
            let mended = mended(Cow::Borrowed(&json));
            prop_assert!(serde_json::from_str::<String>(&mended).is_ok(), "{mended}");
        }
    }
}
