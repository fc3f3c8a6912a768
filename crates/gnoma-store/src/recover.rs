//! Closes tool calls that a dead process left open, when a session is resumed.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use gnoma_core::{
    CallId, Message, ToolCall, ToolResult,
    store::{HoldReport, Record, SessionId},
    tool::ON_TRIAL,
};
use rusqlite::Connection;

use crate::{
    child,
    entry::{PreparedRecord, may_be_message, parse_record},
    error::{Result, damaged_error},
    interrupted_children,
    lock::{self, Identity},
    path, session,
    session_row::{self, SessionRow},
};

/// The text that the model reads in place of a result that never came.
pub(crate) const INTERRUPTED: &str =
    "[interrupted: gnoma ended while this call was running; whether it took effect is unknown]";

/// The text that the model reads in place of the result of a call that ran on trial. What a person let it save or
/// do in the workspace has its own end: a save is finished or undone at the next start.
const ON_TRIAL_THEN: &str = "[interrupted: gnoma ended before the changes of this call, which ran \
     on trial, were approved; they were discarded, unless a person had just approved them]";

/// The text that the model reads in place of the result of a call that was not approved yet.
const UNAPPROVED: &str = "[not run: this call was waiting for approval when gnoma stopped; it was \
     not approved and did not run]";

/// The text that the model reads in place of the result of a call that had not begun: each of several calls is
/// noted before it runs.
const NOT_BEGUN: &str =
    "[not run: gnoma ended before this call began; it did not run and changed nothing]";

/// The text that replaces a person's answer.
const NOBODY_ANSWERED: &str = "gnoma stopped before anybody approved it";

/// Takes the hold on a session and repairs its tail.
pub(crate) fn hold_session(
    connection: &Connection,
    me: &Identity,
    id: &SessionId,
    now_ms: i64,
) -> Result<HoldReport> {
    let known = session_row::find_session(connection, id)?;
    let left_by = lock::take_hold(connection, me, known.number, now_ms)?;
    child::set_open(connection, known.number, true)?;
    let closed = close_tail(connection, &known, now_ms)?;
    let cut_off = interrupted_children::close_interrupted(connection, me, id, now_ms)?;
    Ok(HoldReport { left_by, cut_off, ..closed })
}

/// Gives a result to each call of the last message that has none.
fn close_tail(connection: &Connection, known: &SessionRow, now_ms: i64) -> Result<HoldReport> {
    let open = open_calls(connection, known.tip)?;
    let calls = &open.calls;
    let result = |call: &ToolCall| {
        let text = match open.classify_call(call) {
            CallFate::Ended(result) => return result.clone(),
            CallFate::Unapproved => UNAPPROVED,
            CallFate::NotBegun => NOT_BEGUN,
            CallFate::OnTrial => ON_TRIAL_THEN,
            CallFate::Interrupted => INTERRUPTED,
        };
        ToolResult::from_text(call, text, true)
    };
    let results = Message::results(calls.iter().map(result).collect());
    let Ok(results) = results else { return Ok(HoldReport::default()) };
    let mut last = known.tip;
    let mut add = |record| -> Result<()> {
        let entry =
            session::insert_entry(connection, known, last, now_ms, &PreparedRecord::new(record)?)?;
        last = Some(entry.0);
        Ok(())
    };
    let ids = |is_meant: fn(&CallFate<'_>) -> bool| {
        let meant = calls.iter().filter(|call| is_meant(&open.classify_call(call)));
        meant.map(|call| call.id.clone()).collect::<Vec<_>>()
    };
    let unapproved = ids(|fate| matches!(fate, CallFate::Unapproved));
    let interrupted = ids(|fate| matches!(fate, CallFate::OnTrial | CallFate::Interrupted));
    for call in unapproved.iter().cloned() {
        add(Record::Judged { call, allowed: false, reason: NOBODY_ANSWERED.to_owned() })?;
    }
    add(Record::Message(Arc::new(results)))?;
    if !interrupted.is_empty() {
        add(Record::Interrupted { calls: interrupted.clone() })?;
    }
    Ok(HoldReport { interrupted, unapproved, ..HoldReport::default() })
}

/// The calls of the last message, and what was noted of them after it.
#[derive(Default)]
struct OpenCalls {
    calls: Vec<ToolCall>,
    /// A person was asked about them.
    asked: HashSet<CallId>,
    /// The calls that could run.
    allowed: HashSet<CallId>,
    /// The calls that were refused.
    refused: HashSet<CallId>,
    /// They ran on trial.
    tried: HashSet<CallId>,
    /// The calls that ended, with their results.
    ended: HashMap<CallId, ToolResult>,
}

/// The point that a call had reached.
enum CallFate<'a> {
    /// The call came to its end.
    Ended(&'a ToolResult),
    /// A person was asked about it and had not answered.
    Unapproved,
    /// The turn of the call had not come yet.
    NotBegun,
    /// The call ran on trial.
    OnTrial,
    /// The call ran, or may have run.
    Interrupted,
}

impl OpenCalls {
    #[expect(clippy::match_same_arms, reason = "each case stands beside its reason")]
    fn classify_call(&self, call: &ToolCall) -> CallFate<'_> {
        let id = &call.id;
        if let Some(result) = self.ended.get(id) {
            return CallFate::Ended(result);
        }
        let (asked, allowed) = (self.asked.contains(id), self.allowed.contains(id));
        match (asked, allowed) {
            (true, false) => CallFate::Unapproved,
            _ if self.tried.contains(id) => CallFate::OnTrial,
            (_, true) => CallFate::Interrupted,
            // Of several calls each is noted before it runs; of one alone that need not be stored yet.
            (false, false) if self.calls.len() > 1 || self.refused.contains(id) => {
                CallFate::NotBegun
            }
            (false, false) => CallFate::Interrupted,
        }
    }
}

/// The calls of the last message before `tip`, if it has any: nothing has answered them.
fn open_calls(connection: &Connection, tip: Option<i64>) -> Result<OpenCalls> {
    let mut open = OpenCalls::default();
    let mut next = tip;
    while let Some(id) = next {
        let node = path::load_node(connection, id)?;
        match parse_record(&node.body) {
            _ if node.hidden => {}
            Some(Record::Message(message)) => {
                open.calls = message.tool_calls().cloned().collect();
                return Ok(open);
            }
            Some(Record::Asked { call }) => drop(open.asked.insert(call)),
            Some(Record::Judged { call, allowed: true, reason }) => {
                if reason.starts_with(ON_TRIAL) {
                    open.tried.insert(call.clone());
                }
                open.allowed.insert(call);
            }
            Some(Record::Judged { call, allowed: false, .. }) => drop(open.refused.insert(call)),
            Some(Record::ToolEnded(result)) => {
                open.ended.insert(result.call_id.clone(), result);
            }
            // What a newer version said may have answered them.
            None if may_be_message(&node.body) => break,
            Some(_) | None => {}
        }
        if node.parent.is_some_and(|parent| parent >= id) {
            return Err(damaged_error(&format!("entry {id} follows a later one")));
        }
        next = node.parent;
    }
    Ok(OpenCalls::default())
}
