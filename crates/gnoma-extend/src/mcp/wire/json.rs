//! Reads JSON as servers write it. What `serde_json` takes is read by it; for the rest there is a reader that goes on
//! where a document can still be understood, so that one bad string does not cost a whole message.
//!
//! It takes halves of surrogate pairs, control characters and unknown escapes in strings, numbers that are none
//! (`NaN`, `1e999`), trailing commas, and nesting of any depth. What has no meaning becomes `null` or `U+FFFD`.
//! A document that is cut off stays unreadable: what is missing cannot be known.

use serde_json::{Map, Number, Value};

/// Deepest nesting that is read; what is below becomes `null`.
const MAX_DEPTH: usize = 100;

/// Reads the text of one JSON document; `None` where it is none.
pub(crate) fn parse_lenient(text: &str) -> Option<Value> {
    let text = text.trim_start_matches('\u{feff}').trim();
    if let Ok(value) = gnoma_core::json::from_str(text) {
        return Some(value);
    }
    let mut reader = LenientReader { rest: text };
    let value = reader.parse_value(0)?;
    reader.skip_blanks();
    reader.rest.is_empty().then_some(value)
}

/// Reads the JSON document that a text begins with, and gives what is behind it.
pub(super) fn read_first(text: &str) -> Option<(Value, &str)> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    if let Some(Ok(value)) = values.next() {
        return Some((value, text.get(values.byte_offset()..)?));
    }
    let mut reader = LenientReader { rest: text };
    let value = reader.parse_value(0)?;
    Some((value, reader.rest))
}

struct LenientReader<'a> {
    rest: &'a str,
}

