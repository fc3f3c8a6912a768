//! A session as a front end sees it: the fold of its events.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::{Envelope, Epoch, Position, Question, Recent, RunningTurn, recent};
use crate::{
    info::{Choice, SessionInfo},
    message::ModelRef,
    plan::PlanStep,
    session::{ContextUse, Event, PermissionMode, SessionState},
    store::SessionId,
    thinking::ThinkingMode,
    usage::Usage,
};

/// A session as its events describe it. Its size does not grow with the conversation: it has only
/// the ends of lists and texts, and [`Request::History`](super::Request::History) reads what is
/// older.
///
/// A pure fold: applying the same envelopes in the same order always gives an equal view, even if
/// it starts from another view instead of the envelopes before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionView {
    /// The session.
    pub session: SessionId,
    /// Which life of it.
    pub epoch: Epoch,
    /// The session that started this one, if it is a child.
    pub parent: Option<SessionId>,
    /// Number of the last envelope that was applied; 0 before the first.
    pub seq: u64,
    /// When that was, in milliseconds since 1970.
    pub at_ms: i64,
    /// Folder the tools work in.
    pub folder: String,
    /// Names of the tools on offer.
    pub tools: Vec<String>,
    /// Which tools need approval before they run.
    pub mode: PermissionMode,
    /// How much models think, if that was set.
    #[serde(default)]
    pub thinking: Option<ThinkingMode>,
    /// The plan of the work; empty if there is none.
    #[serde(default)]
    pub plan: Vec<PlanStep>,
    /// Whether a turn runs.
    pub state: SessionState,
    /// Facts about it that front ends show.
    pub info: SessionInfo,
    /// The models that can be chosen, as far as they are known.
    pub models: Vec<Choice>,
    /// Messages of the conversation.
    pub messages: u64,
    /// Who was called last.
    pub arm: Option<ModelRef>,
    /// Tokens of the last call.
    pub last_call: Usage,
    /// How full the context window is.
    #[serde(default)]
    pub context: ContextUse,
    /// Tokens of all calls of this epoch.
    pub usage: Usage,
    /// Micro-dollars of all calls of this epoch whose price is known.
    pub micro_usd: u64,
    /// The price of some of these calls is not known, so that they cost more.
    #[serde(default)]
    pub is_cost_partial: bool,
    /// The turn that runs.
    pub turn: Option<RunningTurn>,
    /// Questions that wait for a person while no turn runs: those of children that continue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Question>,
    /// What happened last, except for the pieces of answers and outputs.
    pub recent: VecDeque<Recent>,
}

/// How a session is, in few words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Status {
    /// The session.
    pub session: SessionId,
    /// Whether a turn runs.
    pub state: SessionState,
    /// How much is asked before tools run.
    pub mode: PermissionMode,
    /// Who was called last.
    pub arm: Option<ModelRef>,
    /// Messages of the conversation.
    pub messages: u64,
    /// Tokens in the context window.
    pub context_tokens: u64,
    /// Micro-dollars of all calls of this epoch whose price is known.
    pub micro_usd: u64,
    /// Questions that wait for a person.
    pub questions: usize,
    /// Messages queued until the next safe boundary.
    pub queued: usize,
    /// Calls that run.
    pub running: Vec<String>,
}

impl SessionView {
    /// The view of a session in which nothing has happened yet.
    #[must_use]
    pub fn new(session: SessionId, epoch: Epoch, parent: Option<SessionId>) -> Self {
        Self { session, epoch, parent, ..Self::default() }
    }

    /// The position in the log that the view has reached.
    #[must_use]
    pub fn position(&self) -> Position {
        Position { epoch: self.epoch, seq: self.seq }
    }

    /// Applies the next envelope. One that was already applied, or is of another epoch, changes
    /// nothing.
    pub fn apply_envelope(&mut self, envelope: &Envelope) {
        if envelope.epoch != self.epoch || envelope.seq <= self.seq {
            return;
        }
        (self.seq, self.at_ms) = (envelope.seq, envelope.at_ms);
        self.apply_event(&envelope.event, envelope.at_ms);
        recent::push_recent(&mut self.recent, envelope);
    }

