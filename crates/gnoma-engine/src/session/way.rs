//! The session's side of routing: what it asks of the [`Routes`], and what it tells them.
//!
//! A turn is routed once, before its first call. Every call makes room in the pools it draws on and
//! settles what it took; one that fails may go on with another arm. Work is checked at the end where
//! the course says so. What turned out is learnt when the person's next words, or the end of the
//! session, have shown what they think of it.

use std::{collections::HashMap, sync::Arc, time::Duration};

use gnoma_core::{
    Content, ErrorKind, Event, Message, ModelRef, Provider, ProviderError, RawJson, ResultPart,
    Role, ToolCall, ToolOutcome, Usage,
    ledger::{Amount, Ask, Draw, Full, HoldId, Ledger, Level, Reserved, Unit},
    message::CallId,
    session::{NoticeLevel, Outcome},
    store::StoreError,
    tool::{BoxFuture, Grant, ToolCx, ToolOutput},
};
use gnoma_router::pool;
use serde_json::json;
use tokio::{task::JoinSet, time::Instant, time::timeout};

use super::{Closed, Session};
use crate::{
    arm::Arm,
    routing::{
        ask::{Said, ask},
        course::{self, Course, Moment, Warm},
        desk::{Routes, Strategy, Verify},
        failover::{self, Failure, Next},
        review::{self, Work},
        several::{self, Panel, Shares, Together},
        signals,
        task::Task,
    },
    tokens,
    turn::{Checked, Input},
};

/// Longest wait for the arm that says what kind of task it is.
const CLASSIFIER_PATIENCE: Duration = Duration::from_secs(2);
/// Longest wait for a review.
const REVIEW_PATIENCE: Duration = Duration::from_secs(120);
/// Longest wait for a ledger; a call goes on without it, unless money is limited.
const LEDGER_PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait at the end of a session for what is still being settled.
const SETTLING_PATIENCE: Duration = Duration::from_secs(10);
/// Most characters of a check's output that the next arm and the person see.
const MAX_EVIDENCE_CHARS: usize = 4_000;

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

/// What looking at the work found.
pub(super) struct Found {
    by: String,
    passed: bool,
    evidence: String,
    /// Who looked, where it was an arm, and what that took.
    share: Option<(ModelRef, Usage)>,
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

    /// Counts what nobody reported: one request.
    fn settle_rest(&mut self) {
        let at_ms = self.routes.now_ms();
        if let Some(hold) = self.hold.take() {
            self.settling.spawn(async move {
                let amount = Amount { requests: 1, ..Amount::default() };
                failure(hold.ledger.commit(hold.id, at_ms, amount).await)
            });
        }
    }

    /// Counts a call. Money is what the price list says.
    fn settle(&mut self, name: &ModelRef, arm: Option<&Arm>, usage: Usage, is_main: bool) {
        let Some(ledger) = self.routes.ledger().cloned() else { return };
        let at_ms = self.routes.now_ms();
        let limits = &self.routes.options.limits;
        let custom = arm.map_or(0, |arm| limits.custom_units(name, &arm.pools));
        let price = arm.and_then(|arm| arm.price).unwrap_or_default();
        let amount = pool::taken(&usage, &price, custom);
        let hold = if is_main { self.hold.take() } else { None };
        let (arm, draws) = (name.clone(), arm.map(|arm| self.draws(arm)));
        self.settling.spawn(async move {
            if let Some(hold) = hold {
                return failure(hold.ledger.commit(hold.id, at_ms, amount).await);
            }
            let draws = draws.unwrap_or_default().into_iter();
            // It has happened: limits are for what is still to come.
            let draws = draws.map(|draw| Draw { limits: Vec::new(), ..draw }).collect();
            match ledger.reserve(Ask { at_ms, arm, amount, draws }).await {
                Ok(Reserved::Held(id)) => failure(ledger.commit(id, at_ms, amount).await),
                Ok(Reserved::Full(_)) => None,
                Err(error) => Some(error.sentence),
            }
        });
    }

