//! JSON that is carried, not understood.
//!
//! Tool schemas and valid tool arguments pass between provider and tool byte for byte: re-serialising them would reorder
//! keys, change numbers and break prompt caches. Faulty arguments are repaired, secrets in them are restored, and a
//! vendor's wire may adapt schemas.

mod repeated_keys;
mod struct_deserializer;

use std::{borrow::Cow, fmt};

use serde::{Deserialize, Serialize, de::Error};
use serde_json::value::RawValue;

pub use self::repeated_keys::repeated_keys;
use self::struct_deserializer::StructDeserializer;

/// Reads a value from a JSON document. Structs are read from objects alone.
///
/// # Errors
/// When the text is not JSON, or not a `T`.
pub fn from_str<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(StructDeserializer(&mut reader))?;
    reader.end()?;
    Ok(value)
}

/// Reads a value from the bytes of a JSON document.
///
/// `serde_json::from_slice` does the same through a second copy of every reader of `T`: the program is
/// a quarter of a megabyte smaller where all documents are read as text.
///
/// # Errors
/// When the bytes are not UTF-8, not JSON, or not a `T`.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    from_str(std::str::from_utf8(bytes).map_err(Error::custom)?)
}

/// Reads a JSON document that a person has written: with a byte order mark, comments, commas behind the last item, and
/// blanks that JSON does not have, such as U+00A0.
///
/// # Errors
/// What is wrong, with its line and column.
pub fn from_hand<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = match from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let plain = without_comments(text);
    if plain == text { Err(first) } else { from_str(&plain) }
}

/// JSON with blanks in place of comments, of commas behind the last item and of other blanks, so that lines and columns
/// stay.
fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // Where a comma stands that nothing has followed.
    let mut comma = None;
    // The last character that is neither blank nor comment.
    let mut last = '[';
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => string_length(rest),
            '/' => comment_length(rest).unwrap_or(1),
            _ => first.len_utf8(),
        };
        let (piece, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let is_comment = first == '/' && length > 1;
        if is_comment {
            plain.extend(piece.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        } else {
            if let (']' | '}', Some(at)) = (first, comma) {
                plain.replace_range(at..at + 1, " ");
            }
            if !first.is_whitespace() {
                // A comma behind nothing is a fault, not a habit.
                let is_behind_item = first == ',' && !matches!(last, '[' | '{' | ',');
                comma = is_behind_item.then_some(plain.len());
                last = first;
            }
            let is_foreign_blank = first.is_whitespace() && !first.is_ascii_whitespace();
            plain.push_str(if is_foreign_blank { " " } else { piece });
        }
        rest = behind;
    }
    plain
}

/// The bytes of the text in quotes that `rest` starts with.
fn string_length(rest: &str) -> usize {
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            '"' if !is_escaped => return at + 1,
            _ => is_escaped = letter == '\\' && !is_escaped,
        }
    }
    rest.len()
}

/// The bytes of the comment that `rest` starts with; one without an end is none.
fn comment_length(rest: &str) -> Option<usize> {
    let inside = rest.get(2..)?;
    if rest.starts_with("//") {
        return Some(inside.find('\n').map_or(rest.len(), |end| 2 + end));
    }
    let end = rest.starts_with("/*").then(|| inside.find("*/")).flatten()?;
    Some(2 + end + 2)
}

/// Bytes of `\uXXXX`.
const ESCAPE_BYTES: usize = 6;

