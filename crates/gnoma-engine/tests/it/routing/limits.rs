//! Limits of tokens and requests: what they count, and what becomes of a call that they have no room
//! for.

use std::time::Duration;

use gnoma_core::{ErrorKind, Event, ProviderError, StreamEvent, Usage, session::Outcome};
use gnoma_router::{
    RouterSettings, Strategy, Verify,
    pool::{PoolLimits, Rates},
    rules::{Rule, RuleConditions, RuleEffect},
};
use gnoma_testkit::{Answer, FakeLedger, FakeTool};

use super::team::{
    Team, TeamOptions, assert_complete, by, cascade, changes, counted, editor, edits, member, name,
    said, team, verdict,
};
use crate::outcome;

/// The limits of one pool, as its vendor counts them.
fn limits(pool: &str, vendor: &str, rates: Rates) -> PoolLimits {
    let mut limits = PoolLimits::default();
    limits.add_rates(pool, rates, vendor, None).unwrap();
    limits
}

/// A call of the [`editor`] whose prompt the provider's cache had nearly all of.
fn cached_edits() -> Answer {
    let usage = Usage { input: 500, cache_read: 40_000, output: 10, ..Usage::default() };
    let mut answer = edits();
    answer.events.insert(0, Ok(StreamEvent::Usage(usage)));
    answer
}

fn waits(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Retrying { .. })).count()
}

/// The second call of a turn, after a first one that was nearly all cached.
async fn second_call(vendor: &str) -> Vec<Event> {
    let rates = Rates { itpm: Some(30_000), ..Rates::default() };
    let options = counted(limits("fake", vendor, rates), &FakeLedger::default());
    let only = member("only", 0.5, 0.1, vec![cached_edits(), Answer::text("done")]);
    team(vec![only], options, vec![editor()]).turn("fix the parser").await
}

#[tokio::test(start_paused = true)]
async fn cached_tokens_do_not_count_against_the_anthropic_rate_limit() {
    let events = second_call("anthropic").await;
    assert_complete(&events);
    assert_eq!(waits(&events), 0);
}

#[tokio::test(start_paused = true)]
async fn call_larger_than_its_rate_limit_fails_without_waiting() {
    let events = second_call("openai").await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!((error.kind, waits(&events)), (ErrorKind::Quota, 0), "{error}");
    assert!(error.message.contains("waiting does not help"), "{error}");
}

/// Rather this arm.
fn prefer(arm: &str) -> Rule {
    Rule {
        name: "rather".into(),
        origin: "gnoma.toml:1".into(),
        when: RuleConditions::default(),
        then: vec![RuleEffect::Prefer { arms: vec![arm.into()], percent: 100 }],
    }
}

/// Preferred is `a`, which is limited.
fn limited(rates: Rates) -> TeamOptions {
    counted(limits("slow", "slow", rates), &FakeLedger::default())
        .with(|it| (it.strategy, it.rules) = (Strategy::Single, vec![prefer("fake/a")]))
}

/// A tool that takes no time.
fn quick() -> Vec<FakeTool> {
    vec![editor()]
}

