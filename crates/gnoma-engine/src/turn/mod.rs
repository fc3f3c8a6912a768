//! The turn machine: facts in, effects out. No await, clock, disk, network or randomness in here.
//!
//! ```text
//! Idle ── Say ──► Routing ── Routed ──► Reserving ── Held ──► Calling ── Stop(ToolUse) ──► Tools ─┐
//!                                        ▲  ▲  ▲ │ Refused      │  │                              │
//!                                        │  │  │ ▼    it fails  │  │ the answer ends              │
//!                                        │  │  FailingOver ◄────┘  ▼                              │
//!                                        │  │   Moved │ Stayed   Conferring, Checking ◄► Proving  │
//!                                        │  │         ▼            │ it continues   │ delivered   │
//!                                        │  └ Woke ─ Backoff       ▼                ▼             │
//!                                        └────────────────── the next round ◄───── Idle ┄┄┄┄┄┄┄┄┄┄┄┘
//! ```
//!
//! [`Input::Cancel`] ends every phase at once, but calls that run get time in `Stopping`.
//! `Compacting` is entered from `Idle` (a person asks), from `Reserving` (the window fills) and from
//! `FailingOver` (the provider refused the length), and leads back to `Idle` or `Reserving`. In `Tools`
//! and `Proving` each call is judged, perhaps asked for, run, and perhaps *settled*: the sandbox has
//! stopped it, and a person is asked whether it may run again outside.
//!
//! The laws, whatever the facts and their order:
//!
//! - Every call in the history is answered by exactly one result, in the message right after it,
//!   before the turn is over.
//! - The session's state changes only in `Turn::enter_state`, exactly along the diagram of
//!   [`SessionState`]; every cancel of something that runs passes through `Cancelling`.
//! - A question is answered at most once; whoever answers again is told so.
//! - After [`Input::Close`] the machine comes to rest and wants nothing any more.

mod answer;
mod answer_form_progress;
mod answer_requests;
mod answer_stream;
mod answer_validation;
mod batch;
mod calls;
mod fits;
mod limits;
mod names;
mod phase;
mod project_checks;
mod prompt_preparation;
mod prompt_state;
mod protocol;
mod side_steps;
mod summarized_prefix;
mod turn_compaction;
mod turn_end;
mod watch;
mod work_delivery;

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
    time::Duration,
};

use gnoma_core::{
    Event, Message, ModelRef, Response, ToolCall, ToolSpec, Usage, message::CallId,
    session::SessionState,
};

pub use self::limits::Limits;
pub(crate) use self::protocol::{
    CallArm, Checks, CompactionFailure, CompactionRequest, Delivery, Effect, HookInstructions,
    Input, Room, SideCall, StepCommand, Timer, Verdict, WorkCheckOutcome,
};
use self::{
    answer::{AnswerDraft, name_apart},
    answer_form_progress::AnswerFormProgress,
    phase::Phase,
    summarized_prefix::SummarizedPrefix,
    watch::TurnDetectors,
};
pub(crate) use self::{batch::SpawningTools, prompt_state::ExtensionStops};
use crate::routing::signals::ToolHandling;

/// One session's machine. Lives as long as the session; turns come and go.
#[derive(Debug)]
pub(crate) struct Turn {
    phase: Phase,
    state: SessionState,
    /// The session ends: nothing begins any more.
    is_closing: bool,
    history: Vec<Arc<Message>>,
    /// The text that models receive in place of the beginning of the history.
    told: SummarizedPrefix,
    queued: Vec<Message>,
    specs: HashMap<String, Arc<ToolSpec>>,
    /// The ids of all calls of the conversation.
    call_ids: HashSet<CallId>,
    limits: Limits,
    origin: Option<ModelRef>,
    /// Turns of the session so far.
    turns: u64,
    rounds: u32,
    /// The round limit of this turn, all attempts at the task together; whoever speaks meanwhile adds to
    /// it.
    most_rounds: u32,
    /// The steps that the work goes through before the turn ends.
    delivery: Delivery,
    /// Checks of the project that were judged in this turn.
    checks: u32,
    /// The conversation was compacted for this round.
    has_compacted: bool,
    /// The number of compactions in a row that failed without a person having asked for them.
    compaction_failures: u32,
    answers: Answers,
    /// The time that the attempts at this call have waited.
    waited: Duration,
    usage: Usage,
    watch: TurnDetectors,
    /// Corrections waiting for the next round.
    notes: Vec<String>,
    /// The action that was repeated until only an answer is wanted any more.
    stuck: Option<String>,
    added: ExtensionState,
}

