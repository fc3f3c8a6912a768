//! What choices rest on: the arms that there are, what is believed of them, and the state that their calls have shown.

use std::sync::Arc;

use gnoma_core::{
    ModelRef,
    ledger::{Amount, Level, PoolDraw},
};

use super::settings::RouterSettings;
use crate::{
    arm::Arm,
    health::HealthTarget,
    pool::{self, Scope},
    router::Router,
    vitals::{Vitals, VitalsTracker},
};

/// Tasks of a working day.
const TASKS_A_DAY: f64 = 40.0;

/// The arms that sessions choose from, with all that is known of them.
#[derive(Debug)]
pub struct RoutingState {
    arms: Arc<[Arc<Arm>]>,
    pub(super) settings: Arc<RouterSettings>,
    /// The beliefs about the arms.
    pub router: Router,
    /// The state of the arms, as their calls have shown it.
    pub tracker: VitalsTracker,
}

impl RoutingState {
    /// A state without arms that continues from what `router` knows.
    #[must_use]
    pub fn new(router: Router, settings: Arc<RouterSettings>) -> Self {
        Self { arms: Arc::default(), settings, router, tracker: VitalsTracker::default() }
    }

    /// Replaces the arms.
    pub fn set_arms(&mut self, arms: Arc<[Arc<Arm>]>) {
        self.router.register_arms(&arms);
        self.arms = arms;
    }

    /// The arms as they are now.
    #[must_use]
    pub fn arms(&self) -> &Arc<[Arc<Arm>]> {
        &self.arms
    }

    /// The arm of that name.
    #[must_use]
    pub fn find_arm(&self, name: &ModelRef) -> Option<&Arc<Arm>> {
        self.arms.iter().find(|arm| arm.id == *name)
    }

    /// Returns the reason why the arm had better not be called now, and until when: it rests after an error, or its
    /// provider takes no call by its own word.
    #[must_use]
    pub fn unavailability(&self, arm: &Arm, now_ms: i64) -> Option<(String, i64)> {
        let Vitals { health, limits, .. } = &self.tracker.vitals;
        let target = HealthTarget { arm: &arm.id, host: &arm.host };
        let rest = health.current_rest(target, now_ms, self.settings.zone);
        rest.map(|rest| (rest.why, rest.until_ms))
            .or_else(|| limits.refusal_reason(&arm.id, now_ms, self.settings.zone))
    }

    /// The pools that a call of the arm draws on.
    #[must_use]
    pub fn draws(&self, arm: &Arm, scope: &Scope) -> Vec<PoolDraw> {
        let learnt = &self.tracker.vitals.limits;
        self.settings.limits.draws_for_call(arm, scope, &self.settings.project, learnt)
    }

    /// The pools that a call draws on which takes `need`, without the limits that its provider has said
    /// there is room in.
    #[must_use]
    pub fn draws_for(&self, arm: &Arm, scope: &Scope, need: &Amount, now_ms: i64) -> Vec<PoolDraw> {
        let mut draws = self.draws(arm, scope);
        let own = pool::Pool::Arm(arm.id.clone()).to_string();
        let learnt = &self.tracker.vitals.limits;
        for draw in draws.iter_mut().filter(|draw| draw.pool == own) {
            draw.limits.retain(|limit| !learnt.has_room(&arm.id, limit, need, now_ms));
        }
        draws
    }

    /// Returns the pools that calls of the arms draw on, each pool once.
    #[must_use]
    pub fn all_draws(&self, scope: &Scope) -> Vec<PoolDraw> {
        let mut all: Vec<PoolDraw> = Vec::new();
        for draw in self.arms.iter().flat_map(|arm| self.draws(arm, scope)) {
            if !all.contains(&draw) {
                all.push(draw);
            }
        }
        all
    }

    /// Returns the pools with limits that calls of the arms draw on, each pool once.
    #[must_use]
    pub fn limited_draws(&self, scope: &Scope) -> Vec<PoolDraw> {
        let mut limited = self.all_draws(scope);
        limited.retain(|draw| !draw.limits.is_empty());
        limited
    }

    /// Notes how much of the daily and monthly budgets is used, so that they last.
    pub(super) fn see_budgets(&mut self, levels: &[Level], now_ms: i64) {
        for level in levels {
            if let Some((pool, budget)) = pool::pool_budget(level, now_ms, TASKS_A_DAY) {
                self.router.set_budget(&pool, budget);
            }
        }
    }
}