#[tokio::test(start_paused = true)]
async fn rate_limit_that_resets_within_seconds_is_waited_for() {
    let options = limited(Rates { rps: Some(1.0), ..Rates::default() });
    let a = vec![edits(), edits(), Answer::text("done"), Answer::text("more")];
    let a = member("a", 0.5, 0.1, a).in_pools(&["slow"]);
    let b = member("b", 0.5, 0.1, vec![Answer::text("b did it")]);
    let mut team = team(vec![a, b], options, quick());
    for words in ["fix the parser", "fix the lexer"] {
        team.run.say(words);
        team.live(Duration::from_secs(10)).await;
        let events = team.run.until_idle().await;
        assert_complete(&events);
        assert!(changes(&events).is_empty() && waits(&events) == 0, "{events:?}");
    }
    assert_eq!((team.asked(0), team.asked(1)), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn router_avoids_a_model_whose_rate_limit_runs_low() {
    let rates = Rates { rpd: Some(10), ..Rates::default() };
    let options = counted(limits("slow", "slow", rates), &FakeLedger::default())
        .with(|it| it.strategy = Strategy::Single);
    let answers = || (0..12).map(|_| Answer::text("done")).collect::<Vec<_>>();
    let better = member("better", 0.52, 0.001, answers()).in_pools(&["slow"]);
    let other = member("other", 0.5, 0.001, answers());
    let mut team = team(vec![better, other], options, Vec::new());
    for _ in 0..10 {
        team.turn("fix the parser").await;
    }
    let asked = (team.asked(0), team.asked(1));
    assert!(asked.0 >= 1 && asked.0 < 9, "its last requests are kept: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn next_turn_waits_for_a_rate_limit_that_resets_within_seconds() {
    let options = limited(Rates { rps: Some(1.0), ..Rates::default() });
    let a = vec![Answer::text("one"), Answer::text("two")];
    let a = member("a", 0.5, 0.1, a).in_pools(&["slow"]);
    let b = member("b", 0.5, 0.1, vec![Answer::text("b did it")]);
    let mut team = team(vec![a, b], options, quick());
    team.turn("fix the parser").await;
    team.run.say("fix the lexer");
    team.live(Duration::from_secs(3)).await;
    assert_eq!(said(&team.run.until_idle().await), ["fix the lexer", "two"]);
}

#[tokio::test(start_paused = true)]
async fn own_rate_limit_wait_causes_no_provider_cooldown() {
    let options = limited(Rates { rpm: Some(1), ..Rates::default() });
    let a = member("a", 0.5, 0.1, vec![edits(), Answer::text("done")]).in_pools(&["slow"]);
    let late = Answer::from_error(ErrorKind::Overloaded).with_event_delay(Duration::from_secs(70));
    let b = member("b", 0.5, 0.1, vec![late]);
    let mut team = team(vec![a, b], options, quick());
    team.run.say("fix the parser");
    team.live(Duration::from_secs(80)).await;
    let events = team.run.until_idle().await;
    assert_complete(&events);
    assert_eq!(changes(&events), [("a", "b", false), ("b", "a", false)]);
}

/// An answer whose headers tell of a limit of so many requests a minute.
fn limited_to(requests: u64, mut answer: Answer) -> Answer {
    let header = |name: &str, value: u64| (name.to_owned(), value.to_string());
    let headers = vec![
        header("x-ratelimit-limit-requests", requests),
        header("x-ratelimit-remaining-requests", requests - 1),
    ];
    answer.events.insert(0, Ok(StreamEvent::RateLimits { headers }));
    answer
}

/// The requests that the arm's own answers told of.
fn told(team: &Team, model: &str) -> Vec<Option<u64>> {
    team.routes.with_state(|state| {
        let limits = state.tracker.vitals.limits.known_limits(&name(model));
        limits.iter().map(|known| known.seen.limit).collect()
    })
}

#[tokio::test(start_paused = true)]
async fn rate_limits_of_concurrent_calls_are_recorded_per_model() {
    // The arm that is asked first answers last.
    let slow = limited_to(11, Answer::text("first")).with_event_delay(Duration::from_secs(3));
    let chair = limited_to(12, Answer::text("{\"best\": 2, \"why\": \"complete\"}"));
    let members = vec![
        member("a", 0.9, 0.1, vec![slow, chair]),
        member("b", 0.5, 0.1, vec![limited_to(22, Answer::text("second"))]),
    ];
    let mut team = team(members, by(Strategy::Ensemble), Vec::new());
    let events = team.turn("what is a monad?").await;
    assert_complete(&events);
    assert_eq!((told(&team, "a"), told(&team, "b")), (vec![Some(12)], vec![Some(22)]));
}

#[tokio::test(start_paused = true)]
async fn rate_limit_headers_of_errors_and_side_calls_are_recorded() {
    let error = ProviderError::new(ErrorKind::RateLimited, "fake", "too many");
    let refused = limited_to(33, Answer::from_events(vec![Err(error)]));
    let cheap = vec![refused, edits(), Answer::text("done")];
    let strong = vec![limited_to(44, verdict(true, "it holds"))];
    let options = RouterSettings {
        verify: Verify::Reviewer,
        strategy: Strategy::Cascade,
        failover: false,
        ..RouterSettings::default()
    };
    let mut team = cascade(cheap, strong, options, vec![editor()]);
    let events = team.turn("fix the parser").await;
    assert_complete(&events);
    assert_eq!((told(&team, "cheap"), told(&team, "strong")), (vec![Some(33)], vec![Some(44)]));
    assert_eq!(team.asked(1), 1, "only the review");
}
