//! Whole turns over several arms: failing over, checking and escalating, answering together, paying.

use std::sync::Arc;

use gnoma_core::{
    Command, ErrorKind, Event, ModelRef, Price, StopReason, StreamEvent, ToolOutcome, Usage,
    session::{Outcome, PermissionMode, SessionState},
    tool::{Access, ToolOutput},
};
use gnoma_engine::{
    Arm, Keeping, Routes,
    routing::{Options, Strategy, Verify},
};
use gnoma_guard::firewall::Guarded;
use gnoma_router::{Prior, Router, Tuning};
use gnoma_testkit::{Answer, FakeProvider, FakeTool};

use super::{Run, firewall, history, outcome, spawn};

/// An arm of the tests: its model, how often it is right and what a task costs there.
struct Member {
    model: &'static str,
    quality: f64,
    cost: f64,
    answers: Vec<Answer>,
}

fn member(model: &'static str, quality: f64, cost: f64, answers: Vec<Answer>) -> Member {
    Member { model, quality, cost, answers }
}

struct Team {
    run: Run,
    providers: Vec<Arc<FakeProvider>>,
    routes: Arc<Routes>,
}

fn name(model: &str) -> ModelRef {
    ModelRef { provider: "fake".into(), model: model.into() }
}

fn team(members: Vec<Member>, options: Options, tools: Vec<FakeTool>) -> Team {
    let firewall = firewall();
    let routes = Arc::new(Routes::new(Router::new(Tuning::default()), options));
    let (mut arms, mut known, mut providers) = (Vec::new(), Vec::new(), Vec::new());
    for Member { model, quality, cost, answers } in members {
        let provider = Arc::new(FakeProvider::new(answers));
        let guarded = Guarded::new(Arc::clone(&provider) as _, Arc::clone(&firewall), false);
        let price = Price { input: 1_000_000, output: 10_000_000, ..Price::default() };
        arms.push(Arm { price: Some(price), host: model.into(), ..Arm::new(guarded, model) });
        known.push(gnoma_router::Arm {
            id: name(model),
            facts: Default::default(),
            priors: Default::default(),
            overall: Some(Prior { quality, cost, tasks: 300.0 }),
        });
        providers.push(provider);
    }
    routes.set_arms(arms, known);
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as _).collect();
    let asked = (PermissionMode::Bypass, false);
    let handle = spawn(Arc::clone(&routes), firewall, tools, asked, Keeping::default(), Vec::new());
    let provider = Arc::clone(&providers[0]);
    Team { run: Run { handle, provider }, providers, routes }
}

fn broken(text: &str, kind: ErrorKind) -> Answer {
    let error = gnoma_core::ProviderError::new(kind, "fake", "as scripted");
    Answer::of(vec![Ok(StreamEvent::TextDelta { slot: 0, text: text.into() }), Err(error)])
}

fn said(events: &[Event]) -> Vec<String> {
    history(events).iter().map(|message| message.text_content()).collect()
}

