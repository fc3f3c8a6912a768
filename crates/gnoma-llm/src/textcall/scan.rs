//! Parses malformed JSON as small models write it: cut short, with raw line breaks in strings, with trailing commas.
//! Nothing is validated; brackets are balanced and strings are known.

/// Walks over JSON text and knows how deep it is.
#[derive(Debug, Default)]
struct Depth {
    depth: usize,
    /// The quote that ends the string we are in; some models write Python's.
    quote: Option<u8>,
    escaped: bool,
}

impl Depth {
    /// Takes one byte of the text into account.
    fn step(&mut self, byte: u8) {
        if let Some(quote) = self.quote {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                _ if byte == quote => self.quote = None,
                _ => (),
            }
            return;
        }
        match byte {
            b'"' | b'\'' => self.quote = Some(byte),
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => (),
        }
    }
}

/// Length of the object or list that `text` starts with; `None` while it is unfinished.
pub(super) fn end_of(text: &str) -> Option<usize> {
    let mut depth = Depth::default();
    for (at, byte) in text.bytes().enumerate() {
        depth.step(byte);
        if depth.depth == 0 && depth.quote.is_none() && !depth.escaped {
            return Some(at + 1);
        }
    }
    None
}

/// Returns the text between the outer brackets of `text`, cut at the commas on that level. The last piece of
/// unfinished text may be cut.
fn split_at_commas(text: &str) -> Vec<&str> {
    let mut depth = Depth::default();
    let mut pieces = Vec::new();
    let mut start = 1;
    for (at, byte) in text.bytes().enumerate() {
        let outer = depth.depth == 1 && depth.quote.is_none();
        depth.step(byte);
        if (outer && byte == b',') || depth.depth == 0 {
            pieces.push(text.get(start..at).unwrap_or_default().trim());
            start = at + 1;
        }
        if depth.depth == 0 {
            return pieces;
        }
    }
    pieces.push(text.get(start..).unwrap_or_default().trim());
    pieces
}

/// The elements of a list.
pub(super) fn list_elements(list: &str) -> impl Iterator<Item = &str> {
    split_at_commas(list).into_iter().filter(|piece| !piece.is_empty())
}

/// Keys and values of an object; a last entry that is cut before its value is left out.
pub(super) fn object_entries(object: &str) -> impl Iterator<Item = (&str, &str)> {
    split_at_commas(object).into_iter().filter_map(|piece| {
        let quote = piece.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (key, rest) = piece.get(1..)?.split_once(quote)?;
        let value = rest.trim_start().strip_prefix(':')?;
        Some((key, value.trim()))
    })
}

/// The text of a string; `None` for other values and for one that is cut.
pub(super) fn parse_string(value: &str) -> Option<String> {
    if let Ok(text) = serde_json::from_str(value) {
        return Some(text);
    }
    let inner = value.strip_prefix('\'')?.strip_suffix('\'')?;
    Some(inner.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_scan_ignores_brackets_in_strings() {
        assert_eq!(end_of(r#"{"a":"}]\"","b":[1]} tail"#), Some(20));
        assert_eq!(end_of(r#"{"a":"}"#), None);
        assert_eq!(end_of("{'it': '}'} x"), Some(11));
    }

    #[test]
    fn json_scan_finds_entries_of_malformed_objects() {
        let found: Vec<_> =
            object_entries("{\"a\": {\"x\":1,}, 'b' : \"two\nlines\", \"c\": [1, 2").collect();
        assert_eq!(found, [("a", "{\"x\":1,}"), ("b", "\"two\nlines\""), ("c", "[1, 2")]);
        assert_eq!(object_entries(r#"{"a":1,"nam"#).count(), 1);
        assert_eq!(list_elements("[{}, {\"a\":[1,2]},]").count(), 2);
    }
}
