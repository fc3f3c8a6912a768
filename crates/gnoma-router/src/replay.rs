//! `router-replay/1`: recorded outcomes put to the very router the engine uses, as JSON lines.
//!
//! The evaluator says which tasks come, what each arm would do with them, and what a verifier thinks; the router
//! answers what to run and what to deliver. This is only the translation: a pure function of state and line. Reading
//! and writing lines is for the caller. Unknown fields are ignored, as the protocol asks.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use serde::Serialize;

use crate::{
    arm::{Arm, ArmId, Offer, PoolId, Prior, Published},
    router::{Decision, Router},
    scarcity::PoolBudget,
    task::{Attempt, AttemptResult, Need, Situation, TaskKind, TaskOutcome},
    tuning::Tuning,
};

mod wire;

use wire::{Init, ReplayLine, ResultLine, TaskLine};

const MICRO: f64 = 1e6;
/// A line longer than this is refused unread.
pub const MOST_LINE_BYTES: usize = 1 << 20;

/// The reason why a line was not answered.
#[derive(thiserror::Error)]
pub enum ReplayError {
    /// The line is not one of the protocol.
    #[error("line is not router-replay/1: {0}")]
    Line(#[from] serde_json::Error),
    /// The line is too long.
    #[error("line is longer than {MOST_LINE_BYTES} bytes")]
    TooLong,
    /// The line comes where the protocol has no place for it.
    #[error("{0} before there is any")]
    Order(&'static str),
}

gnoma_core::debug_as_display!(ReplayError);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ReplayAnswer<'a> {
    Ready { name: &'a str, version: &'a str },
    Route { id: &'a str, arms: Vec<&'a str> },
    Accept { id: &'a str, attempt: usize },
}

/// One stream of tasks.
#[derive(Debug, Default)]
pub struct Replay {
    stream: Option<Stream>,
}

#[derive(Debug)]
struct Stream {
    router: Router,
    seed: u64,
    value_micro_usd: u64,
    max_attempts: usize,
    verified: bool,
    tasks_per_day: f64,
    arms: HashMap<String, (Arc<Arm>, PoolId)>,
    caps: BTreeMap<PoolId, f64>,
    spent_today: BTreeMap<PoolId, f64>,
    day: u64,
    task: Option<Task>,
}

#[derive(Debug)]
struct Task {
    id: String,
    number: u64,
    situation: Situation,
}

impl Replay {
    /// The answer to one line, where it wants one.
    ///
    /// # Errors
    /// The line is not one the protocol has at this place.
    pub fn answer_line(&mut self, line: &str) -> Result<Option<String>, ReplayError> {
        if line.len() > MOST_LINE_BYTES {
            return Err(ReplayError::TooLong);
        }
        match ReplayLine::parse_line(line)? {
            ReplayLine::Init(init) => {
                self.stream = Some(Stream::new(init));
                serialize_answer(&ReplayAnswer::Ready {
                    name: "gnoma",
                    version: env!("CARGO_PKG_VERSION"),
                })
            }
            ReplayLine::Task(task) => self.current_stream()?.on_task(task),
            ReplayLine::Result(result) => self.current_stream()?.on_result(&result),
            ReplayLine::Outcome(outcome) => {
                self.current_stream()?.on_outcome(&outcome);
                Ok(None)
            }
            ReplayLine::End => Ok(None),
        }
    }

    fn current_stream(&mut self) -> Result<&mut Stream, ReplayError> {
        self.stream.as_mut().ok_or(ReplayError::Order("a task"))
    }
}

fn serialize_answer(answer: &ReplayAnswer<'_>) -> Result<Option<String>, ReplayError> {
    Ok(Some(serde_json::to_string(answer)?))
}

impl Stream {
    fn new(init: Init) -> Self {
        let mut router = Router::new(Tuning::default());
        let mut arms = HashMap::new();
        let mut admitted = Vec::new();
        for arm in init.arms {
            let id = ArmId { provider: arm.provider.clone(), model: arm.id.clone() };
            let pool: PoolId = arm.pool.as_deref().unwrap_or(&arm.provider).into();
            let name = arm.id.clone();
            let arm = Arc::new(build_arm(arm, id));
            arms.insert(name, (Arc::clone(&arm), pool));
            admitted.push(arm);
        }
        router.register_arms(&admitted);
        Self {
            router,
            seed: init.seed,
            value_micro_usd: micro_usd(init.value_usd),
            max_attempts: init.max_attempts,
            verified: init.verifier.is_some(),
            tasks_per_day: init.tasks_per_day.unwrap_or(1.0).max(1.0),
            arms,
            caps: gnoma_core::sort::to_map(
                init.pools.into_iter().map(|pool| (pool.id.into(), pool.cap_usd_per_day)),
            ),
            spent_today: BTreeMap::new(),
            day: 0,
            task: None,
        }
    }

    fn on_task(&mut self, line: TaskLine) -> Result<Option<String>, ReplayError> {
        if line.day != self.day {
            self.day = line.day;
            self.spent_today.clear();
        }
        self.task = Some(Task {
            id: line.id,
            number: line.t,
            situation: Situation {
                need: Need::new(TaskKind::new(&line.kind), self.value_micro_usd),
                attempts: Vec::new(),
                attempts_left: self.max_attempts,
                verified: self.verified,
            },
        });
        self.choose_arms(&line.available)
    }

    fn on_result(&mut self, line: &ResultLine) -> Result<Option<String>, ReplayError> {
        let task = self.task.as_mut().ok_or(ReplayError::Order("a result"))?;
        let (arm, pool) =
            self.arms.get(&line.arm).ok_or(ReplayError::Order("a result of this arm"))?;
        *self.spent_today.entry(pool.clone()).or_insert(0.0) += line.cost_usd;
        task.situation.attempts.push(Attempt {
            arm: arm.id.clone(),
            verdict: line.verdict,
            cost_micro_usd: micro_usd(line.cost_usd),
        });
        task.situation.attempts_left = line.attempts_left;
        if line.last { self.choose_arms(&line.available) } else { Ok(None) }
    }

    fn choose_arms(&mut self, available: &[String]) -> Result<Option<String>, ReplayError> {
        let task = self.task.as_ref().ok_or(ReplayError::Order("a task"))?;
        let done_today = (task.number as f64) % self.tasks_per_day;
        for (pool, cap) in &self.caps {
            let spent = self.spent_today.get(pool).copied().unwrap_or(0.0);
            let budget = PoolBudget {
                cap: *cap,
                left: (cap - spent).max(0.0),
                to_come: 1.0 - done_today / self.tasks_per_day,
                tasks: self.tasks_per_day,
            };
            self.router.set_budget(pool, budget);
        }
        let offers: Vec<Offer> = available
            .iter()
            .filter_map(|name| self.arms.get(name))
            .map(|(arm, pool)| Offer { pools: vec![pool.clone()], ..Offer::new(Arc::clone(arm)) })
            .collect();
        let seed = self.seed.wrapping_mul(1_000_003).wrapping_add(task.number);
        let choice = self.router.choose(&task.situation, &offers, seed);
        match choice.decision {
            Decision::Run(arms) => serialize_answer(&ReplayAnswer::Route {
                id: &task.id,
                arms: arms.iter().map(|arm| arm.model.as_str()).collect(),
            }),
            Decision::Accept(attempt) => {
                serialize_answer(&ReplayAnswer::Accept { id: &task.id, attempt: attempt + 1 })
            }
            Decision::Impossible => Err(ReplayError::Order("a choice of an arm")),
        }
    }

    fn on_outcome(&mut self, line: &wire::OutcomeLine) {
        let Some(task) = self.task.take() else { return };
        let mut by_pool: BTreeMap<PoolId, f64> = BTreeMap::new();
        let mut tried = Vec::new();
        for attempt in &line.attempts {
            let Some((arm, pool)) = self.arms.get(&attempt.arm) else {
                continue;
            };
            *by_pool.entry(pool.clone()).or_insert(0.0) += attempt.cost_usd;
            tried.push(AttemptResult {
                attempt: Attempt {
                    arm: arm.id.clone(),
                    verdict: attempt.verdict,
                    cost_micro_usd: micro_usd(attempt.cost_usd),
                },
                right: attempt.resolved,
                weight: 1.0,
            });
        }
        self.router.record_outcome(&TaskOutcome { kind: task.situation.need.kind, tried });
        self.router.record_spend(&by_pool);
    }
}

fn build_arm(line: wire::ArmLine, id: ArmId) -> Arm {
    const ALL_KINDS: &str = "*";
    let mut by_kind = BTreeMap::new();
    let mut overall = None;
    for (kind, told) in line.prior.unwrap_or_default() {
        let prior = Prior { quality: told.q, cost: told.cost_usd, tasks: told.n };
        if kind == ALL_KINDS {
            overall = Some(prior);
        } else {
            by_kind.insert(TaskKind(Arc::from(kind)), prior);
        }
    }
    let published = Published {
        output_price: line.output_price,
        released: line.release_date.as_deref().and_then(wire::days_since_epoch),
        open_weights: line.openness.map(|openness| !openness.contains("closed")),
        by_kind,
        overall,
    };
    // Everything the protocol's arms can do: it knows no needs.
    Arm { published: Arc::new(published), ..Arm::new(id) }
}

/// Negative and senseless amounts are nothing.
fn micro_usd(usd: f64) -> u64 {
    (usd.max(0.0) * MICRO).round() as u64
}
