//! The session's side of routing: what it asks of the [`Routes`], and what it tells them.
//!
//! A turn is routed once, before its first call. Every call makes room in the pools it draws on and
//! settles what it took; one that fails may go on with another arm. Work is checked at the end where
//! the course says so. What turned out is learnt when the person's next words, or the end of the
//! session, have shown what they think of it.

mod checking;
mod failing;
mod keeping_from;
mod paying;

use std::{collections::HashMap, sync::Arc, time::Duration};

use gnoma_core::{
    Content, ErrorKind, Event, Message, ModelRef, Provider, ProviderError, Role, StreamEvent,
    ToolCall, ToolSpec, Usage,
    ledger::{Ask, Draw, Level, Reserved},
    session::{NoticeLevel, Outcome},
    store::StoreError,
    tool::BoxFuture,
};
use gnoma_router::{pool, rules::Concern};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::checking::Found;
use super::{Closed, Session, compacting::Told};
use crate::{
    arm::Arm,
    routing::{
        OWN,
        ask::{Account, Hold, Said, Share},
        course::Course,
        desk::{Routes, Strategy},
        offers::{Moment, Warm},
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
/// Bytes of a token, roughly, for a conversation that is continued.
const BYTES_PER_TOKEN: usize = 4;
/// Longest wait at the end of a session for what is still being settled.
const SETTLING_PATIENCE: Duration = Duration::from_secs(10);

/// What had to be waited for before a call.
pub(super) enum Prepared {
    /// What kind of task it is, what finding out took, and where the limits stand.
    Task(Task, Option<Share>, Vec<Level>),
    /// Whether there is room for the call.
    Room(Result<Reserved, StoreError>),
    /// The past in fewer words.
    Told(Told),
}

/// What the session waited for beside the model and the tools.
pub(super) enum Came {
    Prepared(Prepared),
    Found(Found),
    /// Somebody was stopped on purpose.
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

/// The call under way, and afterwards until it is paid.
struct Call {
    /// Who is called: the course may have moved on when the bill comes.
    arm: Arm,
    since: Instant,
    first: Option<Duration>,
    /// As the stream told so far.
    usage: Usage,
    /// Whose calls these really are, where several arms answer together.
    shares: Option<Shares>,
    /// It was answered to its end, or its failure is noted.
    is_over: bool,
}

/// Who is asked by name.
enum Pin {
    AsConfigured,
    /// The router chooses, whatever is configured.
    Nobody,
    Arm(ModelRef),
}

/// See the module.
pub(super) struct Way {
    pub(super) routes: Arc<Routes>,
    pub(super) course: Option<Course>,
    session: String,
    pin: Pin,
    warm: HashMap<ModelRef, Warm>,
    /// Tokens of the conversation, as far as they are known.
    pub(super) context_tokens: u64,
    levels: Vec<Level>,
    /// Round and attempt of the call under way.
    asked: (u32, u32),
    preparing: Option<Preparing>,
    hold: Option<Hold>,
    call: Option<Call>,
    session_micro_usd: u64,
    turns: u64,
    /// The turn, as its spending is counted.
    turn: String,
    /// The course of the last turn, until it is clear what the person thinks of it.
    last: Option<Course>,
    /// Work that nobody waits for, each with what went wrong.
    settling: JoinSet<Option<String>>,
    /// Calls that are being settled, each until its token is cancelled: the next call waits for
    /// them, so that the ledger knows of them when it says whether there is room.
    unsettled: Vec<CancellationToken>,
    checking: JoinSet<Found>,
    has_complained: bool,
    concern: Concern,
    /// Messages of the history that were looked at for it.
    looked_at: usize,
}

impl Way {
    /// `said`: the conversation that is continued.
    pub(super) fn new(routes: Arc<Routes>, session: String, said: &[Arc<Message>]) -> Self {
        let bytes: usize = said.iter().map(|message| message.text_content().len()).sum();
        let concern = routes.options.concern();
        Self {
            routes,
            course: None,
            session,
            pin: Pin::AsConfigured,
            warm: HashMap::new(),
            context_tokens: (bytes / BYTES_PER_TOKEN) as u64,
            levels: Vec::new(),
            asked: (0, 0),
            preparing: None,
            hold: None,
            call: None,
            session_micro_usd: 0,
            turns: 0,
            turn: String::new(),
            last: None,
            settling: JoinSet::new(),
            unsettled: Vec::new(),
            checking: JoinSet::new(),
            has_complained: false,
            concern,
            looked_at: 0,
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
                Err(stopped) if stopped.is_cancelled() => Came::Nothing,
                Err(_broken) => Came::Found(Found::nobody("whoever looked at it broke down inside")),
            },
        }
    }

    /// Waits for something before a call, or between turns.
    pub(super) fn prepare(&mut self, wait: BoxFuture<'static, Prepared>) {
        self.preparing = Some(wait);
    }

    /// Names the call under way: its turn and round.
    pub(super) fn call(&self) -> (u64, u32) {
        (self.turns, self.asked.0)
    }

    /// The call under way has failed and is made again, in the same round.
    pub(super) fn give_up_call(&mut self) {
        self.settle_rest();
        self.asked.1 += 1;
    }

    /// The conversation is another from now on, of about `tokens`: no prompt of it is warm.
    pub(super) fn told_anew(&mut self, tokens: u64) {
        self.warm.clear();
        self.context_tokens = tokens;
        if let Some(course) = &mut self.course {
            course.task.need.context_tokens = tokens;
        }
    }

    /// The call is given up, unless it is over.
    pub(super) fn drop_call(&mut self) {
        self.preparing = None;
        if let Some(call) = &mut self.call
            && !std::mem::replace(&mut call.is_over, true)
        {
            self.routes.abandoned(&call.arm);
        }
    }

    /// Nobody waits for the check any more; what it finds is not heard.
    pub(super) fn stop_check(&mut self) {
        self.checking = JoinSet::new();
    }

    /// Something of the answer has come.
    pub(super) fn heard(&mut self, event: &StreamEvent) {
        let Some(call) = &mut self.call else { return };
        if let StreamEvent::Usage(usage) = event {
            call.usage = *usage;
        }
        let is_first = call.first.is_none();
        let first = *call.first.get_or_insert_with(|| call.since.elapsed());
        if matches!(event, StreamEvent::Stop(_)) {
            call.is_over = true;
            self.routes.worked(&call.arm, first, call.since.elapsed(), call.usage);
        }
        if is_first {
            self.note_limits();
        }
    }

    /// What the provider told of its limits with the answer.
    fn note_limits(&self) {
        let Some(call) = &self.call else { return };
        let told = Provider::rate_limits(&call.arm.provider);
        let told = told.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.routes.told(&call.arm.name(), &pool::seen(told, self.routes.now_ms()));
    }

    pub(super) fn pinned(&self) -> Option<&ModelRef> {
        match &self.pin {
            Pin::AsConfigured => self.routes.options.pinned.as_ref(),
            Pin::Nobody => None,
            Pin::Arm(name) => Some(name),
        }
    }

    pub(super) fn moment(&self) -> Moment<'_> {
        Moment {
            warm: &self.warm,
            levels: &self.levels,
            pin: self.pinned(),
            may_wait: true,
            turn: &self.turn,
            session: &self.session,
        }
    }

    /// The same for a turn that began under another pin.
    fn moment_of(&self, course: &Course) -> Moment<'_> {
        Moment { pin: self.pinned().filter(|_| course.is_pinned), ..self.moment() }
    }

    /// The pools that a call of the arm draws on.
    fn draws(&self, arm: &Arm) -> Vec<Draw> {
        self.routes.draws(arm, &self.turn, &self.session)
    }

    /// Whose money questions beside the conversation cost.
    pub(super) fn account(&self) -> Account {
        Account {
            routes: Arc::clone(&self.routes),
            turn: self.turn.clone(),
            session: self.session.clone(),
        }
    }

    /// Ends what is under way. Gives what could not be kept, where nobody was told of it yet.
    pub(super) async fn close(&mut self) -> Option<String> {
        self.drop_call();
        self.settle_rest();
        if let Some(course) = self.last.take() {
            self.learn(&course, None);
        }
        self.checking.shutdown().await;
        let mut failure = None;
        let all = async {
            while let Some(done) = self.settling.join_next().await {
                failure = failure.take().or(done.ok().flatten());
            }
        };
        let _late = timeout(SETTLING_PATIENCE, all).await;
        failure
    }
}

