//! The session's side of routing: what it asks of the [`Routes`], and what it tells them.
//!
//! A turn is routed once, before its first call. Every call makes room in the pools it draws on and
//! settles what it took; one that fails may go on with another arm. Work is checked at the end where
//! the course says so. What turned out is learnt when the person's next words, or the end of the
//! session, have shown what they think of it.

mod calling;
mod checking;
mod conferring;
mod failing;
mod keeping_from;
mod paying;
mod proving;
mod room;

use std::{collections::HashMap, sync::Arc, time::Duration};

use gnoma_core::{
    Content, ErrorKind, Event, Message, ModelRef, ProviderError, Role, StreamEvent, ToolCall,
    ToolSpec,
    ledger::{Draw, Level, Reserved},
    session::{NoticeLevel, Outcome},
    store::StoreError,
    tool::BoxFuture,
};
use gnoma_guard::firewall::Firewall;
use gnoma_router::{pool::Scope, rules::Concern};
use tokio::{
    task::JoinSet,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use self::{checking::Found, proving::Proof};
use super::{Closed, Session, compacting};
use crate::{
    arm::Arm,
    compact,
    routing::{
        OWN,
        ask::{Account, Dropped, Hold, Said, Share},
        course::Course,
        desk::Routes,
        meter::Meter,
        offers::{Moment, Warm},
        several::Shares,
        signals,
        task::Task,
    },
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
    /// What kind of task it is, what finding out took, and where the limits stand.
    Task(Task, Vec<Share>, Vec<Level>),
    /// Whether there is room for the call.
    Room(Result<Reserved, StoreError>),
    /// The past in fewer words.
    Told(compacting::Told),
}

/// What the session waited for beside the model and the tools.
pub(super) enum Came {
    Prepared(Prepared),
    Found(Found),
    /// The arms have compared their ways.
    Conferred(Result<String, ProviderError>, Shares),
    /// Whoever looked or compared broke down inside.
    Broken,
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
    /// What it takes.
    meter: Meter,
    /// Messages of the history that it was asked with.
    messages: usize,
    /// Whose calls these really are, where several arms answer together.
    shares: Option<Shares>,
    /// It was answered to its end, or its failure is noted.
    is_over: bool,
}

/// How long the conversation is, as far as it was told.
#[derive(Clone, Copy, Default)]
pub(super) struct Told {
    tokens: u64,
    /// Messages of the history that these are the tokens of.
    messages: usize,
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
    /// Session and turn, as their spending is counted.
    scope: Arc<Scope>,
    pin: Pin,
    warm: HashMap<ModelRef, Warm>,
    told: Told,
    levels: Vec<Level>,
    /// Round and attempt of the call under way.
    asked: (u32, u32),
    preparing: Option<Preparing>,
    hold: Option<Hold>,
    call: Option<Call>,
    session_micro_usd: u64,
    turns: u64,
    /// When this process took the session up: it numbers its own turns.
    began_ms: i64,
    /// The course of the last turn, until it is clear what the person thinks of it.
    last: Option<Course>,
    /// Work that nobody waits for, each with what went wrong.
    settling: JoinSet<Option<String>>,
    /// Calls that are being settled, each until its token is cancelled: the next call waits for
    /// them, so that the ledger knows of them when it says whether there is room.
    unsettled: Vec<CancellationToken>,
    checking: JoinSet<Came>,
    /// The project's checks, while they run.
    proof: Option<Proof>,
    /// Questions that nobody waited for to the end.
    dropped: Dropped,
    has_complained: bool,
    concern: Concern,
    /// Messages of the history that were looked at for it.
    looked_at: usize,
}

impl Way {
    /// `said`: the conversation that is continued.
    pub(super) fn new(routes: Arc<Routes>, scope: Scope, said: &[Arc<Message>]) -> Self {
        let (concern, began_ms) = (routes.options.concern(), routes.now_ms());
        let told = Told { tokens: compact::estimate(said), messages: said.len() };
        Self {
            routes,
            course: None,
            scope: Arc::new(scope),
            pin: Pin::AsConfigured,
            warm: HashMap::new(),
            told,
            levels: Vec::new(),
            asked: (0, 0),
            preparing: None,
            hold: None,
            call: None,
            session_micro_usd: 0,
            turns: 0,
            began_ms,
            last: None,
            settling: JoinSet::new(),
            unsettled: Vec::new(),
            checking: JoinSet::new(),
            proof: None,
            dropped: Dropped::default(),
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
            Some(came) = checking.join_next() => match came {
                Ok(came) => came,
                Err(stopped) if stopped.is_cancelled() => Came::Nothing,
                Err(_broken) => Came::Broken,
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

    /// The call under way has failed and is made again, in the same round. What it took is to be told.
    pub(super) fn give_up_call(&mut self) -> Vec<Share> {
        self.asked.1 += 1;
        self.settle_rest()
    }

    /// The conversation is another from now on, of about `tokens` for all `messages` of the history: no
    /// prompt of it is warm.
    pub(super) fn told_anew(&mut self, tokens: u64, messages: usize) {
        self.warm.clear();
        self.told = Told { tokens, messages };
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

    /// Something of the answer has come.
    pub(super) fn heard(&mut self, event: &StreamEvent) {
        let Some(call) = &mut self.call else { return };
        call.meter.hear(event);
        let first = *call.first.get_or_insert_with(|| call.since.elapsed());
        if matches!(event, StreamEvent::Stop(_)) {
            call.is_over = true;
            // The members of a panel speak for themselves.
            if call.shares.is_none() {
                let usage = call.meter.told().unwrap_or_default();
                self.routes.worked(&call.arm, first, call.since.elapsed(), usage);
                if let Some(course) = &mut self.course {
                    course.parts.add(&call.arm.name());
                }
            }
        }
    }

    /// The headers of the call's answer tell of limits.
    pub(super) fn limits_told(&self, headers: &[(String, String)]) {
        if let Some(call) = &self.call {
            self.routes.limits_told(&call.arm.name(), headers);
        }
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
            scope: &self.scope,
        }
    }

    /// The same for a turn that began under another pin.
    fn moment_of(&self, course: &Course) -> Moment<'_> {
        Moment { pin: self.pinned().filter(|_| course.is_pinned), ..self.moment() }
    }

    /// Session and turn, as their spending is counted.
    pub(super) fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// Micro-dollars that are left of the turn's and the session's caps, where they have any.
    pub(super) fn left(&self) -> [Option<u64>; 2] {
        let caps = self.routes.options.limits.caps();
        let in_turn = self.course.as_ref().map_or(0, |course| course.spent.values().sum());
        let session = [self.scope.limit(), caps.session].into_iter().flatten().min();
        [(caps.turn, in_turn), (session, self.session_micro_usd)]
            .map(|(most, spent)| most.map(|most| most.saturating_sub(spent)))
    }

    /// The pools that a call of the arm draws on.
    fn draws(&self, arm: &Arm) -> Vec<Draw> {
        self.routes.draws(arm, &self.scope)
    }

    /// Whose money questions beside the conversation cost.
    pub(super) fn account(&self, firewall: &Arc<Firewall>) -> Account {
        Account {
            routes: Arc::clone(&self.routes),
            firewall: Arc::clone(firewall),
            scope: Arc::clone(&self.scope),
            dropped: self.dropped.clone(),
        }
    }

    /// Ends what is under way. Gives what could not be kept, where nobody was told of it yet.
    pub(super) async fn close(&mut self) -> Option<String> {
        self.drop_call();
        self.checking.shutdown().await;
        // Nobody is there any more to be told what it took.
        let _untold = self.settle_rest();
        if let Some(course) = self.last.take() {
            self.learn(&course, None);
        }
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
        let turn = format!("{}-{:x}-{}", way.scope.session(), way.began_ms, way.turns);
        way.scope = Arc::new(way.scope.in_turn(turn));
        let routes = Arc::clone(&way.routes);
        let count = routes.arms().len();
        let heard = routes.hear_others().filter(|_| count > 1 && way.pinned().is_none());
        let is_limited = heard.is_some() || !routes.limited(&way.scope).is_empty();
        let ledger = routes.ledger().filter(|_| is_limited).cloned();
        let classifier = routes.options.classifier.as_ref().filter(|_| count > 1);
        let may_see = |arm: &Arm| routes.kept_from(&arm.name(), &task).is_none();
        let classifier = classifier.and_then(|name| routes.arm(name)).filter(may_see);
        if heard.is_none() && ledger.is_none() && classifier.is_none() {
            return self.begin(task, Vec::new()).await;
        }
        let (at_ms, account) = (routes.now_ms(), way.account(&self.firewall));
        way.preparing = Some(Box::pin(async move {
            if let Some(heard) = heard {
                // Whoever is not heard of is found out about by asking.
                let _unheard = timeout(LEDGER_PATIENCE, heard).await;
            }
            let limited = routes.limited(&account.scope);
            let levels = async {
                let ledger = ledger.filter(|_| !limited.is_empty())?;
                timeout(LEDGER_PATIENCE, ledger.levels(limited, at_ms)).await.ok()?.ok()
            };
            let task = async {
                match classifier {
                    Some(arm) => classified(task, &arm, &account).await,
                    None => (task, Vec::new()),
                }
            };
            let (levels, (task, shares)) = tokio::join!(levels, task);
            Prepared::Task(task, shares, levels.unwrap_or_default())
        }));
        Ok(())
    }

    /// What the person asks for.
    pub(super) fn task(&self) -> Task {
        let history = self.turn.history();
        let said = history.iter().rev().find(|message| message.role() == Role::User);
        let words = said.map(|message| message.text_content()).unwrap_or_default();
        let has_images = self.turn.told().1.iter().any(|message| has_images(message));
        let options = &self.way.routes.options;
        let matters = self.way.routes.arms().len() > 1 || !options.rules.is_empty();
        let mut task = Task::of(words, has_images, self.context_tokens(), matters, options);
        task.touched = self.way.concern.met();
        task
    }

    /// Tokens of the conversation as the next call carries it, roughly: as the last call told, and what
    /// has come since, such as results of tools.
    pub(super) fn context_tokens(&self) -> u64 {
        let Told { tokens, messages } = self.way.told;
        let since = self.turn.history().get(messages..).unwrap_or_default();
        tokens.saturating_add(compact::estimate(since))
    }

    /// The turn's need has grown with what came since it began.
    pub(super) fn weigh_context(&mut self) {
        let tokens = self.context_tokens();
        if let Some(course) = &mut self.way.course {
            let need = &mut course.task.need.context_tokens;
            *need = tokens.max(*need);
        }
    }

    /// Goes on with what had to be waited for.
    pub(super) async fn go_on(&mut self, came: Came) -> Result<(), Closed> {
        let prepared = match came {
            Came::Prepared(prepared) => prepared,
            Came::Found(found) => return self.found(found).await,
            Came::Conferred(text, shares) => return self.conferred(text.ok(), &shares).await,
            Came::Broken if self.way.is_looking() => {
                return self.conferred(None, &Shares::default()).await;
            }
            Came::Broken => {
                let found = Found::nobody("whoever looked at it broke down inside");
                return self.found(found).await;
            }
            Came::Nothing => return Ok(()),
        };
        match prepared {
            Prepared::Task(task, shares, levels) => {
                self.begin(task, levels).await?;
                self.tell_costs(shares).await
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
                self.turn.check_work(course.is_checked() || course.is_looking);
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

    /// A turn begins: it is not routed yet.
    pub(super) fn turn_begins(&mut self) {
        self.way.course = None;
    }

    /// A turn has ended: its course waits for what the person thinks of it.
    pub(super) async fn turn_is_over(&mut self, outcome: &Outcome) -> Result<(), Closed> {
        self.way.drop_call();
        let untold = self.way.settle_rest();
        self.tell_costs(untold).await?;
        let Some(mut course) = self.way.course.take() else { return Ok(()) };
        self.way.share_out(&course);
        match outcome {
            Outcome::Complete { .. } if course.is_open => {
                let green = course.signals.check().map(|(_, green)| green);
                course.close_attempt(green.or_else(|| self.turn.handling().verdict()));
            }
            Outcome::Stuck { .. } if course.is_open => course.close_attempt(Some(false)),
            // A person's stop or limit and a provider's failure say nothing of the work under way.
            Outcome::Complete { .. }
            | Outcome::Stuck { .. }
            | Outcome::RoundLimit { .. }
            | Outcome::Cancelled
            | Outcome::Failed { .. } => (),
        }
        if !course.attempts.is_empty() {
            self.way.last = Some(course);
        }
        Ok(())
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
async fn classified(task: Task, arm: &Arm, account: &Account) -> (Task, Vec<Share>) {
    let request = task.question(arm);
    let Said { text, shares } = account.ask(arm, request, CLASSIFIER_PATIENCE).await;
    (task.judged(text.ok().as_deref()), shares)
}
