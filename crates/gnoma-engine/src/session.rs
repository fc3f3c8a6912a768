//! Drives a [`Turn`]: performs its wishes, reports the facts.
//!
//! One task owns everything that changes. Front ends hold a [`Handle`]: commands go in, events come
//! out, both over bounded channels, so a front end that does not read slows the model's stream down
//! instead of filling memory. Dropping the handle stops the session and all it started.

mod asking;
mod compacting;
mod toolset;
mod way;

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt;
use gnoma_core::{
    Command, ErrorKind, Event, EventStream, Message, ModelRequest, ProviderError, StreamEvent,
    Tool, ToolChoice, ToolOutcome, ToolSpec,
    message::CallId,
    session::{Answer, NoticeLevel, PermissionMode, SessionState},
    tool::{Progress, Spawner, Tier, ToolKind},
};
use gnoma_guard::{firewall::Firewall, permission::Permissions};
use gnoma_router::pool::Scope;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use self::{asking::ToolWishes, compacting::Compacting, toolset::Toolset, way::Way};
use crate::{
    arm::Arm,
    asides::Aside,
    gate::{Gate, Place},
    keeper::Keeper,
    keeping::Keeping,
    prompt,
    routing::{Routes, several},
    turn::{Effect, Input, Limits, Turn},
};

/// Commands that may wait for the session.
const MAX_COMMANDS: usize = 64;
/// Events that may wait for the front end; then the session waits.
const MAX_EVENTS: usize = 256;
/// Pieces of tool output that may wait; more are dropped, they are only for watching.
const MAX_PROGRESS: usize = 256;

/// What a session is made of.
pub struct Options {
    /// Names the session in events and files.
    pub id: String,
    /// Where it works.
    pub place: Place,
    /// The tools, in the order they are offered.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The models that may be asked, and how one is chosen.
    pub routes: Arc<Routes>,
    /// System prompt for an arm that gets the tools of that tier.
    pub system: Box<dyn Fn(Tier) -> String + Send + Sync>,
    /// How much is asked before tools run.
    pub mode: PermissionMode,
    /// Exceptions from it.
    pub permissions: Permissions,
    /// What stands between secrets and models; the arms' providers go through the same one.
    pub firewall: Arc<Firewall>,
    /// Somebody can answer permission questions.
    pub interactive: bool,
    /// Numbers turns stay within.
    pub limits: Limits,
    /// Conversation to continue.
    pub history: Vec<Arc<Message>>,
    /// What of it outlives the session.
    pub keeping: Keeping,
    /// Whose money it spends, where another session started it (see [`Scope::child`]); `None`: its
    /// own, counted by `id`.
    pub scope: Option<Scope>,
    /// Who can start other sessions for its tools.
    pub spawner: Option<Arc<dyn Spawner>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A front end's end of a session.
#[derive(Debug)]
pub struct Handle {
    orders: mpsc::Sender<Order>,
    events: mpsc::Receiver<Event>,
    _task: JoinSet<()>,
}

impl Handle {
    /// Tells the session something. False when it is closed or does not keep up.
    pub fn tell(&self, command: Command) -> bool {
        self.orders.try_send(Order::Command(command)).is_ok()
    }

    /// From the next turn on these are the session's tools. Those that stay keep their order and those
    /// that come follow them, whatever their order here; of two with one name the first counts. False
    /// when the session is closed or does not keep up.
    pub fn tools_changed(&self, tools: Vec<Arc<dyn Tool>>) -> bool {
        self.orders.try_send(Order::Tools(tools)).is_ok()
    }

    /// The next event; `None` once the session is closed. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.recv().await
    }

    /// The next event, if one is there already.
    pub fn ready(&mut self) -> Option<Event> {
        self.events.try_recv().ok()
    }
}

/// What comes in by a [`Handle`].
enum Order {
    Command(Command),
    Tools(Vec<Arc<dyn Tool>>),
}

/// A session's task.
pub struct Session {
    turn: Turn,
    tools: Toolset,
    cwd: Arc<PathBuf>,
    roots: Arc<[PathBuf]>,
    way: Way,
    compacting: Compacting,
    systems: HashMap<Tier, Arc<str>>,
    /// What stands before the conversation for small models; kept, so that it is encoded once.
    example: Option<Vec<Arc<Message>>>,
    system: Box<dyn Fn(Tier) -> String + Send + Sync>,
    gate: Gate,
    firewall: Arc<Firewall>,
    /// Calls that the sandbox stopped and that a person may let run outside it.
    held: HashMap<CallId, Held>,
    /// What running tools want.
    wishes: ToolWishes,
    keeper: Keeper,
    /// The tool by which the model that was called last can read large results back; where it has it,
    /// they are put away.
    shelves: Option<Arc<ToolSpec>>,
    /// The wishes being performed end the turn.
    turn_ends: bool,
    events: mpsc::Sender<Event>,
    stream: Option<EventStream>,
    running: JoinSet<Input>,
    stop: CancellationToken,
    progress: (mpsc::Sender<Progress>, mpsc::Receiver<Progress>),
    wake: Option<Instant>,
    /// Facts that came up while wishes were performed.
    inbox: VecDeque<Input>,
    /// Kept between facts, so that a delta allocates nothing for its wishes.
    effects: Vec<Effect>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("turn", &self.turn).finish_non_exhaustive()
    }
}