/// The state of finishing the answers of a turn.
#[derive(Debug, Default)]
struct Answers {
    /// The number of times that an answer was continued after the output limit cut it off.
    continuations: u32,
    /// The form that they must have.
    shaping: Option<AnswerFormProgress>,
}

/// The extensions of the session, as far as the turn machine knows of them.
#[derive(Debug, Default)]
struct ExtensionState {
    /// The points at which the machine stops for the extensions.
    stops: ExtensionStops,
    may_start: SpawningTools,
    /// The turn ends after the calls of this answer: why.
    stop_after: Option<String>,
    /// The model was told to continue when it wanted to stop.
    is_kept_going: bool,
    /// The number of times in a row, without a call in between, that the model was told to continue.
    kept_going: u32,
    /// The news from beside the conversation that the model was not told yet.
    news: Vec<String>,
}

/// Most pieces of news that wait for the model; the oldest go.
const MAX_NEWS: usize = 64;

pub(crate) type Effects = Vec<Effect>;

/// Most rounds of a turn in which another program's agent answers.
const MAX_AGENT_ROUNDS: u32 = 2_000;

fn by_name<'t>(
    tools: impl IntoIterator<Item = &'t Arc<ToolSpec>>,
) -> HashMap<String, Arc<ToolSpec>> {
    tools.into_iter().map(|tool| (tool.name.clone(), Arc::clone(tool))).collect()
}