    fn learn(&mut self, course: &Course, right: Option<bool>) {
        if course.attempts.is_empty() {
            return;
        }
        if let Some(learnt) = self.routes.learn(course.outcome(right)) {
            self.settling.spawn(async move { learnt.await.err() });
        }
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

fn failure(result: Result<(), StoreError>) -> Option<String> {
    result.err().map(|error| error.sentence)
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
                self.refuse_call(no_room(&full, self.way.routes.now_ms()));
                Ok(())
            }
            Prepared::Room(Err(error)) => self.without_ledger(error).await,
        }
    }

    /// The ledger does not work: without limits of money the call is made all the same.
    async fn without_ledger(&mut self, error: StoreError) -> Result<(), Closed> {
        let draws = self.way.course.as_ref().map(|course| self.way.draws(&course.arm));
        let money = |draw: &Draw| draw.limits.iter().any(|limit| limit.unit == Unit::MicroUsd);
        if draws.unwrap_or_default().iter().any(money) {
            let text = format!("what was spent cannot be counted: {}", error.sentence);
            let hint =
                "Mend the ledger, or take the caps (`router.caps`, `spend_cap`) away for now.";
            self.refuse_call(ProviderError::new(ErrorKind::Quota, "gnoma", text).with_hint(hint));
            return Ok(());
        }
        self.complain(error.sentence).await?;
        self.start_stream().await
    }

    /// Says once that something beside the work does not work.
    async fn complain(&mut self, why: String) -> Result<(), Closed> {
        if std::mem::replace(&mut self.way.has_complained, true) {
            return Ok(());
        }
        let text = format!("what is spent and learnt is not all kept: {why}");
        self.emit(Event::Notice { level: NoticeLevel::Warning, text }).await
    }

    async fn tell_unsettled(&mut self) -> Result<(), Closed> {
        while let Some(done) = self.way.settling.try_join_next() {
            if let Ok(Some(why)) = done {
                self.complain(why).await?;
            }
        }
        Ok(())
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

    fn refuse_call(&mut self, error: ProviderError) {
        let input = self.after_failure(error, false);
        self.inbox.push_back(input);
    }

    /// A call has failed: the fact for the machine, which is another arm's where one goes on.
    pub(super) fn after_failure(&mut self, error: ProviderError, was_asked: bool) -> Input {
        let way = &mut self.way;
        let Some(from) = way.course.as_ref().map(|course| course.arm.name()) else {
            return Input::Model(Err(error));
        };
        if was_asked {
            way.note_limits();
        }
        let Some(course) = &mut way.course else { return Input::Model(Err(error)) };
        if was_asked {
            way.routes.failed(&course.arm, &error);
        }
        let options = &way.routes.options;
        let is_pinned = way.pin.is_some() || options.pinned.is_some();
        let has_content = self.turn.has_content();
        let next = failover::next(Failure {
            error: &error,
            attempt: way.asked.1,
            has_content,
            cached_micro_usd: course::cached(&course.arm, &way.warm, way.routes.now_ms()),
        });
        if !options.failover || next == Next::Stay {
            return Input::Model(Err(error));
        }
        if is_pinned {
            return Input::Model(Err(with_others(error, &way.routes.arms(), &from)));
        }
        let why = failover::words(&error, has_content);
        course.given_up.push((from.clone(), format!("failed: {why}").into()));
        if error.kind == ErrorKind::ContextTooLong {
            let window = course.arm.context_window.map_or(0, u64::from);
            let need = &mut course.task.need;
            need.context_tokens = need.context_tokens.max(window + 1);
        }
        let moment = Moment { warm: &way.warm, levels: &way.levels, pin: None };
        match way.routes.instead(course, moment) {
            Some(arm) => {
                let to = arm.name();
                course.arm = arm;
                course.beside.clear();
                if matches!(course.strategy, Strategy::Ensemble | Strategy::Synthesis) {
                    course.strategy = Strategy::Single;
                }
                course.why = format!("in place of {from}: {why}");
                Input::Moved { from, to, why }
            }
            None => {
                // Nobody else is left: as if there never was.
                course.given_up.pop();
                Input::Model(Err(error))
            }
        }
    }

    /// Tokens of a call were reported.
    pub(super) async fn count(&mut self, usage: Usage) -> Result<(), Closed> {
        let Some(course) = &self.way.course else { return Ok(()) };
        let main = course.arm.name();
        let shares = self.way.shares.take().map(|shares| shares.take()).unwrap_or_default();
        let mut parts: Vec<_> = shares.into_iter().map(|share| (share.arm, share.usage)).collect();
        if parts.is_empty() {
            parts.push((main.clone(), usage));
        }
        if let Some(clock) = self.way.clock.take() {
            let whole = clock.since.elapsed();
            self.way.routes.worked(&course.arm, clock.first.unwrap_or(whole), whole, usage);
        }
        let at_ms = self.way.routes.now_ms();
        let tokens = usage.prompt().saturating_add(usage.output);
        self.way.warm.insert(main.clone(), Warm { tokens, at_ms });
        for (arm, usage) in parts {
            self.pay(arm, usage).await?;
        }
        Ok(())
    }

    async fn pay(&mut self, arm: ModelRef, usage: Usage) -> Result<(), Closed> {
        let known = self.way.routes.arm(&arm);
        let price = known.as_ref().and_then(|arm| arm.price);
        let call_micro_usd = price.map(|price| price.of(&usage));
        let micro_usd = call_micro_usd.unwrap_or(0);
        let is_main = self.way.course.as_ref().is_some_and(|course| course.arm.name() == arm);
        self.way.settle(&arm, known.as_ref(), usage, is_main);
        let way = &mut self.way;
        way.session_micro_usd = way.session_micro_usd.saturating_add(micro_usd);
        let session_micro_usd = way.session_micro_usd;
        let Some(course) = &mut way.course else { return Ok(()) };
        course.attempt_micro_usd = course.attempt_micro_usd.saturating_add(micro_usd);
        course.turn_micro_usd = course.turn_micro_usd.saturating_add(micro_usd);
        let turn_micro_usd = course.turn_micro_usd;
        if call_micro_usd.is_none() {
            return Ok(());
        }
        self.emit(Event::Cost { arm, call_micro_usd, turn_micro_usd, session_micro_usd }).await
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

    /// Looks at the work of the turn, which would end like this.
    pub(super) async fn check(&mut self, outcome: &Outcome) -> Result<(), Closed> {
        let Some(course) = &mut self.way.course else {
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        };
        let by_itself = |passed, evidence: String| Found {
            by: "gnoma".to_owned(),
            passed,
            evidence,
            share: None,
        };
        let options = &self.way.routes.options;
        let found = match outcome {
            Outcome::Stuck { what } => Some(by_itself(false, what.clone())),
            Outcome::RoundLimit { rounds } => {
                Some(by_itself(false, format!("not done after {rounds} rounds")))
            }
            Outcome::Complete { .. } | Outcome::Cancelled | Outcome::Failed { .. } => {
                let seen = course.signals.check().filter(|_| options.verify != Verify::Reviewer);
                seen.map(|(command, passed)| Found {
                    by: format!("`{command}`"),
                    passed,
                    evidence: format!("its last run {}", if passed { "passed" } else { "failed" }),
                    share: None,
                })
            }
        };
        if let Some(found) = found {
            return self.found(found).await;
        }
        if !course.signals.has_edited {
            course.close_attempt(None);
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        }
        self.look();
        Ok(())
    }

    /// Starts whoever looks at the work.
    fn look(&mut self) {
        let Some(course) = &self.way.course else { return };
        let options = &self.way.routes.options;
        let uses_checks = options.verify != Verify::Reviewer && !options.checks.is_empty();
        if uses_checks && let Some(bash) = self.tools.by_name.get("bash").map(Arc::clone) {
            let (checks, cx) = (options.checks.clone(), self.tool_cx());
            self.way.checking.spawn(async move { run_checks(bash, checks, cx).await });
            return;
        }
        let reviewer = (options.verify != Verify::Checks)
            .then(|| self.way.routes.reviewer(Some(&course.arm.name())))
            .flatten();
        let history = self.turn.history();
        let answer = history.iter().rev().find(|message| message.role() == Role::Assistant);
        let work = Work {
            task: course.task.words.clone(),
            changes: course.signals.changes(),
            answer: answer.map(|message| message.text_content()).unwrap_or_default(),
        };
        self.way.checking.spawn(async move {
            match reviewer {
                Some(reviewer) => reviewed(&reviewer, &work).await,
                None => Found::nobody("nobody is there to review it"),
            }
        });
    }

    /// Goes on with what the check found.
    async fn found(&mut self, found: Found) -> Result<(), Closed> {
        let Found { by, passed, evidence, share } = found;
        if let Some((arm, usage)) = share {
            self.pay(arm, usage).await?;
        }
        let Some(course) = &mut self.way.course else { return Ok(()) };
        let arm = course.arm.name();
        course.close_attempt(Some(passed));
        let checked =
            Event::Checked { arm: arm.clone(), by: by.clone(), passed, evidence: evidence.clone() };
        self.emit(checked).await?;
        let way = &mut self.way;
        let moment = Moment { warm: &way.warm, levels: &way.levels, pin: way.pin.as_ref() };
        let Some(course) = &mut way.course else { return Ok(()) };
        let next = if passed { None } else { way.routes.go_on(course, moment) };
        let Some(next) = next else {
            self.inbox.push_back(Input::Checked(Checked::Deliver));
            return Ok(());
        };
        let to = next.name();
        let why = "its work does not hold".to_owned();
        course.arm = next;
        course.why = format!("the work of {arm} does not hold");
        course.signals.begin_again();
        self.emit(Event::ArmChanged { from: arm, to, why, retracted: false }).await?;
        let note = review::note(&by, &evidence);
        self.inbox.push_back(Input::Checked(Checked::Again { note }));
        Ok(())
    }

    /// A call has ended: what it shows about the work.
    pub(super) fn observe(&mut self, outcome: &ToolOutcome) {
        let Some(course) = &mut self.way.course else { return };
        match outcome {
            ToolOutcome::Done(output) | ToolOutcome::Failed(output) => {
                let failed = matches!(outcome, ToolOutcome::Failed(_));
                course.signals.call_ended(failed, output.diff.as_deref());
                if let Some(report) = &output.report {
                    course.signals.command_ended(report);
                }
            }
            ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => (),
        }
    }
}

impl Found {
    /// Nobody could look: the work stands as it is.
    fn nobody(why: &str) -> Self {
        let (by, evidence) = ("nobody".to_owned(), why.to_owned());
        Self { by, passed: true, evidence, share: None }
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

fn words_of(output: &ToolOutput) -> String {
    let text = |part: &ResultPart| match part {
        ResultPart::Text { text } => Some(text.clone()),
        ResultPart::Image(_) => None,
    };
    output.parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
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

async fn reviewed(reviewer: &Arm, work: &Work) -> Found {
    let by = reviewer.name();
    let said = match ask(reviewer, review::request(reviewer, work), REVIEW_PATIENCE).await {
        Ok(said) => said,
        Err(error) => return Found::nobody(&format!("{by} could not review it: {error}")),
    };
    let share = said.usage.map(|usage| (by.clone(), usage));
    match review::read(&said.text) {
        Some(review) => {
            let evidence =
                if review.why.is_empty() { "no reason given".into() } else { review.why };
            Found { by: by.to_string(), passed: review.holds, evidence, share }
        }
        None => Found { share, ..Found::nobody(&format!("{by} gave no verdict that can be read")) },
    }
}

/// Runs the commands that prove the project right, until one fails.
async fn run_checks(bash: Arc<dyn gnoma_core::Tool>, checks: Vec<String>, cx: ToolCx) -> Found {
    for (number, command) in checks.iter().enumerate() {
        let Ok(arguments) = RawJson::of(&json!({ "command": command })) else { continue };
        let id = CallId::new(format!("check-{}", number + 1));
        let call = ToolCall::new(id, "bash", arguments);
        let outcome = bash.run(call, ToolCx { grant: Grant::default(), ..cx.clone() }).await;
        let (ToolOutcome::Done(output) | ToolOutcome::Failed(output)) = outcome else {
            return Found::nobody(&format!("`{command}` was not run to its end"));
        };
        let code = output.report.as_ref().and_then(|report| report.exit_code);
        if code != Some(0) {
            let text = words_of(&output);
            let from = text.char_indices().rev().nth(MAX_EVIDENCE_CHARS).map_or(0, |(at, _)| at);
            let evidence = text.get(from..).unwrap_or_default().to_owned();
            return Found { by: format!("`{command}`"), passed: false, evidence, share: None };
        }
    }
    let by = checks.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", ");
    Found { by, passed: true, evidence: "all of them passed".to_owned(), share: None }
}

/// A limit that has no room, as a failure: one that waiting mends, where it does.
fn no_room(full: &Full, now_ms: i64) -> ProviderError {
    let kind = match full.limit.unit {
        Unit::MicroUsd => ErrorKind::Quota,
        Unit::Requests | Unit::Input | Unit::Output | Unit::Tokens | Unit::Custom => {
            ErrorKind::RateLimited
        }
    };
    let mut error = ProviderError::new(kind, "gnoma", pool::words(full, now_ms));
    error.retry_after = full
        .free_at_ms
        .and_then(|at_ms| u64::try_from(at_ms.saturating_sub(now_ms)).ok())
        .map(Duration::from_millis);
    error.with_hint(
        "`gnoma router pools` shows every limit; they are set in `router.caps` and `rate_limits`.",
    )
}

fn with_others(error: ProviderError, arms: &[Arm], failed: &ModelRef) -> ProviderError {
    let others: Vec<String> = arms
        .iter()
        .map(Arm::name)
        .filter(|name| name != failed)
        .map(|name| name.to_string())
        .collect();
    if others.is_empty() || error.hint.is_some() {
        return error;
    }
    error.with_hint(format!("Others could go on: --model or /model {}.", others.join(", ")))
}
