//! The tool that reads resources of MCP servers. One tool for all servers' resources.

use std::sync::{Arc, Weak};

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    tool::{Access, BoxFuture, Tier, ToolKind},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    catalog::Catalog, error::CallError, listed_resource::ListedResource,
    live_connection::LiveConnection, result::ResultParts,
};

/// The name of the tool.
const NAME: &str = "mcp.resource";
/// The schema of its arguments.
const PARAMETERS: &str = r#"{"type":"object","properties":{"server":{"type":"string","description":"the server's name"},"uri":{"type":"string","description":"the resource; without it, the server's resources are listed"}},"required":["server"],"additionalProperties":false}"#;

/// The tool that reads resources.
pub(super) struct Resources {
    spec: ToolSpec,
    servers: Weak<dyn Catalog>,
}

#[derive(Deserialize)]
struct Arguments {
    server: String,
    #[serde(default)]
    uri: Option<String>,
}

impl Resources {
    /// `names`: the servers that have any.
    pub(super) fn new(servers: Weak<dyn Catalog>, names: &str) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: format!(
                "Reads a resource of an MCP server, or lists those that it has. A user's `@server:uri` names one: \
                 read it. Servers: {names}"
            ),
            parameters: RawJson::parse(PARAMETERS).unwrap_or_else(|_| RawJson::empty_object()),
            access: Access::Execute,
            touches: Arc::default(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        };
        Self { spec, servers }
    }
}

impl Tool for Resources {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let servers = self.servers.upgrade();
        Box::pin(async move {
            let stop = cx.stop.clone();
            let read = read_resource(servers, &call, &cx);
            stop.run_until_cancelled(read).await.unwrap_or(ToolOutcome::Interrupted(String::new()))
        })
    }
}

async fn read_resource(
    servers: Option<Arc<dyn Catalog>>,
    call: &ToolCall,
    cx: &ToolCx,
) -> ToolOutcome {
    let Arguments { server, uri } = match call.arguments.read() {
        Ok(arguments) => arguments,
        Err(error) => return ToolOutcome::failure_text(format!("unusable arguments: {error}")),
    };
    let Some(server) = servers.and_then(|servers| servers.find_server(&server)) else {
        return ToolOutcome::failure_text(format!("there is no MCP server `{server}`"));
    };
    let live = match server.ensure_connected().await {
        Ok(live) => live,
        Err(error) => return ToolOutcome::failure_text(error.to_string()),
    };
    let mut parts = ResultParts::new(cx.stores_large_results);
    let filled = match uri {
        Some(uri) => read_one(&live, &uri, &mut parts).await,
        None => list_resources(&live, &mut parts).await,
    };
    match filled {
        Ok(()) => ToolOutcome::Done(parts.into_output()),
        Err(error) => ToolOutcome::failure_text(error.to_string()),
    }
}

async fn read_one(
    live: &LiveConnection,
    uri: &str,
    parts: &mut ResultParts,
) -> Result<(), CallError> {
    let mut params = Map::new();
    params.insert("uri".to_owned(), uri.into());
    add_contents(&live.send_short_request("resources/read", params).await?, parts);
    Ok(())
}

/// Adds the contents of an answer. What cannot be read is named in its place.
pub(super) fn add_contents(answer: &Value, parts: &mut ResultParts) {
    match answer.get("contents") {
        Some(Value::Array(contents)) => contents.iter().for_each(|it| parts.push_resource(it)),
        Some(content @ Value::Object(_)) => parts.push_resource(content),
        _ => parts.push_text("[the server's answer has no contents that can be read]"),
    }
}

async fn list_resources(live: &LiveConnection, parts: &mut ResultParts) -> Result<(), CallError> {
    let all = live.list_pages::<ListedResource>("resources").await?;
    all.elements.iter().for_each(|resource| parts.push_text(&resource.to_line()));
    all.describe_faults()
        .iter()
        .for_each(|fault| parts.push_text(&format!("[left out: {fault}]\n")));
    Ok(())
}
