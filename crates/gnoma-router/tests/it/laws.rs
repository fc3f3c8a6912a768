//! What holds for every router, task and offer.

use std::sync::Arc;

use gnoma_router::{
    Arm, AttemptResult, Decision, Exclusion, Offer, Router, Situation, TaskKind, TaskOutcome,
    Tuning,
    rules::{AppliedRules, Rule, RuleConditions, RuleEffect, WorkFacts, apply_rules},
};
use proptest::prelude::*;

use crate::common::{DOLLAR, arm, attempt, id, offer, outcome, router, stranger, task};

/// Names of kinds, some of which nobody has ever heard of.
const KINDS: [&str; 8] = ["fix", "docs", "tests", "new", "debug", "", "*", "a kind of its own"];

const GLOBS: [&str; 7] = ["*", "maker/*", "*/m1*", "maker/m2", "*3", "*/m4", "nobody/*"];

fn names() -> Vec<String> {
    (0..12).map(|number| format!("m{number}")).collect()
}

fn any_offer(name: String) -> impl Strategy<Value = Offer> {
    (any::<[bool; 6]>(), 0_u64..300_000, 0_u64..5_000_000).prop_map(move |(able, window, saved)| {
        let mut offer = offer(&name);
        let [tools, vision, thinking, structured_output, stays_here, _] = able;
        let context_window = u32::try_from(window).ok();
        offer.arm = Arc::new(Arm {
            tools,
            vision,
            thinking,
            structured_output,
            stays_here,
            context_window,
            ..stranger(&name)
        });
        offer.saved_micro_usd = saved;
        offer.most_micro_usd = (window % 3 == 0).then_some(window);
        offer.barred = able[5].then(|| "resting".into());
        offer
    })
}

fn any_situation() -> impl Strategy<Value = Situation> {
    let attempts = prop::collection::vec((0_usize..12, any::<bool>(), 0_u64..10_000), 0..4);
    (any::<[bool; 6]>(), 0_u64..250_000, 0_u64..200, attempts, 0_usize..5).prop_map(
        |(wants, context, dollars, attempts, left)| {
            let mut situation = task(dollars);
            let need = &mut situation.need;
            need.tools = wants[0];
            need.vision = wants[1];
            need.thinking = wants[2];
            need.structured_output = wants[3];
            need.local_only = wants[4];
            need.context_tokens = context;
            situation.verified = wants[5];
            situation.attempts_left = left;
            situation.attempts = attempts
                .into_iter()
                .map(|(name, verdict, cents)| attempt(&format!("m{name}"), verdict, cents))
                .collect();
            situation
        },
    )
}

/// Some arms with priors, some without, some never made known; then a past of any shape.
fn any_router() -> impl Strategy<Value = Router> {
    let known = prop::collection::vec((0.0..=1.0, 0.0..=50.0, any::<bool>()), 0..10);
    let past =
        prop::collection::vec((0_usize..12, 0_usize..4, any::<[bool; 4]>(), 0_u64..100_000), 0..60);
    (known, past).prop_map(|(known, past)| {
        let arms = known
            .into_iter()
            .enumerate()
            .map(|(number, (quality, cost, told))| {
                let name = format!("m{number}");
                if told { arm(&name, quality, cost) } else { stranger(&name) }
            })
            .collect();
        let mut router = router(arms);
        for (name, kind, [verdict, right, seen, known], cents) in past {
            let mut attempt = attempt(&format!("m{name}"), verdict, cents);
            attempt.verdict = seen.then_some(verdict);
            router.record_outcome(&TaskOutcome {
                kind: TaskKind::new(["fix", "docs", "tests", "new"][kind]),
                tried: vec![AttemptResult { attempt, right: known.then_some(right), weight: 1.0 }],
            });
        }
        router
    })
}

fn any_offers() -> impl Strategy<Value = Vec<Offer>> {
    names().into_iter().map(any_offer).collect::<Vec<_>>()
}

fn any_action() -> impl Strategy<Value = RuleEffect> {
    let glob = || prop::sample::select(GLOBS.to_vec()).prop_map(str::to_owned);
    let globs = || prop::collection::vec(glob(), 0..3);
    prop_oneof![
        glob().prop_map(RuleEffect::Pin),
        globs().prop_map(RuleEffect::Forbid),
        (globs(), 0_u32..150).prop_map(|(arms, percent)| RuleEffect::Prefer { arms, percent }),
        (0..20 * DOLLAR).prop_map(RuleEffect::MaxCostMicroUsd),
        (0_u32..300).prop_map(RuleEffect::MaxSeconds),
    ]
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule = prop::collection::vec(any_action(), 0..3).prop_map(|then| Rule {
        name: "r".into(),
        origin: "gnoma.toml:1".into(),
        when: RuleConditions::default(),
        then,
    });
    prop::collection::vec(rule, 0..6)
}

