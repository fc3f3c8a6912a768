//! What a session keeps: before anything it causes, whatever fails, and never in the way.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gnoma_core::{
    Command, ErrorKind, Event, Message, Role, Tool, ToolOutcome,
    session::{NoticeLevel, Outcome, PermissionAnswer, PermissionMode, SessionState},
    store::{Durability, Entry, Record, SessionId, StoreErrorKind},
    tool::{Access, ToolKind},
};
use gnoma_engine::{CheckpointFailurePolicy, PersistenceOptions, resume};
use gnoma_testkit::{
    Answer, FakeCheckpoints, FakeProvider, FakeResultStore, FakeStore, FakeTool, ScriptedOutcome,
};
use proptest::prelude::*;

use super::{Run, assert_paired, history, outcome, start_keeping};

/// More calls of the store than a session of one [`turn`] makes.
const MAX_CALLS: usize = 24;

/// Longer than any port is waited for.
const LONGER_THAN_PATIENCE: Duration = Duration::from_secs(300);

fn storing(store: &FakeStore) -> PersistenceOptions {
    continuing(store, None)
}

fn continuing(store: &FakeStore, session: Option<SessionId>) -> PersistenceOptions {
    PersistenceOptions {
        store: Some((Arc::new(store.clone()), session)),
        ..PersistenceOptions::default()
    }
}

fn checkpointing(files: &FakeCheckpoints) -> PersistenceOptions {
    PersistenceOptions {
        checkpoints: Some(Arc::new(files.clone())),
        ..PersistenceOptions::default()
    }
}

fn large_results(results: &FakeResultStore) -> PersistenceOptions {
    PersistenceOptions {
        result_store: Some(Arc::new(results.clone())),
        ..PersistenceOptions::default()
    }
}

fn tool(name: &str, access: Access) -> FakeTool {
    FakeTool::new(name, access, |_| ToolOutcome::success_text("done"))
}

/// A turn with two rounds of calls and an answer.
fn turn() -> Vec<Answer> {
    vec![
        Answer::calls(&[("a", "write", "{}"), ("b", "look", "{}")]),
        Answer::calls(&[("a", "look", "{}"), ("b", "look", "{}")]),
        Answer::text("fine"),
    ]
}

fn begin(answers: Vec<Answer>, tools: Vec<FakeTool>, keeping: PersistenceOptions) -> Run {
    resumed(answers, tools, keeping, Vec::new())
}

fn resumed(
    answers: Vec<Answer>,
    tools: Vec<FakeTool>,
    keeping: PersistenceOptions,
    history: Vec<Arc<Message>>,
) -> Run {
    let provider = Arc::new(FakeProvider::new(answers));
    let tools = tools.into_iter().map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect();
    start_keeping(provider, tools, (PermissionMode::Bypass, false), keeping, history)
}

fn both() -> Vec<FakeTool> {
    vec![tool("write", Access::Edit), tool("look", Access::Read)]
}

fn messages(path: &[Entry]) -> Vec<Arc<Message>> {
    let message = |entry: &Entry| match &entry.record {
        Record::Message(message) => Some(Arc::clone(message)),
        _ => None,
    };
    path.iter().filter_map(message).collect()
}

/// The warnings about what is not kept.
fn warnings(events: &[Event]) -> Vec<&str> {
    let mut texts = Vec::new();
    for event in events {
        if let Event::Notice { level: NoticeLevel::Warning, text } = event {
            texts.push(text.as_str());
        }
    }
    texts
}

fn assert_sendable(history: &[Arc<Message>]) {
    assert_paired(history);
    assert!(history.first().is_none_or(|first| first.role() == Role::User));
}

impl Run {
    /// Closes the session and gives its last events.
    async fn close(&mut self) -> Vec<Event> {
        self.handle.send_command(Command::Close);
        self.until(|event| *event == Event::State(SessionState::Closed)).await
    }

    /// A turn, with what is told right after it.
    async fn turn(&mut self, said: &str) -> Vec<Event> {
        self.say(said);
        let mut events = self.until_idle().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
        while let Some(event) = self.handle.try_next_event() {
            events.push(event);
        }
        events
    }
}

