//! `tools.compaction` as a whole: what each of its values does when a conversation no longer fits.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use gnoma_core::{
    Command, ErrorKind, Event, Message, ToolOutcome,
    session::{Outcome, PermissionMode},
    tool::{Access, ToolKind, TouchedResource},
};
use gnoma_engine::{
    Limits, PersistenceOptions, Routes, Session, connect_arm, context::Strategy, session::Options,
};
use gnoma_guard::firewall::Connection;
use gnoma_testkit::{Answer, FakeProvider, FakeResultStore, FakeTool};

use super::{Run, assert_paired, firewall, options, outcome};

/// What the person says and the model answers in each turn, long enough to be worth a summary.
const WORDS: &str = "a long story about a parser that reads words one after the other and forgets none of them, told \
                     at length so that there is something to shorten";
const TURNS: usize = 4;

fn begin(strategy: Strategy, tools: Vec<FakeTool>, keeping: PersistenceOptions) -> Run {
    let provider = Arc::new(FakeProvider::new(Vec::new()));
    let arm = connect_arm(Connection::new(Arc::clone(&provider) as _, false), "m");
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as _).collect();
    let routes = Arc::new(Routes::with_single_arm(arm));
    let mode = (PermissionMode::Bypass, false);
    let options = options(routes, firewall(), tools, mode, keeping, (Vec::new(), None));
    let limits = Limits { compaction: strategy, ..options.limits };
    Run { handle: Session::spawn(Options { limits, ..options }), provider }
}

async fn talk(run: &mut Run) {
    for number in 0..TURNS {
        run.provider.push(Answer::text(WORDS));
        run.say(&format!("{number}: {WORDS}"));
        run.until_idle().await;
    }
}

fn summaries(events: &[Event]) -> Vec<String> {
    let of = |event: &Event| match event {
        Event::Compacted { summary, .. } => Some(summary.clone()),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn sent(run: &Run) -> Vec<Arc<Message>> {
    run.provider.requests().pop().unwrap().messages
}

/// What a model would have written is not asked for, also where the window is full again.
#[tokio::test(start_paused = true)]
async fn compaction_by_truncate_drops_oldest_messages_without_a_model_call() {
    let mut run = begin(Strategy::Truncate, Vec::new(), PersistenceOptions::default());
    talk(&mut run).await;
    for _ in 0..2 {
        let asked = run.provider.requests().len();
        run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
        run.provider.push(Answer::text("done"));
        run.say("go on");
        let events = run.until_idle().await;
        assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{events:?}");
        assert_eq!(summaries(&events).len(), 1, "{events:?}");
        assert_eq!(run.provider.requests().len() - asked, 2, "no summary was asked for");
        let sent = sent(&run);
        assert_paired(&sent);
        assert!(sent.len() < 2 * TURNS, "{} messages", sent.len());
        assert!(
            sent[0].text_content().contains("0: a long story"),
            "what was said stays: {sent:?}"
        );
        assert_eq!(sent.last().unwrap().text_content(), "go on");
    }
}

/// Nothing is left out: the turn fails instead, and works once a model can write a summary.
#[tokio::test(start_paused = true)]
async fn compaction_by_summarize_drops_nothing_if_the_summary_fails() {
    let mut run = begin(Strategy::Summarize, Vec::new(), PersistenceOptions::default());
    talk(&mut run).await;
    run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
    run.provider.push(Answer::text(""));
    run.say("go on");
    let events = run.until_idle().await;
    let Outcome::Failed { error, .. } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!(error.kind, ErrorKind::ContextTooLong);
    assert!(summaries(&events).is_empty());

    run.provider.push(Answer::text("later"));
    run.say("and now");
    run.until_idle().await;
    assert_eq!(sent(&run).len(), 2 * TURNS + 2, "everything is still there");

    run.provider.push(Answer::from_error(ErrorKind::ContextTooLong));
    run.provider.push(Answer::text("in short"));
    run.provider.push(Answer::text("done"));
    run.say("go on");
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{events:?}");
    let [summary] = &summaries(&events)[..] else { panic!("{events:?}") };
    assert!(summary.contains("in short"), "{summary}");
}

/// Large results go to the result store, and files that have changed since they were read are read again.
#[tokio::test(start_paused = true)]
async fn compaction_by_full_stores_large_results_and_rereads_changed_files() {
    let has_changed = Arc::new(AtomicBool::new(false));
    let changed = Arc::clone(&has_changed);
    let reads = FakeTool::new("fs.read", Access::Read, move |call| {
        let is_first = call.arguments.get().contains("changes.txt");
        let version = if is_first && changed.load(Ordering::SeqCst) { "second" } else { "first" };
        ToolOutcome::success_text(format!("the {version} version"))
    });
    let reads = reads.with_touches(TouchedResource::Path("path".into()));
    let large = "a line of a long result\n".repeat(200);
    let text = large.clone();
    let looks =
        FakeTool::new("look", Access::Read, move |_| ToolOutcome::success_text(text.clone()));
    let results = FakeTool::new("result.read", Access::Read, |_| ToolOutcome::success_text("part"));
    let results = results.of_kind(ToolKind::ReadsResults);
    let store = FakeResultStore::default();
    let keeping = PersistenceOptions {
        result_store: Some(Arc::new(store.clone())),
        ..PersistenceOptions::default()
    };
    let mut run = begin(Strategy::Full, vec![reads, looks, results], keeping);
    run.provider.push(Answer::calls(&[
        ("c1", "fs.read", r#"{"path":"changes.txt"}"#),
        ("c2", "fs.read", r#"{"path":"stays.txt"}"#),
        ("c3", "look", "{}"),
    ]));
    run.provider.push(Answer::text("I have read them"));
    run.say("read them");
    run.until_idle().await;
    talk(&mut run).await;
    has_changed.store(true, Ordering::SeqCst);

    run.provider.push(Answer::text("in short"));
    assert!(run.handle.send_command(Command::Compact { focus: String::new() }));
    let events = run.until_idle().await;
    let [summary] = &summaries(&events)[..] else { panic!("{events:?}") };
    assert_eq!(store.results(), [large], "{summary}");
    run.provider.push(Answer::text("done"));
    run.say("go on");
    run.until_idle().await;
    let sent: Vec<String> = sent(&run).iter().map(|message| message.text_content()).collect();
    let sent = sent.join("\n");
    assert!(sent.contains("`r1` (result.read reads it): look"), "{sent}");
    assert!(sent.contains("the second version"), "{sent}");
    assert!(!sent.contains("the first version"), "what has not changed is not read back: {sent}");
}
