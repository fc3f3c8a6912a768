//! What choosing between models costs: a choice, a lesson, the state of a year and loading it.

use std::{hint::black_box, sync::Arc};

use anyhow::{Result, bail};
use gnoma_bench::{
    clock::cpu_time,
    report::{self, GoalCheck},
};
use gnoma_core::ModelRef;
use gnoma_router::{
    Arm, Attempt, AttemptResult, Need, Offer, Published, Router, RouterState, Situation, TaskKind,
    TaskOutcome, Tuning, classify::TaskType,
};

const ARMS: usize = 64;
/// Tasks of a busy year: forty a day.
const YEAR_TASKS: usize = 15_000;
const CHOICES: usize = 20_000;
const LOADS: usize = 101;
const GOAL_CHOOSE_MICROS: f64 = 50.0;
const GOAL_LEARN_MICROS: f64 = 10.0;
const GOAL_STATE_BYTES: usize = 1_000_000;
const GOAL_LOAD_MS: f64 = 2.0;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        bail!("`router` takes no arguments");
    }
    let mut router = Router::new(Tuning::default());
    router.register_arms(&build_arms());
    let lessons = (0..YEAR_TASKS).map(|task| {
        let outcome = build_outcome(task);
        measure_micros(|| router.record_outcome(&outcome))
    });
    let lessons = sort_values(lessons.collect());
    let checked = sort_values(measure_choices(&router, true));
    let unchecked = sort_values(measure_choices(&router, false));
    report_choice("checked", &checked);
    report_choice("unchecked", &unchecked);
    let learn = percentile_of(&lessons, 99);
    report::print_row(
        format_args!("learn from a task, {ARMS} arms × 10 kinds"),
        format_args!("< {GOAL_LEARN_MICROS} µs"),
        format_args!("p50 {:.1} µs, p99 {learn:.1} µs", percentile_of(&lessons, 50)),
        GoalCheck::from_bool(learn < GOAL_LEARN_MICROS),
    );
    report_load_time(&router)
}

fn report_choice(what: &str, micros: &[f64]) {
    let p99 = percentile_of(micros, 99);
    report::print_row(
        format_args!("choose among {ARMS} arms, 10 kinds, {what}"),
        format_args!("p99 < {GOAL_CHOOSE_MICROS} µs"),
        format_args!("p50 {:.1} µs, p99 {p99:.1} µs", percentile_of(micros, 50)),
        GoalCheck::from_bool(p99 < GOAL_CHOOSE_MICROS),
    );
}

fn report_load_time(router: &Router) -> Result<()> {
    let text = serde_json::to_string(&router.to_state())?;
    let times = sort_values(
        (0..LOADS)
            .map(|_| {
                measure_micros(|| {
                    let state: Option<RouterState> = serde_json::from_str(&text).ok();
                    let loaded =
                        state.and_then(|state| Router::from_state(Tuning::default(), &state).ok());
                    let mut loaded = loaded.unwrap_or_else(|| Router::new(Tuning::default()));
                    loaded.register_arms(&build_arms());
                    loaded
                })
            })
            .collect(),
    );
    report::print_row(
        format_args!("state after {YEAR_TASKS} tasks with {ARMS} arms"),
        "< 1 MB",
        format_args!("{} KB", text.len() / 1000),
        GoalCheck::from_bool(text.len() < GOAL_STATE_BYTES),
    );
    let load_ms = percentile_of(&times, 99) / 1000.0;
    report::print_row(
        "loading it",
        format_args!("< {GOAL_LOAD_MS} ms"),
        format_args!("p50 {:.2} ms, p99 {load_ms:.2} ms", percentile_of(&times, 50) / 1000.0),
        GoalCheck::from_bool(load_ms < GOAL_LOAD_MS),
    );
    Ok(())
}

/// Chooses among the arms `count` times.
pub(super) fn choose_repeatedly(count: usize) {
    let mut router = Router::new(Tuning::default());
    router.register_arms(&build_arms());
    let offers: Vec<Offer> = build_arms().into_iter().enumerate().map(build_offer).collect();
    for number in 0..count {
        let need = Need { tools: true, ..Need::new(task_kind(number), 10_000_000) };
        let situation = Situation { need, attempts: Vec::new(), attempts_left: 3, verified: true };
        black_box(router.choose(&situation, &offers, number as u64));
    }
}

/// Microseconds of each of many choices.
fn measure_choices(router: &Router, verified: bool) -> Vec<f64> {
    let offers: Vec<Offer> = build_arms().into_iter().enumerate().map(build_offer).collect();
    let choice = |number: usize| {
        let situation = Situation {
            need: Need { tools: true, ..Need::new(task_kind(number), 10_000_000) },
            attempts: Vec::new(),
            attempts_left: 3,
            verified,
        };
        measure_micros(|| router.choose(&situation, &offers, number as u64))
    };
    (0..CHOICES).map(choice).collect()
}

fn measure_micros<T>(work: impl FnOnce() -> T) -> f64 {
    let (time, result) = cpu_time(work);
    black_box(result);
    time.as_secs_f64() * 1e6
}

fn sort_values(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value below which so many percent are.
fn percentile_of(sorted: &[f64], percent: usize) -> f64 {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}

fn arm_name(number: usize) -> ModelRef {
    ModelRef { provider: format!("vendor-{}", number % 8), model: format!("model-{number}") }
}

fn task_kind(number: usize) -> TaskKind {
    let all = TaskType::ALL;
    all.get(number % all.len()).copied().unwrap_or(TaskType::Debug).task_kind()
}

fn build_arms() -> Vec<Arc<Arm>> {
    let arm = |number: usize| {
        let published = Published {
            output_price: Some(0.5 + number as f64 * 0.4),
            released: Some(20_000 + i32::try_from(number).unwrap_or(0) * 7),
            open_weights: Some(number.is_multiple_of(2)),
            ..Published::default()
        };
        let arm = Arm::new(arm_name(number));
        Arc::new(Arm { context_window: Some(200_000), published: Arc::new(published), ..arm })
    };
    (0..ARMS).map(arm).collect()
}

fn build_offer((number, arm): (usize, Arc<Arm>)) -> Offer {
    Offer {
        pools: vec!["all".into(), format!("rates:vendor-{}", number % 8).into()],
        seconds: Some(10.0),
        ..Offer::new(arm)
    }
}

/// A task's end: every third took two attempts, the better arms are right more often.
fn build_outcome(task: usize) -> TaskOutcome {
    // A fixed, even spread.
    let spread = |by: usize| (task * 7_919 + by * 104_729) % 1_000;
    let attempt = |by: usize| {
        let number = spread(by) % ARMS;
        let right = spread(by + 7) < 400 + number * 8;
        let cost_micro_usd = 20_000 + (number * 5_000) as u64;
        let attempt = Attempt { arm: arm_name(number), verdict: Some(right), cost_micro_usd };
        AttemptResult { attempt, right: task.is_multiple_of(5).then_some(right), weight: 1.0 }
    };
    let tried = (0..1 + usize::from(task.is_multiple_of(3))).map(attempt).collect();
    TaskOutcome { kind: task_kind(task), tried }
}
