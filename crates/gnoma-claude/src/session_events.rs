//! What happens in the session and its sub-agents, and what follows from it.

use gnoma_core::{
    CallId, Event, ToolCall,
    json_value::json,
    protocol::Request,
    session::{Inquiry, Outcome, PermissionAnswer, SessionState},
    store::SessionId,
    task::box_future,
};
use gnoma_front::{
    output::OutputClosed,
    report::{self, Exit},
};
use serde_json::Value;

use super::{
    agents::TOOL,
    message_translation::{self, EndedTurn, MessageTranslator},
    permission::{RequestedChanges, SessionCall},
    requests,
    session_driver::{SessionDriver, Turn},
    session_init_message,
};

/// A call, of the main session unless of a sub-agent's.
fn call_of(session: Option<&SessionId>, call: &CallId) -> SessionCall {
    SessionCall { session: session.map(|session| session.as_str().to_owned()), call: call.clone() }
}

impl SessionDriver {
    /// Handles an event of the main session.
    pub(super) fn on_event(&mut self, event: &Event) -> Result<(), OutputClosed> {
        self.record_event(event);
        for message in self.voice.render_event(event) {
            self.write_message(&message)?;
        }
        match event {
            Event::Started { .. } => self.has_begun()?,
            Event::PermissionAsked { call, reason, inquiry, during, .. } => {
                let is_agents = during.is_some()
                    && during.as_ref().map(CallId::as_str) == self.state.agent_call.as_deref();
                if !is_agents {
                    self.state_changed("requires_action")?;
                    self.ask_program(None, call.clone(), reason.clone(), inquiry.clone());
                }
            }
            Event::PermissionDecided { .. } => self.state_changed("running")?,
            Event::ToolStarted { call } => self.on_call_started(call),
            Event::Cost { session_micro_usd, .. } => self.enforce_budget(*session_micro_usd),
            Event::TurnEnded { outcome, rounds, usage, answer, .. } => {
                if let Some(turn) = &mut self.state.turn {
                    let (outcome, rounds, usage) = (outcome.clone(), *rounds, *usage);
                    let answer = answer.clone();
                    turn.ended = Some(EndedTurn { outcome, rounds, usage, answer });
                }
            }
            Event::State(SessionState::Closed) => return self.on_session_gone(),
            event if message_translation::is_end(event) => return self.turn_ended(),
            _ => (),
        }
        self.release_messages()
    }

    /// Takes in what later messages tell.
    pub(super) fn record_event(&mut self, event: &Event) {
        match event {
            Event::Started { cwd, tools, mode, .. } => {
                self.facts.cwd.clone_from(cwd);
                self.facts.tools.clone_from(tools);
                self.facts.mode = *mode;
            }
            // No more is news than what can be written behind a slash.
            Event::Info(info)
                if self.facts.commands != info.commands && self.state.usual == info.model =>
            {
                self.facts.commands.clone_from(&info.commands);
            }
            Event::Info(info) => {
                self.facts.commands.clone_from(&info.commands);
                self.state.window = info.window.or(self.state.window);
                if let Some(model) = &info.model {
                    let name = model.split_once('/').map_or(model.as_str(), |(_, name)| name);
                    name.clone_into(&mut self.facts.model);
                    self.voice.set_model(name);
                    self.state.usual.get_or_insert_with(|| model.clone());
                }
            }
            Event::Models { models } => self.facts.models.clone_from(models),
            Event::ModeChanged { mode } => self.facts.mode = *mode,
            Event::RoundStarted { arm, .. } => self.facts.model.clone_from(&arm.model),
            Event::Notice { text, .. } => report::print_line(format_args!("gnoma: {text}")),
            _ => (),
        }
    }

    /// The session is there: what waited for it is done.
    pub(super) fn has_begun(&mut self) -> Result<(), OutputClosed> {
        self.state.has_begun = true;
        // With another model a session begins anew, in the mode that it was opened with.
        if let (Some(mode), Some(session)) = (self.state.mode, &mut self.session)
            && mode != self.facts.mode
        {
            session.main.send_request(Request::SetMode { mode });
            self.facts.mode = mode;
        }
        if let Some(id) = self.state.initialize.take() {
            let agents = self.openable.program.agents.all_agents();
            let welcome = session_init_message::initialize_response(&self.facts, &agents);
            self.write_message(&requests::response_message(&id, Ok(welcome)))?;
        }
        for message in std::mem::take(&mut self.state.early) {
            self.on_request(message)?;
        }
        self.next_turn()
    }

    /// A call runs: whatever is asked about it from now on is another question than the one that was approved.
    fn on_call_started(&mut self, call: &ToolCall) {
        self.openable.program.permission.revoke_approval(&call_of(None, &call.id));
        if call.name == TOOL {
            self.state.agent_call = Some(call.id.as_str().to_owned());
        }
    }

