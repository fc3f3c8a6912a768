//! One session of the client: follows it, and says what is to be told, asked and answered. Waits for
//! nothing and sends nothing itself.

mod state_updates;

use std::sync::Arc;

use gnoma_core::{
    CallId, Event, Message, Role,
    info::CommandInfo,
    json_value::json,
    protocol::{Follower, Question, Reply, Request, RequestError, ServerMessage, SessionView},
    session::{NoticeLevel, Outcome, SessionState},
    store::SessionId,
};
use serde_json::Value;

use crate::{
    config::{self, PinnedModel},
    effect::{SessionEffect, push_updates},
    error::RpcError,
    params::ClientCapabilities,
    permission,
    turns::Turns,
    updates::{Translator, plan_update},
    wire::RpcId,
};

/// Messages of the past that are read at once.
const MAX_PAGE: u32 = 1_000;
/// gnoma's own command, behind which the protocol has no other place for it.
pub(crate) const COMPACT: &str = "compact";
/// Runs, lists and resumes tasks.
pub(crate) const TASK: &str = "task";

/// The way in which a session came to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionEntryMode {
    /// The session is new.
    New,
    /// The session continues, and the client wants to be told its past.
    Load,
    /// The session continues, and the client knows its past.
    Resume,
    /// The session is a copy of one whose past the client knows.
    Fork,
}

impl SessionEntryMode {
    /// Reports whether the client does not know the id of the session yet.
    fn has_new_id(self) -> bool {
        matches!(self, Self::New | Self::Fork)
    }
}

/// The stage that a session has reached.
#[derive(Debug)]
enum Stage {
    /// The session's models and tools are not known yet.
    Starting { request: RpcId, how: SessionEntryMode },
    /// The session's past is being read, the last page first.
    Reading { request: RpcId, pages: Vec<Vec<Arc<Message>>> },
    /// The client has it.
    Open,
    /// The session has ended.
    Ended,
}

/// A session as the client has it.
#[derive(Debug)]
pub(crate) struct ClientSession {
    id: SessionId,
    pub view: SessionView,
    follower: Follower,
    pub translator: Translator,
    pub turns: Turns,
    pub pinned: PinnedModel,
    stage: Stage,
    /// The events that happen while the past is read.
    held: Vec<Event>,
    /// The problems that occurred while the session was opened.
    warnings: Vec<String>,
    asks_by_form: bool,
    commands: Vec<CommandInfo>,
    usage: Option<Value>,
    /// The options that can be chosen, as the client was last told.
    told_options: Value,
    title: String,
    /// The number of requests about tasks that wait for their answer.
    task_requests: usize,
    /// The last notice while one waits. It may be the end of a run, which the answer to the request says, too.
    held_notice: Option<Event>,
}

impl ClientSession {
    /// A session that was opened for a request, which is answered once there is something to see.
    pub(crate) fn new(
        id: SessionId,
        request: RpcId,
        how: SessionEntryMode,
        client: &ClientCapabilities,
    ) -> Self {
        Self {
            id,
            view: SessionView::default(),
            follower: Follower::default(),
            translator: Translator::new(client.clone()),
            turns: Turns::default(),
            pinned: PinnedModel::default(),
            stage: Stage::Starting { request, how },
            held: Vec::new(),
            warnings: Vec::new(),
            asks_by_form: client.supports_forms(),
            commands: Vec::new(),
            usage: None,
            told_options: Value::Null,
            title: String::new(),
            task_requests: 0,
            held_notice: None,
        }
    }

