//! Runs calls, each in a separate task.

use std::{panic::AssertUnwindSafe, pin::pin, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use gnoma_core::{
    Tool, ToolCall, ToolCx, ToolOutcome, ToolSpec,
    lifecycle::PointKind,
    message::CallId,
    task::box_future,
    tool::{MachineView, ToolKind},
};
use gnoma_guard::firewall::Firewall;
use tokio::{task::spawn_blocking, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    extension_calls::AfterCallHooks,
    state::{FinishedCall, FrontEndGone, Session},
};
use crate::{
    checkpoint::{self, CheckpointSaver},
    large_results::LargeResults,
    processes,
    routing::signals,
    turn::Input,
};

impl Session {
    /// A call has run. When the sandbox stopped it, a person may let it run outside.
    pub(super) async fn on_call_ended(&mut self, ended: FinishedCall) -> Result<(), FrontEndGone> {
        let FinishedCall { call, outcome, duration_ms, is_check, stop } = ended;
        if !is_check {
            self.observe_outcome(&outcome);
        } else if let ToolOutcome::Done(output) | ToolOutcome::Failed(output) = &outcome
            && let Some(report) = &output.report
        {
            self.router.record_step_command(report);
        }
        self.take_back(Some(&call)).await?;
        let denial = sandbox_denial(&outcome).filter(|_| self.gate.may_offer_outside(&call));
        let sandbox_denial = denial.map(str::to_owned);
        let stop_after = stop;
        self.feed_input(Input::ToolEnded { call, outcome, duration_ms, sandbox_denial, stop_after })
            .await
    }

    /// Records what a call has shown about the work.
    fn observe_outcome(&mut self, outcome: &ToolOutcome) {
        let Some(plan) = &mut self.router.plan else { return };
        match outcome {
            ToolOutcome::Done(output) | ToolOutcome::Failed(output) => {
                self.router.signals.record_diff(output.diff.as_deref());
                if output.diff.is_some() {
                    plan.parts.credit_arm(&plan.arm.id);
                }
                if let Some(report) = &output.report {
                    self.router.signals.command_ended(report);
                }
            }
            ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => (),
        }
    }

    /// Runs what was judged. `written` is the call as it was written: without the secrets that the tool
    /// is handed.
    pub(super) fn run_tool(&mut self, written: &ToolCall, is_check: bool) {
        let admitted = self.gate.call_and_grant(&written.id);
        // A call that was judged as one of another tool runs as one.
        let tool =
            admitted.as_ref().and_then(|(call, _)| self.tools.by_name.get(&call.expose().name));
        let tool = tool.map(Arc::clone);
        let (Some((call, grant)), Some(tool)) = (admitted, tool) else {
            return self.inbox.push_back(refuse_unjudged(written.id.clone()));
        };
        let may_write = !checkpoint::only_reads(tool.spec(), written, &grant);
        if may_write && !is_check {
            self.may_write(tool.spec(), written);
        }
        let files = may_write.then(|| self.persistence.begin_write()).flatten();
        // What a session changes that this one starts, it changes in calls of its own, before which the files
        // are kept as well, but after this. Hooks that hear of it first may change them at once.
        let is_first = tool.spec().kind == ToolKind::StartsSessions
            && self.added.listener_for(PointKind::ChildStart).is_none();
        let keep_before = files.map(|files| CheckpointBeforeCall {
            is_beside: is_first && files.may_be_beside(),
            files,
            label: checkpoint::checkpoint_label(tool.spec(), written, &self.firewall),
        });
        // No model reads a check's output back.
        let reader = self.reads_results.clone().filter(|_| !is_check);
        let large_results = self.persistence.large_results.clone().zip(reader);
        self.pending.in_turn(&self.router.scope);
        let grant_machine = grant.machine;
        let cx = ToolCx {
            grant,
            stores_large_results: large_results.is_some(),
            traceparent: self.pending.traceparent(&written.id),
            ..self.tool_cx()
        };
        let large_results = large_results.filter(|_| tool.spec().kind != ToolKind::ReadsResults);
        let hides = (!call.used_placeholders().is_empty()).then(|| Arc::clone(&self.firewall));
        // What it shows of other programs may be spelled so that only known secrets are found in it.
        let learns = (grant_machine != MachineView::None).then(|| Arc::clone(&self.firewall));
        let call = call.expose().clone();
        let after = self.after_call(written);
        let run =
            Run { tool, call, cx, keep_before, large_results, hides, learns, after, is_check };
        self.running.spawn(box_future(run.run_call()));
    }

    /// A call that may have changed files without a diff to show for it is about to run.
    fn may_write(&mut self, spec: &ToolSpec, call: &ToolCall) {
        if self.router.plan.is_some() && !signals::is_check(spec, call) {
            self.router.signals.may_have_written();
        }
    }
}

/// The checkpoint of files to save before a call.
struct CheckpointBeforeCall {
    files: Arc<CheckpointSaver>,
    label: String,
    /// The call begins meanwhile.
    is_beside: bool,
}

/// One call, on its way through its own task.
struct Run {
    tool: Arc<dyn Tool>,
    call: ToolCall,
    cx: ToolCx,
    keep_before: Option<CheckpointBeforeCall>,
    /// The store for a large result, and the tool that reads it back.
    large_results: Option<(Arc<LargeResults>, Arc<ToolSpec>)>,
    /// Hides what its tool says of the secrets that it was handed.
    hides: Option<Arc<Firewall>>,
    /// Learns the secrets in the arguments of other programs before the call shows them.
    learns: Option<Arc<Firewall>>,
    /// The extensions that are asked once the call has run.
    after: Option<AfterCallHooks>,
    is_check: bool,
}

impl Run {
    async fn run_call(self) -> FinishedCall {
        let Self { tool, call, cx, keep_before, large_results, hides, learns, after, is_check } =
            self;
        let (id, name, stopped) = (call.id.clone(), call.name.clone(), cx.stop.clone());
        let (mut started, mut duration_ms, mut stop) = (Instant::now(), 0, None);
        let work = async {
            if let Some(firewall) = learns {
                learn_foreign_secrets(firewall).await;
            }
            let mut outcome = match keep_before {
                Some(CheckpointBeforeCall { files, label, is_beside: true }) => {
                    // The call runs in any case.
                    let kept = async { drop(files.keep_before(label).await) };
                    run_during_save(&cx.stop.clone(), kept, tool.run(call, cx)).await
                }
                Some(CheckpointBeforeCall { files, label, is_beside: false }) => {
                    match cx.stop.run_until_cancelled(files.keep_before(label)).await {
                        None => return ToolOutcome::Interrupted(String::new()),
                        Some(Err(error)) => return ToolOutcome::failure_text(error.to_string()),
                        Some(Ok(())) => started = Instant::now(),
                    }
                    tool.run(call, cx).await
                }
                None => tool.run(call, cx).await,
            };
            if let Some(firewall) = hides {
                outcome = firewall.redact_outcome(outcome);
            }
            duration_ms = to_millis(started.elapsed());
            if let Some(after) = after {
                let said = after.ask_after_tool(outcome.clone(), duration_ms);
                if let Some(said) = stopped.run_until_cancelled(said).await {
                    (outcome, stop) = said;
                }
            }
            let Some((large_results, reader)) = large_results else { return outcome };
            large_results.put_away(&reader.name, outcome).await
        };
        let outcome = AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|_panic| {
            ToolOutcome::failure_text(format!("`{name}` crashed; its work may be half done"))
        });
        FinishedCall { call: id, outcome, duration_ms, is_check, stop }
    }
}

