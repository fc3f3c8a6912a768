//! The session's side of routing: what it asks of the [`Routes`], and what it tells them.
//!
//! A turn is routed once, before its first call. Every call makes room in the pools it draws on and
//! settles what it took; one that fails may go on with another arm. Work is checked at the end where
//! the course says so. What turned out is learnt when the person's next words, or the end of the
//! session, have shown what they think of it.

mod checking;
mod failing;
mod paying;

use std::{collections::HashMap, sync::Arc, time::Duration};

use gnoma_core::{
    Content, ErrorKind, Event, Message, ModelRef, Provider, ProviderError, Role,
    ledger::{Ask, Draw, HoldId, Ledger, Level, Reserved},
    session::{NoticeLevel, Outcome},
    store::StoreError,
    tool::BoxFuture,
};
use gnoma_router::pool;
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};

use self::checking::Found;
use super::{Closed, Session};
use crate::{
    arm::Arm,
    routing::{
        ask::{Said, ask},
        course::{Course, Moment, Warm},
        desk::{Routes, Strategy},
        several::{self, Panel, Shares, Together},
        signals,
        task::Task,
    },
    tokens,
    turn::Input,
};

/// Longest wait for the arm that says what kind of task it is.
const CLASSIFIER_PATIENCE: Duration = Duration::from_secs(2);
/// Longest wait for a ledger; a call goes on without it, unless money is limited.
const LEDGER_PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait at the end of a session for what is still being settled.
const SETTLING_PATIENCE: Duration = Duration::from_secs(10);

/// What had to be waited for before a call.
pub(super) enum Prepared {
    /// What kind of task it is, and where the limits stand.
    Task(Task, Vec<Level>),
    /// Whether there is room for the call.
    Room(Result<Reserved, StoreError>),
}

/// What the session waited for beside the model and the tools.
pub(super) enum Came {
    Prepared(Prepared),
    Found(Found),
    /// Somebody was stopped.
    Nothing,
}

async fn prepared(preparing: &mut Option<Preparing>) -> Prepared {
    match preparing {
        None => std::future::pending().await,
        Some(wait) => {
            let prepared = wait.await;
            *preparing = None;
            prepared
        }
    }
}

type Preparing = BoxFuture<'static, Prepared>;

/// Room that is held for the call under way. Dropped, it counts as one request and nothing else.
struct Hold {
    ledger: Arc<dyn Ledger>,
    id: HoldId,
}

/// When the call under way began, and when the first of its answer came.
struct CallClock {
    since: Instant,
    first: Option<Duration>,
}

/// See the module.
pub(super) struct Way {
    pub(super) routes: Arc<Routes>,
    pub(super) course: Option<Course>,
    session: String,
    pin: Option<ModelRef>,
    warm: HashMap<ModelRef, Warm>,
    levels: Vec<Level>,
    /// Round and attempt of the call under way.
    asked: (u32, u32),
    preparing: Option<Preparing>,
    hold: Option<Hold>,
    clock: Option<CallClock>,
    shares: Option<Shares>,
    session_micro_usd: u64,
    turns: u64,
    /// The course of the last turn, until it is clear what the person thinks of it.
    last: Option<Course>,
    /// Work that nobody waits for, each with what went wrong.
    settling: JoinSet<Option<String>>,
    pub(super) checking: JoinSet<Found>,
    has_complained: bool,
}

impl Way {
    pub(super) fn new(routes: Arc<Routes>, session: String) -> Self {
        Self {
            routes,
            course: None,
            session,
            pin: None,
            warm: HashMap::new(),
            levels: Vec::new(),
            asked: (0, 0),
            preparing: None,
            hold: None,
            clock: None,
            shares: None,
            session_micro_usd: 0,
            turns: 0,
            last: None,
            settling: JoinSet::new(),
            checking: JoinSet::new(),
            has_complained: false,
        }
    }