    pub(super) fn enforce_budget(&mut self, micro_usd: u64) {
        let Some(most) = self.openable.flags.session.max_usd else { return };
        #[expect(clippy::cast_precision_loss, reason = "no sum is so large")]
        let usd = micro_usd as f64 / 1_000_000.0;
        if usd >= most
            && let Some(turn) = self.state.turn.as_mut().filter(|turn| !turn.over_budget)
        {
            turn.over_budget = true;
            self.cancel_turn();
        }
    }

    /// Cancels the turn that runs.
    pub(super) fn cancel_turn(&mut self) {
        if let Some(session) = &mut self.session {
            session.main.send_request(Request::Cancel);
        }
    }

    /// Asks the program for an answer to a question about a call.
    pub(super) fn ask_program(
        &mut self,
        session: Option<SessionId>,
        call: ToolCall,
        reason: String,
        inquiry: Option<Inquiry>,
    ) {
        let permission = self.openable.program.permission.clone();
        if inquiry.is_none() && permission.takes_approval(&call_of(session.as_ref(), &call.id)) {
            return self.answer_question(session.as_ref(), call.id, PermissionAnswer::Allow);
        }
        self.ways.asking.spawn(box_future(async move {
            let id = call.id.clone();
            (session, id, permission.ask_question(call, reason, inquiry).await)
        }));
    }

    pub(super) fn answer_question(
        &mut self,
        session: Option<&SessionId>,
        call: CallId,
        answer: PermissionAnswer,
    ) {
        let Some(open) = &mut self.session else { return };
        match session {
            None => open.main.send_request(Request::Answer { call, answer }),
            Some(session) => open.children.answer_question(session, call, answer),
        }
    }

    /// Handles an event of a sub-agent's session.
    pub(super) fn on_child_event(
        &mut self,
        session: &SessionId,
        event: &Event,
    ) -> Result<(), OutputClosed> {
        let (main, parent) = (&self.facts.session, &self.state.agent_call);
        let voice = self.voices.entry(session.clone());
        let voice = voice.or_insert_with(|| MessageTranslator::new(main, parent.clone(), false));
        for message in voice.render_event(event) {
            self.write_message(&message)?;
        }
        match event {
            Event::PermissionAsked { call, reason, inquiry, .. } => {
                let session = Some(session.clone());
                self.ask_program(session, call.clone(), reason.clone(), inquiry.clone());
            }
            Event::ToolStarted { call } => {
                self.openable.program.permission.revoke_approval(&call_of(Some(session), &call.id));
            }
            Event::State(SessionState::Closed) => {
                self.voices.remove(session);
            }
            _ => (),
        }
        self.release_messages()
    }

    pub(super) fn apply_wishes(&mut self, wishes: RequestedChanges) {
        if let Some(mode) = wishes.mode
            && let Err(why) = self.set_mode(&mode)
        {
            report::print_line(format_args!("gnoma: {why}"));
        }
        if wishes.interrupt {
            self.cancel_turn();
        }
    }

    /// The session is idle again.
    pub(super) fn turn_ended(&mut self) -> Result<(), OutputClosed> {
        let Some(Turn { started, ended: Some(ended), over_budget }) =
            self.state.turn.take_if(|turn| turn.ended.is_some())
        else {
            return Ok(());
        };
        self.release_all()?;
        if ended.outcome == Outcome::Cancelled && !over_budget {
            let text = "[Request interrupted by user]";
            let message = self.voice.user_message(&[json!({"type": "text", "text": text})]);
            self.write_message(&message)?;
        }
        let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = self.voice.result_message(&ended, took_ms, over_budget);
        self.state.has_failed = result.get("is_error").and_then(Value::as_bool) == Some(true);
        self.write_message(&result)?;
        for message in std::mem::take(&mut self.state.later) {
            self.on_request(message)?;
        }
        if self.state.queue.is_empty() {
            return self.state_changed("idle");
        }
        self.next_turn()
    }

    /// The session has ended though nobody wanted it to.
    pub(super) fn on_session_gone(&mut self) -> Result<(), OutputClosed> {
        let session = self.facts.session.clone();
        self.write_message(&message_translation::failure_result("the session ended", &session))?;
        self.state.exit = Some(Exit::Failed);
        Ok(())
    }

    /// Tells whether something is under way, where the program wants to know.
    pub(super) fn state_changed(&mut self, state: &'static str) -> Result<(), OutputClosed> {
        if !self.state.tells_states || self.state.told_state == state {
            return Ok(());
        }
        self.state.told_state = state;
        let mut message = self.voice.system_message("session_state_changed", "state", state.into());
        message_translation::set_field(&mut message, "sdk_host_only", true.into());
        self.write_message(&message)
    }
}
