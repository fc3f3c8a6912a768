//! What models write: arguments that are almost JSON, and text that the detectors look at.

use gnoma_engine::{
    detect::{RedCheck, RepeatVerdict, Repetition, SameCall},
    repair::repair_arguments,
};
use serde_json::{Map, Value};

/// Repaired arguments are an object that needs no repair; sound ones come back as they were; a JSON
/// string around them changes nothing.
pub fn repair(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let repaired = repair_arguments(&text);
    if serde_json::from_str::<Value>(&text).is_ok_and(|value| !value.is_string()) {
        let same = repaired.as_ref().is_none_or(|object| object.get() == text.trim());
        assert!(same, "sound JSON became {repaired:?}");
    }
    if !text.trim_start().starts_with('"') {
        let wrapped = Value::from(text).to_string();
        assert_eq!(repair_arguments(&wrapped), repaired, "wrapped into a string");
    }
    if let Some(object) = repaired {
        let read = object.read::<Map<String, Value>>();
        assert!(read.is_ok(), "no object: {object}");
        assert_eq!(repair_arguments(object.get()), Some(object), "repaired twice");
    }
}

/// Detectors take any text.
pub fn detect(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let mut repetition = Repetition::default();
    for word in text.split_inclusive(' ') {
        repetition.push(word);
    }
    let mut check = RedCheck::default();
    check.record_command(&text, Some(1));
    if check.failing_command().is_some() {
        check.record_command(&text, Some(0));
        assert_eq!(check.failing_command(), None, "the same command does not turn it green");
    }
    let mut calls = SameCall::default();
    assert_eq!(calls.record_call("tool", &text, &text), RepeatVerdict::New);
    assert_eq!(calls.record_call("tool", &text, &text), RepeatVerdict::Again(2));
}
