//! What is learnt about the arms of a turn, and what is not.

use std::time::Duration;

use gnoma_core::{Command, ErrorKind, ToolOutcome, tool::Access};
use gnoma_router::{RouterSettings, Strategy};
use gnoma_testkit::{Answer, FakeTool};

use super::team::{
    broken, by, cascade, checks, editor, edits, looks, member, name, reader, reviewed, runs, shell,
    team, telling, used,
};

#[tokio::test(start_paused = true)]
async fn unreviewed_work_has_no_verdict() {
    let cheap = vec![edits(), Answer::text("done")];
    let strong = vec![Answer::from_error(ErrorKind::Quota)];
    let mut team = cascade(cheap, strong, reviewed(), vec![editor()]);
    let events = team.turn("fix the parser").await;
    let learnt = team.learnt().await;
    assert_eq!(learnt[0].tried[0].attempt.verdict, None, "{learnt:?} {:?}", checks(&events));
}

#[tokio::test(start_paused = true)]
async fn verdict_of_a_checked_attempt_is_learnt_despite_a_later_cancel() {
    let review = used(r#"{"holds": false, "why": "no"}"#, 10);
    let cheap = vec![edits(), used("done", 10)];
    let strong = vec![review, telling(edits(), 100), Answer::endless_silence()];
    let mut team = cascade(cheap, strong, reviewed(), vec![editor()]);
    team.run.say("fix the parser");
    team.cancel_after(Duration::from_secs(5)).await;
    let learnt = team.learnt().await;
    assert_eq!(learnt.len(), 1, "cheap's work was judged: {learnt:?}");
}

#[tokio::test(start_paused = true)]
async fn work_before_a_failover_is_not_attributed_to_the_next_model() {
    let failed = Answer::from_error(ErrorKind::Overloaded);
    let best = vec![telling(edits(), 100_000), runs("cargo test"), failed];
    let other = vec![used("I leave it at that, the test is red", 10)];
    let members = vec![member("best", 0.9, 0.1, best), member("other", 0.5, 0.1, other)];
    let mut team = team(members, by(Strategy::Single), vec![editor(), shell(Some(101))]);
    team.turn("fix the parser").await;
    let learnt = team.learnt().await;
    let mut tried = learnt.iter().take(1).flat_map(|task| &task.tried);
    let other = tried.find(|tried| tried.attempt.arm == name("other"));
    if let Some(other) = other {
        assert!(other.attempt.cost_micro_usd < 1_000, "{learnt:?}");
        assert_eq!(other.attempt.verdict, None, "{learnt:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn next_user_message_is_a_verdict_only_if_it_rates_the_work() {
    for (words, right) in [
        ("No problem, now add docs", None),
        ("non-blocking IO in the lexer please", None),
        ("thanks, but that is wrong", Some(false)),
        ("again, add tests for the lexer", None),
    ] {
        let only = member("only", 0.5, 0.1, vec![used("done", 10), used("done", 10)]);
        let mut team = team(vec![only], RouterSettings::default(), Vec::new());
        team.turn("fix the parser").await;
        team.turn(words).await;
        assert_eq!(team.learnt().await[0].tried[0].right, right, "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn model_whose_edits_never_apply_gets_a_bad_verdict() {
    let edits = (1..=3).map(|number| {
        let arguments = format!("{{\"try\":{number}}}");
        Answer::calls(&[("edited", "edit", &arguments)])
    });
    for (outcome, verdict) in [
        (ToolOutcome::failure_text("no such text"), Some(false)),
        (ToolOutcome::Done(Default::default()), None),
    ] {
        let answers = edits.clone().chain([used("done", 10)]).collect();
        let tool = FakeTool::new("edit", Access::Edit, move |_| outcome.clone());
        let mut team =
            team(vec![member("only", 0.5, 0.1, answers)], by(Strategy::Single), vec![tool]);
        team.turn("fix the parser").await;
        let learnt = team.learnt().await;
        assert_eq!(learnt[0].tried[0].attempt.verdict, verdict, "{learnt:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn classifier_only_model_is_never_routed_work() {
    for (only_classifies, chosen) in [(true, "worker"), (false, "sorter")] {
        let sorter = member("sorter", 0.99, 0.01, vec![used("done", 10)]);
        let worker = member("worker", 0.3, 0.5, vec![used("done", 10)]);
        let classifier = Some(name("sorter"));
        let options = RouterSettings { only_classifies, classifier, ..by(Strategy::Single) };
        let team = team(vec![sorter, worker], options, Vec::new());
        let routing = team
            .routes
            .with_state(|state| state.preview_routing("explain this", 10, &[], 0))
            .unwrap();
        assert_eq!(routing.arms, [name(chosen)]);
        let is_named = routing.candidates.iter().any(|line| line.contains("only sorts requests"));
        assert_eq!(is_named, only_classifies, "{routing:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn model_that_finishes_after_a_failover_is_credited_with_its_share() {
    let best = vec![edits(), looks(), broken("I will now", ErrorKind::Network)];
    let other = vec![runs("cargo test"), used("done", 10)];
    let members = vec![member("best", 0.9, 0.1, best), member("other", 0.5, 0.1, other)];
    let tools = vec![editor(), reader(), shell(Some(0))];
    let mut team = team(members, by(Strategy::Single), tools);
    team.turn("fix the parser").await;
    team.order(Command::Rate { good: true }).await;
    let learnt = team.learnt().await;
    let tried = &learnt[0].tried;
    assert_eq!(tried.len(), 1, "nothing for the one that failed: {learnt:?}");
    assert_eq!((&tried[0].attempt.arm, tried[0].right), (&name("other"), Some(true)));
    assert_eq!(tried[0].attempt.verdict, Some(true));
    // Two answers and a change of the first, two answers of the second.
    assert!((tried[0].weight - 0.4).abs() < 1e-9, "{learnt:?}");
}

#[tokio::test(start_paused = true)]
async fn second_user_rating_replaces_the_first() {
    for (ratings, right) in [(&[true, false][..], false), (&[false, true], true), (&[true], true)] {
        let members = vec![member("best", 0.9, 0.1, vec![used("done", 10)])];
        let mut team = team(members, by(Strategy::Single), Vec::new());
        team.turn("what is a monad?").await;
        for good in ratings {
            team.order(Command::Rate { good: *good }).await;
        }
        let learnt = team.learnt().await;
        assert_eq!(learnt.len(), 1, "{learnt:?}");
        assert_eq!(learnt[0].tried[0].right, Some(right), "{ratings:?}");
    }
}
