//! Several arms for one answer: what is said, what is paid, and for whom it counts.

use std::time::Duration;

use gnoma_core::{Command, ErrorKind, Event, ToolChoice, session::SessionState};
use gnoma_router::{
    RouterSettings, Strategy, Verify,
    pool::{Caps, PoolLimits},
};
use gnoma_testkit::{Answer, FakeLedger};

use super::team::{
    Team, assert_complete, authors, by, changes, costs, counted, editor, edits, looks, member,
    name, notices, offered, reader, routed, said, spent, team, used,
};
use crate::history;

#[tokio::test(start_paused = true)]
async fn ensemble_judge_picks_one_answer_and_synthesis_combines_them() {
    for (strategy, last, expected) in [
        (Strategy::Ensemble, Answer::text("{\"best\": 2, \"why\": \"complete\"}"), "second"),
        (Strategy::Synthesis, Answer::text("both in one"), "both in one"),
    ] {
        let is_synthesis = strategy == Strategy::Synthesis;
        let again = |text: &str| is_synthesis.then(|| used(text, 10));
        let mut strong = vec![used("first", 10)];
        strong.extend(again("first, better"));
        strong.push(last);
        let mut other = vec![used("second", 10)];
        other.extend(again("second, better"));
        let members = vec![member("strong", 0.9, 0.1, strong), member("other", 0.5, 0.1, other)];
        let mut team = team(members, by(strategy), Vec::new());
        let events = team.turn("what is a monad?").await;
        assert_eq!(said(&events), ["what is a monad?", expected]);
        let paid = costs(&events).len();
        assert_eq!(paid, if is_synthesis { 4 } else { 2 }, "each for itself");
        assert!(events.contains(&Event::State(SessionState::Idle)));
    }
}

#[tokio::test(start_paused = true)]
async fn call_after_a_cancelled_ensemble_is_charged() {
    let first = vec![used("one", 10), Answer::endless_silence(), used("later", 5_000)];
    let members = vec![member("a", 0.9, 0.1, first), member("b", 0.5, 0.1, vec![used("two", 10)])];
    let options = RouterSettings { verify: Verify::Off, ..by(Strategy::Ensemble) };
    let mut team = team(members, options, Vec::new());
    team.run.say("what is a monad?");
    team.cancel_after(Duration::from_secs(5)).await;
    let events = team.turn("fix the parser").await;
    assert_eq!(costs(&events), [("a", Some(10_000))]);
}

#[tokio::test(start_paused = true)]
async fn ensemble_exceeds_the_spending_cap_by_at_most_one_call() {
    const CAP: u64 = 40_000;
    const ONE_CALL: u64 = 30_000;
    let caps = Caps { turn: Some(CAP), ..Caps::default() };
    let counted = counted(PoolLimits::new(caps), &FakeLedger::default());
    let answers = |words: &[&str]| words.iter().map(|text| used(text, ONE_CALL / 2)).collect();
    let members = vec![
        member("a", 0.9, 0.1, answers(&["one", "one, better", "all"])),
        member("b", 0.5, 0.1, answers(&["two", "two, better"])),
    ];
    let options = counted.with(|it| it.strategy = Strategy::Synthesis);
    let mut team = team(members, options, Vec::new());
    let spent = spent(&team.turn("what is a monad?").await);
    assert!(spent <= CAP + ONE_CALL, "{spent}");
}