/// The front end is gone, or asked for the end.
struct Closed;

/// A call that has ended, unless it is run again.
struct Held {
    outcome: ToolOutcome,
    duration_ms: u64,
}

impl Session {
    /// Starts a session on the current runtime.
    #[must_use]
    pub fn spawn(options: Options) -> Handle {
        let (orders, inlet) = mpsc::channel(MAX_COMMANDS);
        let (outlet, events) = mpsc::channel(MAX_EVENTS);
        let started = Event::Started {
            session: options.id.clone(),
            cwd: options.place.cwd.display().to_string(),
            tools: options.tools.iter().map(|tool| tool.spec().name.clone()).collect(),
            mode: options.mode,
            messages: options.history.len() as u64,
        };
        let session = Self::new(options, outlet);
        let mut task = JoinSet::new();
        task.spawn(session.live(inlet, started));
        Handle { orders, events, _task: task }
    }

    fn new(options: Options, events: mpsc::Sender<Event>) -> Self {
        let tools = Toolset::new(options.tools);
        let place = options.place;
        let scope = options.scope.unwrap_or_else(|| Scope::new(options.id));
        let way = Way::new(options.routes, scope, &options.history);
        let wishes = ToolWishes::new(options.interactive, options.spawner, Arc::clone(way.scope()));
        let (cwd, roots) = (place.cwd.clone(), place.roots.clone());
        let firewall = options.firewall;
        let keeper =
            Keeper::new(options.keeping, &firewall, &options.limits, options.history.len());
        let gate = Gate::new(
            options.mode,
            options.permissions,
            place,
            options.interactive,
            Arc::clone(&firewall),
        );
        Self {
            turn: Turn::new(options.history, &tools.full, options.limits),
            tools,
            cwd: Arc::new(cwd),
            roots: roots.into(),
            way,
            compacting: Compacting::default(),
            systems: HashMap::new(),
            example: None,
            system: options.system,
            gate,
            firewall,
            held: HashMap::new(),
            wishes,
            keeper,
            shelves: None,
            turn_ends: false,
            events,
            stream: None,
            running: JoinSet::new(),
            stop: CancellationToken::new(),
            progress: mpsc::channel(MAX_PROGRESS),
            wake: None,
            inbox: VecDeque::new(),
            effects: Vec::new(),
        }
    }

    async fn live(mut self, mut orders: mpsc::Receiver<Order>, started: Event) {
        let _ended = self.run(&mut orders, started).await;
        // A front end that is still there sees the cancelled turn end; for one that is gone the
        // machine is stopped all the same.
        while !self.turn.is_idle() {
            if self.take(Input::Cancel).await.is_err() || self.settle_cancelled().await.is_err() {
                break;
            }
        }
        self.running.shutdown().await;
        if let Some(why) = self.way.close().await {
            let _gone = self.complain(why).await;
        }
        self.keeper.close().await;
        while let Ok(aside) = self.keeper.asides.try_recv() {
            let _gone = self.events.send(notice(aside)).await;
        }
        let _gone = self.events.send(Event::State(SessionState::Closed)).await;
    }

    async fn run(
        &mut self,
        orders: &mut mpsc::Receiver<Order>,
        started: Event,
    ) -> Result<(), Closed> {
        self.emit(started).await?;
        loop {
            // In this order: people, then results, then what tools show, then tokens.
            let input = tokio::select! {
                biased;
                order = orders.recv() => match self.order(order.ok_or(Closed)?).await? {
                    Some(input) => input,
                    None => continue,
                },
                Some(done) = self.running.join_next() => match done {
                    Ok(done) => match self.ended(done).await? {
                        Some(input) => input,
                        None => continue,
                    },
                    Err(_aborted) => continue,
                },
                Some(aside) = self.keeper.asides.recv() => {
                    self.emit(notice(aside)).await?;
                    continue;
                }
                Some(wish) = self.wishes.next() => {
                    self.wished(wish).await?;
                    continue;
                }
                Some(Progress { call, text }) = self.progress.1.recv() => {
                    self.emit(Event::ToolProgress { call, text }).await?;
                    continue;
                }
                came = self.way.came() => {
                    self.go_on(came).await?;
                    self.follow().await?;
                    continue;
                }
                event = next(&mut self.stream) => match self.heard(event).await? {
                    Some(input) => input,
                    None => continue,
                },
                () = woken(self.wake) => {
                    self.wake = None;
                    Input::Woke
                }
            };
            self.take(input).await?;
        }
    }

