//! Questions beside the conversation: what is held for them, what they count as when nobody waits for
//! their end, and how long they may take.

use std::time::Duration;

use gnoma_core::Event;
use gnoma_router::{
    RouterSettings, Strategy, Verify,
    pool::{Caps, PoolLimits},
};
use gnoma_testkit::{Answer, FakeLedger, ScriptedOutcome};
use tokio::time::Instant;

use super::team::{by, cascade, counted, editor, edits, member, name, team};

fn capped() -> PoolLimits {
    PoolLimits::new(Caps { day: Some(10_000_000), ..Caps::default() })
}

#[tokio::test(start_paused = true)]
async fn cancelled_review_is_charged_by_its_estimated_tokens() {
    let ledger = FakeLedger::default();
    let counted = counted(capped(), &ledger);
    let options =
        counted.with(|it| (it.verify, it.strategy) = (Verify::Reviewer, Strategy::Cascade));
    let cheap = vec![edits(), Answer::text("done")];
    let mut team = cascade(cheap, vec![Answer::endless_silence()], options, vec![editor()]);
    team.run.say(&format!("fix the parser {}", "word ".repeat(3_000)));
    team.cancel_after(Duration::from_secs(5)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(ledger.held_reservations().is_empty(), "{:?}", ledger.held_reservations());
    let settled = ledger.settled_calls();
    let review = settled.iter().find(|settled| settled.arm == name("strong")).unwrap();
    assert_eq!(review.amount.requests, 1);
    assert!(review.amount.input > 3_000 && review.amount.micro_usd > 3_000, "{review:?}");
}

#[tokio::test(start_paused = true)]
async fn cancelled_ensemble_is_charged_for_each_members_prompt() {
    let ledger = FakeLedger::default();
    let silent = || vec![Answer::endless_silence()];
    let members = vec![member("a", 0.9, 0.1, silent()), member("b", 0.5, 0.1, silent())];
    let options = counted(capped(), &ledger).with(|it| it.strategy = Strategy::Ensemble);
    let mut team = team(members, options, Vec::new());
    team.run.say("what is a monad?");
    team.cancel_after(Duration::from_secs(5)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(ledger.held_reservations().is_empty(), "{:?}", ledger.held_reservations());
    for model in ["a", "b"] {
        let paid = ledger.settled_calls().into_iter().filter(|settled| settled.arm == name(model));
        assert!(paid.map(|settled| settled.amount.micro_usd).sum::<u64>() > 0, "{model}");
    }
}

#[tokio::test(start_paused = true)]
async fn unresponsive_classifier_model_warns_once() {
    let options = RouterSettings { classifier: Some(name("small")), ..by(Strategy::Single) };
    let done = || vec![Answer::text("done"), Answer::text("done")];
    let members = vec![
        member("small", 0.2, 0.1, vec![Answer::endless_silence(), Answer::endless_silence()]),
        member("large", 0.9, 0.1, done()),
    ];
    let mut team = team(members, options, Vec::new());
    let told = |events: &[Event]| {
        let is_told = |event: &&Event| match event {
            Event::Notice { text, .. } => text.contains("(`slm`)"),
            _ => false,
        };
        events.iter().filter(is_told).count()
    };
    assert_eq!(told(&team.turn("fix the parser").await), 1);
    assert_eq!(told(&team.turn("fix the lexer").await), 0);
}

#[tokio::test(start_paused = true)]
async fn classifier_timeout_is_two_seconds_even_if_the_ledger_hangs() {
    // Asked first is where limits stand, then for room for the classifier.
    for silent in [ScriptedOutcome::Hangs, ScriptedOutcome::HangsAfter] {
        let ledger = FakeLedger::with_failures(move |call| match call {
            1 => silent.clone(),
            _ => ScriptedOutcome::Works,
        });
        let options = counted(capped(), &ledger).with(|it| {
            (it.classifier, it.strategy) = (Some(name("small")), Strategy::Single);
        });
        let members = vec![
            member("small", 0.2, 0.1, vec![Answer::text("{}")]),
            member("large", 0.9, 0.1, vec![Answer::text("done")]),
        ];
        let mut team = team(members, options, Vec::new());
        let began = Instant::now();
        team.run.say("fix the parser");
        team.run.until(|event| matches!(event, Event::Routed(_))).await;
        assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
    }
}
