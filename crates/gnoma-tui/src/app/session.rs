//! Handles the events of the session.

use gnoma_core::{
    Event, Message, Usage,
    message::Role,
    session::{Outcome, SessionState},
    tool::tool_label,
};
use std::{sync::Arc, time::Duration};

use super::{
    State,
    parts::{Focus, HintSubject, TurnActivity, Wait},
};
use crate::{effect::Effect, prompt::PermissionQuestion};

/// A turn that takes longer is worth a call where the terminal does not tell whether anybody looks.
const LONG_TURN: Duration = Duration::from_secs(20);
/// The tool that starts elfs.
const ELF_TOOL: &str = "elf.spawn";
/// Most calls of a turn whose names are remembered.
const MAX_CALLS: usize = 10_000;

impl State {
    pub(super) fn on_event(&mut self, event: &Event) {
        self.transcript.on_event(event);
        self.on_spending_event(event);
        match event {
            Event::Info(_) => self.info_changed(),
            Event::Models { .. } => self.look_up_window(),
            Event::State(state) => self.on_state_changed(*state),
            Event::Started { mode, .. } | Event::ModeChanged { mode } => self.facts.mode = *mode,
            Event::RoundStarted { .. }
            | Event::Routed(_)
            | Event::ArmChanged { .. }
            | Event::Conferred { .. }
            | Event::Checking { .. }
            | Event::Checked { .. } => self.on_routing(event),
            Event::Cost { .. } | Event::Usage { .. } | Event::Context(_) => self.on_usage(event),
            Event::Text { .. } => self.set_activity("writing"),
            Event::Thinking { .. } => self.set_activity("thinking"),
            Event::ToolCallDrafted { name, .. } => self.set_activity(&format!("preparing {}", tool_label(name))),
            Event::Appended(message) => self.on_message_appended(message),
            Event::PermissionAsked { .. } | Event::PermissionDecided { .. } => {
                self.on_permission(event);
            }
            Event::ToolStarted { call } => self.set_activity(&describe_activity(&call.name)),
            Event::ToolEnded { .. } => self.set_activity("working"),
            Event::Compacted { .. } | Event::Uncompacted { .. } => self.on_compaction(event),
            Event::Notice { .. } => self.end_hints(HintSubject::Compaction),
            Event::Queued { queue } => self.queue.is_now(queue),
            Event::Retrying { .. } | Event::Waiting { .. } => self.on_wait(event),
            Event::ToolProgress { .. }
            | Event::ToolCallDelta { .. }
            | Event::Continuing { .. }
            // The view has both.
            | Event::ThinkingChanged { .. }
            | Event::PlanChanged { .. }
            | Event::Unknown => (),
            Event::TurnEnded { outcome, usage, undelivered, .. } => {
                self.turn_ended(outcome, *usage, undelivered);
            }
        }
    }

    /// Takes the tokens and the cost of calls, and the fill of the context window.
    fn on_usage(&mut self, event: &Event) {
        match event {
            Event::Cost { arm, call_micro_usd, turn_micro_usd, session_micro_usd, .. } => {
                let (turn, session) = (*turn_micro_usd, *session_micro_usd);
                self.counts.record_call(&arm.to_string(), *call_micro_usd, turn, session);
            }
            Event::Usage { round, turn } => {
                self.counts.round = *round;
                self.counts.turn = *turn;
            }
            Event::Context(context) => {
                self.counts.context = *context;
                if let Some(window) = context.window {
                    self.facts.window = window;
                }
            }
            _ => (),
        }
    }

    /// Adds a permission question, or withdraws one that is decided.
    fn on_permission(&mut self, event: &Event) {
        match event {
            Event::PermissionAsked {
                call,
                reason,
                preview,
                always,
                inquiry,
                parts,
                notable,
                ..
            } => {
                let (preview, always) = (preview.clone(), always.clone());
                let question =
                    PermissionQuestion::new(call.clone(), reason.clone(), preview, always);
                let question = question.with_inquiry(inquiry.clone()).with_parts(parts.clone());
                self.add_question(question.with_notable(notable.clone()));
            }
            Event::PermissionDecided { call, allowed, reason } => {
                self.withdraw_question(call);
                let what = self.calls.get(call).map_or("a call", String::as_str);
                let verdict = if *allowed { "approved" } else { "denied" };
                self.record_decision(format!("{verdict} {what}: {reason}"));
            }
            _ => (),
        }
    }

    /// Records a compaction or its undo: the tokens of the last round no longer fill the window.
    fn on_compaction(&mut self, event: &Event) {
        match event {
            Event::Compacted { messages, .. } => {
                self.end_hints(HintSubject::Compaction);
                self.record_decision(format!("compacted {messages} messages"));
                self.set_activity("working");
            }
            _ => self.record_decision("undid the last compaction".to_owned()),
        }
        self.counts.round = Usage::default();
    }

    /// Shows for how long the model is silent, or when the next attempt begins.
    fn on_wait(&mut self, event: &Event) {
        match event {
            Event::Retrying { attempt, wait_ms, .. } => {
                let at = self.now + Duration::from_millis(*wait_ms);
                self.set_wait(Wait::Again { at, attempt: *attempt });
            }
            Event::Waiting { waited_ms, limit_ms, .. } => {
                let limit = Duration::from_millis(limit_ms.saturating_sub(*waited_ms));
                let waited = Duration::from_millis(*waited_ms);
                let since = self.now.checked_sub(waited).unwrap_or(self.now);
                self.set_wait(Wait::Silent { since, until: self.now + limit });
            }
            _ => (),
        }
    }

