//! Runs hooks and other extensions at points of the session's life, in tasks beside the loop.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Event, Message, ToolCall, ToolOutcome,
    lifecycle::{Lifecycle, Point, PointAnswer, PointKind, PreparedPrompt},
    message::{CallId, ResultPart},
    session::{NoticeLevel, PermissionMode, StepTurn},
    task::box_future,
    tool::{ToolOutput, ToolSession},
};
use tokio::{sync::oneshot, time::timeout};

use super::{
    pending::emit_warnings,
    state::{FrontEndGone, PendingWork, Session},
};
use crate::turn::{FinishInput, Input, SeparateWork, StepCommand};

/// Points that may be told beside the conversation at once; more are not told.
pub(super) const MAX_BESIDE: usize = 32;
/// The time for which the end of a session waits for its extensions.
const LAST_WORDS: Duration = Duration::from_secs(5);

impl Session {
    /// The session begins: extensions run beside it.
    pub(super) fn begin_additions(&mut self) {
        let is_resumed = !self.turn.history().is_empty();
        if let Some(lifecycle) = self.added.lifecycle.as_ref().filter(|_| is_resumed) {
            lifecycle.on_resume(self.turn.conversation().1);
        }
        let Some(lifecycle) = self.added.listener_for(PointKind::SessionStart) else { return };
        let (answer, started) = oneshot::channel();
        let said = lifecycle.run_hooks(Point::SessionStart { is_resumed }, self.gate.rights.mode());
        self.added.beside.spawn(box_future(async move {
            let _gone = answer.send(said.await);
        }));
        self.added.started = Some(started);
    }

    /// The session has ended.
    pub(super) async fn end_additions(&mut self) {
        let notifications = std::mem::take(&mut self.added.notifications);
        let _late = timeout(LAST_WORDS, notifications.join_all()).await;
        self.added.beside.shutdown().await;
        // Also what calls have started that are over; each notices that when it is its turn.
        std::mem::take(&mut self.stop).cancel();
        tokio::task::yield_now().await;
        let telling = self.pending.take_reports();
        let _late = timeout(LAST_WORDS, telling.join_all()).await;
        if let Some(lifecycle) = self.added.listener_for(PointKind::SessionEnd) {
            let said = lifecycle.run_hooks(Point::SessionEnd, self.gate.rights.mode());
            for text in timeout(LAST_WORDS, said).await.unwrap_or_default().notices {
                let _gone = self.notify(NoticeLevel::Warning, text).await;
            }
        }
    }

    /// Makes ready what a person said.
    pub(super) fn prepare_message(&mut self, text: String) {
        let Some(lifecycle) = self.added.lifecycle.clone() else {
            return self.inbox.push_back(Input::Prepared(Box::default(), String::new()));
        };
        let mode = self.gate.rights.mode();
        let starter = self.tools.session_starter().map(|tool| tool.spec().name.clone());
        let started = self.added.started.take();
        self.wait_for(async move {
            let started = match started {
                Some(started) => started.await.unwrap_or_default(),
                None => PointAnswer::default(),
            };
            let mut prepared = lifecycle.prepare_prompt(text, mode, starter).await;
            prepared.context.splice(0..0, started.context);
            prepared.notices.splice(0..0, started.notices);
            PendingWork::Prepared(Box::new(prepared))
        });
    }

    /// Adds the prepared prompt to the inbox, once its preparation is complete.
    pub(super) fn is_prepared(&mut self, mut prepared: Box<PreparedPrompt>) {
        if let Some(model) = prepared.model.take()
            && !self.router.pin_turn(&model)
        {
            let text = format!("`{model}` is not in this session; another model answers");
            prepared.notices.push(text);
        }
        let shell = self.shell_name().unwrap_or_default();
        self.inbox.push_back(Input::Prepared(prepared, shell));
    }