#[tokio::test(start_paused = true)]
async fn message_is_stored_before_its_model_request_or_tool_call() {
    let provider = Arc::new(FakeProvider::new(turn()));
    let (write, look) = (tool("write", Access::Edit), tool("look", Access::Read));
    let (asked, ran) = (Arc::clone(&provider), [write.clone(), look.clone()]);
    let checked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&checked);
    let store = FakeStore::default().with_watcher(move |record| {
        let Record::Message(message) = record else { return };
        let round = seen.fetch_add(1, Ordering::SeqCst);
        let calls: usize = ran.iter().map(|tool| tool.calls().len()).sum();
        // Said, called, answered, called, answered, said.
        assert_eq!(asked.requests().len(), [0, 1, 1, 2, 2, 3][round], "{message:?}");
        assert_eq!(calls, [0, 0, 2, 2, 4, 4][round], "{message:?}");
    });
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(write), Arc::new(look)];
    let mode = (PermissionMode::Bypass, false);
    let mut run = start_keeping(provider, tools, mode, storing(&store), Vec::new());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(store.call_count(), 0, "nothing is kept of a session in which nothing is said");
    let events = run.turn("go").await;
    assert!(warnings(&events).is_empty(), "{events:?}");
    assert_eq!(checked.load(Ordering::SeqCst), 6);
    let session = &store.session_ids()[0];
    assert_eq!(messages(&store.path_to_tip(session)), history(&events));
    assert_eq!(store.last_durability(), Some(Durability::Disk));
    assert!(store.is_held(session));
    run.close().await;
    assert!(!store.is_held(session));
    assert!(store.call_count() < MAX_CALLS);
}

#[tokio::test(start_paused = true)]
async fn session_log_records_routing_permissions_and_checkpoints_in_order() {
    let store = FakeStore::default();
    let files = FakeCheckpoints::default();
    let keeping = PersistenceOptions { checkpoints: Some(Arc::new(files)), ..storing(&store) };
    let mut run = begin(turn(), both(), keeping);
    run.turn("go").await;
    run.close().await;
    let path = store.path_to_tip(&store.session_ids()[0]);
    let kinds: Vec<_> = path
        .iter()
        .map(|entry| match &entry.record {
            Record::Message(message) => match message.role() {
                Role::User => "said",
                Role::Assistant => "answer",
                Role::Tool => "results",
            },
            Record::Routed { .. } => "routed",
            Record::Judged { .. } => "judged",
            Record::ToolEnded(_) => "ended",
            Record::Asked { .. } => "asked",
            Record::Checkpoint { .. } => "files",
            other => panic!("{other:?}"),
        })
        .collect();
    // A call ends beside the judging of the next one: only that it is before the results is certain.
    let ended: Vec<_> = kinds.iter().take_while(|kind| **kind != "results").collect();
    assert!(ended.contains(&&"ended"), "{kinds:?}");
    let others: Vec<_> = kinds.into_iter().filter(|kind| *kind != "ended").collect();
    let first = ["said", "routed", "answer", "judged", "files", "judged", "results"];
    let rest = ["routed", "answer", "judged", "judged", "results", "routed", "answer", "files"];
    assert_eq!(others, [&first[..], &rest[..]].concat());
}