    /// Waits for what a call needs first, or for whoever looks at the work. Without either: never.
    /// Safe to drop.
    pub(super) async fn came(&mut self) -> Came {
        let Self { preparing, checking, .. } = self;
        tokio::select! {
            prepared = prepared(preparing) => Came::Prepared(prepared),
            Some(found) = checking.join_next() => match found {
                Ok(found) => Came::Found(found),
                Err(_stopped) => Came::Nothing,
            },
        }
    }

    /// The call is given up.
    pub(super) fn drop_call(&mut self) {
        self.preparing = None;
    }

    /// Something of the answer has come.
    pub(super) fn heard(&mut self) {
        if let Some(CallClock { since, first: first @ None }) = &mut self.clock {
            *first = Some(since.elapsed());
            self.note_limits();
        }
    }

    /// What the provider told of its limits with the answer.
    fn note_limits(&self) {
        let Some(course) = &self.course else { return };
        let told = Provider::rate_limits(&course.arm.provider);
        let told = told.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.routes.told(&course.arm.name(), &pool::seen(told, self.routes.now_ms()));
    }

    fn moment(&self) -> Moment<'_> {
        Moment { warm: &self.warm, levels: &self.levels, pin: self.pin.as_ref() }
    }

    /// The pools that a call of the arm draws on.
    fn draws(&self, arm: &Arm) -> Vec<Draw> {
        let turn = format!("{}-{}", self.session, self.turns);
        self.routes.draws(arm, &turn, &self.session)
    }

    /// Ends what is under way.
    pub(super) async fn close(&mut self) {
        self.settle_rest();
        if let Some(course) = self.last.take() {
            self.learn(&course, None);
        }
        self.checking.shutdown().await;
        let all = async { while self.settling.join_next().await.is_some() {} };
        let _late = timeout(SETTLING_PATIENCE, all).await;
    }
}

impl Session {
    /// Asks the model: of a new turn, once it is routed; of any call, once there is room for it.
    pub(super) async fn call_model(&mut self, round: u32, attempt: u32) -> Result<(), Closed> {
        self.way.asked = (round, attempt);
        if self.way.course.is_some() { self.make_room().await } else { self.route_turn().await }
    }

    async fn route_turn(&mut self) -> Result<(), Closed> {
        self.tell_unsettled().await?;
        let mut task = self.task();
        if let Some(course) = self.way.last.take() {
            let right = signals::reaction(&task.words, &course.task.words);
            self.way.learn(&course, right);
            task = task.after(&course.task);
        }
        self.way.turns += 1;
        let routes = Arc::clone(&self.way.routes);
        let arms = routes.arms();
        let mut limited: Vec<Draw> = Vec::new();
        for draw in arms.iter().flat_map(|arm| self.way.draws(arm)) {
            if !draw.limits.is_empty() && !limited.contains(&draw) {
                limited.push(draw);
            }
        }
        let ledger = routes.ledger().filter(|_| !limited.is_empty()).cloned();
        let classifier = routes.options.classifier.as_ref().filter(|_| arms.len() > 1);
        let classifier = classifier.and_then(|name| routes.arm(name));
        if ledger.is_none() && classifier.is_none() {
            return self.begin(task, Vec::new()).await;
        }
        let at_ms = routes.now_ms();
        self.way.preparing = Some(Box::pin(async move {
            let levels = async {
                let ledger = ledger?;
                timeout(LEDGER_PATIENCE, ledger.levels(limited, at_ms)).await.ok()?.ok()
            };
            let task = async {
                match classifier {
                    Some(arm) => classified(task, &arm).await,
                    None => task,
                }
            };
            let (levels, task) = tokio::join!(levels, task);
            Prepared::Task(task, levels.unwrap_or_default())
        }));
        Ok(())
    }

