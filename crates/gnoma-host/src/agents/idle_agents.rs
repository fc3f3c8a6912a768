//! The waiting processes of an agent: each waits for the result of a call, or for the next turn of its conversation.

use std::sync::Arc;

use gnoma_core::{Message, message::CallId, sync::Mutex};
use tokio::{runtime::Handle, task::JoinSet};

use super::live_agent::LiveAgent;

/// Processes that wait for results at once; of more, the longest waiting ends.
const MAX_WAITING: usize = 8;
/// Processes that wait for a next turn; of more, the one that was used longest ago ends.
const MAX_IDLE: usize = 3;

/// The processes of an agent that are in no turn. Dropped, they end.
#[derive(Default)]
pub(super) struct IdleAgents(Mutex<IdleAgentsState>);

#[derive(Default)]
struct IdleAgentsState {
    waiting: Vec<(CallId, Option<LiveAgent>)>,
    idle: Vec<LiveAgent>,
    /// Those whose turn is being stopped.
    stopping: JoinSet<()>,
}

impl IdleAgents {
    /// The process waits for the result of a call. `None`: the call is to start one.
    pub(super) fn add_waiting(&self, call: CallId, live: Option<LiveAgent>) {
        let mut state = self.0.lock();
        state.waiting.push((call, live));
        let over = state.waiting.len().saturating_sub(MAX_WAITING);
        state.waiting.drain(..over);
    }

    /// The process that waits for the result of a call.
    pub(super) fn take_waiting(&self, call: &CallId) -> Option<Option<LiveAgent>> {
        let mut state = self.0.lock();
        let at = state.waiting.iter().position(|(waiting, _)| waiting == call)?;
        Some(state.waiting.remove(at).1)
    }

    /// Looks at the process that waits for the result of a call.
    pub(super) fn inspect_waiting<T>(
        &self,
        call: &CallId,
        look: impl FnOnce(&LiveAgent) -> T,
    ) -> Option<T> {
        let state = self.0.lock();
        let waiting = state.waiting.iter().find(|(waiting, _)| waiting == call)?;
        waiting.1.as_ref().map(look)
    }

    /// The process that knows the beginning of this conversation.
    pub(super) fn take_idle(&self, messages: &[Arc<Message>]) -> Option<LiveAgent> {
        let mut state = self.0.lock();
        let knows = |live: &LiveAgent| {
            live.seen.is_some_and(|seen| seen.unseen_messages(messages).is_some())
        };
        let at = state.idle.iter().rposition(knows)?;
        Some(state.idle.remove(at))
    }

    /// The process waits for its next turn.
    pub(super) fn add_idle(&self, live: LiveAgent) {
        let mut state = self.0.lock();
        state.idle.push(live);
        let over = state.idle.len().saturating_sub(MAX_IDLE);
        state.idle.drain(..over);
    }
}

impl IdleAgents {
    /// Stops the turn of a process beside whatever continues; one that does not stop is ended.
    pub(super) fn stop_turn(self: &Arc<Self>, mut live: LiveAgent) {
        let Ok(runtime) = Handle::try_current() else { return };
        let desk = Arc::downgrade(self);
        let stopping = async move {
            if live.cancel().await
                && let Some(desk) = desk.upgrade()
            {
                desk.add_idle(live);
            }
        };
        let mut state = self.0.lock();
        while state.stopping.try_join_next().is_some() {}
        state.stopping.spawn_on(stopping, &runtime);
    }
}
