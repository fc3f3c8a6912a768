//! What all sessions of a process share about arms: which there are, their scores, their state, and what they may
//! spend.
//!
//! `gnoma-router` contains the policy and is pure; here it meets the current arms. Nothing waits in here: what has
//! to wait (a ledger, a memory) is a port that the session calls.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gnoma_core::{
    ModelRef, ProviderError, Usage,
    ledger::{Amount, ExhaustedLimit, Ledger, Level, PoolDraw, SettledCall},
    store::StoreFuture,
};
use gnoma_guard::firewall::{Connection, Firewall, GuardedProvider};
use gnoma_router::{
    Arm, ArmEstimate, PoolId, Router, TaskKind, TaskOutcome, Zone,
    health::{Health, HealthTarget, Rest, RestingTarget},
    pool::{self, KnownLimit, PoolLimits, Scope},
    rules::{MatchedPaths, PathBase, Roles, Rule},
};
use jiff::tz::TimeZone;

use super::{
    meter::Meter,
    speed::Speed,
    vitals::{ArmObservation, ObservationKind, VitalsTracker},
};

use crate::connections::Connections;

/// Tasks of a working day.
const TASKS_A_DAY: f64 = 40.0;

/// The way in which arms are used for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As the router finds best.
    #[default]
    Auto,
    /// One arm, nobody checks.
    Single,
    /// One arm; its work is checked, and another arm continues if the check fails.
    Cascade,
    /// Several at once, the best answer counts.
    Ensemble,
    /// Several at once, one answer is made of all.
    Synthesis,
}

/// The check of the work before it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// The project's checks if it has any, else a reviewing arm.
    #[default]
    Auto,
    /// The project's checks only.
    Checks,
    /// A reviewing arm only.
    Reviewer,
    /// The work is not checked.
    Off,
}

/// A store for what is learned, so that it outlives the process.
pub trait OutcomeStore: Send + Sync {
    /// A task is over. Learns from it where what is known is kept; never fails the turn.
    fn learn_outcome(&self, outcome: TaskOutcome) -> StoreFuture<'_, ()>;
}

/// Makes a new text of what is kept; `None` leaves it as it is.
pub type Exchange = Box<dyn FnOnce(Option<&str>) -> Option<String> + Send>;

/// A store for what arms showed of themselves (rests, limits, speeds), shared by all processes.
pub trait VitalsStore: Send + Sync {
    /// Reports whether the store is certainly empty, so that no caller need wait for it.
    fn is_empty(&self) -> bool;

    /// Lets `exchange` have the text that is kept and keeps what it makes of it, with nobody in between.
    fn exchange(&self, exchange: Exchange) -> StoreFuture<'_, ()>;
}

/// The settings by which turns are routed.
pub struct RoutingOptions {
    /// The routing rules of the user.
    pub rules: Vec<Rule>,
    /// Mistakes in the rules that the user already knows about, so that they are reported once.
    pub said: Vec<String>,
    /// Arms for parts of the work.
    pub roles: Roles,
    /// Micro-dollars that a right result of an ordinary task is worth.
    pub value_micro_usd: u64,
    /// Micro-dollars that a second of waiting costs.
    pub second_micro_usd: u64,
    /// The way in which arms are used.
    pub strategy: Strategy,
    /// Most attempts at a task.
    pub max_attempts: usize,
    /// The check that looks at the work.
    pub verify: Verify,
    /// Commands that prove the project right; the user vouches for them.
    pub checks: Vec<String>,
    /// True if another arm takes over from one that fails.
    pub failover: bool,
    /// True if the router learns from the outcomes of tasks.
    pub learn: bool,
    /// Only this arm is asked.
    pub pinned: Option<ModelRef>,
    /// True if nothing may leave this machine.
    pub local_only: bool,
    /// The arm that says what kind of task it is; without one the words are judged.
    pub classifier: Option<ModelRef>,
    /// The folder at which the paths in rules begin.
    pub ground: PathBase,
    /// The classifier does nothing else.
    pub only_classifies: bool,
    /// The limits on how much may be spent, and how fast.
    pub limits: PoolLimits,
    /// The project, as its spending is counted.
    pub project: String,
    /// Reads the git branch that is checked out in the project's folder; it may change at any time.
    pub branch: Box<dyn Fn() -> Option<String> + Send + Sync>,
    /// The ledger that counts what is spent, if there is one.
    pub ledger: Option<Arc<dyn Ledger>>,
    /// The store for what the router learns, if there is one.
    pub memory: Option<Arc<dyn OutcomeStore>>,
    /// Tells other processes about the state of the arms.
    pub board: Option<Arc<dyn VitalsStore>>,
    /// The time, in milliseconds since 1970.
    pub now_ms: Box<dyn Fn() -> i64 + Send + Sync>,
    /// The zone of the people who read times and whose hours rules speak of.
    pub zone: Zone,
    /// The seed for choices between equal arms.
    pub seed: u64,
}

