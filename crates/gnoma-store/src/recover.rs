//! Taking a session in hand: closes the calls a dead process left open.

use std::sync::Arc;

use gnoma_core::{
    CallId, Message, ToolCall, ToolResult,
    store::{HoldReport, Record, SessionId},
};
use rusqlite::Connection;

use crate::{
    entry::{Prepared, may_be_message, parse},
    error::{Result, damaged},
    lock::{self, Identity},
    path, session,
    session_row::{self, SessionRow},
};

/// What the model reads in place of a result that never came.
pub(crate) const INTERRUPTED: &str =
    "[interrupted: gnoma ended while this call was running; whether it took effect is unknown]";

/// Takes the hold on a session and repairs its tail.
pub(crate) fn take(
    connection: &Connection,
    me: &Identity,
    id: &SessionId,
    now_ms: i64,
) -> Result<HoldReport> {
    let known = session_row::find(connection, id)?;
    let left_by = lock::take(connection, me, known.number, now_ms)?;
    let interrupted = close_tail(connection, &known, now_ms)?;
    Ok(HoldReport { interrupted, left_by })
}

/// Gives a result to each call of the last message that has none.
pub(crate) fn close_tail(
    connection: &Connection,
    known: &SessionRow,
    now_ms: i64,
) -> Result<Vec<CallId>> {
    let open = open_calls(connection, known.tip)?;
    let Some(results) = interrupted_results(&open) else { return Ok(Vec::new()) };
    let results = Prepared::new(Record::Message(Arc::new(results)))?;
    let answered = session::insert(connection, known, known.tip, now_ms, &results)?;
    let calls: Vec<_> = open.into_iter().map(|call| call.id).collect();
    let note = Prepared::new(Record::Interrupted { calls: calls.clone() })?;
    session::insert(connection, known, Some(answered.0), now_ms, &note)?;
    Ok(calls)
}

/// The message that answers `calls`; `None` when there are none.
pub(crate) fn interrupted_results(calls: &[ToolCall]) -> Option<Message> {
    let results = calls.iter().map(|call| ToolResult::text(call, INTERRUPTED, true)).collect();
    Message::results(results).ok()
}

/// The calls of the last message before `tip`, if it has any: nothing has answered them.
fn open_calls(connection: &Connection, tip: Option<i64>) -> Result<Vec<ToolCall>> {
    let mut next = tip;
    while let Some(id) = next {
        let node = path::node(connection, id)?;
        match parse(&node.body) {
            _ if node.hidden => {}
            Some(Record::Message(message)) => return Ok(message.tool_calls().cloned().collect()),
            // What a newer version said may have answered them.
            None if may_be_message(&node.body) => return Ok(Vec::new()),
            Some(_) | None => {}
        }
        if node.parent.is_some_and(|parent| parent >= id) {
            return Err(damaged(&format!("entry {id} follows a later one")));
        }
        next = node.parent;
    }
    Ok(Vec::new())
}
