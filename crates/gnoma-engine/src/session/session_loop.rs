//! The life of a session: one place where it waits, and one where it acts on what woke it.

use futures_util::StreamExt as _;
use gnoma_core::{
    Command, ErrorKind, Event, EventStream, Message, ProviderError, StreamEvent,
    session::{PermissionMode, SessionState},
    task::box_future,
    tool::{BoxFuture, Progress},
};
use tokio::{
    sync::mpsc,
    task::{JoinError, JoinSet},
    time::{Instant, sleep_until},
};

use super::{
    handle::{Handle, Options, Order},
    pending::ToolRequest,
    state::{FinishedCall, FrontEnd, FrontEndGone, PendingWork, Session},
    verdicts::{JudgedCall, JudgementQueue},
};
use crate::{
    call::CallInput,
    conversation_plan,
    effect::{CallEffect, Effect, Timer},
    session_notices::SessionNotice,
    turn::{FinishInput, Input, SummaryCommand},
};

/// Commands that may wait for the session.
const MAX_COMMANDS: usize = 64;
/// Events that may wait for the front end; then the session waits.
const MAX_EVENTS: usize = 256;

/// All that can wake a session.
enum Wakeup {
    /// A person or the host wants something; `None`: there is no front end any more.
    Order(Option<Order>),
    /// A call has run, or its task was stopped.
    Ended(Result<FinishedCall, JoinError>),
    /// A call was judged.
    Judged(Option<Box<JudgedCall>>),
    /// Work beside the conversation has a notice.
    Aside(SessionNotice),
    /// A running tool wants something.
    Requested(ToolRequest),
    /// A running call shows something.
    Progress(Progress),
    /// The result that the turn waited for has arrived.
    Awaited(PendingWork),
    /// The model's stream gave something.
    Model(Result<StreamEvent, ProviderError>),
    /// A wait is over.
    Timer,
    /// The model has sent nothing of its answer for a long time.
    Silence,
}

impl Session {
    /// Starts a session on the current runtime.
    #[must_use]
    pub fn spawn(options: Options) -> Handle {
        let (orders, inlet) = mpsc::channel(MAX_COMMANDS);
        let (outlet, events) = mpsc::channel(MAX_EVENTS);
        let started = started_event(&options, options.mode);
        let has_checks = options.routes.settings.runs_checks();
        let session = Self::new(options, FrontEnd { orders: Some(inlet), events: outlet });
        let rights = session.gate.rights.clone();
        let mut task = JoinSet::new();
        task.spawn(box_future(session.run_to_end(started)));
        Handle { orders, events, rights, has_checks, _task: task }
    }

    async fn run_to_end(mut self, started: Event) {
        if self.run(started).await.is_err() {
            // No front end hears of it; the work of the turn is saved all the same.
            let _unheard = self.feed_input(Input::Close).await;
        }
        self.stream = None;
        self.running.shutdown().await;
        self.end_additions().await;
        if let Some(error) = self.end_spending().await {
            let _gone = self.warn_save_failure(error).await;
        }
        self.persistence.close().await;
        while let Ok(aside) = self.persistence.asides.try_recv() {
            let _gone = self.emit(notice_event(aside)).await;
        }
        let _gone = self.feed_input(Input::Closed).await;
    }

    async fn run(&mut self, started: Event) -> Result<(), FrontEndGone> {
        self.emit(started).await?;
        if !self.turn.history().is_empty() {
            self.tell_context().await?;
        }
        if let Some(steps) = conversation_plan::current_plan(self.turn.history()) {
            self.emit(Event::PlanChanged { steps }).await?;
        }
        if let Some(thinking) = self.router.thinking.mode {
            self.emit(Event::ThinkingChanged { thinking: Some(thinking) }).await?;
        }
        self.begin_additions();
        while self.front_end.orders.is_some() || !self.turn.is_idle() {
            let woke = self.next().await;
            self.handle_wakeup(woke).await?;
        }
        Ok(())
    }

