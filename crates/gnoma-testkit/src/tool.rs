//! A tool that does as it is told.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    RawJson, Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    tool::{Access, BoxFuture, PreviewError, Tier, ToolKind, TouchedResource},
};

use crate::lock_ignoring_poison;

type Work = Arc<dyn Fn(&ToolCall) -> ToolOutcome + Send + Sync>;

/// The behaviour of a call.
#[derive(Clone)]
enum Act {
    /// The call gives this outcome.
    Give(Work),
    /// Runs until it is stopped, then says so.
    Wait,
    /// Runs for ever, stopped or not.
    Ignore,
    /// The call panics instead of answering.
    Panic,
}

#[derive(Default)]
struct ToolRecord {
    calls: Mutex<Vec<ToolCall>>,
    running: AtomicUsize,
    most_running: AtomicUsize,
}

/// A tool without effects. It takes any arguments.
#[derive(Clone)]
pub struct FakeTool {
    spec: ToolSpec,
    act: Act,
    delay: Duration,
    preview: Option<String>,
    seen: Arc<ToolRecord>,
}

impl FakeTool {
    /// A tool whose calls end as `work` says.
    pub fn new(
        name: &str,
        access: Access,
        work: impl Fn(&ToolCall) -> ToolOutcome + Send + Sync + 'static,
    ) -> Self {
        Self::with_act(name, access, Act::Give(Arc::new(work)))
    }

    /// A tool whose calls end only when they are stopped.
    #[must_use]
    pub fn new_stoppable(name: &str, access: Access) -> Self {
        Self::with_act(name, access, Act::Wait)
    }

    /// A tool whose calls do not even end when they are stopped.
    #[must_use]
    pub fn new_unstoppable(name: &str, access: Access) -> Self {
        Self::with_act(name, access, Act::Ignore)
    }

    /// A tool whose calls panic.
    #[must_use]
    pub fn new_panicking(name: &str, access: Access) -> Self {
        Self::with_act(name, access, Act::Panic)
    }

    fn with_act(name: &str, access: Access, act: Act) -> Self {
        Self {
            spec: ToolSpec {
                name: name.to_owned(),
                description: "A tool for tests.".to_owned(),
                parameters: RawJson::empty_object(),
                access,
                touches: [].into(),
                kind: ToolKind::Other,
                tier: Tier::Lean,
            },
            act,
            delay: Duration::ZERO,
            preview: None,
            seen: Arc::default(),
        }
    }

    /// Makes the tool touch this alone.
    #[must_use]
    pub fn with_touches(mut self, touches: TouchedResource) -> Self {
        self.spec.touches = [touches].into();
        self
    }

    /// Being of this kind.
    #[must_use]
    pub fn of_kind(mut self, kind: ToolKind) -> Self {
        self.spec.kind = kind;
        self
    }

    /// Ending only after `delay`, in tokio's time.
    #[must_use]
    pub fn with_delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Showing this diff before it runs.
    #[must_use]
    pub fn with_preview(mut self, diff: impl Into<String>) -> Self {
        self.preview = Some(diff.into());
        self
    }

    /// The calls that were begun, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<ToolCall> {
        lock_ignoring_poison(&self.seen.calls).clone()
    }

    /// The most calls that ran at the same time.
    #[must_use]
    pub fn most_running(&self) -> usize {
        self.seen.most_running.load(Ordering::SeqCst)
    }
}

impl Tool for FakeTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: ToolCall, cx: ToolCx) -> BoxFuture<'static, ToolOutcome> {
        let (act, delay) = (self.act.clone(), self.delay);
        let seen = Arc::clone(&self.seen);
        Box::pin(async move {
            let _running = RunningGuard::begin_call(&seen, &call);
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            match act {
                Act::Give(work) => work(&call),
                Act::Wait => {
                    cx.stop.cancelled().await;
                    ToolOutcome::Interrupted(String::new())
                }
                Act::Ignore => std::future::pending().await,
                Act::Panic => panic!("the tool panics, as told"),
            }
        })
    }

    fn preview(&self, _call: &ToolCall, _cx: &ToolCx) -> Result<Option<String>, PreviewError> {
        Ok(self.preview.clone())
    }
}

/// Counts a call as running until it is dropped.
struct RunningGuard<'a>(&'a ToolRecord);

impl<'a> RunningGuard<'a> {
    fn begin_call(seen: &'a ToolRecord, call: &ToolCall) -> Self {
        lock_ignoring_poison(&seen.calls).push(call.clone());
        let running = seen.running.fetch_add(1, Ordering::SeqCst) + 1;
        seen.most_running.fetch_max(running, Ordering::SeqCst);
        Self(seen)
    }
}

impl Drop for RunningGuard<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, tool::Grant};
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn fake_tool_counts_parallel_calls_and_stops_on_cancel() {
        let call = ToolCall::new(CallId::new("c"), "t", RawJson::empty_object());
        let cx = ToolCx {
            cwd: Arc::default(),
            roots: Arc::default(),
            grant: Grant::default(),
            stop: CancellationToken::new(),
            progress: mpsc::channel(1).0,
            stores_large_results: false,
            budget: Default::default(),
            session: None,
            traceparent: None,
        };
        let slow = FakeTool::new("t", Access::Read, |_| ToolOutcome::success_text("ok"))
            .with_delay(Duration::from_secs(1));
        let run = || slow.run(call.clone(), cx.clone());
        tokio::join!(run(), run());
        assert_eq!((slow.calls().len(), slow.most_running()), (2, 2));

        cx.stop.cancel();
        let waiting = FakeTool::new_stoppable("w", Access::Execute);
        let outcome = waiting.run(call.clone(), cx.clone()).await;
        assert!(matches!(outcome, ToolOutcome::Interrupted(_)));
    }
}
