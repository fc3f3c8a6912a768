//! The elfs that do steps of a task, from their sessions to the run that waits for them.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    CallId,
    sync::Mutex,
    tool::{ChildEnd, ChildStatus},
};

/// The last known state of an elf.
#[derive(Default)]
pub(super) struct StepChild {
    /// The status: model and cost.
    pub(super) status: ChildStatus,
    /// The end of its turn; `None` if it has not ended by itself.
    pub(super) end: Option<ChildEnd>,
}

/// The elfs of steps, by the calls that started them. Clones share them.
#[derive(Clone, Default)]
pub(super) struct StepChildren(Arc<Mutex<HashMap<CallId, StepChild>>>);

impl StepChildren {
    /// Begins to remember the elf of a call.
    pub(super) fn watch(&self, call: CallId) {
        self.0.lock().insert(call, StepChild::default());
    }

    /// Notes the status of an elf, and its end once it has one. Elfs of calls that are not watched are ignored.
    pub(super) fn note(&self, call: &CallId, status: &ChildStatus, end: Option<ChildEnd>) {
        if let Some(child) = self.0.lock().get_mut(call) {
            child.status = status.clone();
            child.end = end.or(child.end.take());
        }
    }

    /// Returns what `read` makes of the elf of a call.
    pub(super) fn read<T>(&self, call: &CallId, read: impl FnOnce(Option<&StepChild>) -> T) -> T {
        read(self.0.lock().get(call))
    }

    /// Returns what is known of the elf of a call, and forgets it.
    pub(super) fn take(&self, call: &CallId) -> StepChild {
        self.0.lock().remove(call).unwrap_or_default()
    }
}