    /// Waits. In this order: people, then results, then what tools show, then tokens.
    async fn next(&mut self) -> Wakeup {
        let silent_until = self.silent_until();
        tokio::select! {
            biased;
            order = next_order(&mut self.front_end.orders) => Wakeup::Order(order),
            Some(ended) = self.running.join_next() => Wakeup::Ended(ended),
            judged = self.judging.next() => Wakeup::Judged(judged.map(Box::new)),
            Some(aside) = self.persistence.asides.recv() => Wakeup::Aside(aside),
            request = self.pending.next() => Wakeup::Requested(request),
            Some(progress) = self.progress.1.recv() => Wakeup::Progress(progress),
            reply = next_reply(&mut self.waiting) => Wakeup::Awaited(reply),
            event = next_stream_event(&mut self.stream) => Wakeup::Model(event),
            () = wait_until(self.wake.map(|(_, at)| at)) => Wakeup::Timer,
            () = wait_until(silent_until) => Wakeup::Silence,
        }
    }

    /// Acts on the event that woke the session.
    async fn handle_wakeup(&mut self, woke: Wakeup) -> Result<(), FrontEndGone> {
        match woke {
            Wakeup::Order(Some(Order::Command(command))) => self.handle_command(command).await,
            Wakeup::Order(Some(Order::Tools(tools))) => {
                self.tools.next = Some(tools);
                Ok(())
            }
            Wakeup::Order(Some(Order::ProveAgain)) => self.prove_again().await,
            Wakeup::Order(None) => self.close().await,
            Wakeup::Ended(Ok(ended)) => {
                // What it showed came before its end, whichever is heard first.
                while let Ok(progress) = self.progress.1.try_recv() {
                    self.emit_progress(progress).await?;
                }
                self.on_call_ended(ended).await
            }
            Wakeup::Ended(Err(_stopped)) => Ok(()),
            Wakeup::Judged(judged) => self.on_judgement(judged.map(|judged| *judged)).await,
            Wakeup::Aside(aside) => self.emit(notice_event(aside)).await,
            Wakeup::Requested(request) => self.on_tool_request(request).await,
            Wakeup::Progress(progress) => self.emit_progress(progress).await,
            Wakeup::Awaited(reply) => self.handle_reply(reply).await,
            Wakeup::Model(event) => self.on_stream_event(event).await,
            Wakeup::Timer => match self.wake.take() {
                Some((Timer::Backoff, _)) => self.feed_input(CallInput::BackoffOver.into()).await,
                Some((Timer::Grace, _)) => self.feed_input(Input::GraceOver).await,
                None => Ok(()),
            },
            Wakeup::Silence => self.on_silence().await,
        }
    }

    /// A running call shows something. Of one that is over, nothing is shown any more.
    pub(super) async fn emit_progress(&mut self, progress: Progress) -> Result<(), FrontEndGone> {
        let Progress { call, text } = progress;
        match self.turn.open_call(&call) {
            Some(_) => self.emit(Event::ToolProgress { call, text }).await,
            None => Ok(()),
        }
    }

    async fn handle_command(&mut self, command: Command) -> Result<(), FrontEndGone> {
        match command {
            Command::Send { content } => match Message::user(content) {
                Ok(message) => self.feed_input(Input::Say(message)).await,
                Err(_empty) => Ok(()),
            },
            Command::EditQueue { was, queue } => {
                let messages = queue.into_iter().filter_map(|content| Message::user(content).ok());
                self.feed_input(Input::Queue { was, now: messages.collect() }).await
            }
            Command::Answer { call, answer } => match self.tool_answered(&call, answer).await? {
                Some(answer) => self.feed_input(Input::Answered(call, answer)).await,
                None => Ok(()),
            },
            Command::SetMode { mode } => {
                self.gate.rights.set_mode(mode);
                self.emit(Event::ModeChanged { mode }).await
            }
            Command::SetThinking { thinking } => {
                self.router.thinking.set_mode(thinking);
                self.emit(Event::ThinkingChanged { thinking }).await
            }
            Command::Pin { arm } => self.pin_arm(arm).await,
            Command::Rate { good } => self.rate_turn(good).await,
            Command::Compact { focus } => {
                self.feed_input(Input::Summary(SummaryCommand::Compact { focus })).await
            }
            Command::EditSummary { summary } => {
                self.feed_input(Input::Summary(SummaryCommand::Edit { summary })).await
            }
            Command::UndoCompaction => self.feed_input(Input::Summary(SummaryCommand::Undo)).await,
            Command::RunStep(step) => {
                self.added.next_step = Some(step);
                self.drain_inbox().await
            }
            Command::Notify { text } => {
                self.notify_hooks(text);
                Ok(())
            }
            Command::Cancel => self.cancel_turn().await,
            Command::Close => self.close().await,
        }
    }

