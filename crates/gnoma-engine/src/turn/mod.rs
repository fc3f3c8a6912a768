//! The turn machine: facts in, wishes out. No await, clock, disk, network or randomness in here.
//!
//! ```text
//! Idle ── Say ──► Calling ── Stop(ToolUse) ──► Tools ── all results ──► Calling ──► … ──► Idle
//!                  │    ▲                       │
//!                  ▼    │ Woke                  └─ Cancel ──► Stopping ──► Idle
//!                 Backoff
//! ```
//!
//! Where work is checked before it is delivered, the end passes through `Checking`, which leads back
//! to `Calling` when it does not hold.
//!
//! The law it keeps, whatever the facts and their order: every call in the history is answered by
//! exactly one result, in the message right after it, before the turn is over.

mod batch;
mod calls;
mod limits;
mod protocol;
mod watch;

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::Arc,
};

use gnoma_core::{
    Accumulator, Event, Message, ModelRef, ProviderError, Response, StopReason, StreamEvent,
    ToolCall, ToolOutcome, ToolSpec, Usage,
    message::{CallId, Content},
    session::{NoticeLevel, Outcome, SessionState},
};

use self::{batch::Batch, watch::Watch};
pub use self::{
    limits::Limits,
    protocol::{Checked, Effect, Input, Verdict},
};
use crate::{prompt, repair, routing::signals::Handling};

#[derive(Debug, Default)]
enum Phase {
    #[default]
    Idle,
    /// The model answers.
    Calling { attempt: u32, answer: Accumulator },
    /// A model call failed and will be tried again.
    Backoff { attempt: u32 },
    /// Calls of the last message are being judged and run.
    Tools(Batch),
    /// The work is being checked; so the turn will end unless it does not hold.
    Checking(Outcome),
    /// The turn is cancelled; running calls are given time to stop.
    Stopping(Batch),
}

/// One session's machine. Lives as long as the session; turns come and go.
#[derive(Debug)]
pub struct Turn {
    phase: Phase,
    history: Vec<Arc<Message>>,
    /// What models are told instead of the beginning of the history.
    summary: Option<Arc<Message>>,
    /// Where in the history begins what they are told as it was said.
    told_from: usize,
    queued: Vec<Message>,
    specs: HashMap<String, Arc<ToolSpec>>,
    /// The ids of all calls of the conversation.
    call_ids: HashSet<CallId>,
    limits: Limits,
    origin: Option<ModelRef>,
    rounds: u32,
    /// The round limit of this turn, all attempts at the task together; whoever speaks meanwhile adds to
    /// it.
    most_rounds: u32,
    /// The work is checked before the turn ends.
    is_checked: bool,
    continuations: u32,
    usage: Usage,
    watch: Watch,
    /// Corrections waiting for the next round.
    notes: Vec<String>,
    /// What was repeated until only an answer is wanted any more.
    stuck: Option<String>,
}

type Effects = Vec<Effect>;

fn by_name(tools: &[Arc<ToolSpec>]) -> HashMap<String, Arc<ToolSpec>> {
    tools.iter().map(|tool| (tool.name.clone(), Arc::clone(tool))).collect()
}

impl Turn {
    /// A machine that continues `history` with `tools` on offer.
    #[must_use]
    pub fn new(history: Vec<Arc<Message>>, tools: &[Arc<ToolSpec>], limits: Limits) -> Self {
        let calls = history.iter().flat_map(|message| message.tool_calls());
        let call_ids = calls.map(|call| call.id.clone()).collect();
        Self {
            phase: Phase::Idle,
            history,
            call_ids,
            summary: None,
            told_from: 0,
            queued: Vec::new(),
            specs: by_name(tools),
            limits,
            origin: None,
            rounds: 0,
            most_rounds: 0,
            is_checked: false,
            continuations: 0,
            usage: Usage::default(),
            watch: Watch::default(),
            notes: Vec::new(),
            stuck: None,
        }
    }

    /// These tools are on offer from the next turn on.
    pub fn offer(&mut self, tools: &[Arc<ToolSpec>]) {
        self.specs = by_name(tools);
    }

    /// The conversation so far.
    #[must_use]
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// What models are told of it: a summary where there is one, and what was said after what that
    /// stands for.
    #[must_use]
    pub fn told(&self) -> (Option<&Arc<Message>>, &[Arc<Message>]) {
        let rest = self.history.get(self.told_from..).unwrap_or_default();
        (self.summary.as_ref(), rest)
    }

