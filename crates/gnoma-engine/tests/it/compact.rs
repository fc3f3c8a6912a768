//! The past in fewer words: on a person's wish or for want of room, and never at a loss.

use std::{sync::Arc, time::Duration};

use gnoma_core::{
    Command, ErrorKind, Event, Message, ModelRef, ModelRequest, Price, Role, StopReason,
    StreamEvent, ToolChoice, ToolOutcome, Usage,
    session::{Outcome, PermissionMode, SessionState},
    store::{Entry, Record, SessionId},
    tool::Access,
};
use gnoma_engine::{
    PersistenceOptions, Routes, connect_arm,
    resume::{self, MeasuredPrefix},
    routing::RoutingPorts,
    tokens,
};
use gnoma_guard::firewall::Connection;
use gnoma_router::{Arm, Router, RouterSettings, Tuning, rules::Roles};
use gnoma_testkit::{Answer, FakeProvider, FakeStore, FakeTool, ScriptedOutcome};
use proptest::prelude::*;

use super::{Run, assert_paired, firewall, history, outcome, spawn, spawn_measured};

/// Longer than a summary of it.
const LONG: &str = "a long story about a parser that reads words one after the other and forgets \
    none of them, told at length so that there is something to shorten";

/// One arm with this window, called `m`.
fn begin(answers: Vec<Answer>, window: Option<u32>) -> Run {
    resumed(answers, window, PersistenceOptions::default(), Vec::new())
}

fn resumed(
    answers: Vec<Answer>,
    window: Option<u32>,
    keeping: PersistenceOptions,
    history: Vec<Arc<Message>>,
) -> Run {
    resumed_measured(answers, window, keeping, (history, None))
}

fn resumed_measured(
    answers: Vec<Answer>,
    window: Option<u32>,
    keeping: PersistenceOptions,
    history: (Vec<Arc<Message>>, Option<MeasuredPrefix>),
) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let firewall = firewall();
    let connection = Connection::new(Arc::clone(&provider) as _, false);
    let price = Price { input: 1_000_000, output: 1_000_000, ..Price::default() };
    let (arm, connection) = connect_arm(connection, "m");
    let arm = Arm { context_window: window, price: Some(price), ..arm };
    let routes = Arc::new(Routes::with_single_arm((arm, connection)));
    let look = FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text(LONG));
    let mode = (PermissionMode::Bypass, false);
    let handle = spawn_measured(routes, firewall, vec![Arc::new(look)], mode, keeping, history);
    Run { handle, provider }
}

fn used(text: &str, usage: Usage) -> Answer {
    Answer::from_events(vec![
        Ok(StreamEvent::TextDelta { slot: 0, text: text.into() }),
        Ok(StreamEvent::Usage(usage)),
        Ok(StreamEvent::Stop(StopReason::EndTurn)),
    ])
}

fn few(input: u64) -> Usage {
    Usage { input, output: 10, ..Usage::default() }
}

/// A turn of two messages, long ones.
async fn talk(run: &mut Run, times: usize) {
    for _ in 0..times {
        run.provider.push(Answer::text(LONG));
        run.say(LONG);
        run.until_idle().await;
    }
}

/// `times` questions and answers, long ones.
fn long_past(times: usize, text: &str) -> Vec<Arc<Message>> {
    let turn = |number: usize| {
        let answer = Message::assistant(vec![gnoma_core::Content::from_text(text)], None, None);
        [Message::user_text(format!("{number}: {text}")), answer.unwrap()]
    };
    (0..times).flat_map(turn).map(Arc::new).collect()
}

/// What the conversation fills is what its provider counted, also after it was resumed.
#[tokio::test(start_paused = true)]
async fn resumed_session_compacts_if_the_provider_count_fills_its_window() {
    let past = long_past(200, LONG);
    let answers = || vec![Answer::text("the past in short"), used("on it", few(9))];
    let usage = Usage { input: 189_900, output: 100, ..Usage::default() };
    let full = MeasuredPrefix { usage, messages: past.len() };
    for (measured, compacts) in [(Some(full), 1), (None, 0)] {
        let history = (past.clone(), measured);
        let mut run =
            resumed_measured(answers(), Some(200_000), PersistenceOptions::default(), history);
        run.say("go on");
        let events = run.until_idle().await;
        assert_eq!(compacted(&events).len(), compacts, "{measured:?}");
    }
}