impl RoutingOptions {
    /// Reports whether the project's checks decide if work holds.
    pub(crate) fn runs_checks(&self) -> bool {
        !self.checks.is_empty() && matches!(self.verify, Verify::Auto | Verify::Checks)
    }
}

impl Default for RoutingOptions {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            said: Vec::new(),
            roles: Roles::default(),
            value_micro_usd: 10_000_000,
            second_micro_usd: 0,
            strategy: Strategy::default(),
            max_attempts: 3,
            verify: Verify::default(),
            checks: Vec::new(),
            failover: true,
            learn: true,
            pinned: None,
            local_only: false,
            classifier: None,
            ground: PathBase::default(),
            only_classifies: false,
            limits: PoolLimits::default(),
            project: String::new(),
            branch: Box::new(|| None),
            ledger: None,
            memory: None,
            board: None,
            now_ms: Box::new(|| 0),
            zone: || TimeZone::UTC,
            seed: 0,
        }
    }
}

impl RoutingOptions {
    /// Returns the starting state of path rules, in which nothing but the folder has been met yet.
    pub(crate) fn new_concern(&self) -> MatchedPaths {
        MatchedPaths::new(&self.rules, self.ground.clone())
    }
}

/// The arms that sessions choose from, and what is known of them; shared by all sessions of a project.
pub struct Routes {
    arms: Mutex<Arc<[Arc<Arm>]>>,
    connections: Connections,
    router: Mutex<Router>,
    watch: Mutex<VitalsTracker>,
    pub(crate) options: RoutingOptions,
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").field("arms", &self.arms()).finish_non_exhaustive()
    }
}

/// Locks; a panic elsewhere does not make what was noted worse.
fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn health_target(arm: &Arm) -> HealthTarget<'_> {
    HealthTarget { arm: &arm.id, host: &arm.host }
}

impl Routes {
    /// Routes that continue from what `router` knows.
    #[must_use]
    pub fn new(router: Router, options: RoutingOptions) -> Self {
        Self {
            arms: Mutex::default(),
            connections: Connections::default(),
            router: Mutex::new(router),
            watch: Mutex::default(),
            options,
        }
    }

    /// One arm, and nothing known of it.
    #[must_use]
    pub fn with_single_arm(arm: (Arm, Connection)) -> Self {
        let routes =
            Self::new(Router::new(gnoma_router::Tuning::default()), RoutingOptions::default());
        routes.set_arms([arm]);
        routes
    }

    /// Replaces the arms: from the next call on these can be asked, each through its connection.
    pub fn set_arms(&self, arms: impl IntoIterator<Item = (Arm, Connection)>) {
        let connected = arms.into_iter().map(|(arm, connection)| {
            self.connections.insert(arm.id.clone(), connection);
            Arc::new(arm)
        });
        let arms: Arc<[Arc<Arm>]> = connected.collect();
        lock_ignoring_poison(&self.router).register_arms(&arms);
        *lock_ignoring_poison(&self.arms) = arms;
    }

    /// Returns the provider of an arm behind the firewall of the session that calls.
    ///
    /// # Errors
    /// The arm was never one of these.
    pub(crate) fn with_firewall(
        &self,
        arm: &ModelRef,
        firewall: &Arc<Firewall>,
    ) -> Result<GuardedProvider, ProviderError> {
        self.connections.with_firewall(arm, firewall)
    }

    /// The arms as they are now.
    #[must_use]
    pub fn arms(&self) -> Arc<[Arc<Arm>]> {
        Arc::clone(&lock_ignoring_poison(&self.arms))
    }

    /// The arm of that name.
    #[must_use]
    pub fn find_arm(&self, name: &ModelRef) -> Option<Arc<Arm>> {
        self.arms().iter().find(|arm| arm.id == *name).cloned()
    }

    /// Returns what is believed about an arm at a kind of task.
    #[must_use]
    pub fn arm_estimate(&self, arm: &ModelRef, kind: &TaskKind) -> ArmEstimate {
        lock_ignoring_poison(&self.router).estimate_arm(arm, kind)
    }

