//! Calls on their way: judged, approved, run, settled. Those of an answer until the next round can begin; a check
//! of the project until it has an outcome.

use gnoma_core::{
    Event, Message, ToolCall, ToolOutcome,
    message::CallId,
    plan,
    session::{Outcome, PermissionAnswer},
    tool::CommandReport,
};

use super::{
    Phase, Turn,
    batch::{Batch, OpenQuestion},
    protocol::{Input, Verdict},
    watch::Advice,
};
use crate::{conversation_plan, effect::Effect, prompt};

impl Turn {
    pub(super) fn run_calls(&mut self, message: Option<&Message>) -> Phase {
        let calls =
            message.map(|message| message.tool_calls().cloned().collect()).unwrap_or_default();
        let mut batch = Batch::new(calls, &self.specs, &self.added.may_start);
        if !self.may_use_tools() {
            for call in batch.unfinished_calls() {
                let why = "not run: only an answer is wanted now";
                self.record_outcome(&mut batch, &call.id, ToolOutcome::failure_text(why), 0);
            }
        }
        for (call, why) in batch.unrunnable_calls(&self.specs, self.cx.limits.calls_per_round) {
            self.record_outcome(&mut batch, &call.id, ToolOutcome::failure_text(why), 0);
        }
        self.advance_batch(batch)
    }

    /// Takes a fact about one of the calls. Gives the outcome of a check that is over with it.
    pub(super) fn on_call(&mut self, batch: &mut Batch, fact: Input) -> Option<ToolOutcome> {
        match fact {
            Input::Judged(id, verdict, said) => {
                if let Some(call) = said.amended {
                    batch.amend_call(call);
                }
                self.on_verdict(batch, &id, verdict)
            }
            Input::Answered(id, answer) => match batch.open_question(&id) {
                Some(OpenQuestion::Run) => self.on_run_answer(batch, &id, answer),
                Some(OpenQuestion::RunOutside) => self.on_outside_answer(batch, &id, &answer),
                None => {
                    self.not_asked(&id);
                    None
                }
            },
            Input::ToolEnded { call, outcome, duration_ms, sandbox_denial: Some(why), .. } => {
                let held = batch.hold_outcome(&call, outcome, duration_ms)?;
                // The question first: a long reason is cut at its end.
                let question = "run it again outside the sandbox?";
                let reason = format!("{question} {why}");
                self.ask_permission(held, reason, (None, None), vec![question.to_owned()]);
                None
            }
            Input::ToolEnded { call, outcome, duration_ms, .. } if batch.is_running(&call) => {
                self.record_outcome(batch, &call, outcome, duration_ms)
            }
            _late => None,
        }
    }

    /// Says that an answer came to a question that is not open.
    pub(super) fn not_asked(&mut self, id: &CallId) {
        let text = format!("no question about the call `{id}` is open; the answer changes nothing");
        self.cx.warn(text);
    }

    fn on_verdict(
        &mut self,
        batch: &mut Batch,
        id: &CallId,
        verdict: Verdict,
    ) -> Option<ToolOutcome> {
        match verdict {
            Verdict::Allow { reason } => {
                let call = batch.mark_allowed(id)?;
                self.start_call(batch, call, reason);
                None
            }
            Verdict::Deny { reason } if batch.is_judged(id) => self.deny_call(batch, id, reason),
            Verdict::Fail { text } if batch.is_judged(id) => {
                self.record_outcome(batch, id, ToolOutcome::failure_text(text), 0)
            }
            Verdict::Deny { .. } | Verdict::Fail { .. } => None,
            Verdict::Ask { reason, preview, always, dangers } => {
                let call = batch.mark_asked(id)?;
                self.ask_permission(call, reason, (preview, always), dangers);
                None
            }
        }
    }

    /// Acts on the answer to the question whether a call may run.
    fn on_run_answer(
        &mut self,
        batch: &mut Batch,
        id: &CallId,
        answer: PermissionAnswer,
    ) -> Option<ToolOutcome> {
        let rule = match answer {
            PermissionAnswer::Deny { reason } | PermissionAnswer::Text { text: reason } => {
                let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
                return self.deny_call(batch, id, format!("denied by the user{why}"));
            }
            PermissionAnswer::Part { .. } => {
                let why = "denied: a part of it cannot be approved".to_owned();
                return self.deny_call(batch, id, why);
            }
            PermissionAnswer::Allow => None,
            PermissionAnswer::Always => Some(None),
            PermissionAnswer::Rule { rule, .. } => Some(Some(rule)),
        };
        let call = batch.mark_granted(id)?;
        if let Some(rule) = rule {
            self.cx.push(Effect::Remember { call: id.clone(), rule });
        }
        self.start_call(batch, call, "allowed by the user".to_owned());
        None
    }