    /// From now on models are told `summary` instead of the first `messages` of the history, which
    /// itself stays as it is. What follows them must begin with no results.
    pub fn shorten(&mut self, summary: Message, messages: usize) {
        self.summary = Some(Arc::new(summary));
        self.told_from = messages;
    }

    /// Counts tokens that a call beside the conversation took; says what the turn has taken.
    pub fn also_used(&mut self, usage: Usage) -> Usage {
        if self.is_idle() {
            return usage;
        }
        self.usage += usage;
        self.usage
    }

    /// Whether no turn is running.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    /// Whether the call that was just wished for may ask for tools; otherwise an answer is wanted.
    #[must_use]
    pub fn may_use_tools(&self) -> bool {
        self.stuck.is_none()
    }

    /// Who answers the call that was just wished for, and whether it is a small model: of its answer
    /// only the first tool call counts, because it writes several with invented results in between.
    pub fn answered_by(&mut self, origin: ModelRef, small_model: bool) {
        self.origin = Some(origin);
        self.watch.small_model = small_model;
    }

    /// How the model handled its tools in the attempt that is under way or was the last.
    pub(crate) fn handling(&self) -> Handling {
        self.watch.handling
    }

    /// Whether part of the answer that is being written could be seen already.
    #[must_use]
    pub fn has_content(&self) -> bool {
        matches!(&self.phase, Phase::Calling { answer, .. } if answer.has_content())
    }

    /// Whether another model call may be made in this turn.
    #[must_use]
    pub fn has_rounds(&self) -> bool {
        self.rounds < self.most_rounds
    }

    /// Whether the work of the turn that runs is checked before it ends; until the next turn.
    pub fn check_work(&mut self, is_checked: bool) {
        self.is_checked = is_checked;
    }

    /// A call of the answer that is being worked on, if it owes a result.
    #[must_use]
    pub fn call(&self, id: &CallId) -> Option<&ToolCall> {
        match &self.phase {
            Phase::Tools(batch) | Phase::Stopping(batch) => batch.open_call(id),
            Phase::Idle | Phase::Calling { .. } | Phase::Backoff { .. } | Phase::Checking(_) => {
                None
            }
        }
    }

    /// Takes one fact and adds the wishes that follow from it to `fx`. Facts that come too late are
    /// nothing.
    pub fn on(&mut self, input: Input, fx: &mut Effects) {
        self.phase = match (mem::take(&mut self.phase), input) {
            (Phase::Idle, Input::Say(message)) => self.start(message, fx),
            (busy, Input::Say(message)) => {
                self.queued.push(message);
                busy
            }
            (busy, Input::Cancel) => self.cancel(busy, fx),
            (Phase::Calling { attempt, answer }, Input::Model(Ok(event))) => {
                self.heard(attempt, answer, event, fx)
            }
            (Phase::Calling { attempt, answer }, Input::Model(Err(error))) => {
                fx.push(Effect::DropStream);
                self.failed(attempt, answer, error, fx)
            }
            (Phase::Calling { answer, .. }, Input::Moved { from, to, why }) => {
                self.moved(answer, (from, to), why, fx)
            }
            (Phase::Checking(outcome), Input::Checked(checked)) => {
                self.checked(outcome, checked, fx)
            }
            (Phase::Backoff { attempt }, Input::Woke) => self.call_model(attempt + 1, fx),
            (Phase::Tools(batch), Input::Judged(id, verdict)) => {
                self.judged(batch, &id, verdict, fx)
            }
            (Phase::Tools(batch), Input::Answered(id, answer)) => {
                self.decided(batch, &id, answer, fx)
            }
            (Phase::Tools(mut batch), Input::ToolDone(id, outcome, duration_ms)) => {
                self.settle(&mut batch, &id, outcome, duration_ms, fx);
                self.advance(batch, fx)
            }
            (Phase::Stopping(mut batch), Input::ToolDone(id, outcome, duration_ms)) => {
                self.settle(&mut batch, &id, outcome, duration_ms, fx);
                self.stopped(batch, fx)
            }
            (Phase::Stopping(mut batch), Input::Woke) => {
                fx.push(Effect::AbortTools);
                for call in batch.unfinished() {
                    let outcome = ToolOutcome::Interrupted(String::new());
                    self.settle(&mut batch, &call.id, outcome, 0, fx);
                }
                self.stopped(batch, fx)
            }
            // Too late: its source was dropped, or its turn is over.
            (
                same,
                Input::Model(_)
                | Input::Moved { .. }
                | Input::Checked(_)
                | Input::Judged(..)
                | Input::Answered(..)
                | Input::ToolDone(..)
                | Input::Woke,
            ) => same,
        };
    }

