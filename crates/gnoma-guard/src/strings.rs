//! The strings inside a JSON text, changed without touching a byte of the rest.
//!
//! The text is known to be valid JSON: a quote outside a string opens one, and a string ends at the
//! first quote that no backslash escapes.

use std::ops::Range;

/// The positions of the string literals of a JSON text, without their quotes; keys too.
pub(crate) fn string_literals(json: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let bytes = json.as_bytes();
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + bytes.get(from..)?.iter().position(|b| *b == b'"')? + 1;
        let mut end = start;
        loop {
            match bytes.get(end)? {
                b'"' => break,
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        from = end + 1;
        Some(start..end)
    })
}

/// Decodes the inside of a string literal; `None` when it is not a valid one.
pub(crate) fn decode_literal(literal: &str) -> Option<String> {
    if literal.contains('\\') {
        gnoma_core::json::from_str(&format!("\"{literal}\"")).ok()
    } else {
        Some(literal.to_owned())
    }
}

/// The inside of a string literal that says `text`.
pub(crate) fn encode_literal(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}

/// The JSON text with its strings changed; `None` when `change` leaves them all alone.
pub(crate) fn map_strings(
    json: &str,
    mut change: impl FnMut(&str) -> Option<String>,
) -> Option<String> {
    let mut mapped: Option<String> = None;
    let mut copied = 0;
    for range in string_literals(json) {
        let Some(text) = json.get(range.clone()).and_then(decode_literal) else { continue };
        let Some(changed) = change(&text) else { continue };
        let mapped = mapped.get_or_insert_default();
        mapped.push_str(json.get(copied..range.start).unwrap_or_default());
        mapped.push_str(&encode_literal(&changed));
        copied = range.end;
    }
    let mut mapped = mapped?;
    mapped.push_str(json.get(copied..).unwrap_or_default());
    Some(mapped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn map_json_strings_rewrites_changed_strings_and_preserves_the_rest_of_the_json() {
        let json = r#"{ "a\"b" : ["x\u0041", 1.50, {"x": "\\"}] }"#;
        let told = map_strings(json, |text| (text == "xA").then(|| "q\"".to_owned()));
        assert_eq!(told.as_deref(), Some(r#"{ "a\"b" : ["q\"", 1.50, {"x": "\\"}] }"#));
        assert_eq!(map_strings(json, |_| None), None);
    }
}
