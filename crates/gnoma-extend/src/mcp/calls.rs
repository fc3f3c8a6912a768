//! The calls that a server is working on: who hears of their progress, and whom the server may ask.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gnoma_core::{ToolCx, message::CallId, tool::ToolEvent};
use rmcp::model::ProgressNotificationParam;
use tokio::time::Instant;

/// A call that is under way.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) id: CallId,
    pub(super) cx: ToolCx,
}

struct CallEntry {
    running: Running,
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
    fn state(&self) -> MutexGuard<'_, CallsState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins; it ends when what is returned is dropped.
    pub(super) fn begin(&self, running: Running) -> Begun {
        let mut state = self.state();
        let number = state.next;
        state.next += 1;
        state
            .entries
            .insert(number, CallEntry { running, heard: Instant::now(), is_asking: false });
        Begun { calls: self.clone(), number }
    }

    /// Something of progress was said. Which call it belongs to is told where only one runs.
    pub(super) fn progress(&self, said: &ProgressNotificationParam) {
        let mut state = self.state();
        for entry in state.entries.values_mut() {
            entry.heard = Instant::now();
        }
        let [entry] = &state.entries.values().collect::<Vec<_>>()[..] else { return };
        let of = said.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = said.message.as_deref().unwrap_or_default();
        let text = format!("{}{of} {message}\n", said.progress);
        entry.running.cx.emit(&entry.running.id, ToolEvent::Progress(text));
    }

    /// The call for which a server's question is put: the last that has begun. While it is put, its
    /// time does not run.
    pub(super) fn asking(&self) -> Option<Asking> {
        let mut state = self.state();
        let (number, entry) = state.entries.iter_mut().next_back()?;
        entry.is_asking = true;
        Some(Asking { running: entry.running.clone(), calls: self.clone(), number: *number })
    }
}

/// A call that has begun.
pub(super) struct Begun {
    calls: Calls,
    number: u64,
}

impl Begun {
    /// When something was last heard of it; `None` while a person is asked.
    pub(super) fn heard(&self) -> Option<Instant> {
        let state = self.calls.state();
        let entry = state.entries.get(&self.number)?;
        (!entry.is_asking).then_some(entry.heard)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.calls.state().entries.remove(&self.number);
    }
}

/// A question that is being put for a call.
pub(super) struct Asking {
    pub(super) running: Running,
    calls: Calls,
    number: u64,
}

impl Drop for Asking {
    fn drop(&mut self) {
        if let Some(entry) = self.calls.state().entries.get_mut(&self.number) {
            entry.is_asking = false;
            entry.heard = Instant::now();
        }
    }
}
