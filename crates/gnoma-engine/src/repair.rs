//! Repairs malformed JSON in the arguments of tool calls.
//!
//! Models write arguments inside Markdown fences, with Python literals, with a comma too many.
//! What such text says is plain, so [`repair_arguments`] says it in JSON. Only the spelling is mended.
//! Values are never guessed, keys never dropped, and text that was cut inside a value is refused:
//! half a command must not run.
//!
//! Not here: whether the arguments fit the tool's schema, and finding calls in a model's prose.

use std::{borrow::Cow, collections::HashSet, fmt};

use gnoma_core::RawJson;
use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

/// Longer text is not repaired.
pub const MAX_ARGUMENT_BYTES: usize = 4 << 20;

/// Objects and lists nested this deep are refused.
pub const MAX_DEPTH: usize = 128;

/// The number of times that the whole may be wrapped into a JSON string: once by the model, and again on the way.
const MAX_WRAPPINGS: usize = 2;

/// Words with a meaning of their own, and how JSON spells them.
const LITERALS: [(&str, &str); 6] = [
    ("true", "true"),
    ("false", "false"),
    ("null", "null"),
    ("True", "true"),
    ("False", "false"),
    ("None", "null"),
];

/// The object that `text` means, or `None` if that is not certain.
///
/// A valid object is returned byte for byte, without the white space around it. Otherwise gnoma unwraps a JSON
/// string that contains the object, drops a Markdown fence and any prose around the only object, and then corrects
/// the spelling: trailing commas, a comma missing at a line's end between members, `//` and `#` comments, raw
/// control characters in strings, single and curly quotes, Python's literals, bare keys, and closing brackets
/// missing at the end if the value before them is complete.
///
/// An object with a duplicate key is rejected at every depth, even if it is valid JSON: whoever judges a call and
/// its tool could read different values.
#[must_use]
pub fn repair_arguments(text: &str) -> Option<RawJson> {
    if text.len() > MAX_ARGUMENT_BYTES {
        return None;
    }
    let text = unwrap_json_strings(text);
    if gnoma_core::json::from_str::<&RawValue>(&text).is_ok() {
        return parse_unambiguous(&text);
    }
    let text = without_fence(&text);
    let (before, from_brace) = text.split_at(text.find('{')?);
    let (object, after) = valid_prefix(from_brace).or_else(|| mended_prefix(from_brace))?;
    (leads_in(before) && leads_out(after)).then_some(object)
}

/// Opens JSON strings that hold the whole.
fn unwrap_json_strings(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..MAX_WRAPPINGS {
        match gnoma_core::json::from_str::<String>(&text) {
            Ok(inner) => text = Cow::Owned(inner),
            Err(_) => break,
        }
    }
    text
}

/// Takes a Markdown fence off; its language stays and counts as prose.
fn without_fence(text: &str) -> &str {
    match text.trim_start().strip_prefix("```") {
        Some(inner) => inner.trim_end().strip_suffix("```").unwrap_or(inner),
        None => text,
    }
}

/// Reports whether the text before the object is prose and not the start of a larger value.
fn leads_in(before: &str) -> bool {
    let before = before.trim_end();
    let is_key =
        before.strip_suffix(':').is_some_and(|key| key.trim_end().ends_with(['"', '\'', '”', '’']));
    !is_key && !before.ends_with([',', '[']) && !before.contains('}')
}

/// Reports whether the text after the object is prose: no second object and no further members. Surplus closing
/// braces are accepted.
fn leads_out(after: &str) -> bool {
    let after = after.trim_start_matches(|c: char| c == '}' || c.is_whitespace());
    !after.starts_with([',', ':', ']', '"', '\'']) && !after.contains(['{', '}'])
}

/// The valid object that `text` starts with, and what follows it.
fn valid_prefix(text: &str) -> Option<(RawJson, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let object = parse_unambiguous(values.next()?.ok()?.get())?;
    Some((object, text.get(values.byte_offset()..)?))
}

/// The mended object that `text` starts with, and what follows it.
fn mended_prefix(text: &str) -> Option<(RawJson, &str)> {
    let mut mender =
        JsonObjectRepairer { rest: text, out: String::with_capacity(text.len() + 8), depth: 0 };
    mender.parse_group('{', '}')?;
    Some((parse_unambiguous(&mender.out)?, mender.rest))
}