    fn start(&mut self, message: Message, fx: &mut Effects) -> Phase {
        self.rounds = 0;
        self.most_rounds = self.limits.rounds;
        self.is_checked = false;
        self.continuations = 0;
        self.usage = Usage::default();
        self.watch = Watch::default();
        self.notes.clear();
        self.stuck = None;
        fx.push(Effect::Emit(Event::State(SessionState::Active)));
        self.append(message, fx);
        self.call_model(1, fx)
    }

    fn call_model(&mut self, attempt: u32, fx: &mut Effects) -> Phase {
        if attempt == 1 {
            if self.rounds >= self.most_rounds {
                return self.end(Outcome::RoundLimit { rounds: self.rounds }, fx);
            }
            self.rounds += 1;
            self.deliver(fx);
        }
        self.ask(attempt, fx)
    }

    fn ask(&mut self, attempt: u32, fx: &mut Effects) -> Phase {
        fx.push(Effect::CallModel { round: self.rounds, attempt });
        self.watch.new_answer();
        Phase::Calling { attempt, answer: Accumulator::new() }
    }

    /// Another arm answers in place of the one that failed. What was heard of its answer is taken
    /// back: few wires let a model go on from a given beginning, one that is told to repeats or
    /// contradicts it, and what the first had in mind cannot be handed over. Its tokens were used all
    /// the same.
    fn moved(
        &mut self,
        answer: Accumulator,
        (from, to): (ModelRef, ModelRef),
        why: String,
        fx: &mut Effects,
    ) -> Phase {
        fx.push(Effect::DropStream);
        let retracted = answer.has_content();
        // What the first could not handle is not the other's fault.
        self.watch.handling = Handling::default();
        self.count(answer.finish().usage, fx);
        fx.push(Effect::Emit(Event::ArmChanged { from, to, why, retracted }));
        self.ask(1, fx)
    }

    /// The turn would end like this, unless its work is checked and does not hold.
    fn end(&mut self, outcome: Outcome, fx: &mut Effects) -> Phase {
        if !self.is_checked {
            return self.finish(outcome, fx);
        }
        fx.push(Effect::Check(outcome.clone()));
        Phase::Checking(outcome)
    }

    fn checked(&mut self, outcome: Outcome, checked: Checked, fx: &mut Effects) -> Phase {
        match checked {
            Checked::Deliver if self.queued.is_empty() => self.finish(outcome, fx),
            // Somebody has spoken meanwhile: the turn goes on with that.
            Checked::Deliver => {
                self.most_rounds = self.rounds.saturating_add(self.limits.rounds);
                self.call_model(1, fx)
            }
            Checked::Again { note } => {
                self.watch = Watch::default();
                self.stuck = None;
                self.notes.push(note);
                self.call_model(1, fx)
            }
        }
    }

    /// Corrections and what people said meanwhile land between results and the next call.
    fn deliver(&mut self, fx: &mut Effects) {
        if !self.notes.is_empty() {
            let notes = mem::take(&mut self.notes);
            self.append(Message::user_text(prompt::note(&notes.join("\n"))), fx);
        }
        for message in mem::take(&mut self.queued) {
            self.append(message, fx);
        }
    }

    fn heard(
        &mut self,
        attempt: u32,
        mut answer: Accumulator,
        event: StreamEvent,
        fx: &mut Effects,
    ) -> Phase {
        let another_call = matches!(event, StreamEvent::ToolCallStart { .. }) && answer.has_call();
        if another_call && self.watch.small_model {
            fx.push(Effect::DropStream);
            answer.push(&StreamEvent::Stop(StopReason::ToolUse));
            return self.answered(answer.finish(), StopReason::ToolUse, fx);
        }
        answer.push(&event);
        if answer.is_full() {
            fx.push(Effect::DropStream);
            return self.answered(answer.finish(), StopReason::MaxTokens, fx);
        }
        match event {
            StreamEvent::TextDelta { text, .. } if !text.is_empty() => {
                let loops = self.watch.text_repeats(&text);
                fx.push(Effect::Emit(Event::Text { text }));
                if loops {
                    fx.push(Effect::DropStream);
                    return self.cut_short(answer, fx);
                }
            }
            StreamEvent::ThinkingDelta { text, .. } if !text.is_empty() => {
                fx.push(Effect::Emit(Event::Thinking { text }));
            }
            StreamEvent::ToolCallStart { id, name, .. } => {
                let call = CallId::new(id);
                fx.push(Effect::Emit(Event::ToolCallDrafted { call, name }));
            }
            StreamEvent::Stop(stop) => {
                fx.push(Effect::DropStream);
                return self.answered(answer.finish(), stop, fx);
            }
            StreamEvent::ToolCallDelta { fragment, .. } => {
                if self.watch.arguments_repeat(&fragment) {
                    fx.push(Effect::DropStream);
                    return self.cut_short(answer, fx);
                }
            }
            StreamEvent::RateLimits { .. }
            | StreamEvent::Started { .. }
            | StreamEvent::TextDelta { .. }
            | StreamEvent::ThinkingDelta { .. }
            | StreamEvent::Signature { .. }
            | StreamEvent::Item { .. }
            | StreamEvent::Redacted { .. }
            | StreamEvent::ToolCallDone { .. }
            | StreamEvent::Usage(_) => (),
        }
        Phase::Calling { attempt, answer }
    }

