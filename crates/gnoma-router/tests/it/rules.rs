//! What rules do to offers and choices.

use std::sync::Arc;

use gnoma_router::{
    ArmId, Decision, Need, Offer, Situation, TaskKind,
    rules::{
        AppliedRules, Day, Hours, LocalTime, Role, Rule, RuleConditions, RuleEffect, WorkFacts,
        apply_rules, check_rules,
    },
};
use proptest::prelude::*;

use crate::common::{DOLLAR, arm, attempt, id, offer, router, task};

fn rule(name: &str, when: RuleConditions, then: RuleEffect) -> Rule {
    Rule { name: name.into(), origin: format!("gnoma.toml:{}", name.len()), when, then: vec![then] }
}

fn always(name: &str, then: RuleEffect) -> Rule {
    rule(name, RuleConditions::default(), then)
}

fn pin(glob: &str) -> RuleEffect {
    RuleEffect::Pin(glob.into())
}

fn forbid(glob: &str) -> RuleEffect {
    RuleEffect::Forbid(vec![glob.into()])
}

fn prefer(glob: &str, percent: u32) -> RuleEffect {
    RuleEffect::Prefer { arms: vec![glob.into()], percent }
}

fn facts() -> WorkFacts {
    WorkFacts {
        kind: TaskKind::new("unit_test"),
        complexity: 50,
        value_micro_usd: 10 * DOLLAR,
        paths: vec!["db/migrations/1.sql".into()],
        touched: Vec::new(),
        time: Some(LocalTime { day: Day::Tue, minute: 600 }),
    }
}

fn offers() -> Vec<Offer> {
    ["a", "b", "c"].map(offer).to_vec()
}

fn applied(rules: &[Rule], offers: &[Offer]) -> AppliedRules {
    apply_rules(rules, None, &facts(), offers, &|_| Some(DOLLAR))
}

fn usable(applied: &AppliedRules) -> Vec<usize> {
    let free = applied.barred.iter().enumerate().filter(|(_, barred)| barred.is_none());
    free.map(|(place, _)| place).collect()
}

#[test]
fn routing_rule_applies_only_if_all_conditions_match() {
    let hours = Hours { from: 540, to: 1020, days: vec![Day::Tue] };
    let narrow = RuleConditions {
        tasks: vec!["UnitTest".into()],
        paths: vec!["db/**".into()],
        hours: Some(hours),
        min_complexity: Some(40),
        max_complexity: Some(60),
    };
    assert!(narrow.applies_to(&facts()));
    let others: [fn(&mut WorkFacts); 4] = [
        |facts| facts.kind = TaskKind::new("a kind of its own"),
        |facts| facts.paths.clear(),
        |facts| facts.time = None,
        |facts| facts.complexity = 61,
    ];
    for change in others {
        let mut facts = facts();
        change(&mut facts);
        assert!(!narrow.applies_to(&facts), "{facts:?}");
    }
}

#[test]
fn model_barred_by_a_rule_names_the_rule_and_its_location() {
    let said = applied(&[always("no b", forbid("maker/b"))], &offers());
    assert_eq!(said.barred[1].as_deref(), Some("is forbidden by rule `no b` (gnoma.toml:4)"));
    let said = applied(&[always("only b", pin("*/b"))], &offers());
    assert_eq!(
        said.barred[0].as_deref(),
        Some("is excluded because rule `only b` (gnoma.toml:6) pins `*/b`")
    );
    assert_eq!(usable(&said), [1]);
}

#[test]
fn forbid_rule_overrides_a_pin_and_both_are_named() {
    let rules = [always("pin", pin("maker/a")), always("ban", forbid("maker/a"))];
    let said = applied(&rules, &offers());
    assert_eq!(usable(&said), [1, 2]);
    assert_eq!(
        said.conflicts,
        ["rule `pin` (gnoma.toml:3) pins `maker/a`, which rule `ban` (gnoma.toml:3) forbids; the \
          ban wins"]
    );
    assert_eq!(check_rules(&rules), said.conflicts);
}

#[test]
fn narrower_or_else_later_pin_rule_wins() {
    let for_tests = RuleConditions { tasks: vec!["unit_test".into()], ..RuleConditions::default() };
    let rules = [rule("narrow", for_tests, pin("maker/a")), always("wide", pin("maker/b"))];
    let said = applied(&rules, &offers());
    assert_eq!((usable(&said), said.conflicts), (vec![0], vec![]));

    let said =
        applied(&[always("one", pin("maker/a")), always("other", pin("maker/b"))], &offers());
    assert_eq!(usable(&said), [1]);
    assert_eq!(
        said.conflicts,
        ["rule `one` (gnoma.toml:3) pins `maker/a` and rule `other` (gnoma.toml:5) pins \
          `maker/b` for the same task; the later one wins"]
    );
}

