//! What the tests share: a store in a temporary folder, and scripted turns.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{
    CallId, Content, Message, ModelRef, RawJson, Role, StopReason, ToolCall, ToolResult, Usage,
    store::{
        Durability, Entry, EntryId, NewEntry, NewSession, Page, PageRequest, Parent, Record,
        SessionId, SessionStore, StoreError,
    },
};
use gnoma_store::{OpenedStore, Options, Store};

/// Reads everything at once.
pub(crate) const ALL: PageRequest =
    PageRequest { tip: None, max_entries: usize::MAX, max_bytes: usize::MAX };

/// Runs a future to its end.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// Options that keep every string.
pub(crate) fn options(folder: &Path) -> Options {
    Options::new(folder, "/home/me/project", Arc::new(|_, text| Cow::Borrowed(text)))
}

/// Opens a store in `folder`.
pub(crate) fn try_open(folder: &Path) -> Result<OpenedStore, StoreError> {
    Store::open(options(folder))
}

/// Opens a sound store in `folder`.
pub(crate) fn open(folder: &Path) -> Store {
    let opened = try_open(folder).unwrap();
    assert_eq!(opened.rescued, None);
    opened.store
}

/// Works the log of a closed database into its one file.
pub(crate) fn fold(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

/// The log of a database.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    path.with_extension("db-wal")
}

/// Begins a session.
pub(crate) fn begin(store: &Store, at_ms: i64) -> SessionId {
    wait(store.begin(NewSession { at_ms, ..NewSession::default() })).unwrap()
}

/// An entry at the tip.
pub(crate) fn entry(session: &SessionId, record: Record) -> NewEntry {
    NewEntry {
        session: session.clone(),
        parent: Parent::Tip,
        at_ms: 1_000,
        record,
        durability: Durability::Process,
    }
}

/// Adds a record at the tip.
pub(crate) fn append(store: &Store, session: &SessionId, record: Record) -> EntryId {
    wait(store.append(entry(session, record))).unwrap()
}

/// The whole path to the tip.
pub(crate) fn load(store: &Store, session: &SessionId) -> Page {
    wait(store.load(session.clone(), ALL)).unwrap()
}

/// What a person says.
pub(crate) fn says(text: impl Into<String>) -> Record {
    Record::Message(Arc::new(Message::user_text(text)))
}

fn model() -> ModelRef {
    ModelRef { provider: "acme".into(), model: "m1".into() }
}

/// The records of one turn: question, routing, two calls with results, an answer.
pub(crate) fn turn(number: usize) -> Vec<Record> {
    let calls: Vec<_> = (0..2)
        .map(|which| {
            let arguments = RawJson::parse(format!("{{\"command\":\"run {number} {which}\"}}"));
            ToolCall::new(CallId::new(format!("call_{which}")), "bash", arguments.unwrap())
        })
        .collect();
    let results = calls
        .iter()
        .map(|call| ToolResult::from_text(call, format!("output of {number}\n").repeat(20), false))
        .collect();
    let asks = calls.into_iter().map(Content::ToolCall).collect();
    let message = |message: Message| Record::Message(Arc::new(message));
    vec![
        says(format!("question {number}")),
        Record::Routed { arm: model(), why: "the only one".into() },
        message(Message::assistant(asks, Some(model()), Some(StopReason::ToolUse)).unwrap()),
        Record::Judged { call: CallId::new("call_0"), allowed: true, reason: "mode".into() },
        message(Message::results(results).unwrap()),
        Record::Used(Usage { input: 10, output: 2, ..Usage::default() }),
        message(
            Message::assistant(vec![Content::from_text(format!("answer {number}"))], None, None)
                .unwrap(),
        ),
    ]
}

/// Whether a request made of these entries would be legal: every call is answered by the next
/// message, and nothing else is.
pub(crate) fn is_legal(entries: &[Entry]) -> bool {
    let messages: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.record {
            Record::Message(message) => Some(message),
            _ => None,
        })
        .collect();
    let ids = |message: &Message, results: bool| -> Vec<CallId> {
        if results {
            message.tool_results().map(|result| result.call_id.clone()).collect()
        } else {
            message.tool_calls().map(|call| call.id.clone()).collect()
        }
    };
    let mut open = Vec::new();
    for message in messages {
        if ids(message, true) != open || (message.role() == Role::Tool) == open.is_empty() {
            return false;
        }
        open = ids(message, false);
    }
    open.is_empty()
}