    /// The model repeats itself: its text is kept, and it is told.
    fn cut_short(&mut self, answer: Accumulator, fx: &mut Effects) -> Phase {
        self.keep(answer.finish(), fx);
        match self.correct(prompt::REPETITION.to_owned()) {
            Ok(()) => self.call_model(1, fx),
            Err(stuck) => self.end(Outcome::Stuck { what: format!("the model {stuck}") }, fx),
        }
    }

    fn answered(&mut self, mut response: Response, stop: StopReason, fx: &mut Effects) -> Phase {
        let has_calls = response.tool_calls().next().is_some();
        if stop == StopReason::ToolUse {
            mend(&mut response);
        }
        let message = self.keep(response, fx);
        match stop {
            StopReason::ToolUse if has_calls => self.run_calls(message.as_deref(), fx),
            StopReason::MaxTokens => self.continue_cut(has_calls, fx),
            StopReason::Pause => self.call_model(1, fx),
            StopReason::ToolUse
            | StopReason::EndTurn
            | StopReason::StopSequence
            | StopReason::Refusal
            | StopReason::ContentFilter
            | StopReason::Other => self.ended(message.as_deref(), stop, fx),
        }
    }

    fn continue_cut(&mut self, in_call: bool, fx: &mut Effects) -> Phase {
        if self.continuations == self.limits.continuations {
            let text = format!(
                "The answer was cut off by the output limit {} times; a higher \
                 `provider.max_tokens` would let it end.",
                self.continuations + 1
            );
            fx.push(Effect::Emit(Event::Notice { level: NoticeLevel::Warning, text }));
            return self.finish(Outcome::Complete { stop: StopReason::MaxTokens }, fx);
        }
        self.continuations += 1;
        let note = if in_call { prompt::CONTINUE_CALL } else { prompt::CONTINUE };
        self.notes.push(note.to_owned());
        self.call_model(1, fx)
    }

    /// The model says that it is done; it may have to be told otherwise.
    fn ended(&mut self, message: Option<&Message>, stop: StopReason, fx: &mut Effects) -> Phase {
        let text = message.map(Message::text_content).unwrap_or_default();
        if stop == StopReason::EndTurn
            && let Some(note) = self.watch.contradicts(&text)
            && self.correct(note).is_ok()
        {
            return self.call_model(1, fx);
        }
        if let Some(command) = self.watch.red_claim(&text) {
            let text = format!("the last run of `{command}` failed; the answer claims success");
            fx.push(Effect::Emit(Event::Notice { level: NoticeLevel::Warning, text }));
        }
        if let Some(why) = prompt::without_answer(stop, message.is_some()) {
            let (level, text) = (NoticeLevel::Warning, why.to_owned());
            fx.push(Effect::Emit(Event::Notice { level, text }));
        }
        if !self.queued.is_empty() {
            return self.call_model(1, fx);
        }
        self.end(Outcome::Complete { stop }, fx)
    }

    fn failed(
        &mut self,
        attempt: u32,
        answer: Accumulator,
        mut error: ProviderError,
        fx: &mut Effects,
    ) -> Phase {
        let wait = self.limits.wait(attempt, &error);
        let may_retry = error.kind.is_transient() && !answer.has_content();
        if may_retry && attempt < self.limits.attempts && wait <= self.limits.wait_max {
            // Tokens of a call that is made again were used all the same.
            self.count(answer.finish().usage, fx);
            let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
            fx.push(Effect::Emit(Event::Retrying { error, attempt: attempt + 1, wait_ms }));
            fx.push(Effect::Sleep(wait));
            return Phase::Backoff { attempt };
        }
        if may_retry && wait > self.limits.wait_max {
            error.message = format!("{} (asks to wait {} s)", error.message, wait.as_secs());
        }
        let kept_partial = self.keep(answer.finish(), fx).is_some();
        self.finish(Outcome::Failed { error, kept_partial }, fx)
    }