    /// Cancels the turn and the step after it, or what runs while no turn does.
    async fn cancel_turn(&mut self) -> Result<(), FrontEndGone> {
        self.added.next_step = None;
        if self.turn.is_idle() {
            std::mem::take(&mut self.stop).cancel();
        }
        self.feed_input(Input::Cancel).await
    }

    async fn close(&mut self) -> Result<(), FrontEndGone> {
        self.front_end.orders = None;
        self.added.next_step = None;
        self.feed_input(Input::Close).await
    }

    async fn handle_reply(&mut self, reply: PendingWork) -> Result<(), FrontEndGone> {
        match reply {
            PendingWork::Task(task, shares, levels, failure) => {
                self.tell_classifier_failure(failure).await?;
                self.begin_route(&task, shares, levels).await?;
            }
            PendingWork::Room(reserved) => self.on_reservation(reserved).await?,
            PendingWork::Summary(told, shares) => self.finish_compaction(told, shares).await?,
            PendingWork::Conferred(way, shares) => self.finish_panel(way.ok(), &shares).await?,
            PendingWork::Reviewed(reviewed) => self.finish_review(reviewed).await?,
            PendingWork::Prepared(prepared) => self.is_prepared(prepared),
            PendingWork::Stopping(answer) => {
                self.inbox.push_back(FinishInput::MayStop(answer).into());
            }
        }
        self.drain_inbox().await
    }

    /// Feeds one fact to the machine and performs all that follows from it.
    pub(super) async fn feed_input(&mut self, input: Input) -> Result<(), FrontEndGone> {
        self.inbox.push_back(input);
        self.drain_inbox().await
    }

    /// Feeds the facts that came up meanwhile.
    pub(super) async fn drain_inbox(&mut self) -> Result<(), FrontEndGone> {
        loop {
            if self.inbox.is_empty() && self.added.next_step.is_some() {
                self.begin_step().await?;
            }
            let Some(input) = self.inbox.pop_front() else { return Ok(()) };
            self.take_next_tools();
            let mut effects = std::mem::take(&mut self.effects);
            self.turn.handle_input(input, &mut effects);
            self.turn_ends = effects.iter().any(ends_turn);
            for effect in effects.drain(..) {
                self.perform_effect(effect).await?;
            }
            self.effects = effects;
        }
    }

    /// Between turns, the tools that were given meanwhile come into effect.
    fn take_next_tools(&mut self) {
        if self.turn.is_idle()
            && let Some(tools) = self.tools.next.take()
        {
            self.tools.replace(tools);
            self.turn.handle_input(self.tools.to_input(), &mut self.effects);
        }
    }

    /// Within a turn, before a model is asked again, tools that came are on offer; those that are to go
    /// stay until it ends.
    pub(super) fn add_next_tools(&mut self) {
        if self.tools.add_next() {
            self.turn.handle_input(self.tools.to_input(), &mut self.effects);
        }
    }

    async fn perform_effect(&mut self, effect: Effect) -> Result<(), FrontEndGone> {
        match effect {
            Effect::Prepare(text) => self.prepare_message(text),
            Effect::BeforeStop { is_again, last_words } => {
                self.before_stop(is_again, last_words);
            }
            Effect::Call(effect) => self.perform_call_effect(effect).await?,
            Effect::Summarize(request) => self.start_compaction(request).await?,
            Effect::Confer => self.start_panel(),
            Effect::Check(outcome) => self.start_verification(&outcome).await?,
            Effect::Review => self.start_review().await?,
            Effect::Conclude { finding, may_continue } => {
                self.apply_finding(finding, may_continue).await?;
            }
            Effect::StopWaiting => self.waiting = None,
            Effect::Judge(call) => self.queue_judgement(call),
            Effect::Remember { call, rule } => self.remember_answer(&call, rule).await?,
            Effect::LetOutside(call) => self.gate.let_outside(&call),
            Effect::RunTool(call) => self.run_tool(&call, false),
            Effect::RunCheck(call) => self.run_tool(&call, true),
            Effect::StopTools => self.stop_tools().await?,
            Effect::AbortTools => self.running.abort_all(),
            Effect::SetTimer(timer) => {
                self.wake = timer.map(|(timer, wait)| (timer, Instant::now() + wait));
            }
            Effect::Emit(event) => self.emit_from_turn(event).await?,
        }
        Ok(())
    }

