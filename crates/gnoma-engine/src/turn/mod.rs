//! The turn machine: facts in, effects out. No await, clock, disk, network or randomness in here.
//!
//! ```text
//! Idle ── Say ──► Preparing ──► Calling ── it ends with calls ──► Tools ─┐
//!                    ▲           ▲  │                                    │
//!                    │ messages  │  │ the model is done        all ended │
//!                    │           │  ▼                                    │
//!                    │           │  Finishing ── delivered ──► Idle      │
//!                    │           │  │ it continues                       │
//!                    └───────────┴──┴──── the next round ◄───────────────┘
//! ```
//!
//! What one model call takes is the machine of [`crate::call`]. [`Input::Cancel`] ends every phase at once, but calls of tools
//! that run get time in `Stopping`. `Compacting` is entered from `Idle` when a person asks for it. In `Tools`, while the
//! project's checks run and while the commands of a message run, each call is judged, perhaps asked for, run, and perhaps
//! *settled*: the sandbox has stopped it, and a person is asked whether it may run again outside.
//!
//! The laws, whatever the facts and their order:
//!
//! - Every call in the history is answered by exactly one result, in the message right after it,
//!   before the turn is over.
//! - The session's state changes only in `Turn::enter_state`, exactly along the diagram of
//!   [`SessionState`]; every cancel of something that runs passes through `Cancelling`.
//! - A question is answered at most once; whoever answers again is told so.
//! - After [`Input::Close`] the machine comes to rest and wants nothing any more.

mod answer_validation;
mod batch;
mod call_end;
mod calls;
mod finishing;
mod fits;
mod names;
mod project_checks;
mod prompt_preparation;
mod prompt_state;
mod protocol;
mod rounds;
mod separate_work;
mod summary_commands;
mod turn_end;
mod watch;

use std::{collections::HashMap, mem, sync::Arc};

use gnoma_core::{
    Event, Message, ModelRef, ToolCall, ToolSpec, Usage,
    message::CallId,
    session::{Outcome, SessionState},
};

pub(crate) use self::protocol::{
    Checks, FinishInput, HookInstructions, Input, SeparateWork, SideCall, StepCommand,
    SummaryCommand, Verdict, WorkCheckOutcome,
};
use self::{
    batch::Batch, project_checks::ProjectCheckRun, prompt_state::PromptPreparation,
    watch::TurnDetectors,
};
pub(crate) use self::{prompt_state::ExtensionStops, protocol::SpawningTools};
use crate::{
    call::{Call, CallInput, Delivery},
    compaction::{Compaction, CompactionInput},
    effect::Effects,
    limits::Limits,
    routing::signals::ToolHandling,
    turn_context::TurnContext,
};

/// One session's machine. Lives as long as the session; turns come and go.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    phase: Phase,
    state: SessionState,
    /// The session ends: nothing begins any more.
    is_closing: bool,
    /// The conversation, and what else the machines share.
    cx: TurnContext,
    queued: Vec<Message>,
    specs: HashMap<String, Arc<ToolSpec>>,
    /// The model that has answered last.
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
    /// The number of times that an answer was continued after the output limit cut it off.
    continuations: u32,
    watch: TurnDetectors,
    /// Corrections waiting for the next round.
    notes: Vec<String>,
    /// The action that was repeated until only an answer is wanted any more.
    stuck: Option<String>,
    added: ExtensionState,
}

/// The phase of a turn.
#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    /// The message is being prepared.
    Preparing(Box<PromptPreparation>),
    /// A model is called, with all that this takes.
    Calling(Box<Call>),
    /// Calls of the last message are judged, approved, run and settled.
    Tools(Batch),
    /// The model is done; the work is not delivered yet.
    Finishing(Finish),
    /// The conversation is being compacted, as a person asked.
    Compacting(Compaction),
    /// The turn is cancelled; running calls are given time to stop.
    Stopping(Batch),
}