impl<'a> LenientReader<'a> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{feff}']);
    }

    fn next_char(&mut self) -> Option<char> {
        let first = self.rest.chars().next()?;
        self.rest = self.rest.get(first.len_utf8()..)?;
        Some(first)
    }

    /// Takes `wanted` if it comes next.
    fn consume_prefix(&mut self, wanted: &str) -> bool {
        let after = self.rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn parse_value(&mut self, depth: usize) -> Option<Value> {
        self.skip_blanks();
        if depth > MAX_DEPTH && self.rest.starts_with(['{', '[']) {
            self.skip_nested()?;
            return Some(Value::Null);
        }
        match self.rest.chars().next()? {
            '{' => self.parse_object(depth),
            '[' => self.parse_array(depth),
            '"' => {
                self.next_char();
                self.parse_string().map(Value::String)
            }
            _ => self.parse_literal(),
        }
    }

    fn parse_object(&mut self, depth: usize) -> Option<Value> {
        let mut object = Map::new();
        self.next_char();
        loop {
            self.skip_blanks();
            if self.consume_prefix("}") {
                return Some(Value::Object(object));
            }
            if !self.consume_prefix("\"") {
                return None;
            }
            let key = self.parse_string()?;
            self.skip_blanks();
            if !self.consume_prefix(":") {
                return None;
            }
            let value = self.parse_value(depth + 1)?;
            object.insert(key, value);
            self.skip_separator('}')?;
        }
    }

    fn parse_array(&mut self, depth: usize) -> Option<Value> {
        let mut items = Vec::new();
        self.next_char();
        loop {
            self.skip_blanks();
            if self.consume_prefix("]") {
                return Some(Value::Array(items));
            }
            items.push(self.parse_value(depth + 1)?);
            self.skip_separator(']')?;
        }
    }

    /// A comma, or the end of what is being read.
    fn skip_separator(&mut self, end: char) -> Option<()> {
        self.skip_blanks();
        (self.consume_prefix(",") || self.rest.starts_with(end)).then_some(())
    }

    /// A string whose opening quote was taken.
    fn parse_string(&mut self) -> Option<String> {
        let mut text = String::new();
        loop {
            let plain = self.rest.find(['"', '\\'])?;
            text.push_str(self.rest.get(..plain)?);
            self.rest = self.rest.get(plain..)?;
            if self.next_char()? == '"' {
                return Some(text);
            }
            match self.next_char()? {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                'b' => text.push('\u{8}'),
                'f' => text.push('\u{c}'),
                'u' => {
                    let unit = self.code_unit();
                    text.push(self.combine_surrogates(unit));
                }
                other => text.push(other),
            }
        }
    }

    /// The number of a `\u` escape; `None` where it is none.
    fn code_unit(&mut self) -> Option<u16> {
        const DIGITS: usize = 4;
        let digits = self.rest.get(..DIGITS)?;
        let unit = u16::from_str_radix(digits, 16).ok()?;
        self.rest = self.rest.get(DIGITS..)?;
        Some(unit)
    }

    /// The character of a code unit, joined with its other half where that follows.
    fn combine_surrogates(&mut self, first: Option<u16>) -> char {
        let Some(first) = first else { return char::REPLACEMENT_CHARACTER };
        if let Some(whole) = char::from_u32(u32::from(first)) {
            return whole;
        }
        let before = self.rest;
        let second = self.consume_prefix("\\u").then(|| self.code_unit()).flatten();
        let pair = second
            .and_then(|second| char::decode_utf16([first, second]).next().and_then(Result::ok));
        if pair.is_none() {
            self.rest = before;
        }
        pair.unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// A number, a truth value, or something that is none of them and becomes `null`.
    fn parse_literal(&mut self) -> Option<Value> {
        let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}' | ':' | '"');
        let length = self.rest.find(is_end).unwrap_or(self.rest.len());
        let word = self.rest.get(..length).filter(|word| !word.is_empty())?;
        self.rest = self.rest.get(length..)?;
        if let Ok(value) = gnoma_core::json::from_str(word) {
            return Some(value);
        }
        let number = word.parse::<f64>().ok().and_then(Number::from_f64);
        let is_known = ["NaN", "Infinity", "-Infinity", "undefined", "None", "nan", "inf", "-inf"];
        match number {
            Some(number) => Some(Value::Number(number)),
            None if word == "True" => Some(Value::Bool(true)),
            None if word == "False" => Some(Value::Bool(false)),
            None if is_known.contains(&word) || word.parse::<f64>().is_ok() => Some(Value::Null),
            None => None,
        }
    }

    /// Skips an object or an array without recursion.
    fn skip_nested(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.next_char()? {
                '{' | '[' => open += 1,
                '}' | ']' => {
                    open -= 1;
                    if open == 0 {
                        return Some(());
                    }
                }
                '"' => {
                    self.parse_string()?;
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn half_a_surrogate_pair_becomes_one_replacement_character() {
        for (text, value) in [
            (r#"{"a":"cut \ud83d"}"#, "cut \u{fffd}"),
            (r#"{"a":"\ude00 late"}"#, "\u{fffd} late"),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (r#"{"a":"\ud83dx"}"#, "\u{fffd}x"),
            (r#"{"a":"\ud83d\n"}"#, "\u{fffd}\n"),
            (r#"{"a":"\ud83"}"#, "\u{fffd}d83"),
        ] {
            assert_eq!(parse_lenient(text), Some(json!({"a": value})), "{text}");
        }
    }

    #[test]
    fn lenient_json_accepts_trailing_commas_and_nan_but_not_truncated_text() {
        for (text, value) in [
            ("\u{feff}{\"a\":1}", json!({"a": 1})),
            (r#"{"a":[1,2,],}"#, json!({"a": [1, 2]})),
            (r#"{"a":NaN,"b":1e999,"c":True}"#, json!({"a": null, "b": null, "c": true})),
            ("{\"a\":\"one\ttwo\"}", json!({"a": "one\ttwo"})),
            (r#"{"a":"\x"}"#, json!({"a": "x"})),
        ] {
            assert_eq!(parse_lenient(text), Some(value), "{text}");
        }
        for text in ["", "{", r#"{"a":"#, r#"{"a":"b"#, "plain words", r#"{"a":1} more"#, "[1"] {
            assert_eq!(parse_lenient(text), None, "{text}");
        }
    }

    #[test]
    fn lenient_json_parses_very_deep_nesting() {
        let deep = format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(50_000), "]".repeat(50_000));
        assert_eq!(parse_lenient(&deep).unwrap()["b"], json!(2));
    }
}
