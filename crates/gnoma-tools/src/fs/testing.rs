//! A folder to work in, and calls against it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    CallId, RawJson, ResultPart, Tool, ToolCall, ToolCx, ToolOutcome,
    tool::{Grant, ToolOutput},
};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ToolOptions;

/// The file tools in a folder of their own.
pub(super) struct Bench {
    folder: TempDir,
    tools: Vec<Arc<dyn Tool>>,
    pub(super) stop: CancellationToken,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self::with(&ToolOptions::default())
    }

    pub(super) fn with(options: &ToolOptions) -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            tools: super::file_tools(options),
            stop: CancellationToken::new(),
        }
    }

    pub(super) fn cx(&self) -> ToolCx {
        ToolCx {
            cwd: Arc::new(self.folder.path().to_owned()),
            roots: [self.folder.path().canonicalize().unwrap()].into(),
            grant: Grant::default(),
            stop: self.stop.clone(),
            progress: mpsc::channel(1).0,
            stores_large_results: false,
            budget: Default::default(),
            session: None,
            traceparent: None,
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The names in a folder, sorted.
    pub(super) fn names(&self, folder: impl AsRef<Path>) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path().join(folder))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        gnoma_core::sort::sort_items(&mut names);
        names
    }

    fn tool(&self, name: &str) -> &Arc<dyn Tool> {
        let mut tools = self.tools.iter();
        tools.find(|tool| tool.spec().name == name).unwrap()
    }

    pub(super) async fn outcome(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let call = call(tool, &arguments);
        self.tool(tool).run(call, self.cx()).await
    }

    /// The output of a call that must succeed.
    pub(super) async fn output(&self, tool: &str, arguments: Value) -> ToolOutput {
        match self.outcome(tool, arguments).await {
            ToolOutcome::Done(output) => output,
            other => panic!("{other:?}"),
        }
    }

    /// The text of a call that must succeed.
    pub(super) async fn done(&self, tool: &str, arguments: Value) -> String {
        text(&self.output(tool, arguments).await)
    }

    /// The text of a call that must fail.
    pub(super) async fn failed(&self, tool: &str, arguments: Value) -> String {
        match self.outcome(tool, arguments).await {
            ToolOutcome::Failed(output) => text(&output),
            other => panic!("{other:?}"),
        }
    }

    /// Why a call would fail, before it runs.
    pub(super) fn refusal(&self, tool: &str, arguments: &Value) -> Option<String> {
        let preview = self.tool(tool).preview(&call(tool, arguments), &self.cx());
        preview.err().map(|error| error.to_string())
    }

    pub(super) fn preview(&self, tool: &str, arguments: &Value) -> Option<String> {
        self.tool(tool).preview(&call(tool, arguments), &self.cx()).ok().flatten()
    }
}

fn call(tool: &str, arguments: &Value) -> ToolCall {
    ToolCall::new(CallId::new("c"), tool, RawJson::from_value(arguments).unwrap())
}

fn text(output: &ToolOutput) -> String {
    match output.parts.as_slice() {
        [ResultPart::Text { text }] => text.clone(),
        other => panic!("{other:?}"),
    }
}
