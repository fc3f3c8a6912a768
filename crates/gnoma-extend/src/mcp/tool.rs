//! A server's tool, as a tool of the session.

use std::{collections::BTreeMap, sync::Arc};

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    tool::{Access, BoxFuture, Tier, ToolKind, TouchedResource},
};

use serde_json::Value;

use super::{
    approval::DescribedTool,
    naming,
    schema::{self, ProviderSchema},
    server::ManagedServer,
    wire::json,
};

/// The reason why a tool does not take the place of a built-in one.
#[derive(thiserror::Error)]
pub(super) enum ReplacementError {
    /// The schema of its arguments cannot be read.
    #[error("the schema of its arguments is not valid")]
    Schema,
    /// The tool lacks the arguments that say what the built-in tool touches.
    #[error(
        "it has no argument `{}`; name its paths with `tool_policy.{tool}.path_args`",
        .arguments.join("`, `")
    )]
    NoArguments {
        /// The names of the arguments.
        arguments: Vec<String>,
        /// The server's name for the tool.
        tool: String,
    },
}

gnoma_core::debug_as_display!(ReplacementError);

/// Stands for one tool of a server. What the server says of itself decides nothing: every call is judged as
/// one that may do anything.
pub(super) struct McpTool {
    spec: ToolSpec,
    /// The specification by which its calls are judged: the server runs commands itself, so none of them can be
    /// tried first.
    judged: ToolSpec,
    /// The server's name for it.
    name: String,
    /// Arguments whose names are others for models than for the server, see [`schema::ProviderSchema`].
    renamed: Vec<(String, String)>,
    server: Arc<ManagedServer>,
}

impl McpTool {
    /// `None` where its schema is none.
    pub(super) fn new(server: &Arc<ManagedServer>, described: &DescribedTool) -> Option<Self> {
        let given: Value = json::parse_lenient(&described.schema)?;
        let ProviderSchema { schema, renamed } = schema::normalize_schema(&given);
        // A sound schema stays the text that it is.
        let parameters = match schema == given {
            true => RawJson::parse(described.schema.clone()).ok()?,
            false => RawJson::from_value(&schema).ok()?,
        };
        let shown = |name: &String| {
            let new = renamed.iter().find(|(_, old)| old == name).map(|(new, _)| new);
            TouchedResource::path(new.unwrap_or(name).as_str())
        };
        let paths = server.definition.path_args.get(&described.name);
        let paths = paths.into_iter().flatten().map(shown);
        let spec = ToolSpec {
            name: naming::qualified_tool_name(&server.definition.name, &described.name),
            description: described.description.clone(),
            parameters,
            access: Access::Execute,
            touches: paths.collect(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        };
        let judged = spec.clone();
        let (name, server) = (described.name.clone(), Arc::clone(server));
        Some(Self { spec, judged, name, renamed, server })
    }

    /// The tool in the place of a built-in one: what is judged, shown and kept before a call is as there.
    ///
    /// # Errors
    /// The tool has other arguments, so that it is unknown what a call touches.
    pub(super) fn with_built_in_spec(
        server: &Arc<ManagedServer>,
        described: &DescribedTool,
        built_in: &ToolSpec,
    ) -> Result<Self, ReplacementError> {
        let Some(Self { spec, name, renamed, server, .. }) = Self::new(server, described) else {
            return Err(ReplacementError::Schema);
        };
        let given: Value = spec.parameters.read().unwrap_or_default();
        let missing = built_in.touches.iter().map(TouchedResource::argument);
        let missing = missing
            .filter(|name| given.pointer("/properties").and_then(|all| all.get(*name)).is_none());
        let missing: Vec<_> = missing.collect();
        if !missing.is_empty() && spec.touches.is_empty() {
            let arguments = missing.into_iter().map(str::to_owned).collect();
            return Err(ReplacementError::NoArguments { arguments, tool: name });
        }
        let is_same = missing.is_empty();
        let spec = ToolSpec {
            name: built_in.name.clone(),
            access: if is_same { built_in.access } else { Access::Execute },
            touches: if is_same { Arc::clone(&built_in.touches) } else { spec.touches },
            kind: if is_same { built_in.kind } else { ToolKind::Other },
            tier: built_in.tier,
            ..spec
        };
        let mut judged = spec.clone();
        if judged.kind == ToolKind::Shell {
            judged.kind = ToolKind::AgentRequest;
        }
        Ok(Self { spec, judged, name, renamed, server })
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn judged_as(&self) -> &ToolSpec {
        &self.judged
    }

    fn run(&self, mut call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        if let Some(arguments) = original_names(&call.arguments, &self.renamed) {
            call.arguments = arguments;
        }
        Box::pin(Arc::clone(&self.server).call_tool(self.name.clone(), call, cx))
    }
}

/// Arguments by the server's names for them; `None` where those are the same.
fn original_names(arguments: &RawJson, renamed: &[(String, String)]) -> Option<RawJson> {
    if renamed.is_empty() {
        return None;
    }
    let given: BTreeMap<String, RawJson> = arguments.read().ok()?;
    let original = |name: String| {
        let known = renamed.iter().find(|(new, _)| *new == name);
        known.map_or(name, |(_, old)| old.clone())
    };
    let all: BTreeMap<String, RawJson> =
        given.into_iter().map(|(name, value)| (original(name), value)).collect();
    RawJson::from_value(&all).ok()
}