/// What rules make of a task.
fn ruled(rules: &[Rule], router: &Router, situation: &Situation, offers: &[Offer]) -> AppliedRules {
    let need = &situation.need;
    let facts = WorkFacts {
        kind: need.kind.clone(),
        complexity: 50,
        value_micro_usd: need.value_micro_usd,
        paths: Vec::new(),
        touched: Vec::new(),
        time: None,
    };
    let cost = |arm: &_| Some((router.estimate_arm(arm, &need.kind).cost * DOLLAR as f64) as u64);
    apply_rules(rules, None, &facts, offers, &cost)
}

/// Four arms that differ in quality and cost, and their offers.
fn four(qualities: &[f64], costs: &[f64]) -> (Router, Vec<Offer>) {
    let names: Vec<String> = (0..4).map(|number| format!("m{number}")).collect();
    let arms = names.iter().zip(qualities.iter().zip(costs));
    let arms = arms.map(|(name, (quality, cost))| arm(name, *quality, *cost)).collect();
    (router(arms), names.iter().map(|name| offer(name)).collect())
}

/// The place of the arm that runs.
fn runs(router: &Router, situation: &Situation, offers: &[Offer]) -> usize {
    let choice = router.choose(situation, offers, 1);
    let Decision::Run(arms) = &choice.decision else { panic!("nothing ran") };
    offers.iter().position(|offer| offer.arm.id == arms[0]).expect("an offer")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_rule_brings_in_an_arm_that_fails_a_hard_requirement(
        router in any_router(), situation in any_situation(), offers in any_offers(), rules in any_rules(), seed in any::<u64>(),
    ) {
        let said = ruled(&rules, &router, &situation, &offers);
        let left = said.apply_to_offers(&offers);
        let choice = said.choose(&router, &situation, &left, seed);
        prop_assert_eq!(&said.choose(&router, &situation, &left, seed), &choice, "the same seed");
        let bans = |arm: &str| rules.iter().any(|rule| rule.then.iter().any(|action| match action {
            RuleEffect::Forbid(globs) => globs.iter().any(|glob| gnoma_router::rules::fits_arm(glob, arm)),
            RuleEffect::Pin(_) | RuleEffect::Prefer { .. } | RuleEffect::MaxCostMicroUsd(_) | RuleEffect::MaxSeconds(_) => false,
        }));
        if let Decision::Run(arms) = choice.decision {
            prop_assert!(!arms.is_empty() && arms.len() <= situation.attempts_left);
            for arm in arms {
                let place = offers.iter().position(|offer| offer.arm.id == arm).expect("an offer");
                prop_assert_eq!(situation.need.unmet_by(&offers[place]), None);
                prop_assert_eq!(&said.barred[place], &None);
                prop_assert!(!bans(&arm.to_string()), "{} is forbidden", arm);
                prop_assert!(situation.attempts.iter().all(|attempt| attempt.arm != arm));
            }
        }
    }

    #[test]
    fn unknown_task_kinds_and_models_are_routed_and_learnt(
        router in any_router(), kinds in prop::collection::vec(prop::sample::select(KINDS.to_vec()), 1..20), right in any::<bool>(), seed in any::<u64>(),
    ) {
        let mut router = router;
        let offers = [offer("m1"), offer("m11"), offer("never heard of")];
        for (number, name) in kinds.iter().enumerate() {
            let mut situation = task(10);
            situation.need.kind = TaskKind::new(&format!("{name}{}", number % 3));
            let choice = router.choose(&situation, &offers, seed);
            let Decision::Run(arms) = choice.decision else { return Err(TestCaseError::fail("nothing ran")) };
            let chosen = offers.iter().position(|offer| offer.arm.id == arms[0]).expect("an offer");
            let before = router.estimate_arm(&arms[0], &situation.need.kind);
            router.record_outcome(&outcome(&situation.need.kind, &offers[chosen].arm.id.model, right, 10));
            let after = router.estimate_arm(&arms[0], &situation.need.kind);
            prop_assert_eq!(after.tasks, before.tasks + 1);
            prop_assert!((0.0..=1.0).contains(&after.quality) && after.cost.is_finite() && after.cost >= 0.0);
        }
    }

    #[test]
    fn raising_a_models_quality_never_loses_it_the_task(
        qualities in prop::collection::vec(0.1..0.9_f64, 4), costs in prop::collection::vec(0.05..3.0_f64, 4), more in 0.0..0.09_f64, verified in any::<bool>(),
    ) {
        let situation = Situation { verified, ..task(10) };
        let (router, offers) = four(&qualities, &costs);
        let lucky = runs(&router, &situation, &offers);
        let better: Vec<f64> = qualities.iter().enumerate().map(|(place, quality)| if place == lucky { quality + more } else { *quality }).collect();
        prop_assert_eq!(runs(&four(&better, &costs).0, &situation, &offers), lucky);
    }

    #[test]
    fn warmer_prompt_cache_or_faster_answer_never_loses_a_model_the_task(
        qualities in prop::collection::vec(0.1..0.9_f64, 4), costs in prop::collection::vec(0.05..3.0_f64, 4),
        seconds in prop::collection::vec(1.0..600.0_f64, 4), saved in 0..3 * DOLLAR, faster in 0.0..1.0_f64, verified in any::<bool>(),
    ) {
        let mut situation = Situation { verified, ..task(10) };
        situation.need.second_micro_usd = 1_000;
        let (router, mut offers) = four(&qualities, &costs);
        for (offer, seconds) in offers.iter_mut().zip(&seconds) {
            offer.seconds = Some(*seconds);
        }
        let lucky = runs(&router, &situation, &offers);
        offers[lucky].saved_micro_usd = saved;
        prop_assert_eq!(runs(&router, &situation, &offers), lucky, "warmer");
        offers[lucky].seconds = Some(seconds[lucky] * faster);
        prop_assert_eq!(runs(&router, &situation, &offers), lucky, "faster");
    }

    #[test]
    fn no_arm_that_fails_a_hard_requirement_is_chosen(
        router in any_router(), situation in any_situation(), offers in any_offers(), seed in any::<u64>(),
    ) {
        let choice = router.choose(&situation, &offers, seed);
        match choice.decision {
            Decision::Run(arms) => {
                prop_assert!(!arms.is_empty() && arms.len() <= situation.attempts_left);
                for arm in arms {
                    let offer = offers.iter().find(|offer| offer.arm.id == arm).expect("an offer");
                    prop_assert_eq!(situation.need.unmet_by(offer), None);
                    prop_assert!(situation.attempts.iter().all(|attempt| attempt.arm != arm));
                }
            }
            Decision::Accept(attempt) => prop_assert!(attempt < situation.attempts.len()),
            Decision::Impossible => prop_assert!(situation.attempts.is_empty()),
        }
        prop_assert_eq!(choice.candidates.len() + choice.excluded.len(), offers.len());
    }

    #[test]
    fn the_same_seed_gives_the_same_choice(
        router in any_router(), situation in any_situation(), offers in any_offers(), seed in any::<u64>(),
    ) {
        let again = router.choose(&situation, &offers, seed);
        prop_assert_eq!(router.choose(&situation, &offers, seed), again);
    }

    #[test]
    fn routing_estimates_are_always_finite(
        router in any_router(), situation in any_situation(), offers in any_offers(),
    ) {
        let choice = router.choose(&situation, &offers, 0);
        for candidate in &choice.candidates {
            prop_assert!((0.0..=1.0).contains(&candidate.quality), "{candidate:?}");
            prop_assert!(candidate.cost.is_finite() && candidate.cost >= 0.0);
            prop_assert!(candidate.value.is_none_or(f64::is_finite));
            prop_assert!(candidate.knowledge.is_finite() && candidate.knowledge >= 0.0);
        }
    }

    #[test]
    fn coarse_quality_estimate_of_many_models_is_near_the_precise_one(
        router in any_router(), situation in any_situation(),
    ) {
        let offers: Vec<Offer> = names().iter().map(|name| offer(name)).collect();
        for candidate in router.choose(&situation, &offers, 0).candidates {
            let alone = router.choose(&situation, &offers[candidate.offer..=candidate.offer], 0);
            let close = alone.candidates.first().expect("the same arm").quality;
            prop_assert!((candidate.quality - close).abs() < 0.05, "{} {close}", candidate.quality);
        }
    }

    #[test]
    fn saved_router_state_gives_the_same_estimates_after_loading(
        router in any_router(), situation in any_situation(), offers in any_offers(),
    ) {
        let text = serde_json::to_string(&router.to_state()).expect("plain data");
        let state = serde_json::from_str(&text).expect("its own writing");
        let read = Router::from_state(Tuning::default(), &state).expect("its own version");
        let off = |one: (f64, f64), other: (f64, f64)| (one.0 - other.0).abs() + (one.1 - other.1).abs();
        prop_assert!(off(read.verifier().right, router.verifier().right) < 1e-9);
        prop_assert_eq!(read.to_state().arms.len(), router.to_state().arms.len());
        // Facts are not part of the state, so the choice may differ; that there is one may not.
        let runs = |router: &Router| router.choose(&situation, &offers, 0).decision == Decision::Impossible;
        prop_assert_eq!(runs(&read), runs(&router));
    }

    #[test]
    fn router_picks_the_cheaper_of_two_models_of_equal_quality(
        quality in 0.05..0.95_f64, cost in 0.01..5.0_f64, more in 1.05..10.0_f64, dollars in 1_u64..100, seed in any::<u64>(),
    ) {
        let router = router(vec![arm("dear", quality, cost * more), arm("cheap", quality, cost)]);
        let choice = router.choose(&task(dollars), &[offer("dear"), offer("cheap")], seed);
        prop_assert_eq!(choice.decision, Decision::Run(vec![id("cheap")]));
    }

    #[test]
    fn estimated_cost_never_exceeds_the_maximum_by_price(
        costs in prop::collection::vec(0.01..50.0_f64, 4), most in prop::collection::vec(0_u64..DOLLAR, 4),
    ) {
        let (router, mut offers) = four(&[0.5; 4], &costs);
        for (offer, most) in offers.iter_mut().zip(&most) {
            offer.most_micro_usd = Some(*most);
        }
        for candidate in router.choose(&task(10), &offers, 1).candidates {
            prop_assert!(candidate.cost <= most[candidate.offer] as f64 / DOLLAR as f64);
        }
    }

    #[test]
    fn router_values_the_better_of_two_models_of_equal_price_higher(
        quality in 0.05..0.9_f64, more in 0.02..0.09_f64, cost in 0.01..5.0_f64, dollars in 1_u64..100, seed in any::<u64>(),
    ) {
        let mut situation = task(dollars);
        situation.verified = false;
        let router = router(vec![arm("worse", quality, cost), arm("better", quality + more, cost)]);
        let choice = router.choose(&situation, &[offer("worse"), offer("better")], seed);
        let value = |name: &str| choice.candidates.iter().find(|candidate| candidate.offer == usize::from(name == "better")).and_then(|candidate| candidate.value);
        prop_assert!(value("better") > value("worse"));
    }

    #[test]
    fn lowering_a_models_price_never_loses_it_the_task(
        qualities in prop::collection::vec(0.1..0.9_f64, 4), costs in prop::collection::vec(0.05..3.0_f64, 4), cut in 0.1..1.0_f64,
    ) {
        let arms = |cut: f64, lucky: usize| {
            (0..4).map(|index| arm(&format!("m{index}"), qualities[index], costs[index] * if index == lucky { cut } else { 1.0 })).collect()
        };
        let offers: Vec<Offer> = (0..4).map(|index| offer(&format!("m{index}"))).collect();
        let before = router(arms(1.0, 0)).choose(&task(10), &offers, 1);
        let Decision::Run(chosen) = &before.decision else { return Err(TestCaseError::fail("nothing ran")) };
        let lucky = offers.iter().position(|offer| offer.arm.id == chosen[0]).expect("an offer");
        let after = router(arms(cut, lucky)).choose(&task(10), &offers, 1);
        prop_assert_eq!(before.decision, after.decision);
    }
}

