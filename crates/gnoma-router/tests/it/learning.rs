//! What outcomes change.

use std::{collections::BTreeMap, sync::Arc};

use gnoma_router::{
    Arm, Decision, Offer, PoolBudget, PoolId, Prior, Router, Situation, StateError, TaskKind,
    Tuning,
};

use crate::common::{
    DOLLAR, arm, attempt, fix, id, measured, offer, outcome, router, shared, stranger, task,
};

/// Who runs where nobody checks: the best, not the first of a cascade.
fn ran_unchecked(router: &Router, offers: &[Offer]) -> String {
    let mut situation = task(10);
    situation.verified = false;
    ran_on(router, &situation, offers)
}

fn ran(router: &Router, offers: &[Offer]) -> String {
    ran_on(router, &task(10), offers)
}

fn ran_on(router: &Router, situation: &Situation, offers: &[Offer]) -> String {
    match router.choose(situation, offers, 7).decision {
        Decision::Run(arms) => arms[0].model.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cheap_model_starts_and_a_failed_check_escalates() {
    let router = router(vec![arm("strong", 0.85, 1.0), arm("cheap", 0.7, 0.05)]);
    let offers = [offer("strong"), offer("cheap")];
    assert_eq!(ran(&router, &offers), "cheap");
    let mut situation = task(10);
    situation.attempts = vec![attempt("cheap", false, 5)];
    let failed = router.choose(&situation, &offers, 7);
    assert_eq!(failed.decision, Decision::Run(vec![id("strong")]));
    situation.attempts = vec![attempt("cheap", true, 5)];
    assert_eq!(router.choose(&situation, &offers, 7).decision, Decision::Accept(0));
}

#[test]
fn failed_attempt_lowers_the_expected_quality_of_other_models() {
    let router = router(vec![arm("a", 0.7, 0.1), arm("b", 0.7, 0.1)]);
    let offers = [offer("a"), offer("b")];
    let quality = |attempts| {
        let mut situation = task(10);
        situation.attempts = attempts;
        let choice = router.choose(&situation, &offers, 0);
        choice.candidates.last().expect("b is free").quality
    };
    let fresh = quality(Vec::new());
    assert!(quality(vec![attempt("a", false, 10)]) < fresh - 0.1);
    assert!(quality(vec![attempt("a", true, 10)]) > fresh + 0.05);
}

#[test]
fn outcomes_of_one_task_kind_inform_estimates_of_another() {
    let mut router = router(vec![arm("a", 0.7, 0.1)]);
    let other = TaskKind::new("docs");
    let before = router.estimate_arm(&id("a"), &other).quality;
    for _ in 0..60 {
        router.record_outcome(&outcome(&fix(), "a", false, 10));
    }
    assert!(router.estimate_arm(&id("a"), &other).quality < before);
}

#[test]
fn step_of_a_task_starts_from_its_kind_and_learns_by_itself() {
    let arms = || vec![arm("a", 0.7, 0.1), arm("b", 0.7, 0.1)];
    let mut router = router(arms());
    for _ in 0..40 {
        router.record_outcome(&outcome(&fix(), "a", true, 10));
    }
    let step = fix().of_step("release/Write the entry");
    let quality =
        |router: &Router, arm: &str, kind: &TaskKind| router.estimate_arm(&id(arm), kind).quality;
    assert_eq!(quality(&router, "a", &step), quality(&router, "a", &fix()));
    for _ in 0..20 {
        router.record_outcome(&outcome(&step, "a", false, 10));
        router.record_outcome(&outcome(&step, "b", true, 10));
    }
    assert!(quality(&router, "a", &step) < quality(&router, "b", &step) - 0.2);
    assert!(quality(&router, "a", &step) < quality(&router, "a", &fix()) - 0.1);
    let mut restored = Router::from_state(Tuning::default(), &router.to_state()).unwrap();
    restored.register_arms(&shared(arms()));
    for kind in [&step, &fix()] {
        let moved = quality(&restored, "a", kind) - quality(&router, "a", kind);
        assert!(moved.abs() < 1e-9, "{kind:?}: {moved}");
    }
    // Kinds are limited: further steps count as the kind of their prompt.
    for number in 0..100 {
        let late = fix().of_step(&format!("release/{number}"));
        router.record_outcome(&outcome(&late, "b", true, 10));
    }
    let last = fix().of_step("release/last");
    assert_eq!(quality(&router, "b", &last), quality(&router, "b", &fix()));
}

#[test]
fn silently_degraded_model_is_detected_within_24_tasks() {
    let mut router = router(vec![arm("good", 0.85, 0.1), arm("second", 0.7, 0.1)]);
    let offers = [offer("good"), offer("second")];
    for number in 0..400 {
        router.record_outcome(&outcome(&fix(), "good", number % 20 < 17, 10));
    }
    assert_eq!(ran_unchecked(&router, &offers), "good");
    router.take_worse_arms();
    for number in 0..24 {
        router.record_outcome(&outcome(&fix(), "good", number % 10 < 2, 10));
    }
    assert_eq!(ran_unchecked(&router, &offers), "second");
    let worse = router.take_worse_arms();
    assert_eq!(worse.iter().map(|arm| &*arm.model).collect::<Vec<_>>(), ["good"]);
    assert!(router.take_worse_arms().is_empty());
}

#[test]
fn shared_outcome_is_learnt_in_proportion_to_each_models_share() {
    let after = |weight: f64| {
        let mut router = router(vec![arm("a", 0.7, 0.1)]);
        for _ in 0..10 {
            let mut outcome = outcome(&fix(), "a", false, 1_000);
            outcome.tried[0].weight = weight;
            router.record_outcome(&outcome);
        }
        router.estimate_arm(&id("a"), &fix())
    };
    let (none, part, whole) = (router(vec![arm("a", 0.7, 0.1)]), after(0.3), after(1.0));
    let none = none.estimate_arm(&id("a"), &fix());
    assert!(none.quality > part.quality && part.quality > whole.quality);
    assert!((part.cost - none.cost).abs() < 1e-9, "a part says nothing of what the whole costs");
}

#[test]
fn changed_model_cost_is_learnt_within_15_tasks() {
    let mut router = router(vec![arm("a", 0.7, 0.1)]);
    for _ in 0..300 {
        router.record_outcome(&outcome(&fix(), "a", true, 10));
    }
    for _ in 0..15 {
        router.record_outcome(&outcome(&fix(), "a", true, 200));
    }
    let cost = router.estimate_arm(&id("a"), &fix()).cost;
    assert!((1.0..2.5).contains(&cost), "{cost}");
}

#[test]
fn model_that_takes_over_expensive_tasks_is_not_rated_as_expensive() {
    let learnt = |opening_cents: u64| {
        let mut router = router(vec![arm("opens", 0.7, 0.1), stranger("rescues")]);
        for _ in 0..3 {
            let mut rescued = outcome(&fix(), "opens", false, opening_cents);
            rescued.tried.extend(outcome(&fix(), "rescues", true, 100).tried);
            router.record_outcome(&rescued);
        }
        router.estimate_arm(&id("rescues"), &fix()).cost
    };
    let (dear, usual) = (learnt(30), learnt(10));
    assert!(dear < usual * 0.95, "{dear} {usual}");
}

#[test]
fn cost_overrun_of_an_unknown_model_raises_expected_task_cost_less() {
    let expected = |opener: Arm| {
        let name = opener.id.model.clone();
        let router = router(vec![opener, arm("next", 0.8, 0.5)]);
        let usual = router.estimate_arm(&id(&name), &fix()).cost;
        let mut situation = task(10);
        situation.attempts = vec![attempt(&name, false, (usual * 500.0) as u64)];
        router.choose(&situation, &[offer("next")], 0).candidates[0].cost
    };
    assert!(expected(stranger("new")) < expected(arm("old", 0.7, 0.1)) * 0.95);
}

#[test]
fn verifier_accuracy_is_learnt() {
    let mut router = router(vec![arm("a", 0.6, 0.1)]);
    for number in 0..200 {
        let mut outcome = outcome(&fix(), "a", number % 2 == 0, 10);
        outcome.tried[0].attempt.verdict = Some(number % 2 == 0);
        router.record_outcome(&outcome);
    }
    let verifier = router.verifier();
    assert!(verifier.right.0 / verifier.right.1 > 0.95);
    assert!(verifier.wrong.0 / verifier.wrong.1 < 0.05);
}

#[test]
fn tight_budget_is_saved_for_tasks_that_need_the_strong_model() {
    let mut router = router(vec![arm("strong", 0.9, 1.0), arm("cheap", 0.78, 0.2)]);
    let pool: PoolId = Arc::from("strong");
    let mut offers = [offer("strong"), offer("cheap")];
    offers[0].pools = vec![pool.clone()];
    let mut situation = task(10);
    situation.verified = false;
    let runs = |router: &Router| router.choose(&situation, &offers, 0).decision;
    assert_eq!(runs(&router), Decision::Run(vec![id("strong")]));
    let budget = PoolBudget { cap: 6.0, left: 6.0, to_come: 1.0, tasks: 50.0 };
    router.set_budget(&pool, budget);
    for _ in 0..20 {
        router.record_spend(&BTreeMap::from([(pool.clone(), 1.0)]));
    }
    assert_eq!(runs(&router), Decision::Run(vec![id("cheap")]));
    for _ in 0..2_000 {
        router.record_spend(&BTreeMap::new());
    }
    assert_eq!(runs(&router), Decision::Run(vec![id("strong")]));
}

#[test]
fn warm_prompt_cache_lowers_the_routing_cost() {
    let router = router(vec![arm("here", 0.7, 0.6), arm("there", 0.7, 0.5)]);
    let mut offers = [offer("here"), offer("there")];
    assert_eq!(ran(&router, &offers), "there");
    offers[0].saved_micro_usd = 300_000;
    assert_eq!(ran(&router, &offers), "here");
}

#[test]
fn two_models_run_in_parallel_when_waiting_is_expensive() {
    let router = router(vec![arm("a", 0.6, 0.05), arm("b", 0.6, 0.06)]);
    let mut offers = [offer("a"), offer("b")];
    for offer in &mut offers {
        offer.seconds = Some(120.0);
    }
    let mut situation = task(20);
    assert_eq!(router.choose(&situation, &offers, 0).pair_value, None);
    situation.need.second_micro_usd = DOLLAR / 60;
    let choice = router.choose(&situation, &offers, 0);
    assert_eq!(choice.decision, Decision::Run(vec![id("a"), id("b")]));
}

#[test]
fn router_restored_from_saved_state_has_the_same_estimates() {
    let arms = || vec![arm("a", 0.7, 0.1), arm("b", 0.8, 0.4)];
    let mut first = router(arms());
    for number in 0..50 {
        first.record_outcome(&outcome(&fix(), ["a", "b"][number % 2], number % 3 == 0, 20));
    }
    let mut second =
        Router::from_state(Tuning::default(), &first.to_state()).expect("same version");
    second.register_arms(&shared(arms()));
    assert_eq!(second.to_state(), first.to_state());
    assert_eq!(second.estimate_arm(&id("a"), &fix()), first.estimate_arm(&id("a"), &fix()));
}

#[test]
fn router_state_of_another_version_is_rejected_and_nan_ignored() {
    let mut state = router(vec![arm("a", 0.7, 0.1)]).to_state();
    state.verifier.right = (f64::NAN, -1.0);
    state.arms[0].ability.variance = -3.0;
    let mut read = Router::from_state(Tuning::default(), &state).expect("same version");
    read.register_arms(&shared(vec![arm("a", 0.7, 0.1)]));
    assert!((read.estimate_arm(&id("a"), &fix()).quality - 0.7).abs() < 0.05);
    state.version = 99;
    let refused = Router::from_state(Tuning::default(), &state).expect_err("newer");
    assert_eq!(refused, StateError::Version { found: 99 });
}

#[test]
fn a_choice_is_explained() {
    let router = router(vec![arm("strong", 0.85, 1.0), arm("cheap", 0.7, 0.05)]);
    let mut offers = [offer("strong"), offer("cheap"), offer("resting")];
    offers[2].barred = Some("rests after an error".into());
    let lines = router.choose(&task(10), &offers, 7).explain(&offers);
    assert_eq!(lines[0], "run maker/cheap");
    assert!(
        lines[1].starts_with("maker/cheap: right 7") && lines[1].contains("worth $7"),
        "{lines:?}"
    );
    assert_eq!(lines.last().map(String::as_str), Some("maker/resting: rests after an error"));
}

#[test]
fn corrected_outcome_does_not_count_as_another_task() {
    let mut router = router(vec![arm("a", 0.7, 0.1)]);
    let mut unsure = outcome(&fix(), "a", true, 10);
    unsure.tried[0].right = None;
    router.record_outcome(&unsure);
    let before = router.estimate_arm(&id("a"), &fix());
    let mut wrong = outcome(&fix(), "a", false, 0);
    wrong.tried[0].attempt.verdict = None;
    router.correct_outcome(&wrong);
    let after = router.estimate_arm(&id("a"), &fix());
    assert!(after.quality < before.quality, "{after:?}");
    assert_eq!((after.tasks, after.cost), (before.tasks, before.cost));
}

#[test]
fn cost_weight_makes_a_model_preferred_without_changing_its_cost() {
    let router = router(vec![arm("good", 0.8, 2.0), arm("fair", 0.75, 0.1)]);
    let mut offers = [offer("good"), offer("fair")];
    assert_eq!(ran_unchecked(&router, &offers), "fair");
    Arc::make_mut(&mut offers[0].arm).cost_weight = 0.1;
    offers[0].most_micro_usd = Some(10_000_000);
    let mut situation = task(10);
    situation.verified = false;
    let choice = router.choose(&situation, &offers, 7);
    assert_eq!(choice.decision, Decision::Run(vec![id("good")]));
    let lines = choice.explain(&offers).join("\n");
    assert!(lines.contains("$2.000 (each dollar counts 0.10, by `cost_weight`)"), "{lines}");
    let unpriced = lines.lines().find(|line| line.starts_with("maker/fair")).unwrap();
    assert!(unpriced.contains("%, price unknown, "), "no dollars are made up: {unpriced}");
}

/// Tasks after which the router knows who is best.
const OBSERVATIONS: usize = 50;
/// Tasks afterwards by which that is judged, and runs with other luck.
const JUDGED: usize = 20;
const RUNS: u64 = 40;

/// The share of tasks that the best arm gets after so many observations, on average over runs with other luck.
fn share_of_the_best(arms: fn() -> Vec<Arm>, rates: &[(&str, u64)]) -> f64 {
    let offers: Vec<Offer> = rates.iter().map(|(name, _)| offer(name)).collect();
    let (best, _) = rates.iter().max_by_key(|(_, percent)| percent).unwrap();
    let mut chosen = 0;
    for seed in 0..RUNS {
        let mut router = router(arms());
        let mut random = seed;
        for number in 0..OBSERVATIONS + JUDGED {
            // The linear congruential generator of Knuth's MMIX.
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let ran = ran_unchecked(&router, &offers);
            chosen += usize::from(number >= OBSERVATIONS && ran == *best);
            let (_, percent) = rates.iter().find(|(name, _)| *name == ran).unwrap();
            router.record_outcome(&outcome(&fix(), &ran, (random >> 33) % 100 < *percent, 10));
        }
    }
    chosen as f64 / (JUDGED as f64 * RUNS as f64)
}

#[test]
fn the_router_converges_within_fifty_observations() {
    let strangers = || ["poor", "fair", "best"].map(stranger).to_vec();
    let rates = [("poor", 30), ("fair", 60), ("best", 90)];
    let share = share_of_the_best(strangers, &rates);
    assert!(share > 0.85, "of strangers: {share}");

    // Priors that are wrong about who is better.
    fn weak(name: &str, quality: f64) -> Arm {
        let prior = Prior { quality, cost: 0.1, tasks: 10.0 };
        measured(name, BTreeMap::from([(fix(), prior)]), Some(prior))
    }
    let misjudged = || vec![weak("poor", 0.8), weak("best", 0.7)];
    let share = share_of_the_best(misjudged, &[("poor", 30), ("best", 90)]);
    assert!(share > 0.85, "of those that priors misjudge: {share}");
}
