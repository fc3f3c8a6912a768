//! A session's place: a temporary folder, the tools, and somebody who watches.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gnoma_core::{
    CallId, RawJson, Tool, ToolCall, ToolCx, ToolOutcome,
    tool::{CommandReport, Grant, Progress, ToolOutput, Trial},
};
use gnoma_tools::{ToolOptions, builtin_tools};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

/// Long enough for a loaded machine, short enough to fail a test that hangs.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) stop: CancellationToken,
    pub(crate) watched: mpsc::Receiver<Progress>,
    tools: Vec<Arc<dyn Tool>>,
    cx: ToolCx,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(&ToolOptions::default())
    }

    pub(crate) fn with(options: &ToolOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let stop = CancellationToken::new();
        let (progress, watched) = mpsc::channel(1024);
        let root = folder.path().canonicalize().unwrap();
        let cx = ToolCx {
            cwd: Arc::new(root.clone()),
            roots: [root].into(),
            grant: Grant::default(),
            stop: stop.clone(),
            progress,
            stores_large_results: false,
            budget: Default::default(),
            session: None,
            traceparent: None,
        };
        Self { folder, stop, watched, tools: builtin_tools(options), cx }
    }

    /// Large results are put aside.
    pub(crate) fn storing_large_results(mut self) -> Self {
        self.cx.stores_large_results = true;
        self
    }

    /// Commands may only run on trial.
    pub(crate) fn on_trial(mut self) -> Self {
        self.cx.grant.trial = Some(Trial::Ask);
        self
    }

    /// A call that is ready to run.
    pub(crate) fn call(
        &self,
        tool: &str,
        arguments: &Value,
    ) -> impl Future<Output = ToolOutcome> + use<> {
        let tool = self.tools.iter().find(|it| it.spec().name == tool).unwrap();
        let arguments = RawJson::from_value(arguments).unwrap();
        let call = ToolCall::new(CallId::new("call"), tool.spec().name.clone(), arguments);
        tool.run(call, self.cx.clone())
    }

    pub(crate) fn command(&self, command: &str) -> impl Future<Output = ToolOutcome> + use<> {
        self.call("bash", &json!({ "command": command }))
    }

    /// Starts a background job, whose number is the one given.
    pub(crate) async fn start(&self, command: &str, id: u32) {
        let arguments = json!({ "command": command, "background": true });
        let started = self.call("bash", &arguments).await;
        assert_eq!(started, ToolOutcome::success_text(format!("job {id} started")));
    }

    pub(crate) async fn job(&self, arguments: Value) -> ToolOutcome {
        self.call("job", &arguments).await
    }

    /// Polls a job until its text holds `wanted`; all text that came.
    pub(crate) async fn poll_until(&self, id: u32, wanted: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = String::new();
        while !seen.contains(wanted) {
            assert!(Instant::now() < deadline, "no {wanted:?} in {seen:?}");
            let polled = self.job(json!({ "action": "poll", "id": id })).await;
            seen.push_str(&text(&polled));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        seen
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Waits for a file that holds a process id.
    pub(crate) async fn pid(&self, name: &str) -> i32 {
        let path = self.path(name);
        let mut pid = None;
        eventually("a process id in a file", || {
            pid = read_pid(&path);
            pid.is_some()
        })
        .await;
        pid.unwrap()
    }

    /// The tools go, the folder stays.
    pub(crate) fn close(&mut self) {
        self.tools.clear();
    }
}

fn read_pid(path: &Path) -> Option<i32> {
    let text = std::fs::read_to_string(path).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

pub(crate) fn output(outcome: &ToolOutcome) -> &ToolOutput {
    match outcome {
        ToolOutcome::Done(output) | ToolOutcome::Failed(output) => output,
        ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => panic!("no output: {outcome:?}"),
    }
}

pub(crate) fn text(outcome: &ToolOutcome) -> String {
    let call = ToolCall::new(CallId::new("call"), "bash", RawJson::empty_object());
    outcome.clone().into_result(&call).joined_text()
}

pub(crate) fn report(command: &str, exit_code: Option<i32>) -> Option<CommandReport> {
    Some(CommandReport { command: command.to_owned(), exit_code, walled: None, trial: None })
}

pub(crate) fn is_done(outcome: &ToolOutcome) -> bool {
    matches!(outcome, ToolOutcome::Done(_))
}

pub(crate) fn is_failed(outcome: &ToolOutcome) -> bool {
    matches!(outcome, ToolOutcome::Failed(_))
}

pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "never: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn gone(pid: i32) {
    eventually("the process ends", || !is_alive(pid)).await;
}

/// Whether a process runs; the dead whom nobody has buried yet do not count.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    let known = rustix::process::Pid::from_raw(pid)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    known && state != Some(Some('Z'))
}
