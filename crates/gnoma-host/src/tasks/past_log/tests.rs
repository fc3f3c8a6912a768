//! A generated store: what is read of it, and how long that takes.

use std::{borrow::Cow, sync::Arc, time::Instant};

use gnoma_core::{
    CallId, Content, Message, RawJson, StopReason, ToolCall, ToolResult,
    store::{Durability, EntryId, NewEntry, NewSession, Parent, Record},
};
use gnoma_extend::tasks::repetition::{PastCall, find_repetition_of, find_repetitions};
use gnoma_store::Options;
use serde_json::{Value, json};

use super::*;

const PROJECT: &str = "/work/project";

fn open(folder: &Path) -> Store {
    let options = Options::new(folder, PROJECT, Arc::new(|_, text| Cow::Borrowed(text)));
    Store::open(options).unwrap().store
}

/// The records of a turn: a message, calls with their results, an answer.
fn turn(message: &str, calls: &[(&str, Value)], is_error: bool) -> Vec<Record> {
    let mut records = vec![Message::user_text(message)];
    for (at, (name, arguments)) in calls.iter().enumerate() {
        let id = CallId::new(format!("c{at}"));
        let call = ToolCall::new(id, *name, RawJson::from_value(arguments).unwrap());
        let result = ToolResult::from_text(&call, "line of output\n".repeat(40), is_error);
        let call = vec![Content::ToolCall(call)];
        records.push(Message::assistant(call, None, Some(StopReason::ToolUse)).unwrap());
        records.push(Message::results(vec![result]).unwrap());
    }
    let answer = vec![Content::from_text("Done.")];
    records.push(Message::assistant(answer, None, Some(StopReason::EndTurn)).unwrap());
    records.into_iter().map(|message| Record::Message(Arc::new(message))).collect()
}

async fn add(store: &Store, session: &SessionId, at_ms: i64, records: Vec<Record>) -> EntryId {
    let entry = |record| {
        let (parent, durability) = (Parent::Tip, Durability::Process);
        NewEntry { session: session.clone(), parent, at_ms, record, durability }
    };
    *store.append_all(records.into_iter().map(entry).collect()).await.unwrap().last().unwrap()
}

fn release(version: &str) -> Vec<Record> {
    let calls = [
        ("fs.edit", json!({"path": format!("{PROJECT}/CHANGELOG.md"), "edits": []})),
        ("bash", json!({"command": format!("git tag {version}")})),
        ("bash", json!({"command": "git status"})),
        ("bash", json!({"command": "git push --follow-tags"})),
    ];
    turn(&format!("release {version}"), &calls, false)
}

#[tokio::test]
async fn task_history_rereads_only_changed_sessions_and_skips_forks() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (open(folder.path()), folder.path().join("read/p.jsonl"));
    let project = Path::new(PROJECT);
    let first = store.begin(NewSession { at_ms: 1, ..NewSession::default() }).await.unwrap();
    let at = add(&store, &first, 1, release("v1")).await;
    let fork = store.fork(first.clone(), at, 2).await.unwrap();
    add(&store, &fork, 3, turn("fail", &[("bash", json!({"command": "make"}))], true)).await;
    let history = read_store(&store, &file, project).await.unwrap();
    assert_eq!(history.len(), 2);
    let own = history.iter().find(|it| it.id == first.as_str()).unwrap();
    let [edit, tag, push] = &own.turns[0].calls[..] else { panic!("{own:?}") };
    assert_eq!(*edit, PastCall::Edit("CHANGELOG.md".to_owned()));
    assert_eq!(*tag, PastCall::Command("git tag v1".to_owned()));
    assert_eq!(*push, PastCall::Command("git push --follow-tags".to_owned()));
    assert!(own.turns[0].ended_well);
    let copy = history.iter().find(|it| it.id == fork.as_str()).unwrap();
    assert_eq!((copy.family.as_str(), copy.turns.len()), (first.as_str(), 1), "{copy:?}");
    assert!(!copy.turns[0].ended_well && copy.turns[0].index == 1, "{copy:?}");

    let before = fs::read_to_string(&file).unwrap();
    add(&store, &fork, 5, release("v2")).await;
    let again = read_store(&store, &file, project).await.unwrap();
    assert_eq!(again.iter().map(|it| it.turns.len()).sum::<usize>(), 3);
    let added = fs::read_to_string(&file).unwrap();
    assert_eq!(added.lines().count(), before.lines().count() + 1, "one session was read");
    assert_eq!(read_store(&store, &file, project).await.unwrap(), again);
    assert_eq!(fs::read_to_string(&file).unwrap(), added, "nothing was read");
    store.delete(fork).await.unwrap();
    assert_eq!(read_store(&store, &file, project).await.unwrap().len(), 1);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
}

#[tokio::test]
async fn oversized_task_history_file_is_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (open(folder.path()), folder.path().join("p.jsonl"));
    store.begin(NewSession { at_ms: 1, ..NewSession::default() }).await.unwrap();
    fs::File::create(&file).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
    for _ in 0..3 {
        assert_eq!(read_store(&store, &file, Path::new(PROJECT)).await.unwrap().len(), 1);
        assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 1);
    }
}

#[tokio::test]
#[ignore = "measures; run with `--ignored --nocapture`, in a release build"]
async fn five_thousand_sessions_are_read_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (store, file) = (open(folder.path()), folder.path().join("read/p.jsonl"));
    let project = Path::new(PROJECT);
    let mut last = None;
    for number in 0..5_000_u32 {
        let at_ms = i64::from(number) + 1;
        let id = store.begin(NewSession { at_ms, ..NewSession::default() }).await.unwrap();
        for part in 0..3 {
            let path = format!("src/m{}/f{}.rs", number % 30, (number * 7 + part) % 400);
            let calls = [
                ("fs.read", json!({"path": path})),
                ("fs.edit", json!({"path": path, "edits": []})),
                ("bash", json!({"command": "cargo test"})),
            ];
            let message = format!("Fix number {number} in {path}, please");
            add(&store, &id, at_ms, turn(&message, &calls, part == 2)).await;
        }
        if number % 40 == 0 || number == 4_999 {
            add(&store, &id, at_ms, release(&format!("v0.{number}.0"))).await;
        }
        last = Some(id);
    }
    for what in ["from nothing", "again"] {
        let start = Instant::now();
        let history = read_store(&store, &file, project).await.unwrap();
        let read = start.elapsed();
        let start = Instant::now();
        let all = find_repetitions(&history, &[]);
        let found = start.elapsed();
        let start = Instant::now();
        let id = last.as_ref().unwrap().as_str();
        assert!(find_repetition_of(&history, id, &[]).is_some());
        let bytes = fs::metadata(&file).unwrap().len();
        println!(
            "{what}: {read:?} to read, {found:?} to find {}, {:?} for the last turn, {bytes} bytes saved",
            all.len(),
            start.elapsed(),
        );
    }
}
