//! The life of a session: one place where it waits, and one where it acts on what woke it.

use futures_util::StreamExt as _;
use gnoma_core::{
    Command, ErrorKind, Event, EventStream, Message, ProviderError, StreamEvent,
    session::{PermissionMode, SessionState},
    task::boxed,
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
    state::{Awaited, Ended, Gone, Session},
    verdicts::{Judged, Judging},
};
use crate::{
    asides::Aside,
    planned,
    turn::{Effect, Input},
};

/// Commands that may wait for the session.
const MAX_COMMANDS: usize = 64;
/// Events that may wait for the front end; then the session waits.
const MAX_EVENTS: usize = 256;

/// All that can wake a session.
enum Woke {
    /// A person or the host wants something; `None`: there is no front end any more.
    Order(Option<Order>),
    /// A call has run, or its task was stopped.
    Ended(Result<Ended, JoinError>),
    /// A call was judged.
    Judged(Option<Box<Judged>>),
    /// Work beside the conversation has a notice.
    Aside(Aside),
    /// A running tool wants something.
    Requested(ToolRequest),
    /// A running call shows something.
    Progress(Progress),
    /// The result that the turn waited for has arrived.
    Awaited(Awaited),
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
        let started = started(&options, options.mode);
        let has_checks = options.routes.options.runs_checks();
        let session = Self::new(options, inlet, outlet);
        let rights = session.gate.rights.clone();
        let mut task = JoinSet::new();
        task.spawn(boxed(session.live(started)));
        Handle { orders, events, rights, has_checks, _task: task }
    }

    async fn live(mut self, started: Event) {
        if self.run(started).await.is_err() {
            // Nobody is there to hear of it; what the turn has done is kept all the same.
            let _unheard = self.take(Input::Close).await;
        }
        self.stream = None;
        self.running.shutdown().await;
        self.end_additions().await;
        if let Some(why) = self.end_spending().await {
            let _gone = self.complain(why).await;
        }
        self.persistence.close().await;
        while let Ok(aside) = self.persistence.asides.try_recv() {
            let _gone = self.emit(notice(aside)).await;
        }
        let _gone = self.take(Input::Closed).await;
    }

    async fn run(&mut self, started: Event) -> Result<(), Gone> {
        self.emit(started).await?;
        if !self.turn.history().is_empty() {
            self.tell_context().await?;
        }
        if let Some(steps) = planned::of(self.turn.history()) {
            self.emit(Event::PlanChanged { steps }).await?;
        }
        if let Some(thinking) = self.router.thinking.mode {
            self.emit(Event::ThinkingChanged { thinking: Some(thinking) }).await?;
        }
        self.begin_additions();
        while self.orders.is_some() || !self.turn.is_idle() {
            let woke = self.next().await;
            self.handle(woke).await?;
        }
        Ok(())
    }

    /// Waits. In this order: people, then results, then what tools show, then tokens.
    async fn next(&mut self) -> Woke {
        let silent_until = self.silent_until();
        tokio::select! {
            biased;
            order = ordered(&mut self.orders) => Woke::Order(order),
            Some(ended) = self.running.join_next() => Woke::Ended(ended),
            judged = self.judging.next() => Woke::Judged(judged.map(Box::new)),
            Some(aside) = self.persistence.asides.recv() => Woke::Aside(aside),
            request = self.pending.next() => Woke::Requested(request),
            Some(progress) = self.progress.1.recv() => Woke::Progress(progress),
            reply = replied(&mut self.waiting) => Woke::Awaited(reply),
            event = heard(&mut self.stream) => Woke::Model(event),
            () = woken(self.wake) => Woke::Timer,
            () = woken(silent_until) => Woke::Silence,
        }
    }

    /// Acts on the event that woke the session.
    async fn handle(&mut self, woke: Woke) -> Result<(), Gone> {
        match woke {
            Woke::Order(Some(Order::Command(command))) => self.command(command).await,
            Woke::Order(Some(Order::Tools(tools))) => {
                self.tools.next = Some(tools);
                Ok(())
            }
            Woke::Order(Some(Order::ProveAgain)) => self.prove_again().await,
            Woke::Order(None) => self.close().await,
            Woke::Ended(Ok(ended)) => {
                // What it showed came before its end, whichever is heard first.
                while let Ok(progress) = self.progress.1.try_recv() {
                    self.progressed(progress).await?;
                }
                self.ended(ended).await
            }
            Woke::Ended(Err(_stopped)) => Ok(()),
            Woke::Judged(judged) => self.judged(judged.map(|judged| *judged)).await,
            Woke::Aside(aside) => self.emit(notice(aside)).await,
            Woke::Requested(request) => self.requested(request).await,
            Woke::Progress(progress) => self.progressed(progress).await,
            Woke::Awaited(reply) => self.replied(reply).await,
            Woke::Model(event) => self.heard(event).await,
            Woke::Timer => {
                self.wake = None;
                self.take(Input::Woke).await
            }
            Woke::Silence => self.silent().await,
        }
    }

    /// A running call shows something. Of one that is over, nothing is shown any more.
    pub(super) async fn progressed(&mut self, progress: Progress) -> Result<(), Gone> {
        let Progress { call, text } = progress;
        match self.turn.call(&call) {
            Some(_) => self.emit(Event::ToolProgress { call, text }).await,
            None => Ok(()),
        }
    }

    async fn command(&mut self, command: Command) -> Result<(), Gone> {
        match command {
            Command::Send { content } => match Message::user(content) {
                Ok(message) => self.take(Input::Say(message)).await,
                Err(_empty) => Ok(()),
            },
            Command::EditQueue { was, queue } => {
                let messages = queue.into_iter().filter_map(|content| Message::user(content).ok());
                self.take(Input::Queue { was, now: messages.collect() }).await
            }
            Command::Answer { call, answer } => match self.tool_answered(&call, answer).await? {
                Some(answer) => self.take(Input::Answered(call, answer)).await,
                None => Ok(()),
            },
            Command::SetMode { mode } => {
                self.gate.rights.set_mode(mode);
                self.emit(Event::ModeChanged { mode }).await
            }
            Command::SetThinking { thinking } => {
                self.router.thinking.set(thinking);
                self.emit(Event::ThinkingChanged { thinking }).await
            }
            Command::Pin { arm } => self.pin(arm).await,
            Command::Rate { good } => self.rate(good).await,
            Command::Compact { focus } => self.take(Input::Compact { focus }).await,
            Command::EditSummary { summary } => self.take(Input::EditSummary { summary }).await,
            Command::UndoCompaction => self.take(Input::UndoCompaction).await,
            Command::RunStep(step) => {
                self.added.next_step = Some(step);
                self.follow().await
            }
            Command::Notify { text } => {
                self.notify_hooks(text);
                Ok(())
            }
            Command::Cancel => {
                self.added.next_step = None;
                if self.turn.is_idle() {
                    std::mem::take(&mut self.stop).cancel();
                }
                self.take(Input::Cancel).await
            }
            Command::Close => self.close().await,
        }
    }

    async fn close(&mut self) -> Result<(), Gone> {
        self.orders = None;
        self.added.next_step = None;
        self.take(Input::Close).await
    }

    async fn replied(&mut self, reply: Awaited) -> Result<(), Gone> {
        match reply {
            Awaited::Task(task, shares, levels) => self.begin(task, shares, levels).await?,
            Awaited::Room(reserved) => self.reserved(reserved).await?,
            Awaited::Summary(told, shares) => self.summarized(told, shares).await?,
            Awaited::Conferred(way, shares) => self.conferred(way.ok(), &shares).await?,
            Awaited::Reviewed(reviewed) => self.reviewed(reviewed).await?,
            Awaited::Prepared(prepared) => self.is_prepared(prepared),
            Awaited::Stopping(answer) => self.inbox.push_back(Input::MayStop(answer)),
        }
        self.follow().await
    }

    /// Feeds one fact to the machine and performs all that follows from it.
    pub(super) async fn take(&mut self, input: Input) -> Result<(), Gone> {
        self.inbox.push_back(input);
        self.follow().await
    }

    /// Feeds the facts that came up meanwhile.
    pub(super) async fn follow(&mut self) -> Result<(), Gone> {
        loop {
            if self.inbox.is_empty() && self.added.next_step.is_some() {
                self.begin_step().await?;
            }
            let Some(input) = self.inbox.pop_front() else { return Ok(()) };
            self.take_next_tools();
            let mut effects = std::mem::take(&mut self.effects);
            self.turn.on(input, &mut effects);
            self.turn_ends = effects.iter().any(ends_turn);
            for effect in effects.drain(..) {
                self.perform(effect).await?;
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
            self.turn.offer(self.tools.callable(), self.tools.may_start());
        }
    }

    /// Within a turn, before a model is asked again, tools that came are on offer; those that are to go
    /// stay until it ends.
    pub(super) fn add_next_tools(&mut self) {
        if self.tools.add_next() {
            self.turn.offer(self.tools.callable(), self.tools.may_start());
        }
    }

    async fn perform(&mut self, effect: Effect) -> Result<(), Gone> {
        match effect {
            Effect::Prepare(text) => self.prepare(text),
            Effect::BeforeStop { is_again, last_words } => {
                self.before_stop(is_again, last_words);
            }
            Effect::Route => self.route().await?,
            Effect::Reserve { may_compact } => self.reserve(may_compact).await?,
            Effect::CallModel { round, attempt } => self.call_model(round, attempt).await?,
            Effect::DropStream => {
                self.stream = None;
                self.drop_call();
            }
            Effect::FailOver { error, attempt, has_content, was_called } => {
                self.fail_over(error, attempt, has_content, was_called);
            }
            Effect::Compact(wish) => self.compact(wish).await?,
            Effect::Confer => self.confer(),
            Effect::Check(outcome) => self.check(&outcome).await?,
            Effect::Review => self.review().await?,
            Effect::Conclude(finding) => self.conclude(finding).await?,
            Effect::StopWaiting => self.waiting = None,
            Effect::Judge(call) => self.judge(call),
            Effect::Remember { call, rule } => self.remember(&call, rule).await?,
            Effect::LetOutside(call) => self.gate.let_outside(&call),
            Effect::RunTool(call) => self.run_tool(&call, false),
            Effect::RunCheck(call) => self.run_tool(&call, true),
            Effect::StopTools => {
                let ready = self.judging.ready.take();
                self.judging = Judging { ready, ..Judging::default() };
                std::mem::take(&mut self.stop).cancel();
                self.take_back(None).await?;
            }
            Effect::AbortTools => self.running.abort_all(),
            Effect::Sleep(wait) => self.wake = Some(Instant::now() + wait),
            Effect::CancelSleep => self.wake = None,
            Effect::Emit(event) => {
                let state = if let Event::State(state) = event { Some(state) } else { None };
                self.emit(event).await?;
                match state {
                    Some(SessionState::Idle) => self.ask_again().await?,
                    // Also what calls have started that are over.
                    Some(SessionState::Cancelling) => std::mem::take(&mut self.stop).cancel(),
                    Some(SessionState::Active | SessionState::Closed) | None => (),
                }
            }
        }
        Ok(())
    }
}

fn started(options: &Options, mode: PermissionMode) -> Event {
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

fn notice((level, text): Aside) -> Event {
    Event::Notice { level, text }
}

fn ends_turn(effect: &Effect) -> bool {
    matches!(effect, Effect::Emit(Event::TurnEnded { .. }))
}

/// Waits for the next order. After the end of the session it never returns.
async fn ordered(orders: &mut Option<mpsc::Receiver<Order>>) -> Option<Order> {
    match orders {
        None => std::future::pending().await,
        Some(orders) => orders.recv().await,
    }
}

/// Waits for the result that the turn waits for. If it waits for nothing, this never returns. Safe to drop.
async fn replied(waiting: &mut Option<BoxFuture<'static, Awaited>>) -> Awaited {
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
async fn heard(stream: &mut Option<EventStream>) -> Result<StreamEvent, ProviderError> {
    match stream {
        None => std::future::pending().await,
        Some(stream) => stream.next().await.unwrap_or_else(|| {
            let message = "the answer ended before it was complete";
            Err(ProviderError::new(ErrorKind::Network, "provider", message))
        }),
    }
}

async fn woken(at: Option<Instant>) {
    match at {
        None => std::future::pending().await,
        Some(at) => sleep_until(at).await,
    }
}