#[tokio::test(start_paused = true)]
async fn good_rating_credits_the_ensemble_member_whose_answer_won() {
    let first = vec![used("one", 1_000), used(r#"{"best": 2}"#, 1_000)];
    let members =
        vec![member("a", 0.9, 0.1, first), member("b", 0.5, 0.1, vec![used("two", 1_000)])];
    let mut team = team(members, by(Strategy::Ensemble), Vec::new());
    team.turn("what is a monad?").await;
    team.order(Command::Rate { good: true }).await;
    let learnt = team.learnt().await;
    let right = learnt[0].tried.iter().filter(|tried| tried.right == Some(true));
    let right: Vec<_> = right.map(|tried| &*tried.attempt.arm.model).collect();
    assert_eq!(right, ["b"], "{learnt:?}");
}

/// Three dollars' worth of arms: one to look, one more to propose.
fn architects(strategy: Strategy, looker: Vec<Answer>, other: Vec<Answer>) -> Team {
    let members = vec![member("looker", 0.9, 0.1, looker), member("other", 0.5, 0.1, other)];
    team(members, by(strategy), vec![reader(), editor()])
}

#[tokio::test(start_paused = true)]
async fn ensemble_with_tools_explores_once_and_one_model_edits() {
    let looker = vec![looks(), used("rewrite it", 10), used(r#"{"best": 2}"#, 10)];
    let other = vec![used("patch line 3", 10), edits(), used("patched", 10)];
    let mut team = architects(Strategy::Ensemble, looker, other);
    let events = team.turn("fix the parser in src/parser.rs").await;
    assert_complete(&events);
    assert_eq!(routed(&events).strategy, "ensemble");
    assert_eq!(authors(&events), [("other", Some("looker"))]);

    let looked = &team.providers[0].requests()[0];
    assert_eq!(offered(looked), ["look"], "nothing is changed before a way is taken");
    let proposed = &team.providers[1].requests()[0];
    assert_eq!(proposed.tool_choice, ToolChoice::None);
    let texts: Vec<_> = proposed.messages.iter().map(|it| it.text_content()).collect();
    assert!(!texts.iter().any(|text| text.contains("rewrite it")), "{texts:?}");
    let results = proposed.messages.iter().flat_map(|message| message.tool_results());
    assert_eq!(results.count(), 1, "they know what was read");
    let did = &team.providers[1].requests()[1];
    assert_eq!(offered(did), ["look", "edit"]);
    assert!(did.messages.last().unwrap().text_content().contains("patch line 3"));
    assert_eq!(said(&events).last().unwrap(), "patched");

    team.order(Command::Rate { good: true }).await;
    let learnt = team.learnt().await;
    let tried = &learnt[0].tried;
    assert_eq!((tried.len(), &*tried[0].attempt.arm.model, tried[0].weight), (1, "other", 1.0));
}

#[tokio::test(start_paused = true)]
async fn synthesized_plan_is_carried_out_by_the_exploring_model() {
    let looker =
        vec![used("one", 10), used("one, better", 10), used("both", 10), edits(), used("done", 10)];
    let other = vec![used("two", 10), used("two, better", 10)];
    let mut team = architects(Strategy::Synthesis, looker, other);
    let events = team.turn("plan and write the parser in src/parser.rs").await;
    assert_complete(&events);
    assert_eq!(authors(&events), [("looker", Some("looker"))]);
    assert_eq!((team.asked(0), team.asked(1)), (5, 2));
}

#[tokio::test(start_paused = true)]
async fn exploring_ensemble_model_cannot_edit_files() {
    let looker = vec![edits(), used("one", 10), used(r#"{"best": 1}"#, 10), used("done", 10)];
    let edit = editor();
    let members =
        vec![member("looker", 0.9, 0.1, looker), member("other", 0.5, 0.1, vec![used("two", 10)])];
    let mut team = team(members, by(Strategy::Ensemble), vec![edit.clone()]);
    let events = team.turn("fix the parser in src/parser.rs").await;
    assert_complete(&events);
    assert!(edit.calls().is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_exploring_model_fails_over_to_one_that_works_alone() {
    let other = vec![edits(), used("done", 10)];
    let looker = vec![Answer::from_error(ErrorKind::RateLimited)];
    let mut team = architects(Strategy::Ensemble, looker, other);
    let events = team.turn("fix the parser in src/parser.rs").await;
    assert_complete(&events);
    assert_eq!(changes(&events), [("looker", "other", false)]);
    assert_eq!(offered(&team.providers[1].requests()[0]), ["look", "edit"]);
    assert!(authors(&events).is_empty());
}

#[tokio::test(start_paused = true)]
async fn hanging_ensemble_member_is_dropped_after_a_timeout() {
    let first = vec![used("one", 10), used("and more", 10)];
    let members =
        vec![member("a", 0.9, 0.1, first), member("b", 0.5, 0.1, vec![Answer::endless_silence()])];
    let mut team = team(members, by(Strategy::Ensemble), Vec::new());
    let events = team.turn("what is a monad?").await;
    assert_eq!(said(&events), ["what is a monad?", "one"]);
    assert!(notices(&events).iter().any(|text| text.contains("did not answer in time")));
    assert_eq!(authors(&events), [("a", None)], "there was nothing to decide");
    assert_complete(&events);
}

#[tokio::test(start_paused = true)]
async fn ensemble_judge_without_a_verdict_falls_back_to_the_next_model() {
    let first = vec![used("one", 10), Answer::text("I like both")];
    let other = vec![used("two", 10), used(r#"{"best": 2}"#, 10)];
    let members = vec![member("a", 0.9, 0.1, first), member("b", 0.5, 0.1, other)];
    let mut team = team(members, by(Strategy::Ensemble), Vec::new());
    let events = team.turn("what is a monad?").await;
    assert_eq!(authors(&events), [("b", Some("b"))]);
    let answer = history(&events).into_iter().next_back().unwrap();
    assert_eq!(answer.origin(), Some(&name("b")), "its words bear its name");
}