    /// Performs an effect of the call to a model.
    async fn perform_call_effect(&mut self, effect: CallEffect) -> Result<(), FrontEndGone> {
        match effect {
            CallEffect::Choose => self.route_turn().await,
            CallEffect::Reserve { may_compact } => self.reserve_call(may_compact).await,
            CallEffect::OpenStream { round, attempt } => self.call_model(round, attempt).await,
            CallEffect::CloseStream => {
                self.stream = None;
                self.drop_call();
                Ok(())
            }
            CallEffect::Settle(reported) => self.settle_call(reported).await,
            CallEffect::FailOver { error, attempt, has_content, was_called } => {
                self.fail_over(error, attempt, has_content, was_called);
                Ok(())
            }
        }
    }

    /// Stops running calls, and drops those that are not judged yet and all open questions.
    async fn stop_tools(&mut self) -> Result<(), FrontEndGone> {
        let ready = self.judging.ready.take();
        self.judging = JudgementQueue { ready, ..JudgementQueue::default() };
        std::mem::take(&mut self.stop).cancel();
        self.take_back(None).await
    }

    /// Emits an event of the turn, and does what follows from a new state.
    async fn emit_from_turn(&mut self, event: Event) -> Result<(), FrontEndGone> {
        let state = if let Event::State(state) = event { Some(state) } else { None };
        self.emit(event).await?;
        match state {
            Some(SessionState::Idle) => self.ask_again().await?,
            // Also what calls have started that are over.
            Some(SessionState::Cancelling) => std::mem::take(&mut self.stop).cancel(),
            Some(SessionState::Active | SessionState::Closed) | None => (),
        }
        Ok(())
    }
}

fn started_event(options: &Options, mode: PermissionMode) -> Event {
    let specs = options.tools.iter().map(|tool| tool.spec());
    let offered = specs.filter(|spec| !spec.kind.is_of_agent());
    Event::Started {
        session: options.id.clone(),
        cwd: options.place.cwd.display().to_string(),
        tools: offered.map(|spec| spec.name.clone()).collect(),
        mode,
        messages: options.history.len() as u64,
    }
}

fn notice_event((level, text): SessionNotice) -> Event {
    Event::Notice { level, text }
}

fn ends_turn(effect: &Effect) -> bool {
    matches!(effect, Effect::Emit(Event::TurnEnded { .. }))
}

/// Waits for the next order. After the end of the session it never returns.
async fn next_order(orders: &mut Option<mpsc::Receiver<Order>>) -> Option<Order> {
    match orders {
        None => std::future::pending().await,
        Some(orders) => orders.recv().await,
    }
}

/// Waits for the result that the turn waits for. If it waits for nothing, this never returns. Safe to drop.
async fn next_reply(waiting: &mut Option<BoxFuture<'static, PendingWork>>) -> PendingWork {
    match waiting {
        None => std::future::pending().await,
        Some(wait) => {
            let reply = wait.await;
            *waiting = None;
            reply
        }
    }
}

/// The stream's next event; an end without a stop is a failure. Without a stream: never.
async fn next_stream_event(stream: &mut Option<EventStream>) -> Result<StreamEvent, ProviderError> {
    match stream {
        None => std::future::pending().await,
        Some(stream) => stream.next().await.unwrap_or_else(|| {
            let message = "the answer ended before it was complete";
            Err(ProviderError::new(ErrorKind::Network, "provider", message))
        }),
    }
}

async fn wait_until(at: Option<Instant>) {
    match at {
        None => std::future::pending().await,
        Some(at) => sleep_until(at).await,
    }
}
