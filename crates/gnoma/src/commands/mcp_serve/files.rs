//! gnoma's own file tools for other programs: each call goes through a session of its own over the real gate,
//! hooks and firewall, with a model that does nothing but call.

use std::sync::Arc;

use anyhow::Result;
use gnoma_core::{
    Tool,
    message::Content,
    session::{Command, Event},
    tool::Access,
};
use gnoma_engine::{Arm, Routes, Session};
use gnoma_guard::firewall::Connection;
use gnoma_host::{Project, clock, session};
use serde_json::{Value, json};

use super::super::scripted::ScriptedModel;

/// What their names begin with.
const PREFIX: &str = "fs.";

/// The file tools of a project.
pub(super) struct FileTools {
    project: Project,
    /// Shared by all calls, with what they remember of files that were read.
    tools: Vec<Arc<dyn Tool>>,
}

impl FileTools {
    pub(super) fn new(project: Project) -> Result<Self> {
        let unused = ScriptedModel::default();
        let arm = Arm::new(Connection::new(Arc::new(unused), false), "none");
        let options = session::options(&project, clock::session_id(), routes(arm))?;
        let tools = options.tools;
        Ok(Self { project, tools })
    }

    fn own(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().filter(|tool| tool.spec().name.starts_with(PREFIX))
    }

    /// The list of them, as clients read it.
    pub(super) fn listed(&self) -> Vec<Value> {
        let described = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            let reads = spec.access == Access::Read;
            json!({
                "name": served(&spec.name),
                "description": spec.description,
                "inputSchema": spec.parameters.read::<Value>().unwrap_or_else(|_| json!({"type": "object"})),
                "annotations": {"readOnlyHint": reads, "destructiveHint": !reads, "openWorldHint": false},
            })
        };
        self.own().map(described).collect()
    }

    /// Whether there is one of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.own().any(|tool| served(&tool.spec().name) == name)
    }

    /// Calls one. Gives what a model would be told, and whether that is a failure.
    pub(super) async fn call(&self, name: &str, arguments: &Value) -> Result<(String, bool)> {
        let Some(tool) = self.own().find(|tool| served(&tool.spec().name) == name) else {
            return Ok((format!("there is no tool `{name}`"), true));
        };
        let model = Arc::new(ScriptedModel::calling(&tool.spec().name, arguments.to_string()));
        let arm = Arm::new(Connection::new(Arc::clone(&model) as _, false), "client");
        let mut options = session::options(&self.project, clock::session_id(), routes(arm))?;
        options.tools.clone_from(&self.tools);
        let mut session = Session::spawn(options);
        session.tell(Command::Send { content: vec![Content::text("call it")] });
        while let Some(event) = session.next().await {
            if matches!(event, Event::TurnEnded { .. }) {
                break;
            }
        }
        Ok(model.told())
    }
}

fn routes(arm: Arm) -> Arc<Routes> {
    Arc::new(Routes::single(arm))
}

/// The name under which a tool is served: not all clients take dots.
fn served(name: &str) -> String {
    name.replace('.', "_")
}