/// Whom the rules and the role `planner` of `a` leave to be asked.
fn as_planner(rules: &[Rule], offers: &[Offer], situation: &Situation) -> Decision {
    let planner = id("a");
    let said = apply_rules(rules, Some((Role::Planner, &planner)), &facts(), offers, &|_| None);
    let router = router(vec![arm("a", 0.2, 3.0), arm("b", 0.9, 0.1), arm("c", 0.8, 0.1)]);
    said.choose(&router, situation, &said.apply_to_offers(offers), 7).decision
}

#[test]
fn model_with_a_role_is_chosen_and_others_are_the_fallback() {
    let run = |name| Decision::Run(vec![id(name)]);
    assert_eq!(as_planner(&[], &offers(), &task(10)), run("a"), "however much worse it is");
    let mut resting = offers();
    resting[0].barred = Some("resting".into());
    assert_eq!(as_planner(&[], &resting, &task(10)), run("b"));
    let tried = Situation { attempts: vec![attempt("a", false, 1)], ..task(10) };
    assert_eq!(as_planner(&[], &offers(), &tried), run("b"));
    let rules = [always("rather c", prefer("*/c", 100))];
    assert_eq!(as_planner(&rules, &offers(), &task(10)), run("a"));
}

#[test]
fn pin_and_forbid_rules_override_a_role() {
    let run = |name| Decision::Run(vec![id(name)]);
    assert_eq!(as_planner(&[always("pin", pin("maker/b"))], &offers(), &task(10)), run("b"));
    let planner = id("a");
    let said = |rules: &[Rule], offers: &[Offer]| {
        let role = Some((Role::Planner, &planner));
        let said = apply_rules(rules, role, &facts(), offers, &|_| None);
        (said.role.clone(), said.conflicts.join("; "))
    };
    let (role, conflicts) = said(&[always("ban", forbid("maker/a"))], &offers());
    assert_eq!(role, None);
    assert_eq!(
        conflicts,
        "the role `planner` belongs to `maker/a`, which rule `ban` (gnoma.toml:3) forbids; the \
         ban wins"
    );
    let (role, conflicts) = said(&[], &offers()[1..]);
    assert_eq!(role, None);
    assert!(conflicts.ends_with("no configured arm has that name; it is ignored"), "{conflicts}");
}

#[test]
fn pin_rule_of_an_unknown_model_is_ignored_with_a_warning() {
    let said = applied(&[always("typo", pin("maker/opsu"))], &offers());
    assert_eq!(usable(&said), [0, 1, 2]);
    assert_eq!(
        said.conflicts,
        ["rule `typo` (gnoma.toml:4) pins `maker/opsu`, but no configured arm has that name; it \
          is ignored"]
    );
}

#[test]
fn rules_that_forbid_every_model_explain_which_rule_did() {
    let dead_end = |rules: &[Rule], offers: &[Offer]| applied(rules, offers).dead_end;
    let none = [always("none", forbid("*"))];
    assert_eq!(
        dead_end(&none, &offers()).unwrap(),
        "the rules leave no arm for this task: every arm is forbidden by rule `none` (gnoma.toml:4)"
    );
    let two = [always("bs", forbid("*/b")), always("cs", forbid("*/c"))];
    assert_eq!(dead_end(&two, &offers()), None, "the first is left");
    assert_eq!(
        dead_end(&two, &offers()[1..]).unwrap(),
        "the rules leave no arm for this task: maker/b is forbidden by rule `bs` (gnoma.toml:2); \
         maker/c is forbidden by rule `cs` (gnoma.toml:2)"
    );
    let mut resting = offers();
    resting.iter_mut().for_each(|offer| offer.barred = Some("rests".into()));
    assert_eq!(dead_end(&none, &resting), None, "nothing was there before");
}

#[test]
fn max_cost_and_max_seconds_rules_bar_models_expected_to_exceed_them() {
    let mut slow = offers();
    slow[2].seconds = Some(90.0);
    let rules = [
        always("cheap", RuleEffect::MaxCostMicroUsd(DOLLAR)),
        always("cheaper", RuleEffect::MaxCostMicroUsd(DOLLAR / 2)),
        always("fast", RuleEffect::MaxSeconds(60)),
    ];
    let cost = |arm: &ArmId| Some(if arm.model == "a" { DOLLAR } else { DOLLAR / 4 });
    let said = apply_rules(&rules, None, &facts(), &slow, &cost);
    assert_eq!(usable(&said), [1]);
    assert_eq!(
        said.barred[0].as_deref(),
        Some("is expected to cost $1.00, over $0.50, the most by rule `cheaper` (gnoma.toml:7)")
    );
    assert_eq!(said.bounds.max_cost_micro_usd, Some(DOLLAR / 2));
    assert_eq!(said.bounds.max_seconds, Some(60));
}