    /// Begins a step of a task as a turn of its own, if no turn runs.
    pub(super) async fn begin_step(&mut self) -> Result<(), FrontEndGone> {
        if !self.turn.is_idle() {
            return Ok(());
        }
        let Some(step) = self.added.next_step.take() else { return Ok(()) };
        let StepTurn { text, command, timeout_s, failed_models, name, side_steps, .. } = step;
        self.router.failed_models = failed_models;
        // What runs side by side says nothing of the turn before: the children learn by themselves.
        let is_one = side_steps.is_empty() && !name.is_empty();
        self.router.step = is_one.then(|| name.as_str().into());
        self.notify(NoticeLevel::Info, step.announcement).await?;
        if !side_steps.is_empty() {
            // What elfs spend counts for this turn.
            self.router.begin_turn();
            let calls = side_steps.into_iter().map(|step| self.side_call(&name, step)).collect();
            self.inbox.push_back(Input::Run(SeparateWork::SideSteps(calls)));
            return Ok(());
        }
        let Some(command) = command else {
            self.pin_step(step.model, step.role).await?;
            self.inbox.push_back(Input::Say(Message::user_text(text)));
            return Ok(());
        };
        let shell = self.shell_name().unwrap_or_default();
        let command = StepCommand { line: text, command, shell, timeout_s };
        self.inbox.push_back(Input::Run(SeparateWork::Command(command)));
        Ok(())
    }

    /// The model wants to stop.
    pub(super) fn before_stop(&mut self, is_again: bool, last_words: String) {
        let Some(lifecycle) = self.added.listener_for(PointKind::BeforeStop) else {
            return self.inbox.push_back(FinishInput::MayStop(Box::default()).into());
        };
        let mode = self.gate.rights.mode();
        self.wait_for(async move {
            let point = Point::BeforeStop { is_again, last_words };
            PendingWork::Stopping(Box::new(lifecycle.run_hooks(point, mode).await))
        });
    }

    /// Tells of a point beside the conversation; what is answered changes nothing.
    pub(super) fn tell_point(&mut self, kind: PointKind, point: impl FnOnce() -> Point) {
        let Some(lifecycle) = self.added.listener_for(kind) else { return };
        while self.added.beside.try_join_next().is_some() {}
        if self.added.beside.len() >= MAX_BESIDE {
            return;
        }
        let (said, port) =
            (lifecycle.run_hooks(point(), self.gate.rights.mode()), self.pending.port());
        self.added.beside.spawn(box_future(async move {
            emit_warnings(&*port, said.await.notices);
        }));
    }

    /// Tells notification hooks of something, also if the session ends right afterwards.
    pub(super) fn notify_hooks(&mut self, text: String) {
        let Some(lifecycle) = self.added.listener_for(PointKind::Notification) else { return };
        while self.added.notifications.try_join_next().is_some() {}
        if self.added.notifications.len() >= MAX_BESIDE {
            return;
        }
        let said = lifecycle.run_hooks(Point::Notification { text }, self.gate.rights.mode());
        let port = self.pending.port();
        self.added.notifications.spawn(box_future(async move {
            emit_warnings(&*port, said.await.notices);
        }));
    }

    /// Tells of what an event of the turn means.
    pub(super) fn tell_points(&mut self, event: &Event) {
        match event {
            Event::PermissionAsked { call, .. } => {
                let text = format!("gnoma needs approval for {}", call.name);
                self.tell_point(PointKind::Notification, || Point::Notification { text });
            }
            Event::Compacted { summary, .. } => {
                let summary = summary.clone();
                self.tell_point(PointKind::AfterCompaction, || Point::AfterCompaction { summary });
            }
            Event::TurnEnded { .. } => {
                self.router.turn_pin = None;
                self.router.failed_models.clear();
                self.router.step = None;
                self.added.turn_ended();
            }
            _ => (),
        }
    }
}

/// The extensions that look at a call before it is judged.
pub(super) struct BeforeCallHooks {
    pub(super) hooks: Option<Arc<dyn Lifecycle>>,
    pub(super) asked: Option<Arc<dyn Lifecycle>>,
    pub(super) mode: PermissionMode,
    pub(super) port: Arc<dyn ToolSession>,
}