#[tokio::test(start_paused = true)]
async fn tool_result_is_stored_before_the_next_call_runs() {
    let store = FakeStore::default();
    let (kept, seen) = (store.clone(), Arc::new(OnceLock::new()));
    let by_then = Arc::clone(&seen);
    let first = FakeTool::new("write", Access::Edit, |_| ToolOutcome::success_text("one"));
    let second = FakeTool::new("run", Access::Execute, move |_| {
        let path = kept.path_to_tip(&kept.session_ids()[0]);
        by_then.set(path.into_iter().map(|entry| entry.record).collect::<Vec<_>>()).unwrap();
        ToolOutcome::success_text("two")
    });
    let answers =
        vec![Answer::calls(&[("a", "write", "{}"), ("b", "run", "{}")]), Answer::text("fine")];
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(first), Arc::new(second)];
    let provider = Arc::new(FakeProvider::new(answers));
    let mode = (PermissionMode::Bypass, false);
    let mut run = start_keeping(provider, tools, mode, storing(&store), Vec::new());
    run.turn("go").await;
    let then = seen.get().unwrap();
    let ended = then.iter().find_map(|record| match record {
        Record::ToolEnded(result) => Some((result.call_id.as_str(), result.joined_text())),
        _ => None,
    });
    assert_eq!(ended, Some(("a", "one".to_owned())));
    // What has begun is known, too.
    let is_second =
        |record: &Record| matches!(record, Record::Judged { call, .. } if call.as_str() == "b");
    assert!(then.iter().any(is_second), "{then:?}");
    // The last result comes with the message of all.
    let path = store.path_to_tip(&store.session_ids()[0]);
    let ended = path.iter().filter(|entry| matches!(entry.record, Record::ToolEnded(_)));
    assert_eq!(ended.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn permission_question_and_answer_are_stored_before_they_take_effect() {
    let store = FakeStore::default();
    let kept = store.clone();
    let last = move || {
        let path = kept.path_to_tip(&kept.session_ids()[0]);
        path.last().map(|entry| entry.record.clone()).unwrap()
    };
    let (seen, by_then) = (Arc::new(OnceLock::new()), last.clone());
    let ran = Arc::clone(&seen);
    let write = FakeTool::new("write", Access::Edit, move |_| {
        ran.set(by_then()).unwrap();
        ToolOutcome::success_text("done")
    });
    let answers = vec![Answer::calls(&[("a", "write", "{}")]), Answer::text("fine")];
    let mode = (PermissionMode::Auto, true);
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(write)];
    let provider = Arc::new(FakeProvider::new(answers));
    let mut run = start_keeping(provider, tools, mode, storing(&store), Vec::new());
    run.say("go");
    let events = run.until(|event| matches!(event, Event::PermissionAsked { .. })).await;
    let Some(Event::PermissionAsked { call, .. }) = events.last() else { panic!("{events:?}") };
    let call = call.id.clone();
    assert_eq!(last(), Record::Asked { call: call.clone() });
    assert!(seen.get().is_none());
    run.handle
        .send_command(Command::Answer { call: call.clone(), answer: PermissionAnswer::Allow });
    run.until_idle().await;
    let Some(Record::Judged { call: judged, allowed: true, .. }) = seen.get() else {
        panic!("{seen:?}")
    };
    assert_eq!(*judged, call);
}

#[tokio::test(start_paused = true)]
async fn hanging_store_delays_the_request_until_a_timeout() {
    let store = FakeStore::with_failures(|_| ScriptedOutcome::Hangs);
    let mut run = begin(turn(), both(), storing(&store));
    run.say("go");
    let waited = tokio::time::timeout(Duration::from_secs(5), run.until_idle()).await;
    assert!(waited.is_err() && run.provider.requests().is_empty());
    let events = run.until_idle().await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    assert_eq!(run.provider.requests().len(), 3);
}

/// How a session can go wrong at one call of its store.
fn failures() -> [ScriptedOutcome; 8] {
    use StoreErrorKind::{Busy, Damaged, Full, Io, NotFound, ReadOnly};
    let [full, read_only, busy] = [Full, ReadOnly, Busy].map(ScriptedOutcome::Fails);
    let [damaged, gone] = [Damaged, NotFound].map(ScriptedOutcome::Fails);
    [
        full,
        read_only,
        busy,
        damaged,
        gone,
        ScriptedOutcome::FailsAfter(Io),
        ScriptedOutcome::HangsAfter,
        ScriptedOutcome::Panics,
    ]
}