/// A past longer than one question is told in parts, and nothing that was said is left out.
#[tokio::test(start_paused = true)]
async fn long_history_is_summarized_in_parts_during_compaction() {
    let past = long_past(40, "a word of many ".repeat(100).trim());
    let answers = (0..40).map(|_| Answer::text("a part in short")).collect();
    let mut run = resumed(answers, Some(16_000), PersistenceOptions::default(), past.clone());
    wish(&run, "");
    let events = run.until_idle().await;
    assert_eq!(compacted(&events).len(), 1, "{events:?}");
    let asked: String =
        run.provider.requests().iter().map(|request| request.messages[0].text_content()).collect();
    let told = compacted(&events)[0].1;
    let missing = past[..told].iter().find(|message| !asked.contains(&message.text_content()));
    assert_eq!(missing.map(|message| message.text_content().len()), None);
    assert!(run.provider.requests().len() > 3, "{}", run.provider.requests().len());
    let last = run.provider.requests().last().unwrap().messages[0].text_content();
    assert!(last.contains("[what happened] a part in short"), "{last}");
}

fn wish(run: &Run, focus: &str) {
    assert!(run.handle.send_command(Command::Compact { focus: focus.into() }));
}

fn notices(events: &[Event]) -> Vec<&str> {
    let mut texts = Vec::new();
    for event in events {
        if let Event::Notice { text, .. } = event {
            texts.push(text.as_str());
        }
    }
    texts
}

fn compacted(events: &[Event]) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    for event in events {
        if let Event::Compacted { summary, messages } = event {
            // What the person said and what was done stands before it.
            let summary = summary.rsplit("## Summary\n").next().unwrap_or_default();
            found.push((summary, *messages));
        }
    }
    found
}

fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    messages.iter().map(|message| message.text_content()).collect()
}

fn size(messages: &[Arc<Message>]) -> usize {
    let size = |message: &Arc<Message>| {
        let results: usize =
            message.tool_results().map(|it| tokens::estimate(&it.joined_text())).sum();
        tokens::estimate(&message.text_content()) + results
    };
    messages.iter().map(size).sum()
}

fn assert_legal(messages: &[Arc<Message>]) {
    assert_paired(messages);
    assert!(messages.first().is_some_and(|first| first.role() == Role::User));
}

fn last_request(run: &Run) -> ModelRequest {
    run.provider.requests().pop().expect("something was asked")
}

#[tokio::test(start_paused = true)]
async fn compact_command_replaces_the_history_with_a_summary() {
    let mut run = begin(Vec::new(), None);
    talk(&mut run, 5).await;
    let before = last_request(&run).messages;
    run.provider.push(used("It was about a parser.", few(90)));
    wish(&run, "the parser's name");
    let events = run.until_idle().await;
    assert_eq!(events[0], Event::State(SessionState::Active));
    assert_eq!(compacted(&events), [("It was about a parser.", 4)]);
    let usage = Event::Usage { round: few(90), turn: few(90) };
    let paid = |event: &Event| matches!(event, Event::Cost { call_micro_usd: Some(100), .. });
    assert!(events.contains(&usage) && events.iter().any(paid), "{events:?}");

    let asked = last_request(&run);
    assert!(asked.tools.is_empty() && asked.tool_choice == ToolChoice::None);
    let question = asked.messages[0].text_content();
    assert!(question.contains("the parser's name") && question.contains(LONG), "{question}");

    run.provider.push(Answer::text("fine"));
    run.say("go on");
    run.until_idle().await;
    let after = last_request(&run).messages;
    assert_legal(&after);
    assert_eq!(after.len(), 1 + 6 + 1, "the summary, what stays, what was said");
    assert!(after[0].text_content().contains("It was about a parser."));
    assert_eq!(after[1..6], before[4..], "what stays is the very same");
    // Headings take some room, too.
    assert!(size(&after) < size(&before) + 64);
}

