//! Several arms for one answer: what is said, what is paid, and for whom it counts.

use std::time::Duration;

use gnoma_core::{Command, Event, session::SessionState};
use gnoma_engine::routing::{Options, Strategy, Verify};
use gnoma_router::pool::{Caps, Limits};
use gnoma_testkit::{Answer, FakeLedger};

use super::team::{by, costs, counted, member, said, spent, team, used};

#[tokio::test(start_paused = true)]
async fn several_arms_answer_and_a_judge_picks() {
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
async fn the_call_after_a_cancelled_panel_is_paid() {
    let first = vec![used("one", 10), Answer::silence(), used("later", 5_000)];
    let members = vec![member("a", 0.9, 0.1, first), member("b", 0.5, 0.1, vec![used("two", 10)])];
    let options = Options { verify: Verify::Off, ..by(Strategy::Ensemble) };
    let mut team = team(members, options, Vec::new());
    team.run.say("what is a monad?");
    team.cancel_after(Duration::from_secs(5)).await;
    let events = team.turn("fix the parser").await;
    assert_eq!(costs(&events), [("a", Some(10_000))]);
}

#[tokio::test(start_paused = true)]
async fn a_panel_exceeds_the_cap_by_one_call_at_most() {
    const CAP: u64 = 40_000;
    const ONE_CALL: u64 = 30_000;
    let caps = Caps { turn: Some(CAP), ..Caps::default() };
    let counted = counted(Limits::new(caps), &FakeLedger::default());
    let answers = |words: &[&str]| words.iter().map(|text| used(text, ONE_CALL / 2)).collect();
    let members = vec![
        member("a", 0.9, 0.1, answers(&["one", "one, better", "all"])),
        member("b", 0.5, 0.1, answers(&["two", "two, better"])),
    ];
    let options = Options { strategy: Strategy::Synthesis, ..counted };
    let mut team = team(members, options, Vec::new());
    let spent = spent(&team.turn("what is a monad?").await);
    assert!(spent <= CAP + ONE_CALL, "{spent}");
}

#[tokio::test(start_paused = true)]
async fn praise_is_for_the_member_whose_answer_won() {
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