/// `text` if it is an object that can be read in one way only.
fn parse_unambiguous(text: &str) -> Option<RawJson> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let json = RawJson::parse(text).ok()?;
    (!repeats_a_key(json.get())).then_some(json)
}

/// Reports whether valid JSON names a key twice in one object, or is nested too deep to tell.
pub(crate) fn repeats_a_key(json: &str) -> bool {
    DistinctKeyCheck.deserialize(&mut serde_json::Deserializer::from_str(json)).is_err()
}

/// Rewrites one object as JSON, from left to right; stops at the first thing it is not sure of.
struct JsonObjectRepairer<'a> {
    rest: &'a str,
    out: String,
    depth: usize,
}

impl<'a> JsonObjectRepairer<'a> {
    /// An object or a list; at the end of the text it closes itself after a complete value.
    fn parse_group(&mut self, open: char, close: char) -> Option<()> {
        self.depth += 1;
        if self.depth >= MAX_DEPTH || !self.consume_char(open) {
            return None;
        }
        self.out.push(open);
        self.skip_blank();
        let mut is_first = true;
        while !self.consume_char(close) {
            if !std::mem::take(&mut is_first) {
                self.out.push(',');
            }
            self.parse_member(close == '}')?;
            let new_line = self.skip_blank();
            if self.rest.is_empty() {
                break;
            }
            // Strings next to each other in a list are one string in Python, so only members may
            // lack their comma.
            if self.consume_char(',') {
                self.skip_blank();
            } else if !(self.rest.starts_with(close) || new_line && close == '}') {
                return None;
            }
        }
        self.out.push(close);
        self.depth -= 1;
        Some(())
    }

    /// A value, after its key in an object.
    fn parse_member(&mut self, has_key: bool) -> Option<()> {
        if has_key {
            self.parse_key()?;
            self.skip_blank();
            if !self.consume_char(':') {
                return None;
            }
            self.out.push(':');
            self.skip_blank();
        }
        match self.rest.chars().next()? {
            '{' => self.parse_group('{', '}'),
            '[' => self.parse_group('[', ']'),
            first if closing_quote(first).is_some() => self.parse_string(),
            _ => self.parse_literal(),
        }
    }

    fn parse_key(&mut self) -> Option<()> {
        let first = self.rest.chars().next()?;
        if closing_quote(first).is_some() {
            return self.parse_string();
        }
        let name = self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'));
        let is_literal = LITERALS.iter().any(|(word, _)| *word == name);
        if name.is_empty() || first.is_ascii_digit() || is_literal {
            return None;
        }
        self.out.push('"');
        self.out.push_str(name);
        self.out.push('"');
        Some(())
    }

    /// A literal or a number. A number that the text ends with may have lost digits.
    fn parse_literal(&mut self) -> Option<()> {
        let word = self.take_while(|c| !c.is_whitespace() && !matches!(c, ',' | '}' | ']'));
        if let Some((_, json)) = LITERALS.iter().find(|(literal, _)| *literal == word) {
            self.out.push_str(json);
            return Some(());
        }
        gnoma_core::json::from_str::<serde_json::Number>(word).ok()?;
        self.out.push_str(word);
        (!self.rest.is_empty()).then_some(())
    }

    fn parse_string(&mut self) -> Option<()> {
        let close = closing_quote(self.next()?)?;
        self.out.push('"');
        loop {
            match self.next()? {
                c if c == close => break,
                '\\' => self.parse_escape(close)?,
                '"' => self.out.push_str("\\\""),
                // A curly quotation inside curly quotes: where the string ends is a guess.
                '“' | '‘' if matches!(close, '”' | '’') => return None,
                c if c.is_control() => self.push_control(c),
                c => self.out.push(c),
            }
        }
        self.out.push('"');
        // The last quote of a cut text may be an apostrophe.
        (close == '"' || !self.rest.is_empty()).then_some(())
    }

