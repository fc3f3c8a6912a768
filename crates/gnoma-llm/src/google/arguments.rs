//! Streamed arguments of Gemini tool calls, which arrive value by value.
//!
//! Vertex can stream a call as `{jsonPath: "$.edits[0].text", stringValue: "…"}` pieces, strings cut
//! anywhere. They cannot be handed on as JSON text before the last one is there, so they are put
//! together here.

use serde_json::{Map, Value};

use super::wire::PartialArgument;

/// Deepest path that is followed.
const MAX_DEPTH: usize = 64;

/// The arguments so far: an object.
#[derive(Debug)]
pub(super) struct PartialArguments(Value);

impl Default for PartialArguments {
    fn default() -> Self {
        Self(Value::Object(Map::new()))
    }
}

impl PartialArguments {
    /// Takes one piece. What has no readable path is left out.
    pub(super) fn apply_piece(&mut self, piece: PartialArgument<'_>) {
        let Some(path) = parse_path(piece.json_path.as_str()) else {
            return;
        };
        if let Some(text) = piece.string_value {
            match value_at_path(&mut self.0, path) {
                Value::String(so_far) => so_far.push_str(text.as_str()),
                other => *other = Value::String(text.into_string()),
            }
        } else if let Some(number) = piece.number_value {
            *value_at_path(&mut self.0, path) = Value::Number(number);
        } else if let Some(truth) = piece.bool_value {
            *value_at_path(&mut self.0, path) = Value::Bool(truth);
        } else if piece.null_value {
            *value_at_path(&mut self.0, path) = Value::Null;
        }
    }

    /// The arguments as JSON text.
    pub(super) fn into_json(self) -> String {
        self.0.to_string()
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ArgumentStep<'a> {
    Key(&'a str),
    Index(usize),
}

/// The place at the end of `path`, made where it is missing.
fn value_at_path<'v>(root: &'v mut Value, path: Vec<ArgumentStep<'_>>) -> &'v mut Value {
    path.into_iter().fold(root, |value, step| match step {
        ArgumentStep::Key(key) => {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            &mut value[key]
        }
        ArgumentStep::Index(index) => element_at(value, index),
    })
}

/// An element of a list. One beyond its end is the next one, however far: a server's number must not
/// decide how much memory is taken.
fn element_at(value: &mut Value, index: usize) -> &mut Value {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    let length = value.as_array().map_or(0, Vec::len);
    if let (Value::Array(list), true) = (&mut *value, index >= length) {
        list.push(Value::Null);
    }
    &mut value[index.min(length)]
}

/// Reads `$.edits[0]['new text']`. `None` for anything else.
fn parse_path(path: &str) -> Option<Vec<ArgumentStep<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let (step, after) = if let Some(name) = rest.strip_prefix('.') {
            let (key, after) = name.split_at(name.find(['.', '[']).unwrap_or(name.len()));
            (ArgumentStep::Key(key), after)
        } else {
            parse_bracket(rest.strip_prefix('[')?)?
        };
        steps.push(step);
        rest = after;
    }
    // Arguments are an object.
    let named = matches!(steps.first(), Some(ArgumentStep::Key(_)));
    (named && steps.len() <= MAX_DEPTH).then_some(steps)
}

/// Reads what follows an opening bracket: a quoted key or a position, and the closing one.
fn parse_bracket(rest: &str) -> Option<(ArgumentStep<'_>, &str)> {
    for (quote, end) in [('\'', "']"), ('"', "\"]")] {
        if let Some(quoted) = rest.strip_prefix(quote) {
            let (key, after) = quoted.split_once(end)?;
            return Some((ArgumentStep::Key(key), after));
        }
    }
    let (index, after) = rest.split_once(']')?;
    Some((ArgumentStep::Index(index.parse().ok()?), after))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn put_together(pieces: &str) -> String {
        let pieces: Vec<PartialArgument<'_>> = serde_json::from_str(pieces).unwrap();
        let mut arguments = PartialArguments::default();
        for piece in pieces {
            arguments.apply_piece(piece);
        }
        arguments.into_json()
    }

    #[test]
    fn google_partial_args_are_placed_by_json_path() {
        let json = put_together(
            r#"[{"jsonPath":"$.path","stringValue":"src/","willContinue":true},
                {"jsonPath":"$.path","stringValue":"lib.rs"},
                {"jsonPath":"$.edits[0].line","numberValue":7},
                {"jsonPath":"$.edits[0]['new text']","stringValue":""},
                {"jsonPath":"$.edits[1].all","boolValue":true},
                {"jsonPath":"$.none","nullValue":null}]"#,
        );
        let expected =
            r#"{"path":"src/lib.rs","edits":[{"line":7,"new text":""},{"all":true}],"none":null}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn google_partial_args_with_a_huge_index_use_no_memory() {
        let json = put_together(r#"[{"jsonPath":"$.a[4000000000]","numberValue":1}]"#);
        assert_eq!(json, r#"{"a":[1]}"#);
    }

    proptest! {
        /// Any path is followed or refused.
        #[test]
        fn google_partial_args_with_any_json_path_never_panic(paths in prop::collection::vec("[$.\\[\\]'\"a0-9]{0,12}", 0..8)) {
            let mut arguments = PartialArguments::default();
            for path in &paths {
                let piece = serde_json::json!({"jsonPath": path, "boolValue": true}).to_string();
                arguments.apply_piece(serde_json::from_str(&piece).unwrap());
            }
            let json = arguments.into_json();
            prop_assert!(json.starts_with('{'), "no object: {json}");
        }
    }
}
