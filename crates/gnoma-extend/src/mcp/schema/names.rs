//! Names of arguments: providers take letters, digits, `_`, `.` and `-`, and not many of them.

use serde_json::{Map, Value};

/// Longest name that every provider takes, in bytes.
const MAX_BYTES: usize = 64;

/// Gives arguments at the root names that providers take, and says which ones have another name than the server's.
pub(super) fn rename_arguments(root: &mut Map<String, Value>) -> Vec<(String, String)> {
    let Some(properties) = root.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let mut renamed: Vec<(String, String)> = Vec::new();
    for name in properties.keys().filter(|name| !is_plain(name)) {
        let is_taken = |new: &str| {
            properties.contains_key(new) || renamed.iter().any(|(known, _)| known == new)
        };
        let new = plain_name(name, is_taken);
        renamed.push((new, name.clone()));
    }
    if renamed.is_empty() {
        return renamed;
    }
    let new_name =
        |name: &str| renamed.iter().find(|(_, old)| old == name).map(|(new, _)| new.clone());
    let properties = properties
        .iter()
        .map(|(name, value)| (new_name(name).unwrap_or_else(|| name.clone()), value.clone()));
    let properties: Map<String, Value> = properties.collect();
    root.insert("properties".to_owned(), Value::Object(properties));
    for name in root.get_mut("required").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(new) = name.as_str().and_then(&new_name) {
            *name = Value::from(new);
        }
    }
    renamed
}

fn is_plain(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !name.is_empty() && name.len() <= MAX_BYTES && name.bytes().all(is_part)
}

/// A name that providers take and that nothing else has.
fn plain_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    /// The room for a number after the name, in bytes.
    const ROOM: usize = 8;
    let replace = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '_' };
    let replaced: String = name.chars().map(replace).take(MAX_BYTES - ROOM).collect();
    let replaced = if replaced.is_empty() { "argument".to_owned() } else { replaced };
    let numbered = (2..).map(|number: u32| format!("{replaced}_{number}"));
    let mut all = std::iter::once(replaced.clone()).chain(numbered);
    all.find(|new| !is_taken(new)).unwrap_or(replaced)
}