#[test]
fn routing_rule_errors_name_their_location() {
    let when = RuleConditions {
        tasks: vec!["debugging".into()],
        min_complexity: Some(60),
        max_complexity: Some(40),
        ..RuleConditions::default()
    };
    assert_eq!(
        check_rules(&[rule("odd", when, prefer("*", 150))]),
        [
            "rule `odd` (gnoma.toml:3) never applies: its minimum complexity, 60, is above its \
             maximum, 40",
            "rule `odd` (gnoma.toml:3) names the task type `debugging`, which gnoma does not know",
            "rule `odd` (gnoma.toml:3) prefers by 150%, which counts as 100%",
        ]
    );
}

#[test]
fn two_pins_under_the_same_conditions_are_named() {
    let rules = [always("one", pin("maker/a")), always("other", pin("maker/b"))];
    let [fault] = &check_rules(&rules)[..] else { panic!("{:?}", check_rules(&rules)) };
    assert!(fault.contains("rule `one`") && fault.contains("rule `other`"), "{fault}");
    assert_eq!(
        check_rules(&[always("one", pin("maker/a")), always("again", pin("maker/a"))]),
        [""; 0]
    );
}

#[test]
fn routing_explanation_lists_the_rules_that_applied() {
    let rules = [
        always("b", pin("maker/b")),
        always("p", prefer("*/b", 5)),
        always("m", RuleEffect::MaxSeconds(9)),
    ];
    assert_eq!(
        applied(&rules, &offers()).explain(&offers()),
        [
            "maker/b: may be worth $0.50 less, as rule `p` (gnoma.toml:1) prefers it",
            "the task may take 9 s"
        ]
    );
}

