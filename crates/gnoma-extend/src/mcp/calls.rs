//! Open calls to an MCP server: progress and elicitation go to the right one.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use gnoma_core::{ToolCx, message::CallId, sync::Mutex, tool::ToolEvent};
use serde_json::Value;
use tokio::time::Instant;

/// A call that is under way.
#[derive(Clone)]
pub(super) struct ServerCall {
    pub(super) id: CallId,
    pub(super) cx: ToolCx,
}

struct CallEntry {
    running: ServerCall,
    heard: Instant,
    /// A person is being asked.
    is_asking: bool,
}

#[derive(Default)]
struct CallsState {
    next: u64,
    /// In the order in which they began.
    entries: BTreeMap<u64, CallEntry>,
}

/// The calls of one server.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<CallsState>>);

impl Calls {
    /// A call begins; it ends when what is returned is dropped.
    pub(super) fn begin_call(&self, running: ServerCall) -> ServerCallGuard {
        let mut state = self.0.lock();
        let number = state.next;
        state.next += 1;
        state
            .entries
            .insert(number, CallEntry { running, heard: Instant::now(), is_asking: false });
        ServerCallGuard { calls: self.clone(), number }
    }

    /// Takes in what a server says of a call's progress: of the call that it names, or of all where it names
    /// none. The text is shown where it is clear which call it belongs to.
    pub(super) fn record_progress(&self, params: &Value) {
        let token = params.get("progressToken");
        let token = token.and_then(|token| token.as_u64().or_else(|| token.as_str()?.parse().ok()));
        let mut state = self.0.lock();
        let named = token.filter(|token| state.entries.contains_key(token));
        let now = Instant::now();
        for (number, entry) in &mut state.entries {
            if named.is_none_or(|named| named == *number) {
                entry.heard = entry.heard.max(now);
            }
        }
        let entry = match named {
            Some(named) => state.entries.get(&named),
            None => state.entries.values().next().filter(|_| state.entries.len() == 1),
        };
        let Some(entry) = entry else { return };
        let number = |key: &str| params.get(key).and_then(Value::as_f64);
        let text = [
            number("progress").map(|done| done.to_string()),
            number("total").map(|total| format!("of {total}")),
            params.get("message").and_then(Value::as_str).map(str::to_owned),
        ];
        let text = text.into_iter().flatten().collect::<Vec<_>>().join(" ");
        entry.running.cx.emit_event(&entry.running.id, ToolEvent::Progress(text + "\n"));
    }

    /// Waits for something else than the server for so long: meanwhile the time of no call runs out.
    pub(super) fn extend_deadlines(&self, wait: Duration) {
        let until = Instant::now() + wait;
        for entry in self.0.lock().entries.values_mut() {
            entry.heard = entry.heard.max(until);
        }
    }

    /// The call for which a server's question is put: the last that has begun. While it is put, its
    /// time does not run.
    pub(super) fn begin_question(&self) -> Option<ServerQuestionGuard> {
        let mut state = self.0.lock();
        let (number, entry) = state.entries.iter_mut().next_back()?;
        entry.is_asking = true;
        Some(ServerQuestionGuard {
            running: entry.running.clone(),
            calls: self.clone(),
            number: *number,
        })
    }
}

/// A call that has begun.
pub(super) struct ServerCallGuard {
    calls: Calls,
    /// The number that identifies the call to the server.
    pub(super) number: u64,
}

impl ServerCallGuard {
    /// Returns the time of the last sign of the call; `None` while a person is asked.
    pub(super) fn last_activity(&self) -> Option<Instant> {
        let state = self.calls.0.lock();
        let entry = state.entries.get(&self.number)?;
        (!entry.is_asking).then_some(entry.heard)
    }
}

impl Drop for ServerCallGuard {
    fn drop(&mut self) {
        self.calls.0.lock().entries.remove(&self.number);
    }
}

/// A question that is being put for a call.
pub(super) struct ServerQuestionGuard {
    pub(super) running: ServerCall,
    calls: Calls,
    number: u64,
}

impl Drop for ServerQuestionGuard {
    fn drop(&mut self) {
        if let Some(entry) = self.calls.0.lock().entries.get_mut(&self.number) {
            entry.is_asking = false;
            entry.heard = Instant::now();
        }
    }
}