fn changes(events: &[Event]) -> Vec<(String, String, bool)> {
    let change = |event: &Event| match event {
        Event::ArmChanged { from, to, retracted, .. } => {
            Some((from.model.clone(), to.model.clone(), *retracted))
        }
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

#[tokio::test(start_paused = true)]
async fn another_arm_takes_over_and_nothing_is_lost() {
    for (answer, retracted) in [
        (Answer::failing(ErrorKind::RateLimited), false),
        (Answer::failing(ErrorKind::NotFound), false),
        (broken("half an ans", ErrorKind::Network), true),
        (broken("half an ans", ErrorKind::Protocol), true),
    ] {
        let best = member("best", 0.9, 0.1, vec![answer]);
        let other = member("other", 0.6, 0.1, vec![Answer::text("done")]);
        let options = Options { strategy: Strategy::Single, ..Options::default() };
        let mut team = team(vec![best, other], options, Vec::new());
        team.run.say("fix the parser");
        let events = team.run.until_idle().await;
        assert_eq!(changes(&events), [("best".to_owned(), "other".to_owned(), retracted)]);
        assert_eq!(said(&events), ["fix the parser", "done"], "the broken half is not kept");
        assert!(matches!(outcome(&events), Outcome::Complete { .. }));
        // The arm that failed rests: the next turn does not ask it again.
        team.providers[1].push(Answer::text("and more"));
        team.run.say("fix the lexer");
        let events = team.run.until_idle().await;
        assert!(changes(&events).is_empty());
        assert_eq!(said(&events), ["fix the lexer", "and more"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_arm_that_was_asked_for_by_name_is_not_replaced() {
    let failing = || (0..4).map(|_| Answer::failing(ErrorKind::Quota)).collect::<Vec<_>>();
    let members = vec![member("best", 0.9, 0.1, failing()), member("other", 0.6, 0.1, Vec::new())];
    let options = Options { pinned: Some(name("best")), ..Options::default() };
    let mut team = team(members, options, Vec::new());
    team.run.say("fix the parser");
    let events = team.run.until_idle().await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert!(error.hint.as_deref().unwrap_or_default().contains("fake/other"), "{error:?}");
    assert!(changes(&events).is_empty());

    // The person takes the pin away and chooses the other.
    assert!(team.run.handle.tell(Command::Pin { arm: Some(name("nobody")) }));
    team.run.until(|event| matches!(event, Event::Notice { .. })).await;
    team.providers[1].push(Answer::text("done"));
    assert!(team.run.handle.tell(Command::Pin { arm: Some(name("other")) }));
    team.run.until(|event| matches!(event, Event::Notice { .. })).await;
    team.run.say("fix the parser");
    assert_eq!(said(&team.run.until_idle().await), ["fix the parser", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_lone_arm_is_tried_again_as_ever() {
    let answers = vec![Answer::failing(ErrorKind::Overloaded), Answer::text("done")];
    let mut team = team(vec![member("only", 0.5, 0.1, answers)], Options::default(), Vec::new());
    team.run.say("fix the parser");
    let events = team.run.until_idle().await;
    assert!(events.iter().any(|event| matches!(event, Event::Retrying { .. })));
    assert!(!events.iter().any(|event| matches!(event, Event::Routed(_))), "there was no choice");
    assert_eq!(said(&events), ["fix the parser", "done"]);
}

fn edits() -> FakeTool {
    let mut output = ToolOutput::text("changed");
    output.diff = Some("-a\n+b".into());
    FakeTool::new("edit", Access::Edit, move |_| ToolOutcome::Done(output.clone()))
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_hold_goes_to_the_next_arm_with_the_evidence() {
    let review = Answer::text("{\"holds\": false, \"why\": \"the empty case is missing\"}");
    let cheap = member(
        "cheap",
        0.6,
        0.02,
        vec![Answer::calls(&[("c1", "edit", "{}")]), Answer::text("it is done")],
    );
    let strong = member(
        "strong",
        0.85,
        0.5,
        vec![review, Answer::calls(&[("c2", "edit", "{}")]), Answer::text("now it is")],
    );
    let options = Options { verify: Verify::Reviewer, ..Options::default() };
    let mut team = team(vec![cheap, strong], options, vec![edits()]);
    // What the second attempt is judged by.
    team.providers[0].push(Answer::text("{\"holds\": true, \"why\": \"the case is there\"}"));
    team.run.say("fix the parser");
    let events = team.run.until_idle().await;
    let routed = events.iter().find_map(|event| match event {
        Event::Routed(routing) => Some(routing.clone()),
        _ => None,
    });
    let routed = routed.unwrap();
    assert_eq!((&*routed.kind, &*routed.strategy), ("debug", "cascade"), "{routed:#?}");
    assert_eq!(routed.arms, [name("cheap")]);
    let checks: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Checked { arm, by, passed, .. } => Some((&*arm.model, &**by, *passed)),
            _ => None,
        })
        .collect();
    assert_eq!(checks, [("cheap", "fake/strong", false), ("strong", "fake/cheap", true)]);
    assert_eq!(changes(&events), [("cheap".to_owned(), "strong".to_owned(), false)]);
    let note = said(&events).iter().any(|text| text.contains("the empty case is missing"));
    assert!(note, "{:?}", said(&events));
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_changed_nothing_is_not_checked() {
    let cheap = member("cheap", 0.6, 0.02, vec![Answer::text("there is no such bug")]);
    let strong = member("strong", 0.85, 0.5, Vec::new());
    let mut team = team(vec![cheap, strong], Options::default(), Vec::new());
    team.run.say("fix the parser");
    let events = team.run.until_idle().await;
    assert!(!events.iter().any(|event| matches!(event, Event::Checked { .. })));
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
}

fn used(text: &str, usage: Usage) -> Answer {
    Answer::of(vec![
        Ok(StreamEvent::TextDelta { slot: 0, text: text.into() }),
        Ok(StreamEvent::Usage(usage)),
        Ok(StreamEvent::Stop(StopReason::EndTurn)),
    ])
}

#[tokio::test(start_paused = true)]
async fn every_call_is_paid_by_its_own_price() {
    let usage = Usage { input: 1_000, output: 100, ..Usage::default() };
    let answers = vec![used("one", usage), used("two", usage)];
    let mut team = team(vec![member("only", 0.5, 0.1, answers)], Options::default(), Vec::new());
    let mut sums = Vec::new();
    for _ in 0..2 {
        team.run.say("hello");
        for event in team.run.until_idle().await {
            if let Event::Cost { call_micro_usd, turn_micro_usd, session_micro_usd, .. } = event {
                sums.push((call_micro_usd, turn_micro_usd, session_micro_usd));
            }
        }
    }
    assert_eq!(sums, [(Some(2_000), 2_000, 2_000), (Some(2_000), 2_000, 4_000)]);
    assert!(team.routes.speed(&name("only")).is_some());
}

#[tokio::test(start_paused = true)]
async fn several_arms_answer_and_a_judge_picks() {
    let usage = Usage { input: 10, output: 10, ..Usage::default() };
    for (strategy, last, expected) in [
        (Strategy::Ensemble, Answer::text("{\"best\": 2, \"why\": \"complete\"}"), "second"),
        (Strategy::Synthesis, Answer::text("both in one"), "both in one"),
    ] {
        let is_synthesis = strategy == Strategy::Synthesis;
        let again = |text: &str| is_synthesis.then(|| used(text, usage));
        let mut strong = vec![used("first", usage)];
        strong.extend(again("first, better"));
        strong.push(last);
        let mut other = vec![used("second", usage)];
        other.extend(again("second, better"));
        let members = vec![member("strong", 0.9, 0.1, strong), member("other", 0.5, 0.1, other)];
        let options = Options { strategy, ..Options::default() };
        let mut team = team(members, options, Vec::new());
        team.run.say("what is a monad?");
        let events = team.run.until_idle().await;
        assert_eq!(said(&events), ["what is a monad?", expected]);
        let paid = events.iter().filter(|event| matches!(event, Event::Cost { .. })).count();
        assert_eq!(paid, if is_synthesis { 4 } else { 2 }, "each for itself");
        assert!(events.contains(&Event::State(SessionState::Idle)));
    }
}