/// Returns `json` with each escaped half of a character that lacks its other half replaced by the
/// replacement character: strict readers refuse a whole document for one.
#[must_use]
pub fn without_lone_surrogates(json: Cow<'_, str>) -> Cow<'_, str> {
    replace_lone_surrogates(json, |_| "\\ufffd".into())
}

/// Replaces each escaped half of a character that lacks its other half in the JSON text `json`.
#[must_use]
pub fn replace_lone_surrogates(
    json: Cow<'_, str>,
    replacement: impl Fn(u16) -> Cow<'static, str>,
) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(start) = json.get(at..).and_then(|rest| Some(at + rest.find('\\')?)) {
        at = match escaped_unit(&json, start) {
            None => start + 2,
            Some(0xD800..=0xDBFF) if has_low_surrogate(&json, start + ESCAPE_BYTES) => {
                start + 2 * ESCAPE_BYTES
            }
            Some(half @ 0xD800..=0xDFFF) => {
                out.push_str(json.get(copied..start).unwrap_or_default());
                out.push_str(&replacement(half));
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

/// The UTF-16 unit that is escaped at `start`, if one is.
fn escaped_unit(json: &str, start: usize) -> Option<u16> {
    let digits = json.get(start..start + ESCAPE_BYTES)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

fn has_low_surrogate(json: &str, start: usize) -> bool {
    matches!(escaped_unit(json, start), Some(0xDC00..=0xDFFF))
}

/// One valid JSON value, kept as the text it arrived as.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for RawJson {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RawJson".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "Any JSON value, kept as the text it arrived as." })
    }
}

impl RawJson {
    /// Takes `text` if it is one JSON value (white space around it is dropped).
    ///
    /// # Errors
    /// The parser's complaint when `text` is not JSON.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text: String = text.into();
        let trimmed = text.trim();
        let owned = if trimmed.len() == text.len() { text } else { trimmed.to_owned() };
        RawValue::from_string(owned).map(Self)
    }

    /// The empty object, what a call without arguments carries.
    #[must_use]
    pub fn empty_object() -> Self {
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// Serialises `value`.
    ///
    /// # Errors
    /// When `value` cannot be JSON (a map with non-string keys).
    pub fn from_value(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value as `serde_json` raw value, for splicing into a larger document.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value into `T`.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`; the message names the field.
    pub fn read<'de, T: Deserialize<'de>>(&'de self) -> Result<T, serde_json::Error> {
        from_str(self.0.get())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Part<'a> {
        #[serde(borrow)]
        words: Cow<'a, str>,
        count: Option<u32>,
    }

    #[expect(dead_code, reason = "compared as it is shown")]
    #[derive(Debug, Deserialize)]
    enum Kind<'a> {
        Bare,
        #[serde(borrow)]
        One(Part<'a>),
        Two(Part<'a>, Vec<Part<'a>>),
        Named {
            parts: Vec<(u8, Part<'a>)>,
            raw: &'a RawValue,
        },
    }

    #[expect(dead_code, reason = "compared as it is shown")]
    #[derive(Debug, Deserialize)]
    #[serde(tag = "kind")]
    enum Tagged<'a> {
        #[serde(borrow)]
        Part(Part<'a>),
    }

    /// Both readers say the same of a text: the same value, or the same fault in the same place.
    fn agrees<'a, T: fmt::Debug + Deserialize<'a>>(text: &'a str) {
        let (ours, theirs) = (from_str::<T>(text), serde_json::from_str::<T>(text));
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{text}");
    }

    #[test]
    fn json_from_str_gives_the_same_values_and_errors_as_serde_json() {
        const PART: &str = r#"{"words": "a\n", "count": 3}"#;
        for text in [
            PART,
            r#"{"words": "a"}"#,
            r#"{"words": "a", "count": null}"#,
            r#"{"count": 1}"#,
            r#"{"words": "a", "other": 1}"#,
            r#"{"words": "a", "words": "b"}"#,
            r#"{"words": 5}"#,
            r#"{"words": "a", "count": -1}"#,
            r#"{"words": "a"} x"#,
            r#"{"words": "a""#,
            "7",
            "",
        ] {
            agrees::<Part<'_>>(text);
            agrees::<Option<Part<'_>>>(text);
            agrees::<Vec<Part<'_>>>(&format!("[{text}, {text}]"));
            agrees::<std::collections::BTreeMap<String, Part<'_>>>(&format!("{{\"k\": {text}}}"));
            agrees::<Kind<'_>>(&format!("{{\"One\": {text}}}"));
            agrees::<Kind<'_>>(&format!("{{\"Two\": [{text}, [{text}]]}}"));
            agrees::<Kind<'_>>(&format!(
                "{{\"Named\": {{\"parts\": [[1, {text}]], \"raw\": {text}}}}}"
            ));
            agrees::<Tagged<'_>>(&format!("{{\"kind\": \"Part\", \"words\": {text}}}"));
        }
        for text in ["\"Bare\"", "{\"Bare\": null}", "{\"Other\": 1}", "{}"] {
            agrees::<Kind<'_>>(text);
        }
        agrees::<Tagged<'_>>(r#"{"kind": "Part", "words": "w"}"#);
    }

    #[test]
    fn a_struct_is_not_read_from_an_array() {
        assert!(serde_json::from_str::<Part<'_>>(r#"["a", 1]"#).is_ok());
        let fault = from_str::<Part<'_>>(r#"["a", 1]"#).unwrap_err().to_string();
        assert!(fault.starts_with("invalid type: sequence, expected struct Part"), "{fault}");
    }

    #[test]
    fn json_with_comments_trailing_commas_and_bom_is_parsed() {
        for (text, value) in [
            ("\u{feff}{\"a\":1}", json!({"a": 1})),
            (
                "{ // c, \n \"u\": \"http://x\", /* , ] */ \"l\": [1, 2,],\n}",
                json!({"u": "http://x", "l": [1, 2]}),
            ),
            ("[1 /* a */ , // b\r\n ]", json!([1])),
            (
                "// first\n{\"a\": \"\\\" // no\", \"b\": \"x,]\"}\n// last",
                json!({"a": "\" // no", "b": "x,]"}),
            ),
            ("{\"a\": [{},],}", json!({"a": [{}]})),
            ("{\u{a0}\"a\":\u{2003}\"b\u{a0}c\",\u{a0}}", json!({"a": "b\u{a0}c"})),
        ] {
            assert_eq!(from_hand::<Value>(text).unwrap(), value, "{text}");
        }
    }

    #[test]
    fn json_parse_errors_name_line_and_column_despite_comments() {
        for (text, place) in [
            ("// c\n{\n  \"a\": 1 2\n}", "line 3 column 10"),
            ("{\n  /* b\n  */ \"a\": 1\n  \"b\": 2 }", "line 4 column 3"),
            ("{\"a\": 1,, }", "line 1 column"),
            ("[,]", "column 2"),
            ("{ /* no end", "line 1"),
            ("", "line 1 column 0"),
        ] {
            let error = from_hand::<Value>(text).unwrap_err().to_string();
            assert!(error.contains(place), "{text}: {error}");
        }
    }

    #[test]
    fn json_lone_surrogate_escapes_become_replacement_characters() {
        for (json, replaced) in [
            (r#""plain \n é""#, r#""plain \n é""#),
            (r#""\ud83e\udd80 \u00e9""#, r#""\ud83e\udd80 \u00e9""#),
            (r#""a\uD83E""#, r#""a\ufffd""#),
            (r#""\udd80b""#, r#""\ufffdb""#),
            (r#""\ud83e\ud83e\udd80""#, r#""\ufffd\ud83e\udd80""#),
            (r#""\\ud83e""#, r#""\\ud83e""#),
            (r#""\ud83"#, r#""\ud83"#),
        ] {
            assert_eq!(without_lone_surrogates(Cow::Borrowed(json)), replaced);
        }
    }

    proptest! {
        #[test]
        fn stripping_json_comments_preserves_line_breaks_and_values_of_any_text(text in "[\\[\\]{},:/*\"\\\\ \na1é]{0,40}") {
            let plain = without_comments(&text);
            prop_assert_eq!(plain.matches('\n').count(), text.matches('\n').count());
            if let Ok(value) = serde_json::from_str::<Value>(&text) {
                prop_assert_eq!(from_hand::<Value>(&text).unwrap(), value);
            }
        }

        /// A text of any escapes can be read afterwards.
        #[test]
        fn json_without_lone_surrogates_can_be_read(text in "([a\u{e9}]|\\\\[n\\\\]|\\\\u[dD][89abcdef]0[0-9]){0,12}") {
            let json = format!("\"{text}\"");
            let replaced = without_lone_surrogates(Cow::Borrowed(&json));
            prop_assert!(serde_json::from_str::<String>(&replaced).is_ok(), "{replaced}");
        }
    }
}