    /// Acts on the answer to the question whether a call may run again outside the sandbox.
    fn on_outside_answer(
        &mut self,
        batch: &mut Batch,
        id: &CallId,
        answer: &PermissionAnswer,
    ) -> Option<ToolOutcome> {
        match answer {
            PermissionAnswer::Deny { .. }
            | PermissionAnswer::Part { .. }
            | PermissionAnswer::Text { .. } => {
                self.emit_decision(id, false, "denied by the user".to_owned());
                let (outcome, duration_ms) = batch.given_up(id);
                self.record_outcome(batch, id, outcome, duration_ms)
            }
            PermissionAnswer::Allow | PermissionAnswer::Always | PermissionAnswer::Rule { .. } => {
                let call = batch.mark_granted(id)?;
                self.emit_decision(id, true, "allowed by the user, outside the sandbox".to_owned());
                self.cx.push(Effect::LetOutside(id.clone()));
                self.cx.push(run_effect(batch, call));
                None
            }
        }
    }

    fn deny_call(&mut self, batch: &mut Batch, id: &CallId, reason: String) -> Option<ToolOutcome> {
        self.emit_decision(id, false, reason.clone());
        self.record_outcome(batch, id, ToolOutcome::Denied(reason), 0)
    }

    /// Takes the outcome of a call; a second one for the same call is ignored. Returns it if it is a check's.
    pub(super) fn record_outcome(
        &mut self,
        batch: &mut Batch,
        id: &CallId,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) -> Option<ToolOutcome> {
        let call = batch.open_call(id)?.clone();
        let (mut diff, mut command) = (None, None);
        let mut advice = Vec::new();
        if let ToolOutcome::Done(output) | ToolOutcome::Failed(output) = &outcome {
            command = output.report.as_ref().map(CommandReport::to_end);
            diff = output.diff.clone().filter(|_| !batch.is_check);
        }
        if !batch.is_check {
            let spec = self.specs.get(&call.name).map(AsRef::as_ref);
            advice = self.watch.record_call(&call, spec, &outcome);
            if let (Some(spec), ToolOutcome::Done(_)) = (spec, &outcome)
                && conversation_plan::is_plan_tool(spec.kind)
                && let Ok(steps) = plan::parse_plan(&call.arguments)
            {
                self.cx.emit(Event::PlanChanged { steps });
            }
        }
        let check = batch.is_check.then(|| outcome.clone());
        if matches!(outcome, ToolOutcome::Failed(_) | ToolOutcome::Denied(_)) {
            batch.note_failure(id);
        }
        let mut result = outcome.into_result(&call);
        add_advice(advice, &mut result, &mut self.notes);
        batch.record_result(id, result.clone());
        self.cx.emit(Event::ToolEnded { call, result, diff, duration_ms, command });
        check
    }

    /// Starts the calls that may start now; if none is left, continues with the next round.
    pub(super) fn advance_batch(&mut self, mut batch: Batch) -> Phase {
        for (call, why) in batch.pointless_calls() {
            self.record_outcome(&mut batch, &call.id, ToolOutcome::failure_text(why), 0);
        }
        self.cx.effects.extend(batch.take_startable().into_iter().map(Effect::Judge));
        if batch.has_steps() {
            return self.advance_side_steps(batch);
        }
        if !batch.is_over() {
            return Phase::Tools(batch);
        }
        self.append_results(batch);
        if let Some(outcome) = self.is_stopped_after() {
            return self.deliver_or_check(outcome);
        }
        if self.wants_shape() {
            return self.ask_again("a tool was called instead".to_owned());
        }
        if let Some(what) = self.stuck.take() {
            return self.deliver_or_check(Outcome::Stuck { what });
        }
        if let Some(what) = self.watch.take_stuck_reason() {
            self.cx.warn(format!("{what}; asking the model for its answer"));
            self.notes.push(prompt::LAST_WORDS.to_owned());
            self.stuck = Some(what);
        }
        self.call_model()
    }

    /// Asks a person whether a call may run. `always` is the rule that the answer "always" would add.
    fn ask_permission(
        &mut self,
        call: ToolCall,
        reason: String,
        (preview, always): (Option<String>, Option<String>),
        dangers: Vec<String>,
    ) {
        self.cx.emit(Event::PermissionAsked {
            call,
            reason,
            preview,
            always,
            inquiry: None,
            during: None,
            parts: Vec::new(),
            notable: Vec::new(),
            dangers,
        });
    }

    pub(super) fn emit_decision(&mut self, id: &CallId, allowed: bool, reason: String) {
        self.cx.emit(Event::PermissionDecided { call: id.clone(), allowed, reason });
    }

    fn start_call(&mut self, batch: &Batch, call: ToolCall, reason: String) {
        self.emit_decision(&call.id, true, reason);
        self.cx.emit(Event::ToolStarted { call: call.clone() });
        self.cx.push(run_effect(batch, call));
    }
}

fn run_effect(batch: &Batch, call: ToolCall) -> Effect {
    if batch.is_check { Effect::RunCheck(call) } else { Effect::RunTool(call) }
}

fn add_advice(advice: Vec<Advice>, result: &mut gnoma_core::ToolResult, notes: &mut Vec<String>) {
    for advice in advice {
        match advice {
            Advice::InResult(text) => result.parts.push(gnoma_core::ResultPart::Text { text }),
            Advice::NextRound(text) => notes.push(text),
        }
    }
}