impl Turn {
    /// A machine that continues `history` with `tools` on offer.
    pub(crate) fn new<'t>(
        history: Vec<Arc<Message>>,
        tools: impl IntoIterator<Item = &'t Arc<ToolSpec>>,
        limits: Limits,
    ) -> Self {
        let told = SummarizedPrefix::from_history(&history);
        let calls = history.iter().flat_map(|message| message.tool_calls());
        let call_ids = calls.map(|call| call.id.clone()).collect();
        Self {
            phase: Phase::Idle,
            state: SessionState::Idle,
            is_closing: false,
            history,
            call_ids,
            told,
            queued: Vec::new(),
            specs: by_name(tools),
            limits,
            origin: None,
            turns: 0,
            rounds: 0,
            most_rounds: 0,
            delivery: Delivery::Direct,
            checks: 0,
            has_compacted: false,
            compaction_failures: 0,
            answers: Answers::default(),
            waited: Duration::ZERO,
            usage: Usage::default(),
            watch: TurnDetectors::default(),
            notes: Vec::new(),
            stuck: None,
            added: ExtensionState::default(),
        }
    }

    /// The same, stopping there for what people added.
    pub(crate) fn stopping_at(mut self, stops: ExtensionStops) -> Self {
        self.added.stops = stops;
        self
    }

    /// The numbers it stays within.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The tools on offer, by name.
    pub(crate) fn specs(&self) -> &HashMap<String, Arc<ToolSpec>> {
        &self.specs
    }

    /// The conversation so far.
    pub(crate) fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// Returns the conversation as models receive it: a summary if there is one, and the messages after those that
    /// the summary replaces.
    pub(crate) fn conversation(&self) -> (Option<&Arc<Message>>, &[Arc<Message>]) {
        let rest = self.history.get(self.told.from..).unwrap_or_default();
        (self.told.summary.as_ref(), rest)
    }

    /// Reports whether no turn or other work is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Returns the model that has answered last.
    pub(crate) fn last_model(&self) -> Option<&ModelRef> {
        self.origin.as_ref()
    }

    /// Reports whether the call that was just requested may ask for tools; otherwise an answer is wanted.
    pub(crate) fn may_use_tools(&self) -> bool {
        self.stuck.is_none() && !self.wants_shape()
    }

    /// A tool that the call that was just wanted does not get.
    pub(crate) fn withheld_tool(&self) -> Option<&str> {
        self.watch.withheld_tool()
    }

    /// Returns how the model handled its tools in the current or last attempt.
    pub(crate) fn tool_handling(&self) -> ToolHandling {
        self.watch.handling
    }

    /// Reports whether another model call may be made in this turn.
    pub(crate) fn has_rounds(&self) -> bool {
        self.rounds < self.most_rounds
    }

    /// A call that owes a result.
    pub(crate) fn open_call(&self, id: &CallId) -> Option<&ToolCall> {
        match &self.phase {
            Phase::Tools(batch) | Phase::Stopping(batch) => batch.open_call(id),
            Phase::Proving(_, proof) => proof.batch.open_call(id),
            Phase::Preparing(preparing) => preparing.batch()?.open_call(id),
            _ => None,
        }
    }

    /// Takes one fact and adds the effects that follow from it to `fx`. Facts that come too late are
    /// nothing.
    pub(crate) fn handle_input(&mut self, input: Input, fx: &mut Effects) {
        let phase = mem::take(&mut self.phase);
        self.phase = match input {
            Input::Say(_) | Input::Queue { .. } if self.is_closing => phase,
            Input::Say(message) => match phase {
                Phase::Idle => self.start_with_message(message, fx),
                busy => {
                    self.queued.push(message);
                    self.tell_queue(fx);
                    busy
                }
            },
            Input::Queue { was, now } => {
                self.edit_queue(&was, now, matches!(phase, Phase::Idle), fx);
                phase
            }
            Input::RunCommand(command) => self.run_command(phase, command, fx),
            Input::RunSideSteps(steps) => self.run_side_steps(phase, steps, fx),
            Input::Compact { focus } => self.compact_as_asked(phase, focus, fx),
            Input::EditSummary { summary } => self.edit_summary(phase, &summary, fx),
            Input::UndoCompaction => self.undo_compaction(phase, fx),
            Input::ProveAgain(checks) => self.prove_again(phase, checks, fx),
            Input::SetTools(tools, may_start) => {
                (self.specs, self.added.may_start) = (by_name(&tools), may_start);
                phase
            }
            Input::SideUsage(round) => {
                self.count_side_usage(&phase, round, fx);
                phase
            }
            Input::Cancel => self.cancel(phase, fx),
            Input::Close => {
                self.is_closing = true;
                self.cancel(phase, fx)
            }
            Input::Closed => {
                let phase = self.cancel(phase, fx);
                if matches!(phase, Phase::Idle) {
                    self.enter_state(SessionState::Closed, fx);
                }
                phase
            }
            fact => self.step_phase(phase, fact, fx),
        };
    }

    /// Handles the answer to an effect and returns the next phase.
    fn step_phase(&mut self, phase: Phase, fact: Input, fx: &mut Effects) -> Phase {
        match (phase, fact) {
            (Phase::Routing, Input::Routed(routed)) => self.on_route(routed, fx),
            (Phase::Reserving { attempt }, Input::Reserved(room)) => {
                self.on_reservation(attempt, room, fx)
            }
            (Phase::Calling { attempt, answer }, Input::Model(Ok(event))) => {
                self.on_stream_event(attempt, answer, event, fx)
            }
            (Phase::Calling { attempt, answer }, Input::Model(Err(error))) => {
                fx.push(Effect::DropStream);
                self.fail_over(attempt, Some(answer), error, fx)
            }
            (phase @ Phase::Calling { .. }, Input::Authored(arm)) => {
                self.origin = Some(arm);
                self.watch.is_lean = false;
                phase
            }
            (Phase::FailingOver { answer, .. }, Input::Moved { from, to, why }) => {
                self.on_failover(answer, (from, to), why, fx)
            }
            (Phase::FailingOver { attempt, answer }, Input::Stayed(error)) => {
                self.on_failover_exhausted(attempt, answer, error, fx)
            }
            (Phase::Backoff { attempt }, Input::TimerOver(Timer::Backoff)) => {
                self.reserve_call(attempt + 1, fx)
            }
            (Phase::Compacting { cause, cut: None }, Input::CompactionBegun(cut)) => {
                self.compaction_begun(cause, cut, fx)
            }
            (Phase::Compacting { cause, cut }, Input::Compacted(words)) => {
                self.on_compaction(cause, cut.as_ref(), words, fx)
            }
            (Phase::Conferring, Input::Conferred { note }) => self.on_panel_result(note, fx),
            (Phase::Checking(outcome), Input::Checked(checked)) => {
                self.on_check_decision(outcome, checked, fx)
            }
            (Phase::Checking(outcome), Input::Found(finding)) => {
                self.conclude_check(outcome, finding, fx)
            }
            (Phase::Checking(outcome), Input::Prove(checks)) => {
                self.run_checks(outcome, checks, fx)
            }
            (phase, fact) => self.step_of_added(phase, fact, fx),
        }
    }

    /// Handles a fact about extensions and returns the next phase.
    fn step_of_added(&mut self, phase: Phase, fact: Input, fx: &mut Effects) -> Phase {
        match (phase, fact) {
            (Phase::Preparing(preparing), Input::Prepared(prepared, shell))
                if preparing.filling.is_none() =>
            {
                self.on_preparation(preparing, *prepared, shell, fx)
            }
            (Phase::AskingStop(outcome), Input::MayStop(answer)) => {
                self.on_before_stop(outcome, *answer, fx)
            }
            (phase, Input::News(text)) => {
                if self.added.news.len() >= MAX_NEWS {
                    self.added.news.remove(0);
                }
                self.added.news.push(text);
                phase
            }
            (phase, fact) => {
                self.hear_hooks(&fact);
                self.step_of_call(phase, fact, fx)
            }
        }
    }

    /// Notes what hooks have said about a call, also where the fact about the call itself comes too late.
    fn hear_hooks(&mut self, fact: &Input) {
        let stop = match fact {
            Input::Judged(_, _, said) => {
                self.notes.extend_from_slice(&said.context);
                said.stop.clone()
            }
            Input::ToolEnded { stop_after, .. } => stop_after.clone(),
            _ => None,
        };
        self.added.stop_after = stop.or_else(|| self.added.stop_after.take());
    }

    /// Handles a fact about a call and returns the next phase.
    fn step_of_call(&mut self, phase: Phase, fact: Input, fx: &mut Effects) -> Phase {
        match (phase, fact) {
            (Phase::Tools(mut batch), fact) => {
                self.on_call(&mut batch, fact, fx);
                self.advance_batch(batch, fx)
            }
            (Phase::Preparing(mut preparing), fact) if preparing.filling.is_some() => {
                let batch = preparing.filling.as_mut().map(|filling| &mut filling.batch);
                match batch.and_then(|batch| self.on_call(batch, fact, fx)) {
                    Some(ended) => self.on_fill_outcome(preparing, ended, fx),
                    None => Phase::Preparing(preparing),
                }
            }
            (Phase::Proving(outcome, mut proof), fact) => {
                match self.on_call(&mut proof.batch, fact, fx) {
                    Some(ended) => self.on_check_outcome(outcome, proof, ended, fx),
                    None => Phase::Proving(outcome, proof),
                }
            }
            (Phase::Stopping(mut batch), Input::ToolEnded { call, outcome, duration_ms, .. }) => {
                self.record_outcome(&mut batch, &call, outcome, duration_ms, fx);
                self.finish_when_stopped(batch, fx)
            }
            (Phase::Stopping(batch), Input::TimerOver(Timer::Grace)) => self.abort_tools(batch, fx),
            (same, Input::Answered(call, _)) => {
                self.not_asked(&call, fx);
                same
            }
            // Too late: its source was dropped, or its turn is over.
            (same, _late) => same,
        }
    }

    /// The one place where the session's state changes, and only as its diagram allows.
    fn enter_state(&mut self, state: SessionState, fx: &mut Effects) {
        use SessionState::{Active, Cancelling, Closed, Idle};
        let follows = match self.state {
            Idle => matches!(state, Active | Closed),
            Active => matches!(state, Idle | Cancelling | Closed),
            Cancelling => matches!(state, Idle | Closed),
            Closed => false,
        };
        if follows {
            self.state = state;
            fx.push(Effect::Emit(Event::State(state)));
        }
    }

    /// Adds an answer to the history, as far as it may stand there, and settles its call.
    fn append_answer(&mut self, answer: AnswerDraft, fx: &mut Effects) -> Option<Arc<Message>> {
        self.keep_response(answer.finish(), fx)
    }

    fn keep_response(&mut self, mut response: Response, fx: &mut Effects) -> Option<Arc<Message>> {
        name_apart(&mut response, &mut self.call_ids);
        self.settle_call(response.usage, fx);
        let message = response.into_message(self.origin.clone())?;
        Some(self.append_message(message, fx))
    }

    /// Ends a call to a model: its tokens count for the turn, and it is paid.
    fn settle_call(&mut self, usage: Option<Usage>, fx: &mut Effects) {
        if let Some(round) = usage {
            self.usage += round;
            fx.push(Effect::Emit(Event::Usage { round, turn: self.usage }));
        }
        fx.push(Effect::Settle(usage));
    }

    /// Counts tokens that a call beside the conversation took. Those between turns count for no turn.
    fn count_side_usage(&mut self, phase: &Phase, round: Usage, fx: &mut Effects) {
        let is_between_turns =
            matches!(phase, Phase::Idle | Phase::Compacting { cause: phase::Cause::Asked, .. });
        if !is_between_turns {
            self.usage += round;
        }
        let turn = if is_between_turns { round } else { self.usage };
        fx.push(Effect::Emit(Event::Usage { round, turn }));
    }

    fn append_message(&mut self, message: Message, fx: &mut Effects) -> Arc<Message> {
        let message = Arc::new(message);
        self.history.push(Arc::clone(&message));
        fx.push(Effect::Emit(Event::Appended(Arc::clone(&message))));
        message
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