fn chosen(said: &AppliedRules, offers: &[Offer]) -> ArmId {
    let router = router(vec![arm("a", 0.80, 0.0), arm("b", 0.75, 0.0), arm("c", 0.30, 0.0)]);
    let mut situation = task(10);
    situation.verified = false;
    match said.choose(&router, &situation, &said.apply_to_offers(offers), 7).decision {
        Decision::Run(arms) => arms[0].clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn prefer_rule_bonus_is_limited_to_its_percentage() {
    assert_eq!(chosen(&applied(&[], &offers()), &offers()), id("a"));
    let slightly = applied(&[always("rather b", prefer("*/b", 20))], &offers());
    assert_eq!(slightly.bonus_micro_usd, [0, 2 * DOLLAR, 0]);
    assert_eq!(chosen(&slightly, &offers()), id("b"));
    let too_little = applied(&[always("rather c", prefer("*/c", 10))], &offers());
    assert_eq!(chosen(&too_little, &offers()), id("a"));
}

#[test]
fn preferred_model_is_evaluated_even_outside_the_look_ahead() {
    let names: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
    let arms = names.iter().map(|name| arm(name, 0.9, 0.1)).chain([arm("dear", 0.85, 3.0)]);
    let router = router(arms.collect());
    let offers: Vec<Offer> = names.iter().map(String::as_str).chain(["dear"]).map(offer).collect();
    let said = applied(&[always("dear", prefer("*/dear", 60))], &offers);
    let choice = said.choose(&router, &task(10), &offers, 7);
    assert_eq!(choice.decision, Decision::Run(vec![id("dear")]));
}

const GLOBS: [&str; 6] = ["*", "maker/*", "*/a", "maker/b", "*c", "nobody/*"];

fn any_action() -> impl Strategy<Value = RuleEffect> {
    let glob = || prop::sample::select(GLOBS.to_vec());
    prop_oneof![
        glob().prop_map(pin),
        glob().prop_map(forbid),
        (glob(), 0_u32..120).prop_map(|(glob, percent)| prefer(glob, percent)),
        (0_u64..2 * DOLLAR).prop_map(RuleEffect::MaxCostMicroUsd),
        (0_u32..100).prop_map(RuleEffect::MaxSeconds),
    ]
}

fn any_when() -> impl Strategy<Value = RuleConditions> {
    let tasks =
        prop::sample::select(vec![vec![], vec!["unit_test".into()], vec!["no such".into()]]);
    (tasks, prop::option::of(0_u8..100)).prop_map(|(tasks, min_complexity)| RuleConditions {
        tasks,
        min_complexity,
        ..RuleConditions::default()
    })
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    let one = (any_when(), any_action()).prop_map(|(when, then)| rule("r", when, then));
    prop::collection::vec(one, 0..6)
}

fn any_offers() -> impl Strategy<Value = Vec<Offer>> {
    prop::collection::vec((any::<bool>(), prop::option::of(0.0..200.0)), 3).prop_map(|able| {
        let with = |(mut offer, (barred, seconds)): (Offer, (bool, Option<f64>))| {
            offer.barred = barred.then(|| Arc::from("resting"));
            offer.seconds = seconds;
            offer
        };
        offers().into_iter().zip(able).map(with).collect()
    })
}

/// Everything but pins, of which equally narrow ones are told apart by their order.
fn without_pins(rules: Vec<Rule>) -> Vec<Rule> {
    rules.into_iter().filter(|rule| !matches!(rule.then[0], RuleEffect::Pin(_))).collect()
}

proptest! {
    #[test]
    fn routing_rules_never_unbar_a_model(rules in any_rules(), offers in any_offers()) {
        let said = applied(&rules, &offers);
        for ((offer, barred), left) in offers.iter().zip(&said.barred).zip(said.apply_to_offers(&offers)) {
            prop_assert!(offer.barred.is_none() || &offer.barred == barred);
            prop_assert_eq!(&left.barred, barred);
        }
        let router = router(vec![arm("a", 0.8, 0.1), arm("b", 0.5, 0.1)]);
        let situation = Situation { need: Need::new(facts().kind, 10 * DOLLAR), ..task(10) };
        let offers = said.apply_to_offers(&offers);
        let choice = said.choose(&router, &situation, &offers, 3);
        prop_assert_eq!(&choice, &said.choose(&router, &situation, &offers, 3));
        if let Decision::Run(arms) = choice.decision {
            for arm in arms {
                let of_arm = offers.iter().find(|offer| offer.arm.id == arm).unwrap();
                prop_assert!(of_arm.barred.is_none());
            }
        }
    }

    #[test]
    fn prefer_rules_bar_no_model(rules in any_rules(), offers in any_offers()) {
        let mild: Vec<Rule> = rules
            .into_iter()
            .filter(|rule| matches!(rule.then[0], RuleEffect::Prefer { .. }))
            .collect();
        prop_assert_eq!(applied(&mild, &offers).apply_to_offers(&offers), offers);
    }

    #[test]
    fn rule_order_matters_only_for_equal_pins(rules in any_rules(), offers in any_offers(), turn in 0_usize..6) {
        let rules = without_pins(rules);
        let mut turned = rules.clone();
        turned.rotate_left(turn % rules.len().max(1));
        let (one, other) = (applied(&rules, &offers), applied(&turned, &offers));
        prop_assert_eq!(usable(&one), usable(&other));
        prop_assert_eq!(one.bonus_micro_usd, other.bonus_micro_usd);
        prop_assert_eq!(one.bounds, other.bounds);
    }

    #[test]
    fn pin_rule_never_makes_a_barred_model_usable(rules in any_rules(), offers in any_offers()) {
        let without = usable(&applied(&without_pins(rules.clone()), &offers));
        for place in usable(&applied(&rules, &offers)) {
            prop_assert!(without.contains(&place));
        }
    }

    #[test]
    fn without_prefer_rules_the_router_choice_is_unchanged(rules in any_rules(), offers in any_offers(), seed in any::<u64>()) {
        let rules: Vec<Rule> = rules
            .into_iter()
            .filter(|rule| !matches!(rule.then[0], RuleEffect::Prefer { .. }))
            .collect();
        let said = applied(&rules, &offers);
        let router = router(vec![arm("a", 0.8, 0.1), arm("b", 0.5, 0.1)]);
        let offers = said.apply_to_offers(&offers);
        prop_assert_eq!(
            said.choose(&router, &task(10), &offers, seed),
            router.choose(&task(10), &offers, seed)
        );
    }

    #[test]
    fn check_of_any_routing_rules_names_locations_and_never_panics(rules in any_rules()) {
        for fault in check_rules(&rules) {
            prop_assert!(fault.contains("gnoma.toml:"));
        }
    }
}

#[test]
fn path_rules_apply_while_the_files_are_in_the_conversation() {
    let about = |then| {
        let when = RuleConditions { paths: vec!["secrets/**".into()], ..RuleConditions::default() };
        vec![Rule { name: "secret".into(), origin: "gnoma.toml:1".into(), when, then: vec![then] }]
    };
    let later = WorkFacts { touched: vec!["secrets/key.txt".into()], ..facts() };
    let apply = |rules: &[Rule]| apply_rules(rules, None, &later, &offers(), &|_| Some(DOLLAR));
    assert_eq!(usable(&apply(&about(RuleEffect::Pin("*/b".into())))), [1]);
    assert_eq!(usable(&apply(&about(forbid("*/a")))), [1, 2]);
    let preferred = apply(&about(prefer("*/a", 50)));
    assert_eq!(preferred.bonus_micro_usd, [0, 0, 0], "what is preferred is the task's own");
    let missing = apply(&about(RuleEffect::Pin("ollama/*".into())));
    assert_eq!(usable(&missing), [0; 0], "nobody sees it when who may is not there");
    assert!(missing.conflicts[0].contains("no other may see it"), "{:?}", missing.conflicts);
}
