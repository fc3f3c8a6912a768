//! Arms, offers and tasks to test with.

use std::collections::BTreeMap;

use gnoma_router::{
    Arm, ArmFacts, ArmId, Attempt, AttemptResult, Capabilities, Need, Offer, Prior, Router,
    Situation, TaskKind, TaskOutcome, Tuning,
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
    Arm {
        id: id(name),
        facts: ArmFacts::default(),
        priors: BTreeMap::from([(fix(), prior)]),
        overall: Some(prior),
    }
}

pub(crate) fn stranger(name: &str) -> Arm {
    Arm { id: id(name), facts: ArmFacts::default(), priors: BTreeMap::new(), overall: None }
}

pub(crate) fn offer(name: &str) -> Offer {
    Offer {
        arm: id(name),
        capabilities: Capabilities {
            tools: true,
            vision: true,
            thinking: true,
            structured_output: true,
            context_window: Some(200_000),
            local: false,
        },
        pools: Vec::new(),
        most_micro_usd: None,
        saved_micro_usd: 0,
        cost_weight: 1.0,
        crowding: 1.0,
        seconds: None,
        barred: None,
    }
}

pub(crate) fn router(arms: Vec<Arm>) -> Router {
    let mut router = Router::new(Tuning::default());
    router.register_arms(arms);
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