    /// Reads the character after a backslash. Escapes that JSON lacks are refused, because the backslash may be
    /// meant literally or not.
    fn parse_escape(&mut self, close: char) -> Option<()> {
        match self.next()? {
            c @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u') => {
                self.out.push('\\');
                self.out.push(c);
            }
            c if c == close => self.out.push(c),
            _ => return None,
        }
        Some(())
    }

    fn push_control(&mut self, c: char) {
        match c {
            '\n' => self.out.push_str("\\n"),
            '\r' => self.out.push_str("\\r"),
            '\t' => self.out.push_str("\\t"),
            _ => self.out.push_str(&format!("\\u{:04x}", u32::from(c))),
        }
    }

    /// Skips white space and comments; says whether a line ended.
    fn skip_blank(&mut self) -> bool {
        let mut new_line = false;
        loop {
            new_line |= self.take_while(char::is_whitespace).contains('\n');
            if !self.rest.starts_with("//") && !self.rest.starts_with('#') {
                return new_line;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let end = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    fn consume_char(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }
}

/// The quote that ends a string opened by `open`.
fn closing_quote(open: char) -> Option<char> {
    match open {
        '"' | '\'' | '”' | '’' => Some(open),
        '“' => Some('”'),
        '‘' => Some('’'),
        _ => None,
    }
}

/// Reads a value only to see that no object in it has a key twice. The parser's own bound on depth
/// and its reading of numbers and escapes hold as well: what fails here no tool could read.
struct DistinctKeyCheck;

impl<'de> DeserializeSeed<'de> for DistinctKeyCheck {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DistinctKeyCheck {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repeated keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("key `{key}` occurs twice")));
            }
            keys.insert(key);
            map.next_value_seed(Self)?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Self)?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value, json};

    use super::*;

    fn repaired(text: &str) -> Option<Value> {
        repair_arguments(text).map(|object| object.read().expect("repaired text is JSON"))
    }

    /// The ways to write an object that are to be understood.
    #[derive(Clone, Debug, Default)]
    struct Spelling {
        quote: Quote,
        bare_keys: bool,
        python: bool,
        trailing_commas: bool,
        line_breaks: bool,
        commas_missing: bool,
        comments: bool,
        raw_controls: bool,
        closers_missing: bool,
    }

    #[derive(Clone, Copy, Debug, Default)]
    enum Quote {
        #[default]
        Double,
        Single,
        Curly,
    }

    impl Spelling {
        fn write(&self, value: &Value) -> String {
            match value {
                Value::Object(members) => {
                    let members = members
                        .iter()
                        .map(|(key, value)| format!("{} : {}", self.key(key), self.write(value)));
                    self.group('{', &members.collect::<Vec<_>>(), self.commas_missing, '}')
                }
                Value::Array(values) => {
                    let values: Vec<_> = values.iter().map(|value| self.write(value)).collect();
                    self.group('[', &values, false, ']')
                }
                Value::String(text) => self.string(text),
                Value::Null if self.python => "None".to_owned(),
                Value::Bool(true) if self.python => "True".to_owned(),
                Value::Bool(false) if self.python => "False".to_owned(),
                plain => plain.to_string(),
            }
        }

        fn group(&self, open: char, members: &[String], bare: bool, close: char) -> String {
            let comma = if bare { "" } else { "," };
            let comment = if self.comments { " // it's {a} \"note\"\n # [another]" } else { "" };
            let blank = if self.line_breaks || self.comments || bare { "\n  " } else { "" };
            let last = if self.trailing_commas && !members.is_empty() { "," } else { "" };
            let members = members.join(&format!("{comma}{comment}{blank}"));
            format!("{open}{blank}{members}{last}{comment}{blank}{close}")
        }

        fn key(&self, key: &str) -> String {
            let is_name = key.starts_with(|c: char| c.is_ascii_alphabetic())
                && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if self.bare_keys && is_name { key.to_owned() } else { self.string(key) }
        }

        fn string(&self, text: &str) -> String {
            let json = serde_json::to_string(text).unwrap();
            let mut inner = json[1..json.len() - 1].to_owned();
            if self.raw_controls && !inner.contains("\\\\") {
                inner = inner.replace("\\n", "\n").replace("\\t", "\t");
            }
            match self.quote {
                Quote::Double => format!("\"{inner}\""),
                Quote::Single => {
                    format!("'{}'", inner.replace("\\\"", "\"").replace('\'', "\\'"))
                }
                Quote::Curly => format!("“{}”", inner.replace("\\\"", "\"")),
            }
        }

        /// Curly quotes inside curly quotes are ambiguous.
        fn can_say(&self, object: &Value) -> bool {
            !matches!(self.quote, Quote::Curly) || !object.to_string().contains(['“', '”'])
        }

        /// The whole text. Closers are left out only where that may be mended.
        fn spell(&self, object: &Value) -> String {
            let whole = self.write(object);
            if !self.closers_missing {
                return whole;
            }
            let open =
                whole.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ']'));
            let may_be_cut = open.ends_with(',') || open.ends_with(['{', '[', '\'', '”']);
            let ends_in_number = open.ends_with(|c: char| c.is_ascii_digit());
            let in_comment = self.comments;
            if may_be_cut || ends_in_number || in_comment { whole } else { open.to_owned() }
        }
    }

    fn value() -> impl Strategy<Value = Value> {
        let text = "[ -~\n\täß“”’日🎉]{0,12}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|n| Value::from(f64::from(n) / 8.0)),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                members(inner).prop_map(Value::from),
            ]
        })
    }

    fn members(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
        let key = prop_oneof!["[a-z_]{1,8}", "[ -~“”\n]{0,8}"];
        prop::collection::vec((key, value), 0..5).prop_map(|pairs| pairs.into_iter().collect())
    }

    fn object() -> impl Strategy<Value = Value> {
        members(value()).prop_map(Value::from)
    }

    fn spelling() -> impl Strategy<Value = Spelling> {
        let quote = prop_oneof![Just(Quote::Double), Just(Quote::Single), Just(Quote::Curly)];
        (quote, prop::array::uniform8(any::<bool>())).prop_map(|(quote, flags)| {
            let [
                bare_keys,
                python,
                trailing_commas,
                line_breaks,
                commas_missing,
                comments,
                raw,
                open,
            ] = flags;
            Spelling {
                quote,
                bare_keys,
                python,
                trailing_commas,
                line_breaks,
                commas_missing,
                comments,
                raw_controls: raw,
                closers_missing: open,
            }
        })
    }

    fn beginnings(text: &str) -> impl Iterator<Item = &str> {
        text.char_indices().map(|(end, _)| &text[..end])
    }

    /// Whether `part` is `whole` with some of its end missing and nothing else changed.
    fn is_beginning(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::Object(part), Value::Object(whole)) => {
                part.iter().zip(whole).all(|((a, x), (b, y))| a == b && is_beginning(x, y))
            }
            (Value::Array(part), Value::Array(whole)) => {
                part.len() <= whole.len() && part.iter().zip(whole).all(|(x, y)| is_beginning(x, y))
            }
            (part, whole) => part == whole,
        }
    }

    /// Whether a cut after `head` falls into a double-quoted string.
    fn is_inside_string(head: &str) -> bool {
        let mut inside = false;
        let mut chars = head.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => inside = !inside,
                '\\' => drop(chars.next()),
                _ => {}
            }
        }
        inside
    }

    proptest! {
        #[test]
        fn json_repair_leaves_a_valid_object_byte_for_byte(object in object(), pretty in any::<bool>()) {
            let text = if pretty {
                serde_json::to_string_pretty(&object).unwrap()
            } else {
                object.to_string()
            };
            let found = repair_arguments(&format!(" \n{text}\t"));
            prop_assert_eq!(found.as_ref().map(RawJson::get), Some(text.as_str()));
        }

        #[test]
        fn json_repair_of_malformed_syntax_preserves_the_value(object in object(), spelling in spelling()) {
            prop_assume!(spelling.can_say(&object));
            let text = spelling.spell(&object);
            prop_assert_eq!(repaired(&text), Some(object), "{}", text);
        }

        #[test]
        fn json_repair_unwraps_fences_and_strings_without_changing_the_value(object in object(), spelling in spelling()) {
            prop_assume!(spelling.can_say(&object));
            let text = spelling.spell(&object);
            let as_string = serde_json::to_string(&text).unwrap();
            for wrapped in [format!("```json\n{text}\n```"), as_string] {
                prop_assert_eq!(repaired(&wrapped), Some(object.clone()), "{}", wrapped);
            }
            let whole = Spelling { closers_missing: false, ..spelling }.spell(&object);
            let prose = format!("Here it is:\n{whole}\nDoes that help?");
            prop_assert_eq!(repaired(&prose), Some(object), "{}", prose);
        }

        #[test]
        fn json_repair_rejects_a_truncated_string(object in object(), pretty in any::<bool>()) {
            let text = if pretty { format!("{object:#}") } else { object.to_string() };
            for head in beginnings(&text).filter(|head| is_inside_string(head)) {
                prop_assert_eq!(repaired(head), None, "{}", head);
            }
        }

        #[test]
        fn json_repair_of_truncated_json_never_changes_a_value(object in object(), spelling in spelling()) {
            prop_assume!(spelling.can_say(&object));
            let text = spelling.spell(&object);
            for head in beginnings(&text) {
                if let Some(part) = repaired(head) {
                    prop_assert!(is_beginning(&part, &object), "{} became {}", head, part);
                }
            }
        }

        #[test]
        fn json_repair_of_any_text_gives_an_object_or_none(
            text in prop_oneof![any::<String>(), "[{}\\[\\]\"'“”:,#/ \\\\a1tN\n`-]{0,40}"],
        ) {
            if let Some(object) = repaired(&text) {
                prop_assert!(object.is_object());
            }
        }
    }

    #[test]
    fn json_repair_parses_tool_call_arguments_as_models_write_them() {
        let wanted = json!({"path": "a.rs", "all": true});
        for text in [
            r#"{"path": "a.rs", "all": true,}"#,
            r#"{'path': 'a.rs', 'all': True}"#,
            r#"{path: "a.rs", all: true}"#,
            "{“path”: “a.rs”, “all”: true}",
            "{\"path\": \"a.rs\"\n \"all\": true}",
            "{\"path\": \"a.rs\", // the file\n \"all\": true # every one\n}",
            r#""{\"path\": \"a.rs\", \"all\": true}""#,
            "```json\n{\"path\": \"a.rs\", \"all\": true}\n```",
            "Sure: {\"path\": \"a.rs\", \"all\": true} - reading now.",
            r#"{"path": "a.rs", "all": true"#,
            r#"{"path": "a.rs", "all": true}}"#,
        ] {
            assert_eq!(repaired(text).as_ref(), Some(&wanted), "{text}");
        }
        assert_eq!(
            repaired("{'command': 'echo \"hi\"\n\techo it\\'s'}"),
            Some(json!({"command": "echo \"hi\"\n\techo it's"})),
        );
        assert_eq!(
            repaired(r#"{"edits": [{"old": "a", "new": "b"}"#),
            Some(json!({"edits": [{"old": "a", "new": "b"}]})),
        );
    }

    #[test]
    fn json_repair_rejects_ambiguous_or_truncated_arguments() {
        for text in [
            "",
            "null",
            "[{\"path\": \"a\"}]",
            "run ls",
            "{",
            "{path}",
            // Cut: in a string, in a number, before a value, before more members.
            r#"{"command": "rm -rf /tmp/"#,
            r#"{"timeout": 1"#,
            r#"{"command":"#,
            r#"{"command": "ls","#,
            "{'command': 'rm don'",
            // The beginning is lost, or the object is a part of a larger value.
            r#""path": "a", "options": {"all": true}}"#,
            r#"{"path": "a"}, "all": true}"#,
            r#"{"path": "a"} {"path": "b"}"#,
            // Where a string ends or what it holds is a guess.
            r#"{"command": "echo "hi" there"}"#,
            r#"{"pattern": "\d+"}"#,
            "{\"list\": [\"a\"\n\"b\"]}",
            "{“a”: “he said “no” to me”}",
            // A key twice, spelt differently, inside.
            r#"{"path": "a", "path": "b"}"#,
            r#"{"x": [{"path": "a", "p\u0061th": "b"}]}"#,
            "{path: 'a', 'path': 'b'}",
            // No value of JSON or Python.
            r#"{"n": 01}"#,
            r#"{"n": NaN}"#,
            r#"{"n": undefined}"#,
            r#"{"n": 0x10}"#,
            r#"{"a": 1,, "b": 2}"#,
            r#"{"a": [1}"#,
            r#"{True: 1}"#,
        ] {
            assert_eq!(repaired(text), None, "{text}");
        }
    }

    #[test]
    fn json_repair_limits_size_and_depth() {
        let nested = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(repair_arguments(&nested(MAX_DEPTH - 1)).is_some());
        assert!(repair_arguments(&nested(MAX_DEPTH)).is_none());
        assert!(repair_arguments(&nested(100_000)).is_none());
        assert!(repair_arguments(&"{a:".repeat(100_000)).is_none());
        assert!(
            repair_arguments(&format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_ARGUMENT_BYTES)))
                .is_none()
        );
    }
}
