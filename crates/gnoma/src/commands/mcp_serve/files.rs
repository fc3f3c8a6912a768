//! gnoma's own file tools for other programs: each call goes through a session of its own over the real gate,
//! hooks and firewall, with a model that does nothing but call.
//!
//! Calls that change files are turns of a session that is saved, with the files as they were before, so that
//! `gnoma rewind` takes them back. Between calls it is in nobody's hand.

use std::sync::Arc;

use anyhow::Result;
use gnoma_core::{
    Tool,
    json_value::json,
    message::Content,
    protocol::Start,
    session::{Command, Event},
    store::SessionId,
    tool::Access,
};
use gnoma_engine::{Options, Routes, Session, connect_arm};
use gnoma_guard::firewall::Connection;
use gnoma_host::{Project, clock, session, session_resume, session_stores::SessionStores};
use serde_json::Value;
use tokio::sync::Mutex;

use super::super::scripted::ScriptedModel;

/// The prefix that the names of the file tools share.
const PREFIX: &str = "fs.";

/// Most calls of one saved session; then the next begins.
const MAX_SAVED_CALLS: usize = 100;

/// The file tools of a project.
pub(super) struct FileTools {
    project: Project,
    /// Shared by all calls, with what they remember of files that were read.
    tools: Vec<Arc<dyn Tool>>,
    /// The session that changes are saved in, and how many there were. One after the other.
    saved: Mutex<Option<(SessionId, usize)>>,
}

impl FileTools {
    pub(super) fn new(project: Project) -> Result<Self> {
        let unused = ScriptedModel::default();
        let arm = connect_arm(Connection::new(Arc::new(unused), false), "none");
        let options = session::session_options(
            &project,
            clock::session_id(),
            Arc::new(Routes::with_single_arm(arm)),
        )?;
        let tools = options.tools;
        Ok(Self { project, tools, saved: Mutex::default() })
    }

    fn served_tools(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.iter().filter(|tool| tool.spec().name.starts_with(PREFIX))
    }

    /// The list of them, as clients read it.
    pub(super) fn list_tools(&self) -> Vec<Value> {
        let described = |tool: &Arc<dyn Tool>| {
            let spec = tool.spec();
            let reads = spec.access == Access::Read;
            json!({
                "name": served_name(&spec.name),
                "description": spec.description,
                "inputSchema": spec.parameters.read::<Value>().unwrap_or_else(|_| json!({"type": "object"})),
                "annotations": {"readOnlyHint": reads, "destructiveHint": !reads, "openWorldHint": false},
            })
        };
        self.served_tools().map(described).collect()
    }

    /// True if there is a file tool of that name.
    pub(super) fn has_tool(&self, name: &str) -> bool {
        self.served_tools().any(|tool| served_name(&tool.spec().name) == name)
    }

    /// Calls one. Gives what a model would be told, and whether that is a failure.
    pub(super) async fn call_tool(&self, name: &str, arguments: &Value) -> Result<(String, bool)> {
        let Some(tool) = self.served_tools().find(|tool| served_name(&tool.spec().name) == name)
        else {
            return Ok((format!("there is no tool `{name}`"), true));
        };
        let model =
            Arc::new(ScriptedModel::with_tool_call(&tool.spec().name, arguments.to_string()));
        let arm = connect_arm(Connection::new(Arc::clone(&model) as _, false), "client");
        let mut options = session::session_options(
            &self.project,
            clock::session_id(),
            Arc::new(Routes::with_single_arm(arm)),
        )?;
        options.tools.clone_from(&self.tools);
        if tool.spec().access == Access::Read {
            run_turn(options, "call it").await;
            return Ok(model.last_tool_results());
        }
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        self.run_saved_call(options, format!("{name} {path} (gnoma mcp serve)")).await;
        Ok(model.last_tool_results())
    }

    /// Does a call in the session that changes are saved in.
    async fn run_saved_call(&self, mut options: Options, prompt: String) {
        let mut saved = self.saved.lock().await;
        let known = saved.take().filter(|(_, calls)| *calls < MAX_SAVED_CALLS);
        let mut continued = None;
        if let Some((id, calls)) = known {
            let start = Start::Stored { id: id.to_string(), fork: false };
            // If another process holds the session, a new one begins.
            let taken = session_resume::resume_session(&self.project, &start).await.ok().flatten();
            continued = taken.map(|taken| (taken, calls));
        }
        let store = continued.as_ref().map(|(taken, _)| Arc::clone(&taken.past.store));
        let kept = SessionStores::start(&self.project, store);
        let id = continued.as_ref().map(|(taken, _)| taken.id.clone());
        options.keeping = kept.to_keeping(id.clone(), None, false);
        let (history, calls) = continued.map_or_else(Default::default, |(it, n)| (it.history, n));
        options.history = history;
        run_turn(options, &prompt).await;
        *saved = id.or_else(|| kept.session_id_cell().get().cloned()).map(|id| (id, calls + 1));
    }
}

/// One turn of a session, which ends with it.
async fn run_turn(options: Options, prompt: &str) {
    let mut session = Session::spawn(options);
    session.send_command(Command::Send { content: vec![Content::from_text(prompt)] });
    while let Some(event) = session.next().await {
        if matches!(event, Event::TurnEnded { .. }) {
            session.send_command(Command::Close);
        }
    }
}

/// The name under which a tool is served: not all clients take dots.
fn served_name(name: &str) -> String {
    name.replace('.', "_")
}