    /// Shows which model works, and why.
    fn on_routing(&mut self, event: &Event) {
        match event {
            Event::RoundStarted { arm, why, .. } => {
                let model = arm.to_string();
                self.record_decision(format!("called {model}: {why}"));
                self.calls_model(model);
                self.routes.why = Some(why.clone());
                self.set_activity("waiting for the model");
            }
            Event::Routed(routing) => {
                let article =
                    if routing.kind.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
                self.record_decision(format!(
                    "routed {article} {} task: {}",
                    routing.kind, routing.why
                ));
                self.routes.last = Some(routing.clone());
                self.set_activity("waiting for the model");
            }
            Event::ArmChanged { from, to, why, .. } => {
                self.record_decision(format!("switched from {from} to {to}: {why}"));
                self.calls_model(to.to_string());
                self.routes.why = Some(why.clone());
                self.set_activity("waiting for the model");
            }
            Event::Conferred { members, author, .. } => {
                self.record_decision(format!(
                    "took {author}'s answer, out of {} models",
                    members.len()
                ));
                self.facts.model = Some(author.to_string());
            }
            Event::Checking { by, .. } => self.set_activity(&format!("checking the work: {by}")),
            Event::Checked { arm, by, passed, .. } => {
                let verdict = if *passed { "passed" } else { "problems found" };
                self.record_decision(format!("{by} checked the work of {arm}: {verdict}"));
            }
            _ => (),
        }
    }

    /// This model is called from now on; how large its window is may not be known.
    pub(super) fn calls_model(&mut self, model: String) {
        if self.facts.model.as_ref() != Some(&model) {
            self.facts.window = 0;
            self.facts.model = Some(model);
            self.look_up_window();
        }
    }

    pub(super) fn look_up_window(&mut self) {
        let model = self.facts.model.as_deref();
        let known =
            self.session.view.models.iter().find(|choice| Some(choice.name.as_str()) == model);
        if let Some(window) = known.and_then(|choice| choice.window) {
            self.facts.window = window;
        }
    }

    pub(super) fn on_state_changed(&mut self, state: SessionState) {
        match state {
            SessionState::Idle => {
                self.session.is_at_rest = true;
                self.queue.is_now(&[]);
                if !self.queue.has_begun() {
                    self.running = None;
                }
                self.questions.open.clear();
            }
            SessionState::Active => {
                self.session.is_switching = false;
                if std::mem::take(&mut self.session.is_at_rest) {
                    self.counts.begin_turn();
                }
                let since = self.now;
                self.running.get_or_insert_with(|| TurnActivity {
                    since,
                    doing: "working".to_owned(),
                    is_stopping: false,
                    wait: None,
                });
            }
            SessionState::Cancelling => {
                if let Some(running) = &mut self.running {
                    running.is_stopping = true;
                }
            }
            SessionState::Closed => self.on_session_closed(),
        }
    }

    fn set_activity(&mut self, what: &str) {
        if let Some(running) = &mut self.running {
            running.wait = None;
            if running.doing != what {
                what.clone_into(&mut running.doing);
            }
        }
    }

    fn set_wait(&mut self, wait: Wait) {
        if let Some(running) = &mut self.running {
            running.wait = Some(wait);
        }
    }

    fn on_message_appended(&mut self, message: &Message) {
        match message.role() {
            Role::User => self.person_appended(message),
            Role::Assistant => {
                for call in message.tool_calls() {
                    if self.calls.len() < MAX_CALLS {
                        self.calls.insert(call.id.clone(), tool_label(&call.name).into_owned());
                    }
                }
            }
            Role::Tool => (),
        }
    }

    fn turn_ended(&mut self, outcome: &Outcome, usage: Usage, undelivered: &[Arc<Message>]) {
        self.counts.end_turn(usage);
        let went_well = matches!(outcome, Outcome::Complete { .. });
        if !went_well {
            self.hold_queue();
        }
        let was_stopped = matches!(outcome, Outcome::Cancelled);
        self.come_back(undelivered.iter().map(Arc::as_ref), was_stopped);
        self.end_hints(HintSubject::Turn);
        self.questions.open.clear();
        self.calls.clear();
        self.rescue_reason();
        let since = self.running.take().map(|running| running.since);
        let took = since.map_or(Duration::ZERO, |since| self.now.saturating_duration_since(since));
        if self.is_unseen(took) && self.queue.waiting_count() == 0 && !was_stopped {
            let what = if went_well { "is done" } else { "has stopped" };
            self.emit(Effect::Notify(format!("gnoma {what} in {}", self.facts.folder)));
        }
    }

    /// Reports whether an event that took this long is worth a call for attention.
    pub(super) fn is_unseen(&self, took: Duration) -> bool {
        match self.window.focus {
            Focus::Here => false,
            Focus::Away => true,
            Focus::Unknown => took >= LONG_TURN,
        }
    }
}

/// Describes in words what happens while a tool runs.
fn describe_activity(tool: &str) -> String {
    match tool {
        ELF_TOOL => "elfs at work".to_owned(),
        name => format!("running {}", tool_label(name)),
    }
}
