//! Parses tool arguments, and builds tool specifications (JSON Schema).

use std::sync::Arc;

use gnoma_core::{
    RawJson, ToolCall, ToolOutcome, ToolSpec,
    tool::{Access, Tier, ToolKind, TouchedResource},
};
use serde::de::DeserializeOwned;

/// Parses the arguments of a call, or returns the failure for the model. They are read as the guard has read them: by
/// name, and nothing in them is spelt anew.
pub(crate) fn read_arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolOutcome> {
    parse_arguments(call).map_err(|error| ToolOutcome::failure_text(error.to_string()))
}

/// Parses the arguments of a call. They are read as the guard has read them.
pub(crate) fn parse_arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ArgumentsError> {
    let fault = if call.arguments.get().starts_with('{') {
        match call.arguments.read() {
            Ok(arguments) => return Ok(arguments),
            Err(error) => ArgumentsFault::Form(error),
        }
    } else {
        ArgumentsFault::NotAnObject
    };
    Err(ArgumentsError { tool: call.name.clone(), fault })
}

/// The reason why a tool cannot read the arguments of a call.
#[derive(thiserror::Error)]
#[error("the arguments do not fit `{tool}`: {fault}; nothing was done")]
pub(crate) struct ArgumentsError {
    tool: String,
    #[source]
    fault: ArgumentsFault,
}

#[derive(thiserror::Error)]
enum ArgumentsFault {
    #[error("they are not a JSON object")]
    NotAnObject,
    #[error("{}", describe_mismatch(.0))]
    Form(#[source] serde_json::Error),
}

/// Describes a value of another form than the tool's: without a position, which a model cannot count, and without names
/// of Rust's types.
fn describe_mismatch(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let words = words.rsplit_once(" at line ").map_or(words.as_str(), |(words, _)| words);
    ["u64", "u32", "usize"].iter().fold(words.to_owned(), |words, number| {
        let typed = format!("expected {number}");
        words.replace(&typed, "expected a whole number that is not negative")
    })
}

gnoma_core::debug_as_display!(ArgumentsError, ArgumentsFault);

/// A spec from literals. `parameters` must be JSON; a test walks all built-in tools.
pub(crate) fn tool_spec(
    name: &str,
    access: Access,
    touches: impl Into<Arc<[TouchedResource]>>,
    tier: Tier,
    description: &str,
    parameters: &str,
) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: RawJson::parse(parameters).unwrap_or_else(|_| RawJson::empty_object()),
        access,
        touches: touches.into(),
        kind: ToolKind::Other,
        tier,
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::CallId;
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Wanted {
        path: String,
        all: Option<bool>,
    }

    #[test]
    fn tool_call_arguments_parse_like_the_permission_check_parses_them() {
        let of = |arguments: &str| {
            let arguments = RawJson::parse(arguments).unwrap();
            let wanted =
                read_arguments::<Wanted>(&ToolCall::new(CallId::new("c"), "t", arguments)).ok()?;
            Some((wanted.path, wanted.all))
        };
        assert_eq!(of(r#"{"path":"7","all":true}"#), Some(("7".to_owned(), Some(true))));
        for other in [r#"{"path":"7","all":"true"}"#, r#"["7",true]"#, r#"{"path":"7","path":"8"}"#]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn mismatch_names_neither_types_of_rust_nor_a_position() {
        let read = serde_json::from_str::<Vec<u64>>;
        assert_eq!(
            describe_mismatch(&read("[-1]").unwrap_err()),
            "invalid value: integer `-1`, expected a whole number that is not negative"
        );
        assert_eq!(
            describe_mismatch(&read("[true]").unwrap_err()),
            "invalid type: boolean `true`, expected a whole number that is not negative"
        );
    }
}