    /// Reports whether the client may use the session.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open)
    }

    /// Reports whether the session has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Ended)
    }

    /// Reports whether the session waits for an answer about a call.
    pub(crate) fn has_question(&self, call: &CallId) -> bool {
        self.view.questions().any(|question| question.call.id == *call)
    }

    /// Takes in what the host tells of it.
    pub(crate) fn on_host_message(&mut self, message: ServerMessage, fx: &mut Vec<SessionEffect>) {
        let mut is_past = false;
        match &message {
            ServerMessage::Snapshot(view) => {
                if self.follower.has_begun() {
                    self.turns.mark_accepted_begun();
                } else {
                    // What has happened before is told from the messages, or known.
                    is_past =
                        !matches!(self.stage, Stage::Starting { how: SessionEntryMode::New, .. });
                }
                self.view = SessionView::clone(view);
            }
            ServerMessage::Event(envelope) => self.view.apply_envelope(envelope),
            ServerMessage::Reply { .. } | ServerMessage::Process(_) => (),
        }
        fx.extend(self.follower.apply_message(message).map(SessionEffect::Catch));
        while let Some(event) = self.follower.next_event() {
            if !is_past || is_current(&event) {
                self.on_event(event, fx);
            }
        }
    }

    /// Takes in messages that were missed.
    pub(crate) fn on_caught_up(
        &mut self,
        result: Result<Reply, RequestError>,
        fx: &mut Vec<SessionEffect>,
    ) {
        match self.follower.apply_reply(result) {
            Ok(next) => fx.extend(next.map(SessionEffect::Catch)),
            Err(error) => {
                let mut out = Vec::new();
                self.translator
                    .push_remark(&format!("Some of what happened is not shown: {error}"), &mut out);
                push_updates(out, fx);
            }
        }
        while let Some(event) = self.follower.next_event() {
            self.on_event(event, fx);
        }
    }

    fn on_event(&mut self, event: Event, fx: &mut Vec<SessionEffect>) {
        match &self.stage {
            Stage::Open => self.on_live_event(&event, fx),
            Stage::Starting { .. } => self.on_starting_event(event, fx),
            Stage::Reading { .. } => self.held.push(event),
            Stage::Ended => (),
        }
    }

    fn on_starting_event(&mut self, event: Event, fx: &mut Vec<SessionEffect>) {
        match event {
            Event::Started { cwd, .. } => {
                self.translator.work_in(&cwd);
                let Stage::Starting { request, how } = &self.stage else { return };
                let (request, how) = (request.clone(), *how);
                match how {
                    SessionEntryMode::Load => self.read_past(request, fx),
                    SessionEntryMode::New | SessionEntryMode::Resume | SessionEntryMode::Fork => {
                        self.finish_opening(request, how, fx);
                    }
                }
            }
            Event::State(SessionState::Closed) => self.not_opened(fx),
            Event::Notice { level, text } => {
                if level == NoticeLevel::Warning {
                    self.warnings.push(text.clone());
                }
                self.held.push(Event::Notice { level, text });
            }
            event => self.held.push(event),
        }
    }

    /// The session cannot be followed.
    pub(crate) fn not_attached(&mut self, error: RequestError, fx: &mut Vec<SessionEffect>) {
        if let Stage::Starting { request, .. } = &self.stage {
            fx.push(SessionEffect::Answer(request.clone(), Err(error.into())));
            self.stage = Stage::Ended;
        }
    }

    fn not_opened(&mut self, fx: &mut Vec<SessionEffect>) {
        let Stage::Starting { request, .. } = &self.stage else { return };
        let error = match &self.view.info.found {
            Some(_) => RpcError::new(
                RpcError::AUTH_REQUIRED,
                "no provider is set up; run `gnoma` at a terminal, or set a provider's key in the environment",
            ),
            None if self.warnings.is_empty() => {
                RpcError::new(RpcError::INTERNAL, "the session could not be opened")
            }
            None => RpcError::new(RpcError::INTERNAL, self.warnings.join(". ")),
        };
        fx.push(SessionEffect::Answer(request.clone(), Err(error)));
        self.stage = Stage::Ended;
    }

    /// The client loads or resumes a session that it has already.
    pub(crate) fn open_again(
        &mut self,
        request: RpcId,
        how: SessionEntryMode,
        fx: &mut Vec<SessionEffect>,
    ) {
        match (&self.stage, how) {
            (Stage::Open, SessionEntryMode::Load) => self.read_past(request, fx),
            (
                Stage::Open,
                SessionEntryMode::New | SessionEntryMode::Resume | SessionEntryMode::Fork,
            ) => self.finish_opening(request, how, fx),
            (Stage::Starting { .. } | Stage::Reading { .. } | Stage::Ended, _) => {
                let text = "the session is already being opened";
                fx.push(SessionEffect::Answer(
                    request,
                    Err(RpcError::new(RpcError::INTERNAL, text)),
                ));
            }
        }
    }

    /// Tells the past, and answers the request when that is done.
    fn read_past(&mut self, request: RpcId, fx: &mut Vec<SessionEffect>) {
        let before = self.view.messages;
        self.stage = Stage::Reading { request, pages: Vec::new() };
        fx.push(SessionEffect::Page(Request::History { before: Some(before), max: MAX_PAGE }));
    }

    /// Takes in a page of the past.
    pub(crate) fn on_history_page(
        &mut self,
        result: Result<Reply, RequestError>,
        fx: &mut Vec<SessionEffect>,
    ) {
        let Stage::Reading { request, pages } = &mut self.stage else { return };
        match result {
            Ok(Reply::History { first, messages, .. }) => {
                let is_all = first == 0 || messages.is_empty();
                pages.push(messages);
                if !is_all {
                    let next = Request::History { before: Some(first), max: MAX_PAGE };
                    return fx.push(SessionEffect::Page(next));
                }
                let (request, pages) = (request.clone(), std::mem::take(pages));
                let mut out = Vec::new();
                for message in pages.into_iter().rev().flatten() {
                    self.translator.replay_message(&message, &mut out);
                }
                self.translator.calls.end_all(&mut out);
                push_updates(out, fx);
                self.finish_opening(request, SessionEntryMode::Load, fx);
            }
            Ok(_) => {
                let text = "the conversation could not be read";
                let answer = Err(RpcError::new(RpcError::INTERNAL, text));
                fx.push(SessionEffect::Answer(request.clone(), answer));
                self.stage = Stage::Open;
            }
            Err(error) => {
                fx.push(SessionEffect::Answer(request.clone(), Err(error.into())));
                self.stage = Stage::Open;
            }
        }
    }

    /// The client has the session from now on.
    fn finish_opening(
        &mut self,
        request: RpcId,
        how: SessionEntryMode,
        fx: &mut Vec<SessionEffect>,
    ) {
        self.stage = Stage::Open;
        self.commands.clear();
        self.told_options = self.options();
        let mut opened = self.opened_json();
        if how.has_new_id() {
            opened["sessionId"] = json!(self.id.as_str());
        }
        fx.push(SessionEffect::Answer(request, Ok(opened)));
        self.tell_commands(fx);
        self.tell_usage(fx);
        if how != SessionEntryMode::New && !self.view.plan.is_empty() {
            fx.push(SessionEffect::Update(plan_update(&self.view.plan)));
        }
        for event in std::mem::take(&mut self.held) {
            self.on_live_event(&event, fx);
        }
    }

    /// Describes the state of the session: its modes and its options.
    fn opened_json(&self) -> Value {
        json!({ "modes": config::modes_json(self.view.mode), "configOptions": self.options() })
    }

    /// Returns the options that can be chosen.
    pub(crate) fn options(&self) -> Value {
        config::options_json(&self.view, &self.pinned)
    }

    /// Holds notices back from now on: a request about tasks waits for its answer.
    pub(crate) fn begin_task_request(&mut self) {
        self.task_requests += 1;
    }

    /// Tells the notice that is held back: a request about tasks is about to be answered.
    pub(crate) fn end_task_request(&mut self, fx: &mut Vec<SessionEffect>) {
        self.task_requests = self.task_requests.saturating_sub(1);
        if let Some(notice) = self.held_notice.take() {
            self.tell_event(&notice, fx);
        }
    }

    /// Answers a request about tasks with this text. A notice of the same text is dropped.
    pub(crate) fn answer_task_request(&mut self, answer: &str, fx: &mut Vec<SessionEffect>) {
        let is_answer =
            |it: &mut Event| matches!(&*it, Event::Notice { text, .. } if text == answer);
        drop(self.held_notice.take_if(is_answer));
        self.end_task_request(fx);
        let mut out = Vec::new();
        self.translator.push_answer(answer, &mut out);
        push_updates(out, fx);
    }

    fn on_live_event(&mut self, event: &Event, fx: &mut Vec<SessionEffect>) {
        if let Some(notice) = self.held_notice.take() {
            self.tell_event(&notice, fx);
        }
        if self.task_requests > 0 && matches!(event, Event::Notice { level: NoticeLevel::Info, .. })
        {
            self.held_notice = Some(event.clone());
        } else {
            self.tell_event(event, fx);
        }
    }

    fn tell_event(&mut self, event: &Event, fx: &mut Vec<SessionEffect>) {
        let mut out = Vec::new();
        let choices = self.view.models.iter().filter(|choice| choice.arm.is_some()).count();
        match event {
            Event::State(SessionState::Idle | SessionState::Closed) => {
                self.translator.calls.end_all(&mut out);
            }
            Event::Appended(message)
                if message.role() == Role::User && !self.turns.is_waited_for() =>
            {
                self.translator.push_user_message(message, &mut out);
            }
            Event::TurnEnded { outcome, .. } => self.turn_ended(outcome, &mut out),
            event => self.translator.push_event(event, choices, &mut out),
        }
        push_updates(out, fx);
        self.tell_state(event, fx);
        let is_idle = self.view.state == SessionState::Idle;
        let answers = self.turns.on_event(event, is_idle);
        fx.extend(answers.into_iter().map(|(id, result)| SessionEffect::Answer(id, result)));
        match event {
            // Once the first words are there, and before the turn is over.
            Event::RoundStarted { round: 1, .. } => fx.push(SessionEffect::Title),
            Event::State(SessionState::Closed) => self.stage = Stage::Ended,
            _ => (),
        }
    }

    fn turn_ended(&mut self, outcome: &Outcome, out: &mut Vec<Value>) {
        match outcome {
            Outcome::Stuck { what } => {
                let text = format!("Stopped without progress: {what}");
                self.translator.push_remark(&text, out);
            }
            // A request that waits for the turn gets the error as its answer.
            Outcome::Failed { error, .. } if !self.turns.is_waited_for() => {
                self.translator.push_remark(&error.to_string(), out);
            }
            Outcome::Complete { .. }
            | Outcome::Cancelled
            | Outcome::RoundLimit { .. }
            | Outcome::Unfit { .. }
            | Outcome::Failed { .. } => (),
        }
    }

    /// Tells what is no part of the conversation.
    fn tell_state(&mut self, event: &Event, fx: &mut Vec<SessionEffect>) {
        match event {
            Event::Info(_) => self.tell_commands(fx),
            Event::Models { .. } | Event::ThinkingChanged { .. } => self.tell_options(fx),
            Event::ModeChanged { mode } => {
                fx.push(SessionEffect::Update(json!({
                    "sessionUpdate": "current_mode_update", "currentModeId": mode.name(),
                })));
                self.tell_options(fx);
            }
            Event::Usage { .. }
            | Event::Cost { .. }
            | Event::Compacted { .. }
            | Event::Context(_) => {
                self.tell_usage(fx);
            }
            Event::PermissionAsked { .. } => self.ask_client(event, fx),
            Event::PermissionDecided { call, allowed, .. } => {
                fx.push(SessionEffect::Withdraw(call.clone()));
                let mut out = Vec::new();
                self.translator.calls.close_question(call, *allowed, &mut out);
                push_updates(out, fx);
            }
            _ => (),
        }
    }

    fn ask_client(&mut self, event: &Event, fx: &mut Vec<SessionEffect>) {
        let Some(question) = Question::from_event(event) else { return };
        let mut out = Vec::new();
        let (id, forms) = (self.id.as_str(), self.asks_by_form);
        let asking =
            permission::build_request(id, &question, forms, &mut self.translator, &mut out);
        push_updates(out, fx);
        fx.push(SessionEffect::Ask(Box::new(asking)));
    }

    /// Shows the outputs of running calls that have grown.
    pub(crate) fn show_output(&mut self, fx: &mut Vec<SessionEffect>) {
        let mut out = Vec::new();
        self.translator.calls.show_output(&mut out);
        push_updates(out, fx);
    }
}

/// Reports whether an event of a first snapshot describes the session's current state, and not how the session came
/// to it.
fn is_current(event: &Event) -> bool {
    matches!(
        event,
        Event::Started { .. }
            | Event::Info(_)
            | Event::State(_)
            | Event::RoundStarted { .. }
            | Event::Text { .. }
            | Event::ToolCallDrafted { .. }
            | Event::ToolStarted { .. }
            | Event::PermissionAsked { .. }
    )
}