#[test]
fn routing_without_models_is_impossible() {
    let choice = router(Vec::new()).choose(&task(10), &[], 0);
    assert_eq!(choice.decision, Decision::Impossible);
}

#[test]
fn routing_choice_names_why_each_model_was_excluded() {
    let blind = Offer::new(Arc::new(Arm { vision: false, ..stranger("a") }));
    let mut situation = task(10);
    situation.need.vision = true;
    situation.attempts = vec![attempt("b", false, 10)];
    let choice = router(vec![arm("a", 0.5, 1.0), arm("b", 0.5, 1.0)]).choose(
        &situation,
        &[blind, offer("b")],
        0,
    );
    let words: Vec<String> =
        choice.excluded.iter().map(|(_, why)| why.reason_text().to_string()).collect();
    assert_eq!(words, ["cannot see pictures", "was tried on this task"]);
    assert!(matches!(choice.excluded[1].1, Exclusion::Tried));
}

#[test]
fn unregistered_model_can_be_chosen_and_learnt() {
    let mut router = router(Vec::new());
    let choice = router.choose(&task(10), &[offer("new")], 0);
    assert_eq!(choice.decision, Decision::Run(vec![id("new")]));
    let before = router.estimate_arm(&id("new"), &TaskKind::new("unheard-of"));
    for _ in 0..20 {
        router.record_outcome(&outcome(&TaskKind::new("unheard-of"), "new", false, 300));
    }
    let after = router.estimate_arm(&id("new"), &TaskKind::new("unheard-of"));
    assert!(after.quality < before.quality && after.tasks == 20);
    assert!((2.0..4.5).contains(&after.cost), "{}", after.cost);
}