/// Returns the end of a call that nothing has judged.
fn refuse_unjudged(call: CallId) -> Input {
    let outcome = ToolOutcome::failure_text("not run: nothing decided whether it may");
    Input::ToolEnded { call, outcome, duration_ms: 0, sandbox_denial: None, stop_after: None }
}

/// Learns the secrets in the arguments of other programs.
async fn learn_foreign_secrets(firewall: Arc<Firewall>) {
    let learned = spawn_blocking(move || drop(firewall.redact_text(&processes::command_lines())));
    // Without it the output is checked all the same.
    learned.await.ok();
}

/// Runs a call while the files are still being kept, and waits for both.
async fn run_during_save(
    stop: &CancellationToken,
    kept: impl Future<Output = ()>,
    run: impl Future<Output = ToolOutcome>,
) -> ToolOutcome {
    let (mut kept, mut run) = (pin!(kept), pin!(run));
    tokio::select! {
        biased;
        () = &mut kept => run.await,
        outcome = &mut run => {
            stop.run_until_cancelled(kept).await;
            outcome
        }
    }
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the access that the sandbox seems to have stopped.
fn sandbox_denial(outcome: &ToolOutcome) -> Option<&str> {
    match outcome {
        ToolOutcome::Failed(output) => output.report.as_ref()?.walled.as_deref(),
        ToolOutcome::Done(_) | ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => None,
    }
}
