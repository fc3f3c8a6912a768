//! Arms, offers and tasks to test with.

use std::{collections::BTreeMap, sync::Arc};

use gnoma_router::{
    Arm, ArmId, Attempt, AttemptResult, Need, Offer, Prior, Published, Router, Situation, TaskKind,
    TaskOutcome, Tuning,
};

pub(crate) const DOLLAR: u64 = 1_000_000;

pub(crate) fn id(name: &str) -> ArmId {
    ArmId { provider: "maker".into(), model: name.into() }
}

pub(crate) fn fix() -> TaskKind {
    TaskKind::new("fix")
}

pub(crate) fn arm(name: &str, quality: f64, cost: f64) -> Arm {
    let prior = Prior { quality, cost, tasks: 200.0 };
    measured(name, BTreeMap::from([(fix(), prior)]), Some(prior))
}

pub(crate) fn measured(
    name: &str,
    by_kind: BTreeMap<TaskKind, Prior>,
    overall: Option<Prior>,
) -> Arm {
    let published = Published { by_kind, overall, ..Published::default() };
    Arm { published: Arc::new(published), ..stranger(name) }
}

pub(crate) fn stranger(name: &str) -> Arm {
    Arm { context_window: Some(200_000), ..Arm::new(id(name)) }
}

pub(crate) fn offer(name: &str) -> Offer {
    Offer::new(Arc::new(stranger(name)))
}

pub(crate) fn shared(arms: Vec<Arm>) -> Vec<Arc<Arm>> {
    arms.into_iter().map(Arc::new).collect()
}

pub(crate) fn router(arms: Vec<Arm>) -> Router {
    let mut router = Router::new(Tuning::default());
    router.register_arms(&shared(arms));
    router
}

pub(crate) fn task(dollars: u64) -> Situation {
    Situation {
        need: Need::new(fix(), dollars * DOLLAR),
        attempts: Vec::new(),
        attempts_left: 3,
        verified: true,
    }
}

pub(crate) fn attempt(name: &str, verdict: bool, cents: u64) -> Attempt {
    Attempt { arm: id(name), verdict: Some(verdict), cost_micro_usd: cents * DOLLAR / 100 }
}

pub(crate) fn outcome(kind: &TaskKind, name: &str, right: bool, cents: u64) -> TaskOutcome {
    TaskOutcome {
        kind: kind.clone(),
        tried: vec![AttemptResult {
            attempt: attempt(name, right, cents),
            right: Some(right),
            weight: 1.0,
        }],
    }
}
