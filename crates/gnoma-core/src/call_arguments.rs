//! Assembles the arguments of a tool call from the deltas of a stream.
//!
//! Servers begin the arguments with an empty stand-in, repeat them whole at the end, and cut characters in
//! two. What is plain is read; two different objects are not.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{RawJson, without_lone_surrogates};

/// Returns whether `arguments` say nothing yet: some servers send such a text in place of what follows.
#[must_use]
pub fn is_stand_in(arguments: &str) -> bool {
    let arguments = arguments.trim();
    arguments.is_empty() || is_empty_value(arguments)
}

/// Returns whether a JSON value is one of those that some servers send in place of arguments that are still to come,
/// or of no arguments: `null`, or an object, list or string without contents, such as `{ }`.
fn is_empty_value(value: &str) -> bool {
    let is_blank = |open, close| {
        let inside = value.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inside.is_some_and(|inside| inside.trim().is_empty())
    };
    value == "null" || value == "\"\"" || is_blank('{', '}') || is_blank('[', ']')
}

/// Most JSON values that are looked at in the arguments of one call.
const MAX_VALUES: usize = 64;

/// Returns the arguments as JSON, and whether they are broken: text that is not JSON becomes a string.
/// Nothing and `null` mean no arguments.
#[must_use]
pub fn parse_call_arguments(text: &str) -> (RawJson, bool) {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return (RawJson::empty_object(), false);
    }
    let whole = without_lone_surrogates(Cow::Borrowed(trimmed));
    if let Ok(json) = RawJson::parse(&*whole) {
        return (json, false);
    }
    match only_value(&whole) {
        Some(json) => (json, false),
        None => {
            let cut = without_stand_ins(text);
            (RawJson::from_value(&cut).unwrap_or_else(|_| RawJson::empty_object()), true)
        }
    }
}

/// Returns arguments that were cut off without the stand-ins before them.
fn without_stand_ins(text: &str) -> &str {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    let mut rest = text;
    for _ in 0..MAX_VALUES {
        let is_empty = matches!(values.next(), Some(Ok(value)) if is_empty_value(value.get()));
        let after = text.get(values.byte_offset()..).unwrap_or_default();
        if !is_empty || after.trim_start().is_empty() {
            break;
        }
        rest = after;
    }
    rest
}

/// Returns the one value in a row of values that is not a stand-in, however often it is repeated.
fn only_value(text: &str) -> Option<RawJson> {
    let mut only: Option<&RawValue> = None;
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    for (number, value) in values.enumerate() {
        let value = value.ok().filter(|_| number < MAX_VALUES)?;
        if is_empty_value(value.get()) {
            continue;
        }
        match only {
            Some(first) if !says_the_same(first, value) => return None,
            Some(_) => (),
            None => only = Some(value),
        }
    }
    only.map_or_else(|| Some(RawJson::empty_object()), |value| RawJson::parse(value.get()).ok())
}

fn says_the_same(first: &RawValue, second: &RawValue) -> bool {
    let value = |raw: &RawValue| serde_json::from_str::<serde_json::Value>(raw.get()).ok();
    first.get() == second.get() || value(first).is_some_and(|first| Some(first) == value(second))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_call_arguments_replace_an_empty_placeholder_object_before_them() {
        for (text, arguments) in [
            (r#"{}{"a":1}"#, r#"{"a":1}"#),
            (r#"{ }{"a":1}"#, r#"{"a":1}"#),
            ("{\n}{\"a\":1}[ ]", r#"{"a":1}"#),
            (r#"null{"a":1}"#, r#"{"a":1}"#),
            (r#"""{"a":1}"#, r#"{"a":1}"#),
            ("{} {\"a\": 1}\n{}", r#"{"a": 1}"#),
            (r#"{"a":1}{"a": 1}"#, r#"{"a":1}"#),
            ("{}{}", "{}"),
            ("", "{}"),
            ("null", "{}"),
        ] {
            let (json, is_broken) = parse_call_arguments(text);
            assert_eq!((json.get(), is_broken), (arguments, false), "{text}");
        }
    }

    #[test]
    fn tool_call_with_conflicting_or_truncated_json_arguments_is_broken() {
        for text in [r#"{"a":1}{"a":2}"#, r#"{"a":1}{"b""#, r#"{"a":"#, "rm -rf"] {
            assert!(parse_call_arguments(text).1, "{text}");
        }
    }

    #[test]
    fn truncated_tool_call_arguments_drop_the_placeholder_before_them() {
        for text in [r#"{}{"a":"b"#, r#"{ }null{"a":"b"#] {
            let (json, is_broken) = parse_call_arguments(text);
            assert_eq!((json.read::<String>().unwrap().as_str(), is_broken), (r#"{"a":"b"#, true));
        }
        assert!(is_stand_in("{ }") && is_stand_in("{\n}\n") && !is_stand_in("{ 1"));
    }

    #[test]
    fn lone_surrogate_in_tool_call_arguments_becomes_a_replacement_character() {
        let (json, is_broken) = parse_call_arguments(r#"{"text":"a\ud83d"}"#);
        assert_eq!((json.get(), is_broken), ("{\"text\":\"a\\ufffd\"}", false));
        let pair = r#"{"text":"\ud83d\ude00"}"#;
        assert_eq!(parse_call_arguments(pair).0.get(), pair);
    }
}
