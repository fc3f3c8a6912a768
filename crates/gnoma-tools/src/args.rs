//! Reading a call's arguments and writing a tool's spec.

use std::sync::Arc;

use gnoma_core::{
    RawJson, ToolCall, ToolOutcome, ToolSpec,
    tool::{Access, Tier, ToolKind, Touches},
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Texts of a call that may be numbers; all their combinations are tried.
const MAX_TEXTS: usize = 4;

/// Arguments as `T`, or the failure to give back to the model.
pub(crate) fn read<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolOutcome> {
    call.arguments.read().or_else(|error| {
        respelt(call).ok_or_else(|| {
            ToolOutcome::failed(format!(
                "the arguments do not fit `{}`: {error}; nothing was done",
                call.name
            ))
        })
    })
}

/// Arguments with numbers and truth values that are written as texts, as small models do, where a tool wants
/// no texts there.
fn respelt<T: DeserializeOwned>(call: &ToolCall) -> Option<T> {
    let arguments: Map<String, Value> = call.arguments.read().ok()?;
    let plain = |(name, value): (&String, &Value)| {
        let plain = serde_json::from_str(&value.as_str()?.trim().to_lowercase()).ok()?;
        matches!(plain, Value::Number(_) | Value::Bool(_)).then(|| (name.clone(), plain))
    };
    let texts: Vec<(String, Value)> = arguments.iter().filter_map(plain).take(MAX_TEXTS).collect();
    // Some of them may be texts that the tool wants.
    (1..(1_u32 << texts.len())).find_map(|some| {
        let mut arguments = arguments.clone();
        let chosen = texts.iter().enumerate().filter(|(at, _)| (some >> at) & 1 == 1);
        arguments.extend(chosen.map(|(_, text)| text.clone()));
        serde_json::from_value(Value::Object(arguments)).ok()
    })
}

/// A spec from literals. `parameters` must be JSON; a test walks all built-in tools.
pub(crate) fn spec(
    name: &str,
    access: Access,
    touches: impl Into<Arc<[Touches]>>,
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

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wanted {
        path: String,
        limit: Option<u64>,
        all: Option<bool>,
    }

    #[test]
    fn numbers_and_truth_values_may_be_written_as_texts_and_texts_stay_texts() {
        let of = |arguments: &str| {
            let arguments = RawJson::parse(arguments).unwrap();
            read::<Wanted>(&ToolCall::new(CallId::new("c"), "t", arguments)).ok()
        };
        let wanted = |limit, all| Some(Wanted { path: "7".to_owned(), limit, all });
        assert_eq!(of(r#"{"path":"7","limit":"20","all":"True"}"#), wanted(Some(20), Some(true)));
        assert_eq!(of(r#"{"limit":" 3 ","path":"7"}"#), wanted(Some(3), None));
        assert_eq!(of(r#"{"path":"7","limit":"many"}"#), None);
        assert_eq!(of(r#"{"limit":"3"}"#), None, "what is missing stays missing");
    }
}