#[tokio::test(start_paused = true)]
async fn second_compaction_summarizes_the_first_summary() {
    let mut run = begin(Vec::new(), None);
    for (said, messages) in [("first words", 4), ("second words", 14)] {
        talk(&mut run, 5).await;
        run.provider.push(Answer::text(said));
        wish(&run, "");
        assert_eq!(compacted(&run.until_idle().await), [(said, messages)]);
    }
    assert!(last_request(&run).messages[0].text_content().contains("first words"));
    talk(&mut run, 1).await;
    let asked = texts(&last_request(&run).messages);
    assert_eq!(asked.len(), 1 + 6 + 1);
    assert!(asked[0].contains("second words") && !asked.concat().contains("first words"));
}

#[tokio::test(start_paused = true)]
async fn compact_of_a_short_conversation_does_nothing() {
    let mut run = begin(Vec::new(), None);
    for _ in 0..2 {
        wish(&run, "");
        let events = run.until(|event| matches!(event, Event::Notice { .. })).await;
        assert!(notices(&events)[0].contains("nothing to compact"), "{events:?}");
        talk(&mut run, 1).await;
        while run.handle.try_next_event().is_some() {}
    }
    assert_eq!(run.provider.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn compact_command_is_rejected_during_a_turn() {
    let mut run = begin(vec![Answer::endless_silence()], None);
    run.say("go");
    run.until(|event| matches!(event, Event::RoundStarted { .. })).await;
    wish(&run, "");
    let events = run.until(|event| matches!(event, Event::Notice { .. })).await;
    assert!(notices(&events)[0].contains("during a turn"), "{events:?}");
    run.handle.send_command(Command::Cancel);
    assert_eq!(outcome(&run.until_idle().await), Outcome::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn failed_compaction_leaves_the_history_unchanged() {
    let longer = "and then ".repeat(2_000);
    for answer in [
        Answer::from_error(ErrorKind::Overloaded),
        Answer::text("  "),
        Answer::text(longer),
        Answer::calls(&[("c", "look", "{}")]),
        Answer::endless_silence(),
    ] {
        let mut run = begin(Vec::new(), None);
        talk(&mut run, 3).await;
        run.provider.push(answer);
        wish(&run, "");
        let events = run.until_idle().await;
        assert!(compacted(&events).is_empty());
        let told = notices(&events);
        assert!(told.len() == 1 && told[0].contains("could not compact"), "{told:?}");
        assert!(told[0].contains("/compact"), "{told:?}");
        talk(&mut run, 1).await;
        assert_eq!(last_request(&run).messages.len(), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_compaction_changes_nothing_and_answers_queued_messages() {
    let mut run = begin(Vec::new(), None);
    talk(&mut run, 3).await;
    run.provider.push(Answer::endless_silence());
    wish(&run, "");
    run.until(|event| *event == Event::State(SessionState::Active)).await;
    run.say("and now?");
    wish(&run, "");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(run.provider.open_streams(), 1);
    run.provider.push(Answer::text("done"));
    run.handle.send_command(Command::Cancel);
    let events = run.until_idle().await;
    assert!(compacted(&events).is_empty());
    assert!(
        notices(&events)
            .iter()
            .any(|text| text.contains("unchanged") || text.contains("nothing changed")),
        "{events:?}"
    );
    assert_eq!(texts(&history(&run.until_idle().await)), ["and now?", "done"]);
    assert_eq!(run.provider.open_streams(), 0);
    assert_eq!(last_request(&run).messages.len(), 7);
}

#[tokio::test(start_paused = true)]
async fn message_sent_during_compaction_waits_for_the_summary() {
    let mut run = begin(Vec::new(), None);
    talk(&mut run, 4).await;
    run.provider.push(Answer::text("in short").with_event_delay(Duration::from_secs(5)));
    run.provider.push(Answer::text("done"));
    wish(&run, "");
    run.say("and now?");
    assert_eq!(compacted(&run.until_idle().await).len(), 1);
    assert_eq!(texts(&history(&run.until_idle().await)), ["and now?", "done"]);
    assert!(last_request(&run).messages[0].text_content().contains("in short"));
}

#[tokio::test(start_paused = true)]
async fn compaction_uses_the_small_model_and_falls_back_to_the_last_one() {
    let firewall = firewall();
    let name = |model: &str| ModelRef { provider: "fake".into(), model: model.into() };
    let roles = Roles { small: Some(name("small")), ..Roles::default() };
    let settings = RouterSettings {
        roles,
        strategy: gnoma_router::Strategy::Single,
        pinned: Some(name("large")),
        ..RouterSettings::default()
    };
    let routes =
        Arc::new(Routes::new(Router::new(Tuning::default()), settings, RoutingPorts::default()));
    let [large, small] = [(); 2].map(|()| Arc::new(FakeProvider::default()));
    let arm = |model: &str, provider: &Arc<FakeProvider>| {
        let provider = Connection::new(Arc::clone(provider) as _, false);
        let (arm, connection) = connect_arm(provider, model);
        (Arm { host: model.into(), ..arm }, connection)
    };
    routes.set_arms([arm("large", &large), arm("small", &small)]);
    let mode = (PermissionMode::Bypass, false);
    let none = PersistenceOptions::default();
    let handle = spawn(routes, Arc::clone(&firewall), Vec::new(), mode, none, Vec::new());
    let mut run = Run { handle, provider: Arc::clone(&large) };
    for (small_answers, words) in
        [(Answer::text("by small"), "by small"), (Answer::from_error(ErrorKind::Auth), "by large")]
    {
        talk(&mut run, 4).await;
        small.push(small_answers);
        wish(&run, "");
        if words == "by large" {
            large.push(Answer::text(words));
        }
        assert_eq!(compacted(&run.until_idle().await)[0].0, words);
    }
}

/// Messages of so many tokens that a summary of them is worth its while.
fn much() -> String {
    "many words of a story ".repeat(1_400)
}

#[tokio::test(start_paused = true)]
async fn auto_compaction_runs_when_the_context_window_is_almost_full() {
    let mut run = begin(Vec::new(), Some(40_000));
    // What is said counts, too, before any provider has.
    for tokens in [10_000, 16_000, 26_991] {
        run.provider.push(used("yes", few(tokens)));
        run.say(&much());
        assert!(compacted(&run.until_idle().await).is_empty());
    }
    run.provider.push(Answer::text("in short"));
    run.provider.push(used("and done", few(500)));
    run.say("go on");
    let events = run.until_idle().await;
    assert_eq!(compacted(&events), [("in short", 4)], "{events:?}");
    let sent = last_request(&run).messages;
    assert_legal(&sent);
    assert_eq!(texts(&sent)[3], "go on");
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    talk(&mut run, 1).await;
    assert_eq!(run.provider.requests().len(), 3 + 2 + 1, "once is enough");
}

#[tokio::test(start_paused = true)]
async fn auto_compaction_within_a_turn_continues_the_turn() {
    let mut run = begin(Vec::new(), Some(40_000));
    run.provider.push(used("yes", few(100)));
    run.say(&much());
    run.until_idle().await;
    let mut calls = Answer::calls(&[("c", "look", "{}")]);
    let last = calls.events.pop().unwrap();
    calls.events.extend([Ok(StreamEvent::Usage(few(30_000))), last]);
    run.provider.push(calls);
    run.provider.push(Answer::text("in short"));
    run.provider.push(Answer::text("done"));
    run.say(&much());
    let events = run.until_idle().await;
    assert_eq!(compacted(&events).len(), 1, "{events:?}");
    let sent = last_request(&run).messages;
    assert_legal(&sent);
    assert!(sent.last().is_some_and(|last| last.role() == Role::Tool), "{sent:?}");
    let Some(Event::TurnEnded { usage, .. }) = events.iter().rev().nth(1) else { panic!() };
    // The summary and the last answer report nothing, and gnoma counts them.
    assert!(usage.input > 30_000, "{usage:?}");
}

#[tokio::test(start_paused = true)]
async fn context_overflow_compacts_and_retries_once() {
    let mut run = begin(Vec::new(), None);
    talk(&mut run, 4).await;
    run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
    run.provider.push(Answer::text("in short"));
    run.provider.push(Answer::text("done"));
    run.say("go on");
    let events = run.until_idle().await;
    assert_eq!(texts(&history(&events)), ["go on", "done"]);
    assert_eq!(compacted(&events).len(), 1);
    let rounds = events.iter().filter(|event| matches!(event, Event::RoundStarted { .. })).count();
    assert_eq!(rounds, 1);

    run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
    run.provider.push(Answer::text("shorter"));
    run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
    run.say("go on");
    let events = run.until_idle().await;
    assert_eq!(compacted(&events).len(), 1);
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!(error.kind, ErrorKind::ContextTooLong);
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_turn_cancels_its_compaction() {
    let mut run = begin(Vec::new(), None);
    talk(&mut run, 4).await;
    run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
    run.provider.push(Answer::endless_silence());
    run.say("go on");
    run.until(|event| matches!(event, Event::Notice { .. })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    run.handle.send_command(Command::Cancel);
    assert_eq!(outcome(&run.until_idle().await), Outcome::Cancelled);
    assert_eq!(run.provider.open_streams(), 0);
    talk(&mut run, 1).await;
    assert_eq!(last_request(&run).messages.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn compaction_without_a_summary_drops_the_old_messages() {
    let mut run = begin(Vec::new(), None);
    talk(&mut run, 4).await;
    let mut told = Vec::new();
    // After three failures no summary is asked for.
    for asked in [3, 3, 3, 2] {
        let before = run.provider.requests().len();
        run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
        if asked == 3 {
            run.provider.push(Answer::text(""));
        }
        run.provider.push(Answer::text("done"));
        run.say("go on");
        let events = run.until_idle().await;
        told.extend(notices(&events).into_iter().map(str::to_owned));
        assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{events:?}");
        assert_eq!(compacted(&events).len(), 1);
        assert_eq!(run.provider.requests().len() - before, asked);
        let sent = last_request(&run).messages;
        assert_legal(&sent);
        assert!(sent[0].text_content().contains(LONG), "what was said stays: {sent:?}");
    }
    assert!(told.iter().any(|text| text.contains("will not retry by itself")), "{told:?}");
    run.provider.push(Answer::text("in short"));
    wish(&run, "");
    assert_eq!(compacted(&run.until_idle().await), [("in short", 12)]);
}

fn storing(store: &FakeStore, session: Option<SessionId>) -> PersistenceOptions {
    PersistenceOptions {
        store: Some((Arc::new(store.clone()), session)),
        ..PersistenceOptions::default()
    }
}

fn summaries(path: &[Entry]) -> usize {
    path.iter().filter(|entry| matches!(entry.record, Record::Summary { .. })).count()
}

#[tokio::test(start_paused = true)]
async fn resumed_session_starts_from_its_summary_and_can_compact_again() {
    let store = FakeStore::default();
    let mut run = resumed(Vec::new(), None, storing(&store, None), Vec::new());
    talk(&mut run, 5).await;
    let session = store.session_ids().remove(0);
    for words in ["first words", "second words"] {
        run.handle.send_command(Command::Close);
        run.until(|event| *event == Event::State(SessionState::Closed)).await;
        let past = resume::rebuild_history(&store.path_to_tip(&session));
        let keeping = storing(&store, Some(session.clone()));
        run = resumed(vec![Answer::text(words)], None, keeping, past.clone());
        wish(&run, "");
        assert_eq!(compacted(&run.until_idle().await).len(), 1);
        let now = resume::rebuild_history(&store.path_to_tip(&session));
        assert!(now[0].text_content().contains(words));
        assert_eq!(now[1..], past[past.len() + 1 - now.len()..]);
        assert!(now.len() < past.len());
    }
    assert_eq!(summaries(&store.path_to_tip(&session)), 2);
}

#[tokio::test(start_paused = true)]
async fn compaction_while_the_store_fails_keeps_the_whole_stored_conversation() {
    let fails = |at: usize| at > 12 && at < 40;
    let store = FakeStore::with_failures(move |at| {
        if fails(at) {
            ScriptedOutcome::Fails(gnoma_core::store::StoreErrorKind::Full)
        } else {
            ScriptedOutcome::Works
        }
    });
    let mut run = resumed(Vec::new(), None, storing(&store, None), Vec::new());
    let mut said = 0;
    while store.call_count() <= 13 {
        talk(&mut run, 1).await;
        said += 1;
    }
    run.provider.push(Answer::text("in short"));
    wish(&run, "");
    assert_eq!(compacted(&run.until_idle().await).len(), 1);
    while store.call_count() <= 41 {
        talk(&mut run, 1).await;
        said += 1;
    }
    talk(&mut run, 1).await;
    let path = store.path_to_tip(&store.session_ids()[0]);
    assert_eq!((summaries(&path), resume::rebuild_history(&path).len()), (0, 2 * (said + 1)));
}

/// What a person does.
#[derive(Clone, Debug)]
enum Deed {
    /// Says something, upon which so many rounds of calls follow.
    Talk(u8),
    /// Says something for which the window is too small.
    TalkTooLong,
    Compact,
    /// Ends the program and continues the session.
    Resume,
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        4 => (0..5_u8).prop_map(Deed::Talk),
        1 => Just(Deed::TalkTooLong),
        2 => Just(Deed::Compact),
        1 => Just(Deed::Resume),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn compaction_never_loses_or_duplicates_messages_and_requests_stay_valid(
        deeds in prop::collection::vec(deed(), 1..14),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(live(deeds));
    }
}

/// Does all of it, and looks at what is sent and what is kept after each deed.
async fn live(deeds: Vec<Deed>) {
    let store = FakeStore::default();
    let mut run = resumed(Vec::new(), None, storing(&store, None), Vec::new());
    let mut log: Vec<Arc<Message>> = Vec::new();
    for (number, deed) in deeds.into_iter().enumerate() {
        let session = store.session_ids().pop();
        let path =
            || session.as_ref().map(|session| store.path_to_tip(session)).unwrap_or_default();
        match deed {
            Deed::Talk(rounds) => {
                for round in 0..rounds {
                    let [a, b] = ["a", "b"].map(|file| format!("{{\"{file}\": {number}{round}}}"));
                    run.provider.push(Answer::calls(&[("a", "look", &a), ("b", "look", &b)]));
                }
                run.provider.push(Answer::text(format!("answer {number}: {LONG}")));
                run.say(&format!("wish {number}: {LONG}"));
                log.extend(history(&run.until_idle().await));
                let mut told = last_request(&run).messages;
                assert_legal(&told);
                told.extend(log.last().cloned());
                let session = store.session_ids().pop().expect("it is begun");
                assert_eq!(resume::rebuild_history(&store.path_to_tip(&session)), told);
            }
            Deed::TalkTooLong => {
                run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
                run.provider.push(Answer::text(format!("words {number}")));
                run.provider.push(Answer::text(format!("answer {number}: {LONG}")));
                run.say(&format!("wish {number}: {LONG}"));
                let events = run.until_idle().await;
                log.extend(history(&events));
                let mut told = last_request(&run).messages;
                assert_legal(&told);
                if compacted(&events).is_empty() {
                    assert!(told.len() <= 2, "{events:?}");
                    run = continued(run, &store).await;
                } else {
                    assert!(texts(&told).last().unwrap().starts_with("wish"));
                    told.extend(log.last().cloned());
                }
                assert_eq!(
                    resume::rebuild_history(&store.path_to_tip(&store.session_ids()[0])),
                    told
                );
            }
            Deed::Compact => {
                let before = resume::rebuild_history(&path());
                run.provider.push(Answer::text(format!("words {number}")));
                wish(&run, "");
                let nothing = |event: &Event| notices(std::slice::from_ref(event)) != [""; 0];
                let idle = Event::State(SessionState::Idle);
                let events = run.until(|event| nothing(event) || *event == idle).await;
                let after = resume::rebuild_history(&path());
                if compacted(&events).is_empty() {
                    assert!(before.len() <= 2, "{events:?}");
                    assert_eq!(after, before);
                    // Nobody has asked for the words.
                    run = continued(run, &store).await;
                    continue;
                }
                let stays = after.len() - 1;
                // Headings take some room, too.
                assert!(stays <= 6 && size(&after) < size(&before) + 64);
                assert_eq!(after[1..], before[before.len() - stays..]);
                assert_ne!(after.get(1).map(|first| first.role()), Some(Role::Tool));
            }
            Deed::Resume => run = continued(run, &store).await,
        }
        let said: Vec<_> = path()
            .into_iter()
            .filter_map(|entry| match entry.record {
                Record::Message(message) => Some(message),
                _ => None,
            })
            .collect();
        assert_eq!(said, log[..said.len()], "the log itself is never edited");
    }
}

async fn continued(mut run: Run, store: &FakeStore) -> Run {
    run.handle.send_command(Command::Close);
    run.until(|event| *event == Event::State(SessionState::Closed)).await;
    let session = store.session_ids().pop();
    let past = session.as_ref().map(|session| resume::rebuild_history(&store.path_to_tip(session)));
    resumed(Vec::new(), None, storing(store, session), past.unwrap_or_default())
}
