//! Detects loops of tool calls: failing edits of one file, and one call repeated over and over.
//!
//! Both count in a [`Tally`] of hashes, so neither long paths nor long results are kept.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::Value;

/// Failed edits of one path that are a spiral.
const SPIRAL_FAILURES: u32 = 4;

/// Things that are counted at the same time; then the one not touched for longest is forgotten,
/// which only makes a detector more patient.
const MAX_COUNTED: usize = 256;

/// Counts of the things met last, by hash.
#[derive(Debug, Default)]
struct Tally {
    counts: VecDeque<(u64, u32)>,
}

impl Tally {
    /// Takes the count of `key` out; nothing counted is zero.
    fn remove_count(&mut self, key: u64) -> u32 {
        let place = self.counts.iter().position(|(known, _)| *known == key);
        place.and_then(|place| self.counts.remove(place)).map_or(0, |(_, count)| count)
    }

    /// Puts the count of `key` in as the newest.
    fn insert_count(&mut self, key: u64, count: u32) {
        if self.counts.len() == MAX_COUNTED {
            self.counts.pop_front();
        }
        self.counts.push_back((key, count));
    }
}

/// Notices that edits of one file keep failing.
///
/// A failed edit of a path adds one, a successful one subtracts one. A count of four is the sign; the path then
/// starts again at zero.
#[derive(Debug, Default)]
pub struct PatchSpiral {
    failures: Tally,
}

impl PatchSpiral {
    /// Takes the outcome of an edit of `path`; true when the path has become a spiral.
    pub fn record_edit(&mut self, path: &str, ok: bool) -> bool {
        let key = hash_of(&path);
        let before = self.failures.remove_count(key);
        let failures = if ok { before.saturating_sub(1) } else { before + 1 };
        if failures >= SPIRAL_FAILURES {
            return true;
        }
        if failures > 0 {
            self.failures.insert_count(key, failures);
        }
        false
    }
}

/// The verdict of [`SameCall`] about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatVerdict {
    /// The call has not been made yet, or it had another result.
    New,
    /// The call was made before and taught nothing. Holds the number of times in all, this time included, so two or
    /// more.
    Again(u32),
}

/// Notices a call that is repeated although nothing has changed.
///
/// Two calls are the same if their names are equal, their arguments are equal as JSON (white space, the order of
/// keys and the spelling of strings do not matter; `1` and `1.0` differ), and their results are equal byte for
/// byte. Calls in between do not matter, so loops over several calls are noticed, too. A call with a new result
/// counts separately: waiting for a job whose output grows is no repetition. Arguments that are not JSON are
/// compared as text.
///
/// Report every change with [`forget_calls`](Self::forget_calls): after a change there is good reason to repeat a call, such
/// as a check after an edit.
#[derive(Debug, Default)]
pub struct SameCall {
    made: Tally,
}

impl SameCall {
    /// Takes a call and its result.
    pub fn record_call(&mut self, name: &str, arguments: &str, result: &str) -> RepeatVerdict {
        let key = hash_of(&(name, hash_of_json(arguments), result));
        let count = self.made.remove_count(key).saturating_add(1);
        self.made.insert_count(key, count);
        if count == 1 { RepeatVerdict::New } else { RepeatVerdict::Again(count) }
    }

    /// Forgets all calls, because something has changed.
    pub fn forget_calls(&mut self) {
        self.made = Tally::default();
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A hash that is equal for texts that are equal as JSON.
fn hash_of_json(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    match serde_json::from_str::<Value>(text) {
        Ok(value) => add_json(&mut hasher, &value),
        Err(_) => text.hash(&mut hasher),
    }
    hasher.finish()
}

fn add_json(hasher: &mut DefaultHasher, value: &Value) {
    std::mem::discriminant(value).hash(hasher);
    match value {
        Value::Null => {}
        Value::Bool(value) => value.hash(hasher),
        Value::Number(value) => value.hash(hasher),
        Value::String(value) => value.hash(hasher),
        Value::Array(values) => {
            values.len().hash(hasher);
            values.iter().for_each(|value| add_json(hasher, value));
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            gnoma_core::sort::by_key(&mut members, |(key, _)| *key);
            members.len().hash(hasher);
            for (key, value) in members {
                key.hash(hasher);
                add_json(hasher, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fourth_failed_edit_of_a_file_is_a_patch_spiral_and_resets_the_count() {
        let mut spiral = PatchSpiral::default();
        let mut fail = |path: &str| spiral.record_edit(path, false);
        assert_eq!([fail("a"), fail("a"), fail("b"), fail("a")], [false; 4]);
        assert!(fail("a"));
        assert_eq!([fail("a"), fail("a"), fail("a")], [false; 3]);
        assert!(fail("a"));
    }

    #[test]
    fn successful_edit_lowers_the_patch_spiral_count_by_one() {
        let mut spiral = PatchSpiral::default();
        assert!(!spiral.record_edit("a", true));
        for _ in 0..3 {
            assert!(!spiral.record_edit("a", false));
        }
        assert!(!spiral.record_edit("a", true));
        assert!(!spiral.record_edit("a", false));
        assert!(spiral.record_edit("a", false));
    }

    #[test]
    fn repeated_call_and_failed_edit_counters_are_bounded() {
        let mut spiral = PatchSpiral::default();
        let mut calls = SameCall::default();
        for n in 0..2 * MAX_COUNTED {
            assert!(!spiral.record_edit(&format!("file {n}"), false));
            assert_eq!(
                calls.record_call("fs.read", &format!("{{\"path\":{n}}}"), ""),
                RepeatVerdict::New
            );
        }
        assert_eq!(spiral.failures.counts.len(), MAX_COUNTED);
        assert_eq!(calls.made.counts.len(), MAX_COUNTED);
    }

    #[test]
    fn repeated_tool_call_with_equal_arguments_and_result_is_counted() {
        let mut calls = SameCall::default();
        let first = r#"{"path":"a.rs","lines":[1,2],"all":{"x":1,"y":null}}"#;
        let respelt = r#" {"all": {"y": null, "x": 1}, "lines": [1, 2], "p\u0061th": "a.rs"}"#;
        assert_eq!(calls.record_call("fs.read", first, "text"), RepeatVerdict::New);
        assert_eq!(calls.record_call("fs.grep", first, "text"), RepeatVerdict::New);
        assert_eq!(calls.record_call("fs.read", respelt, "text"), RepeatVerdict::Again(2));
        assert_eq!(calls.record_call("fs.read", first, "other"), RepeatVerdict::New);
        assert_eq!(calls.record_call("fs.read", first, "text"), RepeatVerdict::Again(3));
        calls.forget_calls();
        assert_eq!(calls.record_call("fs.read", first, "text"), RepeatVerdict::New);
    }

    #[test]
    fn different_arguments_are_different_calls() {
        let mut calls = SameCall::default();
        for arguments in [
            r#"{"a":[1,2]}"#,
            r#"{"a":[2,1]}"#,
            r#"{"a":[[1],2]}"#,
            r#"{"a":"1"}"#,
            r#"{"a":1}"#,
            r#"{"a":1.0}"#,
            r#"{"a":{"b":1}}"#,
            r#"{"b":1}"#,
            "not json",
            "not  json",
            "",
        ] {
            assert_eq!(calls.record_call("t", arguments, ""), RepeatVerdict::New, "{arguments}");
        }
    }
}