    /// After a cancel: waits for running tools, at most for their grace.
    async fn settle_cancelled(&mut self) -> Result<(), Closed> {
        while !self.turn.is_idle() {
            let input = tokio::select! {
                biased;
                Some(done) = self.running.join_next() => match done {
                    Ok(input) => input,
                    Err(_aborted) => continue,
                },
                () = woken(self.wake) => {
                    self.wake = None;
                    Input::Woke
                }
            };
            self.take(input).await?;
        }
        Ok(())
    }

    async fn order(&mut self, order: Order) -> Result<Option<Input>, Closed> {
        match order {
            Order::Command(command) => self.command(command).await,
            Order::Tools(tools) => {
                self.tools.next = Some(tools);
                Ok(None)
            }
        }
    }

    /// Between turns, the tools that were given meanwhile come into effect.
    fn take_next_tools(&mut self) {
        if self.turn.is_idle()
            && let Some(tools) = self.tools.next.take()
        {
            self.tools.replace(tools);
            self.turn.offer(&self.tools.full);
        }
    }

    async fn command(&mut self, command: Command) -> Result<Option<Input>, Closed> {
        Ok(match command {
            Command::Send { content } => {
                Message::user(content).ok().and_then(|message| self.said(message))
            }
            Command::Answer { call, answer } => return self.answered(call, answer).await,
            Command::SetMode { mode } => {
                self.gate.mode = mode;
                self.emit(Event::ModeChanged { mode }).await?;
                None
            }
            Command::Pin { arm } => {
                self.pin(arm).await?;
                None
            }
            Command::Rate { good } => {
                self.rate(good).await?;
                None
            }
            Command::Compact { focus } => {
                self.compact(focus).await?;
                None
            }
            Command::Cancel => self.cancelled().await?,
            Command::Close => return Err(Closed),
        })
    }

    async fn answered(&mut self, call: CallId, answer: Answer) -> Result<Option<Input>, Closed> {
        let Some(answer) = self.tool_answered(&call, answer).await? else { return Ok(None) };
        let Some(held) = self.held.remove(&call) else {
            match answer {
                Answer::Allow => (),
                Answer::Always => self.gate.remember(&call),
                Answer::Rule { ref rule, .. } => {
                    if let Err(text) = self.gate.remember_written(&call, rule) {
                        let level = NoticeLevel::Warning;
                        self.emit(Event::Notice { level, text }).await?;
                    }
                }
                Answer::Deny { .. } => self.gate.forget(&call),
            }
            if self.way.check_call(&call).is_some() {
                self.check_answered(answer).await?;
                self.follow().await?;
                return Ok(None);
            }
            return Ok(Some(Input::Answered(call, answer)));
        };
        let allowed = !matches!(answer, Answer::Deny { .. });
        let reason = if allowed {
            "allowed by the user, outside the sandbox"
        } else {
            "refused by the user"
        };
        let decided =
            Event::PermissionDecided { call: call.clone(), allowed, reason: reason.to_owned() };
        self.emit(decided).await?;
        if allowed {
            self.gate.let_outside(&call);
            self.run_tool(&call);
            return Ok(None);
        }
        self.gate.forget(&call);
        self.done(call, held.outcome, held.duration_ms).await
    }

    async fn heard(
        &mut self,
        event: Result<StreamEvent, ProviderError>,
    ) -> Result<Option<Input>, Closed> {
        match event {
            Ok(StreamEvent::RateLimits { headers }) => {
                self.way.limits_told(&headers);
                Ok(None)
            }
            Ok(event) => {
                self.way.heard(&event);
                self.panel_answered().await?;
                Ok(Some(Input::Model(Ok(event))))
            }
            Err(error) => self.call_failed(error).await,
        }
    }

    /// Feeds one fact to the machine and performs all that follows from it.
    async fn take(&mut self, input: Input) -> Result<(), Closed> {
        if let Input::ToolDone(_, outcome, _) = &input {
            self.observe(outcome);
        }
        self.inbox.push_back(input);
        self.follow().await
    }

    /// Feeds the facts that came up meanwhile.
    async fn follow(&mut self) -> Result<(), Closed> {
        while let Some(input) = self.inbox.pop_front() {
            self.take_next_tools();
            let mut effects = std::mem::take(&mut self.effects);
            self.turn.on(input, &mut effects);
            self.turn_ends = effects.iter().any(ends_turn);
            for effect in effects.drain(..) {
                self.perform(effect).await?;
            }
            self.effects = effects;
        }
        Ok(())
    }

