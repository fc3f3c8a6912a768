//! What calls cost, whose they are, and limits that hold.

use std::time::Duration;

use gnoma_core::{Command, ErrorKind, Event, Price, session::Outcome, store::StoreErrorKind};
use gnoma_router::{
    RouterSettings, Strategy, Verify,
    pool::{Caps, PoolLimits, Rates},
};
use gnoma_testkit::{Answer, FakeLedger, ScriptedOutcome};

use super::team::{
    Team, assert_complete, broken, by, cascade, changes, costs, counted, editor, edits, estimates,
    looks, member, name, price, reader, routed, said, spent, team, telling, used,
};
use crate::{Run, outcome};

#[tokio::test(start_paused = true)]
async fn cost_events_sum_call_turn_and_session_cost() {
    let only = member("only", 0.5, 0.1, vec![used("one", 1_000), used("two", 1_000)]);
    let mut team = team(vec![only], RouterSettings::default(), Vec::new());
    let mut sums = Vec::new();
    for _ in 0..2 {
        for event in team.turn("hello").await {
            if let Event::Cost { call_micro_usd, turn_micro_usd, session_micro_usd, .. } = event {
                sums.push((call_micro_usd, turn_micro_usd, session_micro_usd));
            }
        }
    }
    assert_eq!(sums, [(Some(2_000), 2_000, 2_000), (Some(2_000), 2_000, 4_000)]);
    assert!(team.speed("only").is_some());
}

#[tokio::test(start_paused = true)]
async fn failed_models_tokens_are_charged_at_its_own_price() {
    let half = telling(broken("half", ErrorKind::Network), 1_000);
    let best = member("best", 0.9, 0.1, vec![half]).priced(Some(price(100)));
    let other = member("other", 0.5, 0.1, vec![used("done", 1_000)]);
    let mut team = team(vec![best, other], by(Strategy::Single), Vec::new());
    let events = team.turn("fix the parser").await;
    assert_eq!(costs(&events), [("best", Some(200_000)), ("other", Some(2_000))]);
}

#[tokio::test(start_paused = true)]
async fn call_without_a_known_price_has_unknown_cost() {
    let only = member("only", 0.5, 0.1, vec![used("done", 10)]).priced(None);
    let mut team = team(vec![only], RouterSettings::default(), Vec::new());
    let events = team.turn("fix the parser").await;
    assert_eq!(costs(&events), [("only", None)]);
}

#[tokio::test(start_paused = true)]
async fn exhausted_session_cap_routes_to_a_free_model() {
    let caps = Caps { session: Some(30_000), ..Caps::default() };
    let counted = counted(PoolLimits::new(caps), &FakeLedger::default());
    let best = member("best", 0.9, 0.1, vec![used("done", 30_000)]);
    let free = member("free", 0.5, 0.0, vec![Answer::text("more")]).priced(Some(Price::default()));
    let options = counted.with(|it| it.strategy = Strategy::Single);
    let mut team = team(vec![best, free], options, Vec::new());
    team.turn("fix the parser").await;
    assert_eq!(routed(&team.turn("fix the lexer").await).arms, [name("free")]);
}

