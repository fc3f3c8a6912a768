//! The calls of an answer: judged, run, answered, until the next round can begin.

use gnoma_core::{
    Event, Message, ToolCall, ToolOutcome,
    message::CallId,
    session::{NoticeLevel, Outcome, PermissionAnswer},
};

use super::{Batch, Effect, Effects, Phase, Turn, Verdict, watch::Advice};
use crate::prompt;

impl Turn {
    pub(super) fn run_calls(&mut self, message: Option<&Message>, fx: &mut Effects) -> Phase {
        let calls =
            message.map(|message| message.tool_calls().cloned().collect()).unwrap_or_default();
        let mut batch = Batch::new(calls, &self.specs);
        if !self.may_use_tools() {
            for call in batch.unfinished() {
                let why = "not run: only an answer is wanted any more";
                self.settle(&mut batch, &call.id, ToolOutcome::failed(why), 0, fx);
            }
        }
        for (call, why) in batch.refuse(&self.specs, self.limits.calls_per_round) {
            self.settle(&mut batch, &call.id, ToolOutcome::failed(why), 0, fx);
        }
        self.advance(batch, fx)
    }

    pub(super) fn judged(
        &mut self,
        mut batch: Batch,
        id: &CallId,
        verdict: Verdict,
        fx: &mut Effects,
    ) -> Phase {
        match verdict {
            Verdict::Allow { reason } => {
                if let Some(call) = batch.allow(id) {
                    run(call, reason, fx);
                }
            }
            Verdict::Deny { reason } => {
                if batch.is_open(id) {
                    self.refuse(&mut batch, id, reason, fx);
                }
            }
            Verdict::Ask { reason, preview, always } => {
                if let Some(call) = batch.ask(id) {
                    let asked = Event::PermissionAsked { call, reason, preview, always };
                    fx.push(Effect::Emit(asked));
                }
            }
        }
        self.advance(batch, fx)
    }

    pub(super) fn decided(
        &mut self,
        mut batch: Batch,
        id: &CallId,
        answer: PermissionAnswer,
        fx: &mut Effects,
    ) -> Phase {
        match answer {
            PermissionAnswer::Allow | PermissionAnswer::Always | PermissionAnswer::Rule { .. } => {
                if let Some(call) = batch.grant(id) {
                    run(call, "allowed by the user".to_owned(), fx);
                }
            }
            PermissionAnswer::Deny { reason } => {
                if batch.is_asked(id) {
                    let reason = if reason.is_empty() {
                        "refused by the user".to_owned()
                    } else {
                        format!("refused by the user: {reason}")
                    };
                    self.refuse(&mut batch, id, reason, fx);
                }
            }
        }
        self.advance(batch, fx)
    }

    pub(super) fn refuse(
        &mut self,
        batch: &mut Batch,
        id: &CallId,
        reason: String,
        fx: &mut Effects,
    ) {
        let call = id.clone();
        let event = Event::PermissionDecided { call, allowed: false, reason: reason.clone() };
        fx.push(Effect::Emit(event));
        self.settle(batch, id, ToolOutcome::Denied(reason), 0, fx);
    }

    /// Takes the outcome of a call. A second one for the same call is nothing.
    pub(super) fn settle(
        &mut self,
        batch: &mut Batch,
        id: &CallId,
        outcome: ToolOutcome,
        duration_ms: u64,
        fx: &mut Effects,
    ) {
        let Some(call) = batch.open_call(id) else {
            return;
        };
        let diff = match &outcome {
            ToolOutcome::Done(output) | ToolOutcome::Failed(output) => output.diff.clone(),
            ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => None,
        };
        let spec = self.specs.get(&call.name).map(AsRef::as_ref);
        let advice = self.watch.ran(call, spec, &outcome);
        let mut result = outcome.into_result(call);
        advise(advice, &mut result, &mut self.notes);
        fx.push(Effect::Emit(Event::ToolEnded { result: result.clone(), diff, duration_ms }));
        batch.close(id, result);
    }

    /// Starts the calls that may start now; when none is left, goes on to the next round.
    pub(super) fn advance(&mut self, mut batch: Batch, fx: &mut Effects) -> Phase {
        fx.extend(batch.startable().into_iter().map(Effect::Judge));
        if !batch.is_over() {
            return Phase::Tools(batch);
        }
        self.append_results(batch, fx);
        if let Some(what) = self.stuck.take() {
            return self.end(Outcome::Stuck { what }, fx);
        }
        if let Some(what) = self.watch.stuck() {
            let text = format!("{what}; the model is asked for its answer");
            fx.push(Effect::Emit(Event::Notice { level: NoticeLevel::Warning, text }));
            self.notes.push(prompt::LAST_WORDS.to_owned());
            self.stuck = Some(what);
        }
        self.call_model(1, fx)
    }
}

fn run(call: ToolCall, reason: String, fx: &mut Effects) {
    let id = call.id.clone();
    fx.push(Effect::Emit(Event::PermissionDecided { call: id, allowed: true, reason }));
    fx.push(Effect::Emit(Event::ToolStarted { call: call.clone() }));
    fx.push(Effect::RunTool(call));
}

fn advise(advice: Vec<Advice>, result: &mut gnoma_core::ToolResult, notes: &mut Vec<String>) {
    for advice in advice {
        match advice {
            Advice::InResult(text) => result.parts.push(gnoma_core::ResultPart::Text { text }),
            Advice::NextRound(text) => notes.push(text),
        }
    }
}