    /// What the person asks for.
    fn task(&self) -> Task {
        let history = self.turn.history();
        let said = history.iter().rev().find(|message| message.role() == Role::User);
        let words = said.map(|message| message.text_content()).unwrap_or_default();
        let has_images = history.iter().any(|message| has_images(message));
        let options = &self.way.routes.options;
        let known = self.way.warm.values().map(|warm| warm.tokens).max().unwrap_or(0);
        let new = tokens::estimate(&words) as u64;
        Task::of(words, has_images, known + new, options)
    }

    /// Goes on with what had to be waited for.
    pub(super) async fn go_on(&mut self, came: Came) -> Result<(), Closed> {
        let prepared = match came {
            Came::Prepared(prepared) => prepared,
            Came::Found(found) => return self.found(found).await,
            Came::Nothing => return Ok(()),
        };
        match prepared {
            Prepared::Task(task, levels) => self.begin(task, levels).await,
            Prepared::Room(Ok(Reserved::Held(id))) => {
                if let Some(ledger) = self.way.routes.ledger() {
                    self.way.hold = Some(Hold { ledger: Arc::clone(ledger), id });
                }
                self.start_stream().await
            }
            Prepared::Room(Ok(Reserved::Full(full))) => {
                self.refuse_call(failing::no_room(&full, self.way.routes.now_ms()));
                Ok(())
            }
            Prepared::Room(Err(error)) => self.without_ledger(error).await,
        }
    }

    async fn begin(&mut self, task: Task, levels: Vec<Level>) -> Result<(), Closed> {
        self.way.levels = levels;
        let routes = Arc::clone(&self.way.routes);
        let seed = routes.options.seed.wrapping_add(self.way.turns);
        match routes.begin(task, seed, self.way.moment()) {
            Ok((course, routing)) => {
                self.turn.check_work(course.is_checked());
                self.way.course = Some(course);
                if routes.arms().len() > 1 {
                    self.emit(Event::Routed(Box::new(routing))).await?;
                }
                self.make_room().await
            }
            Err(no_arm) => {
                let why = match no_arm.reasons.as_slice() {
                    [] => "no model is configured".to_owned(),
                    reasons => format!("no model can do this: {}", reasons.join("; ")),
                };
                let hint = "`gnoma route` shows every model with what excludes it.";
                let error = ProviderError::new(ErrorKind::NotFound, "gnoma", why).with_hint(hint);
                self.inbox.push_back(Input::Model(Err(error)));
                Ok(())
            }
        }
    }

    /// Reserves what the call may take, where any of its pools has a limit.
    async fn make_room(&mut self) -> Result<(), Closed> {
        self.way.settle_rest();
        let Some(course) = &self.way.course else { return Ok(()) };
        let draws = self.way.draws(&course.arm);
        let is_limited = draws.iter().any(|draw| !draw.limits.is_empty());
        let Some(ledger) = self.way.routes.ledger().filter(|_| is_limited).cloned() else {
            return self.start_stream().await;
        };
        let arm = course.arm.name();
        let (context, warm) = (course.task.need.context_tokens, self.way.warm.get(&arm));
        let amount = self.way.routes.expected(&course.arm, context, warm);
        let ask = Ask { at_ms: self.way.routes.now_ms(), arm, amount, draws };
        self.way.preparing = Some(Box::pin(async move {
            let late = |_| {
                let text = "the ledger does not answer".to_owned();
                Err(StoreError::new(gnoma_core::store::StoreErrorKind::Busy, text))
            };
            Prepared::Room(timeout(LEDGER_PATIENCE, ledger.reserve(ask)).await.unwrap_or_else(late))
        }));
        Ok(())
    }

