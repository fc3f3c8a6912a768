//! The tasks of a session: the run that goes on, the turns that it waits for, and the task that was drafted last.

use std::sync::Arc;

use gnoma_core::{
    CallId, Command, Event,
    protocol::{Reply, RequestError, RequestErrorKind},
    session::SessionState,
    store::SessionId,
    sync::Mutex,
};

use super::{
    handle::busy_error,
    ports::Services,
    replier::Replier,
    task_link::{TaskLink, TaskOrder, TaskPort, task_channel},
    task_run::task_files,
};
use crate::tasks::DraftedTask;

/// Messages that may wait until the step of a task has begun.
const MAX_HELD_MESSAGES: usize = 64;

/// The tasks of a session, as its loop knows them.
#[derive(Default)]
pub(super) struct SessionTasks {
    /// The run that goes on.
    link: Option<TaskLink>,
    /// The task that was drafted last.
    draft: Arc<Mutex<Option<DraftedTask>>>,
    /// Messages that the engine was given and has neither begun a turn with nor queued.
    pub(super) pending_turns: usize,
    /// Messages that are queued in the engine.
    queued: usize,
    /// Messages that wait until the step of a task has begun.
    held_messages: Vec<Command>,
}

impl SessionTasks {
    /// The next order of the run that goes on; never if none does. Safe to drop.
    pub(super) async fn next(&mut self) -> Option<TaskOrder> {
        match &mut self.link {
            Some(link) => link.next().await,
            None => std::future::pending().await,
        }
    }

    /// Returns whether a run goes on.
    pub(super) fn is_running(&self) -> bool {
        self.link.is_some()
    }

    /// The run that goes on.
    pub(super) fn link(&mut self) -> Option<&mut TaskLink> {
        self.link.as_mut()
    }

    /// Begins a run: the runner's end of it.
    pub(super) fn begin_run(&mut self) -> TaskPort {
        let (link, port) = task_channel();
        self.link = Some(link);
        port
    }

    /// The run has ended.
    pub(super) fn end_run(&mut self) {
        self.link = None;
    }

    /// Returns whether a call is a question of the run.
    pub(super) fn is_question(&self, call: &CallId) -> bool {
        self.link.as_ref().is_some_and(|link| link.is_open_question(call))
    }

    /// Returns whether the step of a task is about to begin, so that no other turn may.
    pub(super) fn is_reserved(&self) -> bool {
        self.link.as_ref().is_some_and(TaskLink::is_reserved)
    }

    /// Retains a message until the step has begun.
    pub(super) fn hold_message(&mut self, message: Command) -> Result<Reply, RequestError> {
        if self.held_messages.len() >= MAX_HELD_MESSAGES {
            return Err(busy_error());
        }
        self.held_messages.push(message);
        Ok(Reply::Done)
    }

    /// Returns the messages that were retained.
    pub(super) fn take_held_messages(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.held_messages)
    }

    /// Takes in what happens in the session.
    pub(super) fn observe_event(&mut self, event: &Event) {
        let is_idle = matches!(event, Event::State(SessionState::Idle));
        // A message begins a turn or is queued in the one that runs.
        match event {
            Event::State(SessionState::Active) => {
                self.pending_turns = self.pending_turns.saturating_sub(1);
            }
            Event::State(SessionState::Idle) => self.queued = 0,
            Event::Queued { queue } => {
                let grown = queue.len().saturating_sub(self.queued);
                self.pending_turns = self.pending_turns.saturating_sub(grown);
                self.queued = queue.len();
            }
            _ => (),
        }
        if let Some(link) = &mut self.link {
            link.observe_event(event, is_idle);
        }
    }

    /// Drafts a task of the person's messages, or without messages a change of a task that fails, and answers with its
    /// diff.
    pub(super) fn draft_task(
        &self,
        services: &Arc<dyn Services>,
        session: SessionId,
        (name, messages): (String, Option<Vec<String>>),
        replier: Replier,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (place, services) = (Arc::clone(&self.draft), Arc::clone(services));
        async move {
            let drafted = async {
                let files = task_files(&services)?;
                match messages {
                    Some(messages) => files.draft(session, name, messages).await,
                    None => files.repair(name).await,
                }
            };
            let drafted = drafted.await;
            replier.reply(drafted.map(|drafted| {
                let diff = drafted.diff.clone();
                *place.lock() = Some(drafted);
                Reply::Text(diff)
            }));
        }
    }

    /// Writes the task that was drafted last, and answers where.
    pub(super) fn save_draft(
        &self,
        services: &Arc<dyn Services>,
        name: &str,
        replier: Replier,
    ) -> impl Future<Output = ()> + Send + use<> {
        let drafted = self.draft.lock().take();
        let drafted = drafted.filter(|draft| draft.name == name);
        let services = Arc::clone(services);
        let missing = || {
            let cause = "no task of that name was drafted in this session";
            RequestError::new(RequestErrorKind::NotFound, cause)
                .with_remedy("`/task save NAME` drafts one.")
        };
        let drafted = drafted.ok_or_else(missing);
        async move {
            replier.reply(match drafted {
                Ok(drafted) => {
                    async { task_files(&services)?.save(drafted).await.map(Reply::Text) }.await
                }
                Err(error) => Err(error),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::Content;

    use super::*;

    #[test]
    fn sent_message_is_pending_until_it_starts_a_turn_or_is_queued() {
        let queue =
            |count: usize| Event::Queued { queue: vec![vec![Content::from_text("x")]; count] };
        // The turn before it ends after the message was sent.
        let mut tasks = SessionTasks { pending_turns: 1, ..SessionTasks::default() };
        tasks.observe_event(&Event::State(SessionState::Idle));
        assert_eq!(tasks.pending_turns, 1);
        tasks.observe_event(&Event::State(SessionState::Active));
        assert_eq!(tasks.pending_turns, 0);
        tasks.pending_turns = 2;
        tasks.observe_event(&queue(1));
        tasks.observe_event(&queue(0));
        assert_eq!(tasks.pending_turns, 1);
        tasks.observe_event(&queue(1));
        assert_eq!(tasks.pending_turns, 0);
    }
}
