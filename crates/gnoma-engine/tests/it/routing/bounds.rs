//! What a task may cost by the rules: held against the work at hand, and nothing where nothing is paid.

use gnoma_core::{Event, Price, session::Outcome};
use gnoma_router::{
    RouterSettings, Strategy,
    rules::{Rule, RuleConditions, RuleEffect},
};
use gnoma_testkit::Answer;

use super::team::{
    assert_complete, editor, edits, member, name, price, routed, team, telling, used,
};
use crate::outcome;

/// No task may cost more micro-dollars.
fn at_most(micro_usd: u64) -> RouterSettings {
    let rule = Rule {
        name: "cheap".into(),
        origin: "gnoma.toml:1".into(),
        when: RuleConditions::default(),
        then: vec![RuleEffect::MaxCostMicroUsd(micro_usd)],
    };
    RouterSettings { strategy: Strategy::Single, rules: vec![rule], ..RouterSettings::default() }
}

/// Two arms whose ordinary tasks cost 16 and 50 cents.
async fn asked(words: &str, micro_usd: u64) -> Vec<Event> {
    let members = vec![
        member("usual", 0.5, 0.16, vec![Answer::text("done")]),
        member("dear", 0.9, 0.5, vec![Answer::text("done")]).priced(Some(price(10))),
    ];
    team(members, at_most(micro_usd), Vec::new()).turn(words).await
}

#[tokio::test(start_paused = true)]
async fn max_cost_rule_compares_a_question_with_the_cost_of_questions() {
    let events = asked("what is a mutex?", 20_000).await;
    assert_complete(&events);
    assert_eq!(routed(&events).arms, [name("usual")], "the dear one takes more for one answer");
}

#[tokio::test(start_paused = true)]
async fn task_over_the_max_cost_rule_is_refused_naming_the_rule() {
    let events = asked("find out why the parser crashes and fix it", 20_000).await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert!(error.message.contains("over $0.02, the most by rule `cheap`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn free_model_satisfies_a_max_cost_rule_of_zero() {
    let free = vec![edits(), used("done", 1_000)];
    let members = vec![
        member("paid", 0.9, 0.1, vec![Answer::text("done")]),
        member("free", 0.5, 0.5, free).priced(Some(Price::default())),
    ];
    let mut team = team(members, at_most(0), vec![editor()]);
    let events = team.turn("fix the parser").await;
    assert_complete(&events);
    let routed = routed(&events);
    assert_eq!(routed.arms, [name("free")]);
    assert!(routed.why.contains("the only model"), "{}", routed.why);
    let line = routed.candidates.iter().find(|line| line.starts_with("fake/free: right"));
    assert!(line.is_some_and(|line| line.contains("$0.000")), "{:?}", routed.candidates);
}

#[tokio::test(start_paused = true)]
async fn turn_stops_when_it_exceeds_the_max_cost_rule() {
    // A dollar for the tokens of the first call.
    for (most, completes) in [(1_000_000, true), (999_999, false)] {
        let answers = vec![telling(edits(), 500_000), Answer::text("done")];
        let only = member("only", 0.5, 0.01, answers);
        let mut team = team(vec![only], at_most(most), vec![editor()]);
        let events = team.turn("fix the parser").await;
        let is_complete = matches!(outcome(&events), Outcome::Complete { .. });
        assert_eq!(is_complete, completes, "{most}: {:?}", outcome(&events));
    }
}