    async fn start_stream(&mut self) -> Result<(), Closed> {
        let Some(course) = &self.way.course else { return Ok(()) };
        let (arm, why) = (course.arm.clone(), course.why.clone());
        let panel = match course.strategy {
            Strategy::Ensemble => Some(Together::Ensemble),
            Strategy::Synthesis => Some(Together::Synthesis),
            Strategy::Auto | Strategy::Single | Strategy::Cascade => None,
        };
        let members: Vec<Arm> = std::iter::once(&arm).chain(&course.beside).cloned().collect();
        let (round, attempt) = self.way.asked;
        if attempt == 1 {
            self.emit(Event::RoundStarted { round, arm: arm.name(), why }).await?;
        }
        let request = self.request(&arm, round);
        self.way.routes.called(&arm);
        self.way.clock = Some(CallClock { since: Instant::now(), first: None });
        self.stream = Some(match panel.filter(|_| round == 1 && members.len() > 1) {
            Some(together) => {
                let chair = self.way.routes.reviewer(None).unwrap_or_else(|| arm.clone());
                let shares = Shares::default();
                self.way.shares = Some(shares.clone());
                let question = several::question_of(self.turn.history());
                several::stream(Panel { together, members, chair, request, question, shares })
            }
            None => arm.provider.stream(request),
        });
        self.tell_notices().await
    }

    /// A turn begins: it is not routed yet.
    pub(super) fn turn_begins(&mut self) {
        self.way.course = None;
    }

    /// A turn has ended: its course waits for what the person thinks of it.
    pub(super) fn turn_is_over(&mut self, outcome: &Outcome) {
        self.way.settle_rest();
        let Some(mut course) = self.way.course.take() else { return };
        let is_open = course.attempt_micro_usd > 0 || course.attempts.is_empty();
        if is_open {
            let verdict = match outcome {
                Outcome::Complete { .. } => course.signals.check().map(|(_, green)| green),
                Outcome::Stuck { .. } | Outcome::RoundLimit { .. } => Some(false),
                // A person's stop and a provider's failure say nothing of the work.
                Outcome::Cancelled | Outcome::Failed { .. } => return,
            };
            course.close_attempt(verdict);
        }
        self.way.last = Some(course);
    }

    /// A person says whether the last turn's work was right.
    pub(super) async fn rate(&mut self, good: bool) -> Result<(), Closed> {
        let (level, text) = match self.way.last.take() {
            Some(course) => {
                self.way.learn(&course, Some(good));
                let arm = course.arm.name();
                (NoticeLevel::Info, format!("noted for {arm}: the work was {}", verdict_word(good)))
            }
            None => (NoticeLevel::Warning, "there is no work to rate yet".to_owned()),
        };
        self.emit(Event::Notice { level, text }).await
    }

    /// Only this arm is asked from the next turn on.
    pub(super) async fn pin(&mut self, arm: Option<ModelRef>) -> Result<(), Closed> {
        let (level, text) = match arm {
            None => {
                self.way.pin = None;
                (NoticeLevel::Info, "each turn is routed again".to_owned())
            }
            Some(name) if self.way.routes.arm(&name).is_some() => {
                let text = format!("{name} is asked from the next turn on");
                self.way.pin = Some(name);
                (NoticeLevel::Info, text)
            }
            Some(name) => {
                (NoticeLevel::Warning, format!("{name} is not among the models of this session"))
            }
        };
        self.emit(Event::Notice { level, text }).await
    }
}

fn has_images(message: &Message) -> bool {
    message.content().iter().any(|content| match content {
        Content::Image(_) => true,
        Content::ToolResult(result) => result.images().next().is_some(),
        Content::Text(_)
        | Content::Thinking(_)
        | Content::RedactedThinking(_)
        | Content::ToolCall(_) => false,
    })
}

fn verdict_word(good: bool) -> &'static str {
    if good { "right" } else { "wrong" }
}

/// Asks an arm what kind of task it is; what the words suggest stands where it says nothing useful.
async fn classified(task: Task, arm: &Arm) -> Task {
    let request = task.question(arm);
    match ask(arm, request, CLASSIFIER_PATIENCE).await {
        Ok(Said { text, .. }) => task.judged(Some(&text)),
        Err(_) => task.judged(None),
    }
}