    /// Gives `look` access to the health of all arms.
    pub fn with_health<T>(&self, look: impl FnOnce(&Health) -> T) -> T {
        look(&lock_ignoring_poison(&self.watch).vitals.health)
    }

    /// Returns the arms that rest now.
    #[must_use]
    pub fn resting_arms(&self) -> Vec<RestingTarget> {
        self.with_health(|health| health.resting_targets(self.now_ms()))
    }

    /// Returns the limits that the arm's provider has reported.
    #[must_use]
    pub fn known_limits(&self, arm: &ModelRef) -> Vec<KnownLimit> {
        lock_ignoring_poison(&self.watch).vitals.limits.known_limits(arm).to_vec()
    }

    pub(super) fn lock_router(&self) -> MutexGuard<'_, Router> {
        lock_ignoring_poison(&self.router)
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.options.now_ms)()
    }

    /// Describes a limit that has no room for a call.
    pub(crate) fn describe_full_limit(&self, full: &ExhaustedLimit, need: &Amount) -> String {
        self.options.limits.describe_full_limit(full, need, self.now_ms(), self.zone())
    }

    pub(crate) fn zone(&self) -> Zone {
        self.options.zone
    }

    pub(super) fn current_rest(&self, arm: &Arm) -> Option<Rest> {
        self.with_health(|health| {
            health.current_rest(health_target(arm), self.now_ms(), self.zone())
        })
    }

    /// A call of the arm begins.
    pub(crate) fn record_call_start(&self, arm: &Arm) {
        lock_ignoring_poison(&self.watch)
            .vitals
            .health
            .begin_call(health_target(arm), self.now_ms());
    }

    /// A call of the arm has failed.
    pub(crate) fn record_failure(&self, arm: &Arm, error: &ProviderError) {
        self.record_observation(arm.id.clone(), &arm.host, ObservationKind::Failed(error.clone()));
    }

    /// A call of the arm has been answered.
    pub(crate) fn record_success(&self, arm: &Arm, first: Duration, whole: Duration, usage: Usage) {
        let seen = ObservationKind::Worked {
            took: [first, whole],
            tokens: usage.output,
            was_trial: false,
        };
        self.record_observation(arm.id.clone(), &arm.host, seen);
    }

    /// A call of the arm was given up.
    pub(crate) fn record_abandonment(&self, arm: &Arm) {
        lock_ignoring_poison(&self.watch).vitals.health.abandon_call(health_target(arm));
    }

    fn record_observation(&self, arm: ModelRef, host: &str, seen: ObservationKind) {
        let sight = ArmObservation { arm, host: host.to_owned(), at_ms: self.now_ms(), seen };
        lock_ignoring_poison(&self.watch).record_sight(sight, self.options.board.is_some());
    }

    /// Takes in what other processes observed of the arms; `None` if there is nothing to wait for.
    #[must_use]
    pub fn hear_others(self: &Arc<Self>) -> Option<StoreFuture<'static, ()>> {
        let board = self.options.board.as_ref().filter(|board| !board.is_empty())?;
        Some(self.sync_vitals(Arc::clone(board)))
    }

    /// Brings what was seen of the arms to other processes; `None` where they know it all.
    pub(crate) fn tell_others(self: &Arc<Self>) -> Option<StoreFuture<'static, ()>> {
        let board =
            self.options.board.as_ref().filter(|_| lock_ignoring_poison(&self.watch).has_news())?;
        Some(self.sync_vitals(Arc::clone(board)))
    }

    fn sync_vitals(self: &Arc<Self>, board: Arc<dyn VitalsStore>) -> StoreFuture<'static, ()> {
        let routes = Arc::clone(self);
        let exchange: Exchange = Box::new(move |text| {
            let now_ms = routes.now_ms();
            lock_ignoring_poison(&routes.watch).merge_shared(text, now_ms)
        });
        Box::pin(async move { board.exchange(exchange).await })
    }

    /// Returns a call of the arm as the ledger settles it. `first_part`: the time until the first part of the answer;
    /// `whole`: until its end.
    pub(crate) fn settled_call(
        &self,
        arm: &Arm,
        meter: &Meter,
        first_part: Option<Duration>,
        whole: Duration,
    ) -> SettledCall {
        let usage = meter.total_usage();
        SettledCall {
            amount: pool::used_amount(&usage, &arm.price.unwrap_or_default()),
            thinking: usage.reasoning,
            is_priced: arm.price.is_some() || usage.total_tokens() == 0,
            failure: meter.failure(),
            first_part_ms: first_part.and_then(to_milliseconds),
            took_ms: to_milliseconds(whole),
            stop: meter.stop_reason(),
        }
    }

    /// Returns a call of the arm that takes what is expected of it, as the ledger settles it.
    pub(crate) fn expected_call(&self, arm: &Arm, expected: Amount) -> SettledCall {
        SettledCall { is_priced: arm.price.is_some(), ..expected.into() }
    }

    /// The headers of an answer of the arm tell of limits.
    pub(crate) fn limits_told(&self, arm: &ModelRef, headers: &[(String, String)]) {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let limits = pool::reported_limits(headers, self.now_ms());
        if !limits.is_empty() {
            self.record_observation(arm.clone(), "", ObservationKind::Limits(limits));
        }
    }

    /// The pools that a call of the arm draws on.
    pub(crate) fn draws(&self, arm: &Arm, scope: &Scope) -> Vec<PoolDraw> {
        let learnt = &lock_ignoring_poison(&self.watch).vitals.limits;
        self.options.limits.draws_for_call(arm, scope, &self.options.project, learnt)
    }

    /// Returns the pools with limits that calls of the arms draw on, each pool once.
    pub(crate) fn limited_draws(&self, scope: &Scope) -> Vec<PoolDraw> {
        let mut limited: Vec<PoolDraw> = Vec::new();
        for draw in self.arms().iter().flat_map(|arm| self.draws(arm, scope)) {
            if !draw.limits.is_empty() && !limited.contains(&draw) {
                limited.push(draw);
            }
        }
        limited
    }

    /// The pools that a call draws on which takes `need`, without the limits that its provider has said
    /// there is room in.
    pub(crate) fn draws_for(&self, arm: &Arm, scope: &Scope, need: &Amount) -> Vec<PoolDraw> {
        let mut draws = self.draws(arm, scope);
        let (name, now_ms) = (arm.id.clone(), self.now_ms());
        let own = pool::Pool::Arm(name.clone()).to_string();
        let watch = lock_ignoring_poison(&self.watch);
        let learnt = &watch.vitals.limits;
        for draw in draws.iter_mut().filter(|draw| draw.pool == own) {
            draw.limits.retain(|limit| !learnt.has_room(&name, limit, need, now_ms));
        }
        draws
    }

    /// Returns the reason why, by the provider's own word, it takes no call now, and until when; `None` if it takes
    /// calls.
    #[must_use]
    pub fn provider_refusal(&self, arm: &ModelRef) -> Option<(String, i64)> {
        lock_ignoring_poison(&self.watch).vitals.limits.refusal_reason(
            arm,
            self.now_ms(),
            self.zone(),
        )
    }

    /// Notes how much of the daily and monthly budgets is used, so that they last.
    pub(super) fn see_budgets(&self, levels: &[Level]) {
        let now_ms = self.now_ms();
        for level in levels {
            if let Some((pool, budget)) = pool::pool_budget(level, now_ms, TASKS_A_DAY) {
                lock_ignoring_poison(&self.router).set_budget(&pool, budget);
            }
        }
    }

    /// Records what a task spent, in dollars by pool.
    pub(crate) fn record_spend(&self, by_pool: &BTreeMap<PoolId, f64>) {
        lock_ignoring_poison(&self.router).record_spend(by_pool);
    }

    /// Returns the speed that the arm has shown.
    #[must_use]
    pub fn speed(&self, arm: &ModelRef) -> Option<Speed> {
        lock_ignoring_poison(&self.watch).vitals.speeds.for_arm(arm)
    }

    pub(super) fn seconds_to_answer(&self, arm: &ModelRef) -> Option<f64> {
        self.speed(arm).map(|speed| speed.seconds_to_answer())
    }

    pub(crate) fn ledger(&self) -> Option<&Arc<dyn Ledger>> {
        self.options.ledger.as_ref()
    }

    /// Learns an outcome, here and in the saved scores.
    pub(crate) fn learn_outcome(
        self: &Arc<Self>,
        outcome: TaskOutcome,
    ) -> Option<StoreFuture<'static, ()>> {
        if !self.options.learn {
            return None;
        }
        lock_ignoring_poison(&self.router).record_outcome(&outcome);
        let memory = Arc::clone(self.options.memory.as_ref()?);
        Some(Box::pin(async move { memory.learn_outcome(outcome).await }))
    }
}

fn to_milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}
