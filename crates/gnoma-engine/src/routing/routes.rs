//! What all sessions of a process share about arms: which there are, their scores, their state, and what they may
//! spend.
//!
//! `gnoma-router` contains the policy and is pure; here it gets the current arms, the clock and what calls show.
//! Nothing waits in here: what has to wait (a ledger, a memory) is a port that the session calls.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use gnoma_core::{
    ModelRef, ProviderError, Usage,
    ledger::{Amount, Ledger, SettledCall},
    store::StoreFuture,
    sync::{Mutex, MutexGuard},
};
use gnoma_guard::firewall::{Connection, Firewall, GuardedProvider};
use gnoma_router::{
    Arm, PoolId, Router, RouterSettings, TaskOutcome, Tuning,
    choice::RoutingState,
    health::HealthTarget,
    pool,
    vitals::{ArmObservation, ObservationKind},
};

use super::meter::Meter;
use crate::connections::Connections;

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

/// What routing needs from outside: the stores, the branch and the time.
pub struct RoutingPorts {
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
}

impl Default for RoutingPorts {
    fn default() -> Self {
        Self {
            branch: Box::new(|| None),
            ledger: None,
            memory: None,
            board: None,
            now_ms: Box::new(|| 0),
        }
    }
}

/// The arms that sessions choose from, and what is known of them; shared by all sessions of a project.
pub struct Routes {
    state: Mutex<RoutingState>,
    connections: Connections,
    pub(crate) settings: Arc<RouterSettings>,
    pub(super) ports: RoutingPorts,
}

impl fmt::Debug for Routes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Routes").field("arms", &self.arms()).finish_non_exhaustive()
    }
}

fn health_target(arm: &Arm) -> HealthTarget<'_> {
    HealthTarget { arm: &arm.id, host: &arm.host }
}

impl Routes {
    /// Routes that continue from what `router` knows.
    #[must_use]
    pub fn new(router: Router, settings: RouterSettings, ports: RoutingPorts) -> Self {
        let settings = Arc::new(settings);
        Self {
            state: Mutex::new(RoutingState::new(router, Arc::clone(&settings))),
            connections: Connections::default(),
            settings,
            ports,
        }
    }

    /// One arm, and nothing known of it.
    #[must_use]
    pub fn with_single_arm(arm: (Arm, Connection)) -> Self {
        let router = Router::new(Tuning::default());
        let routes = Self::new(router, RouterSettings::default(), RoutingPorts::default());
        routes.set_arms([arm]);
        routes
    }

    /// Locks the state; a panic elsewhere does not make what was noted worse.
    fn lock_state(&self) -> MutexGuard<'_, RoutingState> {
        self.state.lock()
    }

    /// Gives `work` access to the arms and all that is known of them. Nobody else has it meanwhile, so `work` must not
    /// ask these routes for anything else.
    pub fn with_state<T>(&self, work: impl FnOnce(&mut RoutingState) -> T) -> T {
        work(&mut self.lock_state())
    }

    /// Replaces the arms: from the next call on these can be asked, each through its connection.
    pub fn set_arms(&self, arms: impl IntoIterator<Item = (Arm, Connection)>) {
        let connected = arms.into_iter().map(|(arm, connection)| {
            self.connections.insert(arm.id.clone(), connection);
            Arc::new(arm)
        });
        let arms = connected.collect();
        self.lock_state().set_arms(arms);
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
        Arc::clone(self.lock_state().arms())
    }

    /// The arm of that name.
    #[must_use]
    pub fn find_arm(&self, name: &ModelRef) -> Option<Arc<Arm>> {
        self.lock_state().find_arm(name).cloned()
    }

    /// The time, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        (self.ports.now_ms)()
    }

    /// A call of the arm begins.
    pub(crate) fn record_call_start(&self, arm: &Arm) {
        let now_ms = self.now_ms();
        self.lock_state().tracker.vitals.health.begin_call(health_target(arm), now_ms);
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
        self.lock_state().tracker.vitals.health.abandon_call(health_target(arm));
    }

    fn record_observation(&self, arm: ModelRef, host: &str, seen: ObservationKind) {
        let sight = ArmObservation { arm, host: host.to_owned(), at_ms: self.now_ms(), seen };
        self.lock_state().tracker.record_sight(sight, self.ports.board.is_some());
    }

    /// Takes in what other processes observed of the arms; `None` if there is nothing to wait for.
    #[must_use]
    pub fn hear_others(self: &Arc<Self>) -> Option<StoreFuture<'static, ()>> {
        let board = self.ports.board.as_ref().filter(|board| !board.is_empty())?;
        Some(self.sync_vitals(Arc::clone(board)))
    }

    /// Brings what was seen of the arms to other processes; `None` where they know it all.
    pub(crate) fn tell_others(self: &Arc<Self>) -> Option<StoreFuture<'static, ()>> {
        let board = self.ports.board.as_ref().filter(|_| self.lock_state().tracker.has_news())?;
        Some(self.sync_vitals(Arc::clone(board)))
    }

    fn sync_vitals(self: &Arc<Self>, board: Arc<dyn VitalsStore>) -> StoreFuture<'static, ()> {
        let routes = Arc::clone(self);
        let exchange: Exchange = Box::new(move |text| {
            let now_ms = routes.now_ms();
            routes.lock_state().tracker.merge_shared(text, now_ms)
        });
        Box::pin(async move { board.exchange(exchange).await })
    }

    /// The headers of an answer of the arm tell of limits.
    pub(crate) fn limits_told(&self, arm: &ModelRef, headers: &[(String, String)]) {
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let limits = pool::reported_limits(headers, self.now_ms());
        if !limits.is_empty() {
            self.record_observation(arm.clone(), "", ObservationKind::Limits(limits));
        }
    }

    /// Records what a task spent, in dollars by pool.
    pub(crate) fn record_spend(&self, by_pool: &BTreeMap<PoolId, f64>) {
        self.lock_state().router.record_spend(by_pool);
    }

    pub(crate) fn ledger(&self) -> Option<&Arc<dyn Ledger>> {
        self.ports.ledger.as_ref()
    }

    /// Learns an outcome, here and in the saved scores.
    pub(crate) fn learn_outcome(
        self: &Arc<Self>,
        outcome: TaskOutcome,
    ) -> Option<StoreFuture<'static, ()>> {
        if !self.settings.learn {
            return None;
        }
        self.lock_state().router.record_outcome(&outcome);
        let memory = Arc::clone(self.ports.memory.as_ref()?);
        Some(Box::pin(async move { memory.learn_outcome(outcome).await }))
    }
}

/// Returns a call of the arm as the ledger settles it. `first_part`: the time until the first part of the answer;
/// `whole`: until its end.
pub(crate) fn settled_call(
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
pub(crate) fn expected_call(arm: &Arm, expected: Amount) -> SettledCall {
    SettledCall { is_priced: arm.price.is_some(), ..expected.into() }
}

fn to_milliseconds(time: Duration) -> Option<u64> {
    u64::try_from(time.as_millis()).ok()
}