/// The step that the turn takes before it ends with an outcome, unless it continues.
#[derive(Debug)]
enum Finish {
    /// The ways to go are compared.
    Comparing,
    /// The extensions are asked whether the turn may end.
    AskingHooks(Outcome),
    /// The work is being checked.
    Verifying(Outcome),
    /// The project's checks run.
    RunningChecks(Outcome, Box<ProjectCheckRun>),
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
        let (cx, specs) = (TurnContext::new(history, limits), by_name(tools));
        Self { cx, specs, ..Self::default() }
    }

    /// The same, stopping there for what people added.
    pub(crate) fn stopping_at(mut self, stops: ExtensionStops) -> Self {
        self.added.stops = stops;
        self
    }

    /// The numbers it stays within.
    pub(crate) fn limits(&self) -> &Limits {
        &self.cx.limits
    }

    /// The tools on offer, by name.
    pub(crate) fn specs(&self) -> &HashMap<String, Arc<ToolSpec>> {
        &self.specs
    }

    /// The conversation so far.
    pub(crate) fn history(&self) -> &[Arc<Message>] {
        self.cx.conversation.messages()
    }

    /// Returns the conversation as models receive it: a summary if there is one, and the messages after those that
    /// the summary replaces.
    pub(crate) fn conversation(&self) -> (Option<&Arc<Message>>, &[Arc<Message>]) {
        self.cx.conversation.as_sent()
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

    /// A tool that an arm with the lean tool set does not get in the call that was just wanted.
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
            Phase::Finishing(Finish::RunningChecks(_, proof)) => proof.batch.open_call(id),
            Phase::Preparing(preparing) => preparing.batch()?.open_call(id),
            _ => None,
        }
    }

    /// Takes one fact and adds the effects that follow from it to `fx`. Facts that come too late are
    /// nothing.
    pub(crate) fn handle_input(&mut self, input: Input, fx: &mut Effects) {
        // The caller's vector is used, so that a delta allocates nothing for its effects.
        mem::swap(&mut self.cx.effects, fx);
        let phase = mem::take(&mut self.phase);
        self.phase = match input {
            Input::Say(_) | Input::Queue { .. } if self.is_closing => phase,
            Input::Say(message) => self.on_message(phase, message),
            Input::Queue { was, now } => {
                self.edit_queue(&was, now, matches!(phase, Phase::Idle));
                phase
            }
            Input::Run(work) => self.run_separately(phase, work),
            Input::Summary(command) => self.on_summary_command(phase, command),
            Input::SetTools(tools, may_start) => {
                (self.specs, self.added.may_start) = (by_name(&tools), may_start);
                phase
            }
            Input::SideUsage(round) => {
                self.count_side_usage(&phase, round);
                phase
            }
            Input::Cancel => self.cancel(phase),
            Input::Close => {
                self.is_closing = true;
                self.cancel(phase)
            }
            Input::Closed => {
                let phase = self.cancel(phase);
                if matches!(phase, Phase::Idle) {
                    self.enter_state(SessionState::Closed);
                }
                phase
            }
            Input::Call(input) => self.step_call(phase, input),
            Input::Compaction(input) => self.step_compaction(phase, input),
            Input::Finish(input) => self.step_finish(phase, input),
            fact => self.step_phase(phase, fact),
        };
        mem::swap(&mut self.cx.effects, fx);
    }

    /// Handles a fact for the call to a model.
    fn step_call(&mut self, phase: Phase, input: CallInput) -> Phase {
        let Phase::Calling(mut call) = phase else { return phase };
        match call.handle_input(input, &mut self.cx) {
            None => Phase::Calling(call),
            Some(end) => self.on_call_end(&call, end),
        }
    }

    /// Handles a fact for the compaction that a call or a person waits for.
    fn step_compaction(&mut self, phase: Phase, input: CompactionInput) -> Phase {
        let Phase::Compacting(mut compaction) = phase else {
            return self.step_call(phase, CallInput::Compaction(input));
        };
        let end = compaction.handle_input(input, &mut self.cx);
        if compaction.is_begun() {
            self.enter_state(SessionState::Active);
        }
        if end.is_some() { self.become_idle() } else { Phase::Compacting(compaction) }
    }

    /// Handles a fact about messages, extensions and calls of tools.
    fn step_phase(&mut self, phase: Phase, fact: Input) -> Phase {
        match (phase, fact) {
            (Phase::Preparing(preparing), Input::Prepared(prepared, shell))
                if preparing.filling.is_none() =>
            {
                self.on_preparation(preparing, *prepared, shell)
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
                self.step_tools(phase, fact)
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

    /// Handles a fact about a call of a tool.
    fn step_tools(&mut self, phase: Phase, fact: Input) -> Phase {
        match (phase, fact) {
            (Phase::Tools(mut batch), fact) => {
                self.on_call(&mut batch, fact);
                self.advance_batch(batch)
            }
            (Phase::Preparing(mut preparing), fact) if preparing.filling.is_some() => {
                let batch = preparing.filling.as_mut().map(|filling| &mut filling.batch);
                match batch.and_then(|batch| self.on_call(batch, fact)) {
                    Some(ended) => self.on_fill_outcome(preparing, ended),
                    None => Phase::Preparing(preparing),
                }
            }
            (Phase::Finishing(Finish::RunningChecks(outcome, mut proof)), fact) => {
                match self.on_call(&mut proof.batch, fact) {
                    Some(ended) => self.on_check_outcome(outcome, *proof, ended),
                    None => Phase::Finishing(Finish::RunningChecks(outcome, proof)),
                }
            }
            (Phase::Stopping(mut batch), Input::ToolEnded { call, outcome, duration_ms, .. }) => {
                self.record_outcome(&mut batch, &call, outcome, duration_ms);
                self.finish_when_stopped(batch)
            }
            (Phase::Stopping(batch), Input::GraceOver) => self.abort_tools(batch),
            (same, Input::Answered(call, _)) => {
                self.not_asked(&call);
                same
            }
            // Too late: its source was dropped, or its turn is over.
            (same, _late) => same,
        }
    }

    /// The one place where the session's state changes, and only as its diagram allows.
    fn enter_state(&mut self, state: SessionState) {
        use SessionState::{Active, Cancelling, Closed, Idle};
        let follows = matches!(
            (self.state, state),
            (Idle, Active | Closed)
                | (Active, Idle | Cancelling | Closed)
                | (Cancelling, Idle | Closed)
        );
        if follows {
            self.state = state;
            self.cx.emit(Event::State(state));
        }
    }

    /// Counts tokens that a call beside the conversation took. Those between turns count for no turn.
    fn count_side_usage(&mut self, phase: &Phase, round: Usage) {
        let is_between_turns = matches!(phase, Phase::Idle | Phase::Compacting(_));
        if !is_between_turns {
            self.cx.usage += round;
        }
        let turn = if is_between_turns { round } else { self.cx.usage };
        self.cx.emit(Event::Usage { round, turn });
    }
}

#[cfg(test)]
mod laws;
#[cfg(test)]
mod tests;