impl Session {
    /// Asks the model: of a new turn, once it is routed; of any call, once there is room for it.
    pub(super) async fn call_model(&mut self, round: u32, attempt: u32) -> Result<(), Closed> {
        self.way.asked = (round, attempt);
        if self.way.course.is_some() { self.go_ahead().await } else { self.route_turn().await }
    }

    async fn route_turn(&mut self) -> Result<(), Closed> {
        self.tell_unsettled().await?;
        self.look_for_paths();
        let mut task = self.task();
        if let Some(course) = self.way.last.take() {
            let right = signals::reaction(&task.words, &course.task.words);
            self.way.learn(&course, right);
            task = task.after(&course.task);
        }
        let way = &mut self.way;
        way.turns += 1;
        way.turn = format!("{}-{}", way.session, way.turns);
        let routes = Arc::clone(&way.routes);
        let count = routes.arms().len();
        let heard = routes.hear_others().filter(|_| count > 1 && way.pinned().is_none());
        let is_limited = heard.is_some() || !routes.limited(&way.turn, &way.session).is_empty();
        let ledger = routes.ledger().filter(|_| is_limited).cloned();
        let classifier = routes.options.classifier.as_ref().filter(|_| count > 1);
        let may_see = |arm: &Arm| routes.kept_from(&arm.name(), &task, true).is_none();
        let classifier = classifier.and_then(|name| routes.arm(name)).filter(may_see);
        if heard.is_none() && ledger.is_none() && classifier.is_none() {
            return self.begin(task, Vec::new()).await;
        }
        let (at_ms, account) = (routes.now_ms(), way.account());
        way.preparing = Some(Box::pin(async move {
            if let Some(heard) = heard {
                // Whoever is not heard of is found out about by asking.
                let _unheard = timeout(LEDGER_PATIENCE, heard).await;
            }
            let limited = routes.limited(&account.turn, &account.session);
            let levels = async {
                let ledger = ledger.filter(|_| !limited.is_empty())?;
                timeout(LEDGER_PATIENCE, ledger.levels(limited, at_ms)).await.ok()?.ok()
            };
            let task = async {
                match classifier {
                    Some(arm) => classified(task, &arm, &account).await,
                    None => (task, None),
                }
            };
            let (levels, (task, share)) = tokio::join!(levels, task);
            Prepared::Task(task, share, levels.unwrap_or_default())
        }));
        Ok(())
    }