#[tokio::test(start_paused = true)]
async fn review_is_skipped_if_it_would_exceed_the_spending_cap() {
    // Room for the first two calls as reserved, used up by what they really took.
    let caps = Caps { session: Some(60_000), ..Caps::default() };
    let counted = counted(PoolLimits::new(caps), &FakeLedger::default());
    let options =
        counted.with(|it| (it.verify, it.strategy) = (Verify::Reviewer, Strategy::Cascade));
    let cheap = vec![edits(), used("done", 40_000)];
    let strong = vec![used(r#"{"holds":true}"#, 1_000)];
    let mut team = cascade(cheap, strong, options, vec![editor()]);
    let events = team.turn("fix the parser").await;
    assert_eq!(team.asked(0), 2, "{events:?}");
    assert_eq!(team.asked(1), 0, "{} were spent, and yet the reviewer was paid", spent(&events));
}

#[tokio::test(start_paused = true)]
async fn turn_waits_for_the_rate_limit_of_the_only_model() {
    let mut limits = PoolLimits::default();
    limits.add_rates("fake", Rates { rpm: Some(1), ..Rates::default() }, "fake", None).unwrap();
    let only = member("only", 0.5, 0.1, vec![used("one", 10), used("two", 10)]);
    let options = counted(limits, &FakeLedger::default());
    let mut team = team(vec![only], options, Vec::new());
    team.turn("fix the parser").await;
    team.run.say("fix the lexer");
    let waits_or_ends =
        |event: &Event| matches!(event, Event::Retrying { .. } | Event::TurnEnded { .. });
    let events = team.run.until(waits_or_ends).await;
    assert!(matches!(events.last(), Some(Event::Retrying { .. })), "{:?}", events.last());
}

#[tokio::test(start_paused = true)]
async fn dropped_session_releases_its_ledger_reservations() {
    let ledger = FakeLedger::default();
    let caps = Caps { day: Some(1_000_000), ..Caps::default() };
    let only = member("only", 0.5, 0.1, vec![Answer::endless_silence()]);
    let mut team = team(vec![only], counted(PoolLimits::new(caps), &ledger), Vec::new());
    team.run.say("fix the parser");
    team.run.until(|event| matches!(event, Event::RoundStarted { .. })).await;
    let Team { run: Run { handle, .. }, .. } = team;
    drop(handle);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(ledger.held_reservations().is_empty(), "{:?}", ledger.held_reservations());
}

#[tokio::test(start_paused = true)]
async fn broken_ledger_blocks_paid_calls_without_failover() {
    let full = || FakeLedger::with_failures(|_| ScriptedOutcome::Fails(StoreErrorKind::Full));
    let caps = || PoolLimits::new(Caps { day: Some(1_000_000), ..Caps::default() });
    let best = member("best", 0.9, 0.1, vec![Answer::text("done")]);
    let other = member("other", 0.5, 0.1, vec![Answer::text("done")]);
    let options = counted(caps(), &full()).with(|it| it.strategy = Strategy::Single);
    let mut capped = team(vec![best, other], options, Vec::new());
    let events = capped.turn("fix the parser").await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert!(error.message.contains("cannot count"), "{error}");
    assert!(changes(&events).is_empty(), "another arm cannot count either");
    assert_eq!((capped.asked(0), capped.asked(1)), (0, 0));

    // What costs nothing needs no account.
    let free = member("free", 0.5, 0.0, vec![Answer::text("done")]).priced(Some(Price::default()));
    let options = counted(caps(), &full()).with(|it| it.strategy = Strategy::Single);
    let events = team(vec![free], options, Vec::new()).turn("fix the parser").await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
}

#[tokio::test(start_paused = true)]
async fn broken_streams_without_usage_still_count_against_the_cap() {
    let ledger = FakeLedger::default();
    let words: String = (100..600).map(|number| format!("word {number} ")).collect();
    let dies = || broken(&words, ErrorKind::BadRequest);
    let caps = Caps { session: Some(60_000), ..Caps::default() };
    let only = member("only", 0.5, 0.1, (0..50).map(|_| dies()).collect());
    let options = counted(PoolLimits::new(caps), &ledger);
    let mut team = team(vec![only], options, Vec::new());
    let mut asked = 0;
    let refused = loop {
        let events = team.turn("fix the parser").await;
        let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
        if team.asked(0) == asked {
            break error;
        }
        asked += 1;
        // A thousand tokens that were seen, at ten dollars a million, and the prompt.
        let estimated = estimates(&events);
        assert!(matches!(estimated[..], [("only", Some(10_000..15_000))]), "{estimated:?}");
        assert!(costs(&events).is_empty());
        team.pass(Duration::from_secs(600));
    };
    assert!(refused.message.contains("the session's cap"), "{refused}");
    assert!((3..6).contains(&asked), "{asked}");
    let settled: u64 = ledger.settled_calls().iter().map(|settled| settled.amount.micro_usd).sum();
    assert!(settled >= asked as u64 * 10_000, "{settled}");
}

/// Room for the prompt and a short answer is enough; for less the refusal says what would do.
#[tokio::test(start_paused = true)]
async fn spending_cap_allows_a_call_with_room_for_a_short_answer() {
    // A prompt of about 1,500 tokens at $1 and an answer at $10 a million.
    for (cap, is_let) in [(8_000, true), (2_000, false)] {
        let caps = Caps { session: Some(cap), ..Caps::default() };
        let only = member("only", 0.5, 0.1, vec![Answer::text("short")]).priced(Some(Price {
            input: 1_000_000,
            output: 10_000_000,
            ..Price::default()
        }));
        let options = counted(PoolLimits::new(caps), &FakeLedger::default());
        let mut team = team(vec![only], options, Vec::new());
        let events = team.turn("fix the parser").await;
        if is_let {
            assert_complete(&events);
            let limit = team.providers[0].requests()[0].max_output_tokens.unwrap();
            assert!((256..700).contains(&limit), "{limit}");
            let told = |event: &Event| matches!(event, Event::Notice { text, .. } if text.contains("leaves room"));
            assert!(events.iter().any(told), "{events:?}");
        } else {
            let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
            assert_eq!(error.kind, ErrorKind::Quota);
            assert!(error.message.starts_with("the session's cap of $0.0020"), "{error}");
            assert!(error.message.contains("needs about $0.01"), "{error}");
            assert!(error.message.contains("raise `router.caps.session` to $0.02"), "{error}");
            assert_eq!(team.asked(0), 0);
        }
    }
}

/// The cap that a refusal names is enough, however much the instructions and tools add to the prompt.
#[tokio::test(start_paused = true)]
async fn spending_cap_suggested_by_the_error_is_sufficient() {
    let turn = async |cap: u64| {
        let caps = Caps { turn: Some(cap), ..Caps::default() };
        let only = member("only", 0.5, 0.1, vec![Answer::text("done")]).priced(Some(price(3)));
        let options = counted(PoolLimits::new(caps), &FakeLedger::default());
        team(vec![only], options, vec![reader()]).turn("fix the parser").await
    };
    let refused = turn(400).await;
    let Outcome::Failed { error, .. } = outcome(&refused) else { panic!("{refused:?}") };
    let advice = error.message.split_once("raise `router.caps.turn` to $").unwrap().1;
    let cents: u64 = advice[..4].replace('.', "").parse().unwrap();
    assert_complete(&turn(cents * 10_000).await);
}

/// A limit of tokens that no call fits into is a quota, not a model that is missing.
#[tokio::test(start_paused = true)]
async fn call_larger_than_a_monthly_token_limit_names_the_limit() {
    let mut limits = PoolLimits::default();
    let rates = Rates { tokens_month: Some(100), ..Rates::default() };
    limits.add_rates("fake", rates, "fake", None).unwrap();
    let only = member("only", 0.5, 0.1, vec![Answer::text("never")]);
    let mut team = team(vec![only], counted(limits, &FakeLedger::default()), Vec::new());
    let events = team.turn("fix the parser").await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!(error.kind, ErrorKind::Quota, "{error}");
    assert!(error.message.contains("limit of 100 tokens a month has no room"), "{error}");
    assert!(error.hint.as_deref().is_some_and(|hint| hint.contains("gnoma router pools")));
    assert_eq!(team.asked(0), 0);
}

#[tokio::test(start_paused = true)]
async fn retries_of_a_broken_stream_stop_at_the_spending_cap() {
    let ledger = FakeLedger::default();
    let words: String = (100..600).map(|number| format!("word {number} ")).collect();
    let caps = Caps { session: Some(60_000), ..Caps::default() };
    let dies = || broken(&words, ErrorKind::Network);
    let only = member("only", 0.5, 0.1, (0..50).map(|_| dies()).collect());
    let mut team = team(vec![only], counted(PoolLimits::new(caps), &ledger), Vec::new());
    let events = team.turn("fix the parser").await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert!(error.message.contains("the session's cap"), "{error}");
    assert!((3..9).contains(&team.asked(0)), "{}", team.asked(0));
    let taken_back = |event: &&Event| matches!(event, Event::Retrying { retracted: true, .. });
    assert_eq!(events.iter().filter(taken_back).count(), team.asked(0), "each is taken back");
}

#[tokio::test(start_paused = true)]
async fn abandoned_side_calls_are_charged_to_the_ledger() {
    let ledger = FakeLedger::default();
    let slow = |text: &str| Answer::text(text).with_event_delay(Duration::from_secs(20));
    let members = vec![
        member("a", 0.9, 0.1, vec![slow("one")]),
        member("b", 0.5, 0.1, vec![Answer::endless_silence(), used("more", 10)]),
    ];
    let caps = PoolLimits::new(Caps { day: Some(1_000_000), ..Caps::default() });
    let options = counted(caps, &ledger).with(|it| it.strategy = Strategy::Ensemble);
    let mut team = team(members, options, Vec::new());
    team.run.say("what is a monad?");
    team.cancel_after(Duration::from_secs(5)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let settled = ledger.settled_calls();
    assert_eq!(settled.len(), 2, "{settled:?}");
    assert!(settled.iter().all(|call| call.amount.micro_usd > 0), "{settled:?}");
    assert!(ledger.held_reservations().is_empty());
}

/// Two arms, each with a limit of one request: the better one's frees in a minute, the other's sooner.
#[tokio::test(start_paused = true)]
async fn turn_waits_for_the_rate_limit_that_resets_first() {
    let mut limits = PoolLimits::default();
    let rpm = Rates { rpm: Some(1), ..Rates::default() };
    let rps = Rates { rps: Some(1.0), ..Rates::default() };
    limits.add_rates("slowly", rpm, "slowly", None).unwrap();
    limits.add_rates("quickly", rps, "quickly", None).unwrap();
    let best = vec![looks(), used("too late", 10)];
    let other = vec![used("meanwhile", 10), used("soon", 10)];
    let members = vec![
        member("best", 0.9, 0.1, best).in_pools(&["slowly"]),
        member("other", 0.5, 0.1, other).in_pools(&["quickly"]),
    ];
    let options = counted(limits, &FakeLedger::default()).with(|it| it.strategy = Strategy::Single);
    let mut team = team(members, options, vec![reader()]);
    // The other arm's second is used up by another turn, of which nothing is left to wait for.
    team.order(Command::Pin { arm: Some(name("other")) }).await;
    assert_complete(&team.turn("fix the lexer").await);
    team.order(Command::Pin { arm: None }).await;
    team.run.say("fix the parser");
    let events = team.run.until(|event| matches!(event, Event::Retrying { .. })).await;
    let Some(Event::Retrying { wait_ms, .. }) = events.last() else { panic!() };
    assert!(*wait_ms <= 1_000, "{wait_ms}");
    assert_eq!(changes(&events), [("best", "other", false)]);
    team.pass(Duration::from_secs(2));
    let events = team.run.until_idle().await;
    assert_complete(&events);
    assert_eq!(said(&events).last().unwrap(), "soon");
}
