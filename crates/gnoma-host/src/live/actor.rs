//! The state of a session's task, and what all parts of the task do with it.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_core::{
    CallId, Command, Event,
    protocol::{Detach, ProcessEvent, Reply, Request, RequestError, SessionView},
    store::SessionId,
    sync::Mutex,
    task::box_future,
    tool::BoxFuture,
};
use tokio::{task::JoinSet, time::Instant};

use super::{
    command::{not_opened_error, session_closed_error},
    continuation::TurnContinuation,
    engine::Engine,
    handle::{SessionMeta, busy_error},
    log::EventLog,
    ports::{OpenedSession, Services},
    replier::Replier,
    replies::ReplyOutcome,
    session_tasks::SessionTasks,
    shared::HostShared,
    waits::Waits,
};
use crate::{
    Notices,
    observers::{ObservedSession, SessionObservers},
};

/// Commands that may wait for a session that is being opened.
const MAX_WAITING: usize = 64;
/// Requests that are answered beside the conversation at once.
pub(super) const MAX_WORK: usize = 16;
/// The time that a session without any message waits for a subscriber.
pub(super) const SUBSCRIBER_PATIENCE: Duration = Duration::from_secs(60);

/// The task of a session.
pub(super) struct Actor {
    pub(super) shared: Weak<HostShared>,
    pub(super) id: SessionId,
    pub(super) log: EventLog,
    pub(super) services: Arc<dyn Services>,
    pub(super) detach: Detach,
    pub(super) kept: Arc<Mutex<SessionMeta>>,
    pub(super) notices: Notices,
    pub(super) engine: Engine,
    /// The reason why there is no engine, if opening one failed.
    pub(super) opening_error: Option<RequestError>,
    /// Commands for the engine that is being opened.
    pub(super) waiting: Vec<Command>,
    /// Questions that were answered and not decided yet.
    pub(super) answered: HashSet<CallId>,
    /// Requests that are being answered beside the conversation.
    pub(super) work: JoinSet<()>,
    /// Requests that are answered once the session rests or asks.
    pub(super) waits: Waits,
    /// The time at which to check whether a session that no client sees should end.
    pub(super) deserted: Option<Instant>,
    /// `true` once a client has subscribed.
    pub(super) was_seen: bool,
    /// `true` if the session ends as soon as the change in progress is done.
    pub(super) is_closing: bool,
    /// The run of a task that goes on, and the task that was drafted last.
    pub(super) tasks: SessionTasks,
    /// The continuation of a turn that ended at a limit.
    pub(super) continuation: TurnContinuation,
    /// The observers of the session: a debug log, telemetry.
    pub(super) observers: SessionObservers,
}

/// The session as what watches it knows it.
pub(super) fn observed_session(log: &EventLog) -> ObservedSession {
    log.with_view(|view| ObservedSession {
        id: view.session.clone(),
        parent: view.parent.clone().zip(view.info.child.clone()),
    })
}

impl Actor {
    /// The task of a session that is being opened.
    pub(super) fn new(
        shared: Weak<HostShared>,
        log: EventLog,
        kept: Arc<Mutex<SessionMeta>>,
        notices: Notices,
        opening: BoxFuture<'static, Result<OpenedSession, RequestError>>,
    ) -> Self {
        let id = log.with_view(|view| view.session.clone());
        let remembered = kept.lock();
        let (services, detach) = (Arc::clone(&remembered.services), remembered.spec.detach);
        drop(remembered);
        Self {
            shared,
            id,
            observers: services.observers(observed_session(&log)),
            log,
            services,
            detach,
            kept,
            notices,
            engine: Engine::Opening(opening),
            opening_error: None,
            waiting: Vec::new(),
            answered: HashSet::new(),
            work: JoinSet::new(),
            waits: Waits::default(),
            deserted: (detach == Detach::Close).then(|| Instant::now() + SUBSCRIBER_PATIENCE),
            was_seen: false,
            is_closing: false,
            tasks: SessionTasks::default(),
            continuation: TurnContinuation::default(),
        }
    }

    pub(super) fn push(&self, event: Event) {
        let now_ms = self.shared.upgrade().map_or(0, |shared| shared.opener.now_ms());
        self.log.push(event, now_ms);
    }

    /// Tells the process's clients, and what works beside it, how the session is now.
    pub(super) fn tell_change(&self) {
        self.tell_use();
        publish_change(&self.shared, &self.log);
    }

    pub(super) fn tell_use(&self) {
        if let Engine::Open(opened) = &self.engine {
            opened.beside.set_used(!self.log.is_idle());
        }
    }

    /// Hands a command to the engine, or keeps it for the one that is being opened.
    pub(super) fn send_command(&mut self, command: Command) -> ReplyOutcome {
        let is_message = matches!(command, Command::Send { .. });
        if is_message && self.tasks.is_reserved() {
            return self.tasks.hold_message(command);
        }
        match &self.engine {
            Engine::Open(opened) => {
                let answered = match &command {
                    Command::Answer { call, .. } => Some(call.clone()),
                    _ => None,
                };
                if !opened.engine.send_command(command) {
                    return Err(busy_error());
                }
                self.answered.extend(answered);
            }
            Engine::Changing(_) if self.is_closing => return Err(session_closed_error()),
            Engine::Opening(_) | Engine::Changing(_) if self.waiting.len() < MAX_WAITING => {
                self.waiting.push(command);
            }
            Engine::Opening(_) | Engine::Changing(_) => return Err(busy_error()),
            Engine::Gone => {
                let why = self.opening_error.clone();
                return Err(why.map_or_else(session_closed_error, not_opened_error));
            }
        }
        self.tasks.pending_turns += usize::from(is_message);
        Ok(Reply::Done)
    }

    /// Has a request answered by what knows the project. A new title holds as it was saved, and all clients hear of it.
    pub(super) fn answer_beside(&mut self, request: Request, replier: Replier) {
        if self.work.len() >= MAX_WORK {
            return replier.reply(Err(busy_error()));
        }
        let is_rename = matches!(request, Request::Rename { .. });
        let (shared, log) = (Weak::clone(&self.shared), self.log.clone());
        let kept = Arc::clone(&self.kept);
        let answer = self.services.answer_request(request);
        self.work.spawn(box_future(async move {
            let outcome = answer.await;
            if let (Ok(Reply::Text(title)), true) = (&outcome, is_rename) {
                kept.lock().title = Some(title.clone());
                publish_change(&shared, &log);
            }
            replier.reply(outcome);
        }));
    }
}

/// Tells the process's clients how a session is now.
fn publish_change(shared: &Weak<HostShared>, log: &EventLog) {
    let Some(shared) = shared.upgrade() else { return };
    let status = log.with_view(SessionView::status);
    let (session, state, questions) = (status.session, status.state, status.questions);
    shared.publish_event(ProcessEvent::Changed { session, state, questions });
}