#[tokio::test(start_paused = true)]
async fn store_failure_never_stops_a_turn() {
    for fate in failures() {
        for nth in 0..MAX_CALLS {
            let fails = fate.clone();
            let store = FakeStore::with_failures(move |at| {
                if at >= nth { fails.clone() } else { ScriptedOutcome::Works }
            });
            let mut run = begin(turn(), both(), storing(&store));
            let events = run.turn("go").await;
            assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{fate:?} at {nth}");
            assert_eq!(history(&events).len(), 6);
            let mut told = warnings(&events).len();
            let closing = tokio::time::timeout(LONGER_THAN_PATIENCE, run.close()).await;
            told += warnings(&closing.expect("the session does not close")).len();
            assert!(told <= 1, "{fate:?} at {nth}: {events:?}");
            let reached = store.call_count() > nth;
            assert!(told == 1 || !reached || nth + 2 >= store.call_count(), "{fate:?} at {nth}");
            for session in store.session_ids() {
                let path = store.path_to_tip(&session);
                assert_sendable(&resume::rebuild_history(&path));
                assert!(history(&events).starts_with(&messages(&path)), "{fate:?} at {nth}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn entries_unsaved_by_a_store_failure_are_stored_later() {
    for fate in [
        ScriptedOutcome::Fails(StoreErrorKind::Full),
        ScriptedOutcome::FailsAfter(StoreErrorKind::Busy),
    ] {
        // The beginning itself is not done twice in one turn, and what it left stays empty.
        for nth in 2..2 * MAX_CALLS {
            let fails = fate.clone();
            let store = FakeStore::with_failures(move |at| {
                if at == nth { fails.clone() } else { ScriptedOutcome::Works }
            });
            let mut run = begin([turn(), turn()].concat(), both(), storing(&store));
            let events = [run.turn("go").await, run.turn("again").await].concat();
            run.close().await;
            let path = store.path_to_tip(&store.session_ids()[0]);
            assert_eq!(messages(&path), history(&events), "{fate:?} at {nth}");
            assert!(warnings(&events).len() <= 1);
        }
    }
}

fn fate() -> impl Strategy<Value = ScriptedOutcome> {
    use StoreErrorKind::{Busy, Full, Io, ReadOnly};
    prop_oneof![
        4 => Just(ScriptedOutcome::Works),
        1 => Just(ScriptedOutcome::Fails(Full)),
        1 => Just(ScriptedOutcome::Fails(ReadOnly)),
        1 => Just(ScriptedOutcome::FailsAfter(Busy)),
        1 => Just(ScriptedOutcome::FailsAfter(Io)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn store_has_the_whole_conversation_after_any_failures(
        fates in prop::collection::vec(fate(), 0..3 * MAX_CALLS),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(converge(fates));
    }
}

/// Talks until the store works, and then once more.
async fn converge(fates: Vec<ScriptedOutcome>) {
    let failing = fates.len();
    let store = FakeStore::with_failures(move |at| fates.get(at).cloned().unwrap_or_default());
    let mut run = begin([turn(), turn()].concat(), both(), storing(&store));
    let mut events = [run.turn("one").await, run.turn("two").await].concat();
    while store.call_count() <= failing {
        run.provider.push(Answer::text("ok"));
        events.extend(run.turn("more").await);
    }
    run.provider.push(Answer::text("ok"));
    events.extend(run.turn("last").await);
    let paths =
        store.session_ids().into_iter().map(|session| messages(&store.path_to_tip(&session)));
    let said: Vec<_> = paths.filter(|path| !path.is_empty()).collect();
    assert_eq!(said, [history(&events)]);
    assert_eq!(store.last_durability(), Some(Durability::Disk));
}

#[tokio::test(start_paused = true)]
async fn session_locked_by_another_process_is_not_written_again() {
    let held = StoreErrorKind::Held {
        by: gnoma_core::store::Holder { pid: 7, host: "h".into(), since_ms: 0 },
    };
    let store = FakeStore::with_failures(move |_| ScriptedOutcome::Fails(held.clone()));
    let answers = vec![Answer::text("one"), Answer::text("two")];
    let mut run = begin(answers, vec![], storing(&store));
    let events = [run.turn("go").await, run.turn("again").await].concat();
    assert_eq!((warnings(&events).len(), store.call_count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn session_killed_at_any_store_call_can_be_resumed() {
    for fate in [ScriptedOutcome::Hangs, ScriptedOutcome::HangsAfter] {
        for nth in 0..MAX_CALLS {
            let dies = fate.clone();
            let store = FakeStore::with_failures(move |at| {
                if at == nth { dies.clone() } else { ScriptedOutcome::Works }
            });
            let mut run = begin(turn(), both(), storing(&store));
            run.say("go");
            let mut told = Vec::new();
            let life = async {
                while let Some(event) = run.handle.next().await {
                    told.push(event);
                }
            };
            let _killed = tokio::time::timeout(Duration::from_secs(10), life).await;
            drop(run);
            let store = store.without_failures();
            let Some(session) = store.session_ids().pop() else { continue };
            let loaded = resume::rebuild_history(&store.path_to_tip(&session));
            assert_sendable(&loaded);
            // Whatever anybody was told of is there.
            assert!(messages(&store.path_to_tip(&session)).starts_with(&history(&told)), "{nth}");
            let keeping = continuing(&store, Some(session.clone()));
            let mut run = resumed(vec![Answer::text("ok")], both(), keeping, loaded.clone());
            let events = run.turn("go on").await;
            assert!(matches!(outcome(&events), Outcome::Complete { .. }));
            assert_sendable(&run.provider.requests()[0].messages);
            run.close().await;
            let after = resume::rebuild_history(&store.path_to_tip(&session));
            assert_eq!(after, [loaded, history(&events)].concat(), "{fate:?} at {nth}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn failed_and_cancelled_turns_are_stored() {
    let deaf = FakeTool::new_unstoppable("write", Access::Edit);
    let cases = [
        (Answer::from_error(ErrorKind::BadRequest), false),
        (Answer::endless_silence(), true),
        (Answer::calls(&[("a", "write", "{}"), ("b", "write", "{}")]), true),
    ];
    for (answer, cancelled) in cases {
        let store = FakeStore::default();
        let mut run = begin(vec![answer], vec![deaf.clone()], storing(&store));
        run.say("go");
        if cancelled {
            let waiting = tokio::time::timeout(Duration::from_secs(1), run.until(|_| false)).await;
            assert!(waiting.is_err());
            run.handle.send_command(Command::Cancel);
        }
        run.until_idle().await;
        let path = store.path_to_tip(&store.session_ids()[0]);
        assert_eq!(messages(&path), resume::rebuild_history(&path), "nothing is left open");
        assert_eq!(store.last_durability(), Some(Durability::Disk));
    }
}

/// Where the session's id in the store is noted when it is told.
type Told = Arc<OnceLock<SessionId>>;

fn telling(keeping: PersistenceOptions, told: &Told) -> PersistenceOptions {
    let told = Arc::clone(told);
    let begun = Box::new(move |id: &SessionId| told.set(id.clone()).unwrap());
    PersistenceOptions { begun, ..keeping }
}

#[tokio::test(start_paused = true)]
async fn new_session_id_is_announced_before_its_first_entry_is_stored() {
    let past = vec![Arc::new(Message::user_text("before"))];
    let cell = Told::default();
    let told = Arc::clone(&cell);
    let store = FakeStore::default()
        .with_watcher(move |_| assert!(told.get().is_some(), "nobody was told of the session"));
    let keeping = telling(storing(&store), &cell);
    let mut run = resumed(vec![Answer::text("ok")], vec![], keeping, past.clone());
    let events = run.turn("now").await;
    let session = cell.get().unwrap();
    assert_eq!(messages(&store.path_to_tip(session)), [past, history(&events)].concat());
    assert_eq!(store.session_ids(), std::slice::from_ref(session));
}

#[tokio::test(start_paused = true)]
async fn resumed_session_id_is_announced_at_once_and_only_new_entries_stored() {
    let store = FakeStore::default();
    let mut run = begin(vec![Answer::text("ok")], vec![], storing(&store));
    let past = history(&run.turn("now").await);
    run.close().await;
    let session = store.session_ids()[0].clone();
    let told = Told::default();
    let keeping = telling(continuing(&store, Some(session.clone())), &told);
    let mut run = resumed(vec![Answer::text("ok")], vec![], keeping, past.clone());
    assert_eq!(told.get(), Some(&session));
    let events = run.turn("later").await;
    assert_eq!(messages(&store.path_to_tip(&session)), [past, history(&events)].concat());
}

#[tokio::test(start_paused = true)]
async fn session_without_a_store_persists_nothing_and_reads_no_clock() {
    let touched = Arc::new(AtomicUsize::new(0));
    let (begun, clock) = (Arc::clone(&touched), Arc::clone(&touched));
    let keeping = PersistenceOptions {
        begun: Box::new(move |_| {
            begun.fetch_add(1, Ordering::SeqCst);
        }),
        now_ms: Box::new(move || {
            clock.fetch_add(1, Ordering::SeqCst);
            0
        }),
        ..PersistenceOptions::default()
    };
    let mut run = begin(turn(), both(), keeping);
    let events = run.turn("go").await;
    run.close().await;
    assert_eq!((touched.load(Ordering::SeqCst), warnings(&events).len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn checkpoint_is_taken_before_writing_calls_and_after_the_turn() {
    let files = FakeCheckpoints::default().with_delay(Duration::from_secs(2));
    let at_call = files.clone();
    let kept = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&kept);
    let write = FakeTool::new("write", Access::Edit, move |_| {
        seen.store(at_call.labels().len(), Ordering::SeqCst);
        ToolOutcome::success_text("written")
    });
    let mut run = begin(turn(), vec![write, tool("look", Access::Read)], checkpointing(&files));
    run.turn("go").await;
    assert_eq!((kept.load(Ordering::SeqCst), files.prepare_count()), (1, 1));
    run.close().await;
    assert_eq!(files.labels(), ["write", "after the turn"]);
}

#[tokio::test(start_paused = true)]
async fn reading_calls_never_wait_for_a_checkpoint() {
    let files = FakeCheckpoints::with_failures(|_| ScriptedOutcome::Hangs);
    let answers = vec![Answer::calls(&[("a", "look", "{}")]), Answer::text("ok")];
    let mut run = begin(answers, both(), checkpointing(&files));
    let events = run.turn("go").await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
    assert_eq!(files.prepare_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn child_sessions_start_while_a_checkpoint_is_taken() {
    let files = FakeCheckpoints::default().with_delay(Duration::from_secs(2));
    let at_call = files.clone();
    let kept = Arc::new(AtomicUsize::new(usize::MAX));
    let seen = Arc::clone(&kept);
    let start = FakeTool::new("start", Access::Execute, move |_| {
        seen.store(at_call.labels().len(), Ordering::SeqCst);
        ToolOutcome::success_text("started")
    });
    let start = start.of_kind(ToolKind::StartsSessions);
    let answers = || {
        let calls = Answer::calls(&[("a", "start", "{}"), ("b", "write", "{}")]);
        vec![calls, Answer::text("ok")]
    };
    let tools = vec![start, tool("write", Access::Edit)];
    let mut run = begin(answers(), tools.clone(), checkpointing(&files));
    run.turn("go").await;
    assert_eq!(kept.load(Ordering::SeqCst), 0);
    run.close().await;
    assert_eq!(files.labels(), ["start", "write", "after the turn"]);

    // Where nothing may run without, what was started is given up.
    let files = FakeCheckpoints::with_failures(|_| ScriptedOutcome::Fails(StoreErrorKind::Full));
    let keeping =
        PersistenceOptions { unkept: CheckpointFailurePolicy::Refuse, ..checkpointing(&files) };
    let waiting =
        FakeTool::new_stoppable("start", Access::Execute).of_kind(ToolKind::StartsSessions);
    let mut run = begin(answers(), vec![waiting, tools[1].clone()], keeping);
    let events = run.turn("go").await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_checkpoint_blocks_writing_calls_only_with_policy_refuse() {
    let writes = || {
        let one = Answer::calls(&[("a", "write", "{}"), ("b", "write", r#"{"n":2}"#)]);
        vec![one, Answer::text("ok")]
    };
    for (unkept, runs) in [(CheckpointFailurePolicy::Run, 2), (CheckpointFailurePolicy::Refuse, 0)]
    {
        for fate in [
            ScriptedOutcome::Fails(StoreErrorKind::Full),
            ScriptedOutcome::Fails(StoreErrorKind::Io),
        ] {
            let files = FakeCheckpoints::with_failures(move |_| fate.clone());
            let write = tool("write", Access::Edit);
            let keeping = PersistenceOptions { unkept, ..checkpointing(&files) };
            let mut run = begin(writes(), vec![write.clone()], keeping);
            let events = run.turn("go").await;
            assert!(matches!(outcome(&events), Outcome::Complete { .. }));
            assert_eq!((write.calls().len(), warnings(&events).len()), (runs, 1));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn checkpoint_can_be_cancelled_and_may_fail() {
    let files = FakeCheckpoints::with_failures(|_| ScriptedOutcome::Hangs);
    let write = tool("write", Access::Edit);
    let answer = || vec![Answer::calls(&[("a", "write", "{}")]), Answer::text("ok")];
    let mut run = begin(answer(), vec![write.clone()], checkpointing(&files));
    run.say("go");
    run.until(|event| matches!(event, Event::ToolStarted { .. })).await;
    run.handle.send_command(Command::Cancel);
    let events = run.until_idle().await;
    assert_eq!((outcome(&events), write.calls().len()), (Outcome::Cancelled, 0));
    let closing = tokio::time::timeout(LONGER_THAN_PATIENCE, run.close()).await;
    assert!(closing.is_ok(), "what hangs does not keep a session open");

    let files = FakeCheckpoints::with_failures(|_| ScriptedOutcome::Panics);
    let mut run = begin(answer(), vec![write], checkpointing(&files));
    let events = run.turn("go").await;
    assert!(matches!(outcome(&events), Outcome::Complete { .. }));
}

/// Many tokens.
fn large() -> String {
    (0..5_000).map(|n| format!("line {n} of many\n")).collect()
}

/// A session whose tools give `outcome`, and the result of the first call as the model saw it.
async fn result_of(
    keeping: PersistenceOptions,
    called: &str,
    reads: bool,
    outcome: ToolOutcome,
) -> (String, Vec<Event>) {
    let gives = |name| {
        let outcome = outcome.clone();
        FakeTool::new(name, Access::Read, move |_| outcome.clone())
    };
    let mut tools = vec![gives("look")];
    tools.extend(reads.then(|| gives("reads_back").of_kind(ToolKind::ReadsResults)));
    let answers = vec![Answer::calls(&[("a", called, "{}")]), Answer::text("ok")];
    let mut run = begin(answers, tools, keeping);
    let events = run.turn("go").await;
    let messages = history(&events);
    (messages[2].tool_results().next().unwrap().joined_text(), events)
}

#[tokio::test(start_paused = true)]
async fn large_tool_results_are_stored_and_previewed_to_the_model() {
    let results = FakeResultStore::default();
    let done = ToolOutcome::success_text(large());
    let (shown, _) = result_of(large_results(&results), "look", true, done).await;
    assert!(shown.starts_with("line 0 of many\n") && shown.ends_with("line 4999 of many\n"));
    assert!(shown.len() < 8 * 1024 && shown.contains("`r1`: reads_back"), "{shown}");
    assert_eq!(results.results(), [large()]);
}

#[tokio::test(start_paused = true)]
async fn failed_or_reread_large_results_are_not_replaced_by_a_preview() {
    let results = FakeResultStore::default();
    let whole = ToolOutcome::success_text(large());
    let cases = [
        ("look", true, ToolOutcome::failure_text(large())),
        ("reads_back", true, whole.clone()),
        ("look", false, whole),
        ("look", true, ToolOutcome::success_text("x".repeat(7_000))),
    ];
    for (called, reads, outcome) in cases {
        let (shown, _) = result_of(large_results(&results), called, reads, outcome).await;
        assert!(shown.len() >= 7_000, "{called}: {shown}");
    }
    assert!(results.results().is_empty());
}

#[tokio::test(start_paused = true)]
async fn failed_result_store_sends_the_large_result_whole() {
    for fate in [ScriptedOutcome::Fails(StoreErrorKind::Full), ScriptedOutcome::Hangs] {
        let results = FakeResultStore::with_failures(move |_| fate.clone());
        let done = ToolOutcome::success_text(large());
        let (shown, events) = result_of(large_results(&results), "look", true, done).await;
        assert_eq!((shown, warnings(&events).len()), (large(), 1));
    }
}

#[tokio::test(start_paused = true)]
async fn large_result_is_redacted_before_it_is_stored() {
    let token = ["gh", "p_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"].concat();
    let results = FakeResultStore::default();
    let done = ToolOutcome::success_text(format!("{}token: {token}\n{}", large(), large()));
    let (shown, _) = result_of(large_results(&results), "look", true, done).await;
    let kept = results.results().concat();
    assert!(!kept.contains(&token) && kept.contains("{{secret:"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn repeated_tool_calls_are_detected_despite_stored_large_results() {
    let results = FakeResultStore::default();
    let look = FakeTool::new("look", Access::Read, |_| ToolOutcome::success_text(large()));
    let answers: Vec<_> = (0..8).map(|_| Answer::calls(&[("a", "look", "{}")])).collect();
    let reader = tool("reads_back", Access::Read).of_kind(ToolKind::ReadsResults);
    let mut run = begin(answers, vec![look, reader], large_results(&results));
    let events = run.turn("go").await;
    assert!(matches!(outcome(&events), Outcome::Stuck { .. }), "{:?}", outcome(&events));
    assert_eq!(results.results().len(), 1);
}