    async fn perform(&mut self, effect: Effect) -> Result<(), Closed> {
        match effect {
            Effect::CallModel { round, attempt } => self.call_model(round, attempt).await?,
            Effect::DropStream => {
                self.stream = None;
                self.way.drop_call();
                self.compacting.stop();
            }
            Effect::Check(outcome) => self.check(&outcome).await?,
            Effect::StopCheck => self.stop_check().await?,
            Effect::Judge(call) => {
                let verdict = self.judge(&call);
                self.inbox.push_back(Input::Judged(call.id, verdict));
            }
            Effect::RunTool(call) => self.run_tool(&call.id),
            Effect::StopTools => {
                std::mem::take(&mut self.stop).cancel();
                self.take_back(None).await?;
                let held = std::mem::take(&mut self.held);
                self.inbox.extend(
                    held.into_iter()
                        .map(|(id, held)| Input::ToolDone(id, held.outcome, held.duration_ms)),
                );
            }
            Effect::AbortTools => self.running.abort_all(),
            Effect::Sleep(wait) => self.wake = Some(Instant::now() + wait),
            Effect::CancelSleep => self.wake = None,
            Effect::Emit(event) => self.emit(event).await?,
        }
        Ok(())
    }

    /// Tells an event, once what it means is kept.
    async fn emit(&mut self, event: Event) -> Result<(), Closed> {
        if let Event::ToolCallDrafted { name, .. } = &event
            && self.tools.may_write(name)
        {
            self.keeper.prepare();
        }
        let used = match &event {
            Event::State(SessionState::Active) => {
                self.turn_begins();
                None
            }
            Event::TurnEnded { outcome, .. } => {
                self.turn_is_over(outcome).await?;
                None
            }
            Event::Usage { round, .. } => Some(*round),
            _ => None,
        };
        self.tell(event).await?;
        match used {
            Some(usage) => self.count(usage).await,
            None => Ok(()),
        }
    }

    /// Tells an event that means nothing for the way of the turn.
    async fn tell(&mut self, event: Event) -> Result<(), Closed> {
        self.keeper.before(&event, self.turn.history(), self.turn_ends).await;
        self.events.send(event).await.map_err(|_| Closed)
    }

    /// The question to an arm, with the history as it stands.
    fn request(&mut self, arm: &Arm, round: u32) -> ModelRequest {
        // Calls of an earlier round that never ran are over.
        self.gate.clear();
        let tier = arm.tier();
        self.turn.answered_by(arm.name(), tier == Tier::Lean);
        self.shelves = self.tools.of_kind(tier, ToolKind::ReadsResults).cloned();
        let system = self.systems.entry(tier).or_insert_with(|| (self.system)(tier).into());
        let example = match tier {
            Tier::Lean => self.example.get_or_insert_with(prompt::example).as_slice(),
            Tier::Full => &[],
        };
        let (summary, rest) = self.turn.told();
        let summary = summary.map(std::slice::from_ref).unwrap_or_default();
        let mut messages = [example, summary, rest].concat();
        let tools = match (arm.tools, self.way.is_looking()) {
            (false, _) => Arc::default(),
            (true, false) => Arc::clone(self.tools.specs(tier)),
            (true, true) => {
                messages.push(Arc::new(Message::user_text(prompt::note(several::LOOK))));
                self.tools.reading(tier)
            }
        };
        let tool_choice = if !self.turn.may_use_tools() || tools.is_empty() {
            ToolChoice::None
        } else if tier == Tier::Lean && round == 1 && prompt::asks_for_work(self.turn.history()) {
            ToolChoice::Required
        } else {
            ToolChoice::Auto
        };
        ModelRequest {
            model: Arc::clone(&arm.model),
            system: Arc::clone(system),
            messages,
            tools,
            tool_choice,
            max_output_tokens: arm.answer_limit(),
            temperature: arm.temperature,
            effort: arm.effort,
            context_window: arm.context_window,
        }
    }

    /// What the firewall did to the request, once per secret.
    async fn tell_notices(&mut self) -> Result<(), Closed> {
        for notice in self.firewall.take_notices() {
            let level = NoticeLevel::Warning;
            self.emit(Event::Notice { level, text: notice.to_string() }).await?;
        }
        Ok(())
    }
}

fn notice((level, text): Aside) -> Event {
    Event::Notice { level, text }
}

fn ends_turn(effect: &Effect) -> bool {
    matches!(effect, Effect::Emit(Event::TurnEnded { .. }))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The stream's next event; an end without a stop is a failure. Without a stream: never.
async fn next(stream: &mut Option<EventStream>) -> Result<StreamEvent, ProviderError> {
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