    /// What the person asks for.
    pub(super) fn task(&self) -> Task {
        let history = self.turn.history();
        let said = history.iter().rev().find(|message| message.role() == Role::User);
        let words = said.map(|message| message.text_content()).unwrap_or_default();
        let has_images = self.turn.told().1.iter().any(|message| has_images(message));
        let new = tokens::estimate(&words) as u64;
        let options = &self.way.routes.options;
        let matters = self.way.routes.arms().len() > 1 || !options.rules.is_empty();
        let context_tokens = self.way.context_tokens + new;
        let mut task = Task::of(words, has_images, context_tokens, matters, options);
        task.touched = self.way.concern.met();
        task
    }

    /// Goes on with what had to be waited for.
    pub(super) async fn go_on(&mut self, came: Came) -> Result<(), Closed> {
        let prepared = match came {
            Came::Prepared(prepared) => prepared,
            Came::Found(found) => return self.found(found).await,
            Came::Nothing => return Ok(()),
        };
        match prepared {
            Prepared::Task(task, share, levels) => {
                self.begin(task, levels).await?;
                match share {
                    Some(share) => self.tell_cost(share).await,
                    None => Ok(()),
                }
            }
            Prepared::Room(Ok(Reserved::Held(id))) => {
                let ledger = self.way.routes.ledger().cloned();
                self.way.hold = ledger.map(|ledger| Hold::new(ledger, id));
                self.start_stream().await
            }
            Prepared::Room(Ok(Reserved::Full(full))) => {
                self.refuse_full(&full);
                Ok(())
            }
            Prepared::Room(Err(error)) => self.without_ledger(error).await,
            Prepared::Told(told) => self.told_in_fewer_words(told).await,
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
                self.go_ahead().await
            }
            Err(no_arm) => {
                let why = match (&no_arm.dead_end, no_arm.reasons.as_slice()) {
                    (Some(why), _) => why.clone(),
                    (None, []) => "no model is configured".to_owned(),
                    (None, reasons) => format!("no model can be asked: {}", reasons.join("; ")),
                };
                let is_capped = why.contains(" cap of ");
                let (kind, hint) = if is_capped {
                    (
                        ErrorKind::Quota,
                        "Caps are set in `router.caps`; `gnoma router pools` shows where limits stand.",
                    )
                } else {
                    (ErrorKind::NotFound, "`gnoma route` shows every model with what excludes it.")
                };
                let error = ProviderError::new(kind, OWN, why).with_hint(hint);
                self.inbox.push_back(Input::Model(Err(error)));
                Ok(())
            }
        }
    }

    /// Reserves what the call may take, where any of its pools has a limit.
    pub(super) async fn make_room(&mut self) -> Result<(), Closed> {
        self.way.settle_rest();
        let Some(course) = &self.way.course else { return Ok(()) };
        if let Some(why) = course.is_beyond(self.way.routes.now_ms()) {
            let error = ProviderError::new(ErrorKind::Quota, OWN, why);
            self.inbox.push_back(Input::Model(Err(error)));
            return Ok(());
        }
        if self.look_for_paths()
            && let Some(error) = self.way.kept_from()
        {
            self.refuse_call(error);
            return Ok(());
        }
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
        let unsettled = self.way.unsettled.clone();
        self.way.preparing = Some(Box::pin(async move {
            let room = async {
                for call in unsettled {
                    call.cancelled().await;
                }
                ledger.reserve(ask).await
            };
            let late = |_| {
                let text = "the ledger does not answer".to_owned();
                Err(StoreError::new(gnoma_core::store::StoreErrorKind::Busy, text))
            };
            Prepared::Room(timeout(LEDGER_PATIENCE, room).await.unwrap_or_else(late))
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
        let together = panel.filter(|_| round == 1 && members.len() > 1);
        let shares = together.map(|_| Shares::default());
        self.stream = Some(match together.zip(shares.clone()) {
            Some((together, shares)) => {
                let account = self.way.account();
                let question = several::question_of(self.turn.history());
                let chair = self.chair().unwrap_or_else(|| arm.clone());
                let panel = Panel { together, members, chair, request, question, shares, account };
                // The members settle for themselves.
                self.way.hold = None;
                several::stream(panel)
            }
            None => arm.provider.stream(request),
        });
        let (since, usage) = (Instant::now(), Usage::default());
        self.way.call = Some(Call { arm, since, first: None, usage, shares, is_over: false });
        self.tell_notices().await
    }

    /// Who judges or merges what several arms answer.
    fn chair(&self) -> Option<Arm> {
        let course = self.way.course.as_ref()?;
        self.way.routes.reviewer(&course.task, self.way.moment_of(course), None)
    }

    /// A turn begins: it is not routed yet.
    pub(super) fn turn_begins(&mut self) {
        self.way.course = None;
    }

    /// A turn has ended: its course waits for what the person thinks of it.
    pub(super) fn turn_is_over(&mut self, outcome: &Outcome) {
        self.way.drop_call();
        self.way.settle_rest();
        let Some(mut course) = self.way.course.take() else { return };
        self.way.share_out(&course);
        match outcome {
            Outcome::Complete { .. } if course.is_open => {
                let green = course.signals.check().map(|(_, green)| green);
                course.close_attempt(green.or_else(|| self.turn.handling().verdict()));
            }
            Outcome::Stuck { .. } | Outcome::RoundLimit { .. } if course.is_open => {
                course.close_attempt(Some(false));
            }
            // A person's stop and a provider's failure say nothing of the work under way.
            Outcome::Complete { .. }
            | Outcome::Stuck { .. }
            | Outcome::RoundLimit { .. }
            | Outcome::Cancelled
            | Outcome::Failed { .. } => (),
        }
        if !course.attempts.is_empty() {
            self.way.last = Some(course);
        }
    }

    /// A person says whether the last turn's work was right.
    pub(super) async fn rate(&mut self, good: bool) -> Result<(), Closed> {
        let rated = self.way.last.take().and_then(|course| {
            self.way.learn(&course, Some(good));
            Some(course.attempts.last()?.arm.clone())
        });
        let (level, text) = match rated {
            Some(arm) => {
                let verdict = if good { "right" } else { "wrong" };
                (NoticeLevel::Info, format!("noted for {arm}: the work was {verdict}"))
            }
            None => (NoticeLevel::Warning, "there is no work to rate".to_owned()),
        };
        self.emit(Event::Notice { level, text }).await
    }

    /// Only this arm is asked from the next turn on; `None`: whichever the router chooses.
    pub(super) async fn pin(&mut self, arm: Option<ModelRef>) -> Result<(), Closed> {
        let (level, text) = match arm {
            None => {
                self.way.pin = Pin::Nobody;
                (NoticeLevel::Info, "each turn is routed from the next one on".to_owned())
            }
            Some(name) if self.way.routes.arm(&name).is_some() => {
                let text = format!("{name} is asked from the next turn on");
                self.way.pin = Pin::Arm(name);
                (NoticeLevel::Info, text)
            }
            Some(name) => {
                (NoticeLevel::Warning, format!("{name} is not among the models of this session"))
            }
        };
        self.emit(Event::Notice { level, text }).await
    }

    /// A call that may have changed files without a diff to show for it is about to run.
    pub(super) fn may_write(&mut self, spec: &ToolSpec, call: &ToolCall) {
        let Some(course) = &mut self.way.course else { return };
        if !signals::is_check(spec, call) {
            course.signals.may_have_written();
        }
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

/// Asks an arm what kind of task it is; what the words suggest stands where it says nothing useful.
async fn classified(task: Task, arm: &Arm, account: &Account) -> (Task, Option<Share>) {
    let request = task.question(arm);
    match account.ask(arm, request, CLASSIFIER_PATIENCE).await {
        Ok(Said { text, share }) => (task.judged(Some(&text)), share),
        Err(_) => (task.judged(None), None),
    }
}