impl BeforeCallHooks {
    /// Runs the extensions before a call is judged.
    pub(super) async fn ask_before_tool(&self, call: &ToolCall) -> PointAnswer {
        let Some(hooks) = &self.hooks else { return PointAnswer::default() };
        let point = Point::BeforeTool { call: call.clone() };
        let mut answer = hooks.run_hooks(point, self.mode).await;
        emit_warnings(&*self.port, std::mem::take(&mut answer.notices));
        answer
    }

    /// Runs the extensions for a call that a person would be asked about.
    pub(super) async fn ask_permission_hooks(
        &self,
        call: &ToolCall,
        reason: String,
    ) -> PointAnswer {
        let Some(asked) = &self.asked else { return PointAnswer::default() };
        let point = Point::PermissionAsked { call: call.clone(), reason };
        let mut answer = asked.run_hooks(point, self.mode).await;
        emit_warnings(&*self.port, std::mem::take(&mut answer.notices));
        answer
    }
}

/// The extensions that look at a call after it has run.
pub(super) struct AfterCallHooks {
    pub(super) lifecycle: Arc<dyn Lifecycle>,
    pub(super) mode: PermissionMode,
    pub(super) port: Arc<dyn ToolSession>,
    /// The call as the model wrote it.
    pub(super) call: ToolCall,
}

impl AfterCallHooks {
    /// Returns the outcome of the call as the model reads it, and the reason why the turn ends after it, if it
    /// does.
    pub(super) async fn ask_after_tool(
        self,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) -> (ToolOutcome, Option<String>) {
        let outcome = Arc::new(outcome);
        let point =
            Point::AfterTool { call: self.call, outcome: Arc::clone(&outcome), duration_ms };
        if !self.lifecycle.has_listener(point.kind()) {
            drop(point);
            return (Arc::unwrap_or_clone(outcome), None);
        }
        let PointAnswer { block, output, context, stop, notices, .. } =
            self.lifecycle.run_hooks(point, self.mode).await;
        let outcome = Arc::unwrap_or_clone(outcome);
        emit_warnings(&*self.port, notices);
        let more = block.into_iter().chain(context).collect();
        (amend_outcome(outcome, output, more), stop)
    }
}

/// An outcome that says something else, or more.
fn amend_outcome(
    mut outcome: ToolOutcome,
    instead: Option<String>,
    more: Vec<String>,
) -> ToolOutcome {
    let put = |output: &mut ToolOutput| {
        if let Some(text) = instead {
            output.parts = vec![ResultPart::Text { text }];
        }
        output.parts.extend(more.into_iter().map(|text| ResultPart::Text { text }));
    };
    match &mut outcome {
        ToolOutcome::Done(output) | ToolOutcome::Failed(output) => put(output),
        ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => (),
    }
    outcome
}

impl Session {
    /// Returns the extensions that look at calls before they are judged, if there are any.
    pub(super) fn before_calls(&self) -> Option<BeforeCallHooks> {
        let hooks = self.added.listener_for(PointKind::BeforeTool);
        let asked = self.added.listener_for(PointKind::PermissionAsked);
        let (mode, port) = (self.gate.rights.mode(), self.pending.port());
        (hooks.is_some() || asked.is_some()).then_some(BeforeCallHooks { hooks, asked, mode, port })
    }

    /// Returns the extensions that look at a call after it has run, if there are any.
    pub(super) fn after_call(&self, call: &ToolCall) -> Option<AfterCallHooks> {
        let either = |kind| self.added.listener_for(kind);
        let lifecycle = either(PointKind::AfterTool).or_else(|| either(PointKind::ToolFailed))?;
        let (mode, port) = (self.gate.rights.mode(), self.pending.port());
        Some(AfterCallHooks { lifecycle, mode, port, call: call.clone() })
    }

    /// A call was refused.
    pub(super) fn tell_refused(&mut self, call: &CallId, reason: &str) {
        if let Some(call) = self.turn.open_call(call).cloned() {
            let reason = reason.to_owned();
            let point = || Point::PermissionDenied { call, reason };
            self.tell_point(PointKind::PermissionDenied, point);
        }
    }
}