    /// Applies an event without a position in the log.
    fn apply_event(&mut self, event: &Event, at_ms: i64) {
        match event {
            Event::Started { cwd, tools, mode, messages, .. } => {
                self.folder.clone_from(cwd);
                self.tools.clone_from(tools);
                (self.mode, self.messages) = (*mode, *messages);
            }
            Event::Info(info) => self.info = SessionInfo::clone(info),
            Event::Models { models } => self.models.clone_from(models),
            Event::State(state) => self.apply_state(*state, at_ms),
            Event::ModeChanged { mode } => self.mode = *mode,
            Event::PlanChanged { steps } => self.plan.clone_from(steps),
            Event::ThinkingChanged { thinking } => self.thinking = *thinking,
            Event::Appended(_) => self.messages += 1,
            Event::RoundStarted { arm, .. } => self.arm = Some(arm.clone()),
            Event::Usage { round, .. } => {
                self.last_call = *round;
                self.usage += *round;
            }
            Event::TurnEnded { usage, .. } => {
                // What calls took that were stopped is told with the end alone.
                let told = self.turn.as_ref().map_or_else(Usage::default, |turn| turn.usage);
                self.usage += *usage;
                self.usage -= told;
            }
            Event::Cost { call_micro_usd, session_micro_usd, .. } => {
                self.micro_usd = *session_micro_usd;
                self.is_cost_partial |= call_micro_usd.is_none();
            }
            Event::Compacted { .. } => self.last_call = Usage::default(),
            Event::Context(context) => self.context = *context,
            Event::PermissionAsked { .. } if self.turn.is_none() => {
                self.asked.extend(Question::from_event(event));
            }
            Event::PermissionDecided { call, .. } => self.asked.retain(|it| it.call.id != *call),
            _ => (),
        }
        if let Some(turn) = &mut self.turn {
            turn.apply_event(event);
        }
    }

    fn apply_state(&mut self, state: SessionState, at_ms: i64) {
        self.state = state;
        match state {
            SessionState::Active => {
                let questions = std::mem::take(&mut self.asked);
                let begun = RunningTurn { started_ms: at_ms, questions, ..RunningTurn::default() };
                self.turn = Some(begun);
            }
            SessionState::Cancelling => (),
            SessionState::Idle | SessionState::Closed => {
                self.turn = None;
                self.asked.clear();
            }
        }
    }

    /// The questions that wait for a person.
    pub fn questions(&self) -> impl Iterator<Item = &Question> {
        self.turn.iter().flat_map(|turn| &turn.questions).chain(&self.asked)
    }

    /// How the session is, in few words.
    #[must_use]
    pub fn status(&self) -> Status {
        let turn = self.turn.as_ref();
        Status {
            session: self.session.clone(),
            state: self.state,
            mode: self.mode,
            arm: self.arm.clone(),
            messages: self.messages,
            context_tokens: self.context.tokens,
            micro_usd: self.micro_usd,
            questions: self.questions().count(),
            queued: turn.map_or(0, |turn| turn.queue.len()),
            running: turn
                .map(|turn| turn.calls.iter().map(|running| running.call.name.clone()).collect())
                .unwrap_or_default(),
        }
    }

    /// The events by which a front end that begins with this view gets to where the session is: the
    /// turn that runs, with all of its answer that is kept, its calls and its questions.
    #[must_use]
    pub fn current_events(&self) -> Vec<Event> {
        let Some(turn) = &self.turn else {
            let asked = self.asked.iter().map(Question::to_event);
            return std::iter::once(Event::State(self.state)).chain(asked).collect();
        };
        let mut events = vec![Event::State(SessionState::Active)];
        if turn.usage != Usage::default() {
            events.push(Event::Usage { round: self.last_call, turn: turn.usage });
        }
        events.extend(turn.replay_events(self.arm.as_ref()));
        if self.state == SessionState::Cancelling {
            events.push(Event::State(SessionState::Cancelling));
        }
        events
    }
}
