//! Reading a call's arguments and writing a tool's spec.

use std::sync::Arc;

use gnoma_core::{
    RawJson, ToolCall, ToolOutcome, ToolSpec,
    tool::{Access, Tier, ToolKind, Touches},
};
use serde::de::DeserializeOwned;

/// Arguments as `T`, or the failure to give back to the model.
pub(crate) fn read<T: DeserializeOwned>(call: &ToolCall) -> Result<T, ToolOutcome> {
    call.arguments.read().map_err(|error| {
        ToolOutcome::failed(format!(
            "the arguments do not fit `{}`: {error}; nothing was done",
            call.name
        ))
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