    fn cancel(&mut self, busy: Phase, fx: &mut Effects) -> Phase {
        match busy {
            Phase::Idle => Phase::Idle,
            Phase::Backoff { .. } => {
                fx.push(Effect::CancelSleep);
                self.finish(Outcome::Cancelled, fx)
            }
            Phase::Calling { answer, .. } => {
                fx.push(Effect::DropStream);
                self.keep(answer.finish(), fx);
                self.finish(Outcome::Cancelled, fx)
            }
            Phase::Checking(_) => {
                fx.push(Effect::StopCheck);
                self.finish(Outcome::Cancelled, fx)
            }
            Phase::Tools(mut batch) => {
                fx.push(Effect::Emit(Event::State(SessionState::Cancelling)));
                fx.push(Effect::StopTools);
                fx.push(Effect::Sleep(self.limits.grace));
                for call in batch.not_running() {
                    let outcome = ToolOutcome::Interrupted(String::new());
                    self.settle(&mut batch, &call.id, outcome, 0, fx);
                }
                self.stopped(batch, fx)
            }
            stopping @ Phase::Stopping(_) => stopping,
        }
    }

    fn stopped(&mut self, batch: Batch, fx: &mut Effects) -> Phase {
        if !batch.is_over() {
            return Phase::Stopping(batch);
        }
        fx.push(Effect::CancelSleep);
        self.append_results(batch, fx);
        self.finish(Outcome::Cancelled, fx)
    }

    /// Adds an answer to the history, as far as it may stand there, and counts its tokens.
    fn keep(&mut self, mut response: Response, fx: &mut Effects) -> Option<Arc<Message>> {
        self.name_apart(&mut response);
        self.count(response.usage, fx);
        let message = response.into_message(self.origin.clone())?;
        Some(self.append(message, fx))
    }

    /// Gives calls whose id was used before in the conversation another one: some servers count from
    /// 0 in every answer, and others refuse a conversation in which two calls have the same name.
    fn name_apart(&mut self, response: &mut Response) {
        for block in &mut response.content {
            let Content::ToolCall(call) = block else { continue };
            let mut number = 2_u32;
            let own = call.id.clone();
            while !self.call_ids.insert(call.id.clone()) {
                call.id = CallId::new(format!("{own}_{number}"));
                number = number.saturating_add(1);
            }
        }
    }

    fn count(&mut self, usage: Option<Usage>, fx: &mut Effects) {
        if let Some(round) = usage {
            self.usage += round;
            fx.push(Effect::Emit(Event::Usage { round, turn: self.usage }));
        }
    }

    fn append_results(&mut self, batch: Batch, fx: &mut Effects) {
        if let Ok(message) = Message::results(batch.into_results()) {
            self.append(message, fx);
        }
    }

    fn append(&mut self, message: Message, fx: &mut Effects) -> Arc<Message> {
        let message = Arc::new(message);
        self.history.push(Arc::clone(&message));
        fx.push(Effect::Emit(Event::Appended(Arc::clone(&message))));
        message
    }

    /// Puts the model right in the next round, if that has not been tried too often.
    fn correct(&mut self, note: String) -> Result<(), String> {
        if self.watch.corrections == self.limits.corrections {
            return Err(format!(
                "repeats itself and was corrected {} times",
                self.limits.corrections
            ));
        }
        self.watch.corrections += 1;
        self.notes.push(note);
        Ok(())
    }

    fn finish(&mut self, outcome: Outcome, fx: &mut Effects) -> Phase {
        let undelivered = mem::take(&mut self.queued).into_iter().map(Arc::new).collect();
        let (rounds, usage) = (self.rounds, self.usage);
        fx.push(Effect::Emit(Event::TurnEnded { outcome, rounds, usage, undelivered }));
        fx.push(Effect::Emit(Event::State(SessionState::Idle)));
        Phase::Idle
    }
}

/// Repairs arguments that are no JSON, before they reach history, guard or tool.
fn mend(response: &mut Response) {
    for block in &mut response.content {
        if let Content::ToolCall(call) = block
            && call.broken
            && let Ok(text) = call.arguments.read::<String>()
            && let Some(arguments) = repair::arguments(&text)
        {
            call.arguments = arguments;
            call.broken = false;
        }
    }
}

#[cfg(test)]
mod tests;
