//! The state that the tasks of a host share: its sessions, their facts, and replies that were given.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use gnoma_core::{
    protocol::{
        Epoch, LiveSession, ProcessEvent, RequestError, RequestErrorKind, SessionSpec, Start,
    },
    store::SessionId,
    sync::Mutex,
    tool::{BoxFuture, Spawner},
};
use tokio::sync::{Notify, watch};

use super::{handle::SessionHandle, ports::Opener, replies::Replies};

/// Sessions that may live at once.
const MAX_SESSIONS: usize = 256;
/// Sessions that one session may have started and that live.
const MAX_CHILDREN: usize = 64;
/// Process events that are kept for clients that watch.
const MAX_PROCESS_EVENTS: usize = 256;

/// Makes a session and starts its task.
pub(super) type SessionOpener =
    fn(Arc<HostShared>, SessionSpec) -> BoxFuture<'static, Result<SessionId, RequestError>>;

/// The state that the tasks of a host share. It owns none of the tasks that own it.
pub(super) struct HostShared {
    pub(super) opener: Box<dyn Opener>,
    open: SessionOpener,
    /// Starts sessions for the tools of others.
    pub(super) spawner: Arc<dyn Spawner>,
    pub(super) replies: Arc<Mutex<Replies>>,
    pub(super) state: Mutex<State>,
    /// Counts what happened to sessions, and wakes who waits for that.
    pub(super) changed: watch::Sender<u64>,
    /// The signal that the process should end.
    pub(super) shutdown: Notify,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) sessions: HashMap<SessionId, SessionHandle>,
    /// Names of elfs that have no session yet, with the session that starts them.
    pub(super) starting: Vec<(SessionId, String)>,
    /// The last things that happened to sessions, numbered like `changed`.
    events: VecDeque<(u64, ProcessEvent)>,
    last_epoch: u64,
    pub(super) is_stopping: bool,
}

impl HostShared {
    pub(super) fn new(
        opener: Box<dyn Opener>,
        open: SessionOpener,
        spawner: Arc<dyn Spawner>,
    ) -> Self {
        Self {
            opener,
            open,
            spawner,
            replies: Arc::default(),
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            shutdown: Notify::new(),
        }
    }

    pub(super) async fn open(
        self: &Arc<Self>,
        spec: SessionSpec,
    ) -> Result<SessionId, RequestError> {
        if self.state.lock().is_stopping {
            return Err(process_ending_error());
        }
        (self.open)(Arc::clone(self), spec).await
    }

    /// Deletes a stored session; one that lives here is ended first, if it is a session of that folder that
    /// people opened. Other sessions cannot be ended by their id.
    pub(super) async fn delete_session(
        &self,
        spec: SessionSpec,
        id: SessionId,
    ) -> Result<(), RequestError> {
        if let Ok(live) = self.find_session(&id) {
            if live.kept.lock().spec.folder != spec.folder || live.has_parent() {
                return Err(no_session(&id));
            }
            live.close();
            live.wait_until_ended().await;
        }
        self.opener.delete_session(spec, id).await
    }

    pub(super) fn sessions(&self) -> Vec<LiveSession> {
        self.state.lock().live_sessions()
    }

    /// The session of exactly that id that lives here with what the spec wants, stored or not.
    pub(super) fn find_live_session(&self, spec: &SessionSpec) -> Option<SessionId> {
        let Start::Stored { id, .. } = &spec.start else { return None };
        let live = self.find_session(&SessionId::new(id.as_str())).ok()?;
        let kept = live.kept.lock();
        let (has, wants) = (&kept.spec, &spec.overrides.incognito);
        let is_meant = has.folder == spec.folder
            && (spec.profile.is_none() || spec.profile == has.profile)
            && (wants.is_none() || *wants == has.overrides.incognito);
        is_meant.then(|| SessionId::new(id.as_str()))
    }

    pub(super) fn find_session(&self, id: &SessionId) -> Result<SessionHandle, RequestError> {
        self.state.lock().sessions.get(id).cloned().ok_or_else(|| no_session(id))
    }

    /// From here on the session starts no other ones; gives those that it has started.
    pub(super) fn forbid_children(&self, id: &SessionId) -> Vec<SessionHandle> {
        let state = self.state.lock();
        if let Some(live) = state.sessions.get(id) {
            live.kept.lock().is_ending = true;
        }
        state.sessions.values().filter(|live| live.is_child_of(id)).cloned().collect()
    }

    pub(super) fn publish_event(&self, event: ProcessEvent) {
        let mut state = self.state.lock();
        let number = *self.changed.borrow() + 1;
        if state.events.len() == MAX_PROCESS_EVENTS {
            state.events.pop_front();
        }
        state.events.push_back((number, event));
        self.changed.send_replace(number);
    }

    /// Returns what happened to sessions after `seen`, and how much has happened. If some of it is no longer kept,
    /// returns how the sessions are, and whether the process ends.
    pub(super) fn events_since(&self, seen: u64) -> (Vec<ProcessEvent>, u64) {
        let state = self.state.lock();
        let is_missing = state.events.front().is_some_and(|(first, _)| *first > seen + 1);
        let after = state.events.iter().filter(|(number, _)| *number > seen);
        let after = after.map(|(_, event)| event);
        let events = if is_missing {
            let stopping = state.is_stopping.then_some(ProcessEvent::Stopping);
            [ProcessEvent::Lagged { sessions: state.live_sessions() }]
                .into_iter()
                .chain(stopping)
                .collect()
        } else {
            after.cloned().collect()
        };
        (events, state.events.back().map_or(seen, |(number, _)| *number))
    }

    /// Another number for the life of a session; greater than all before, also those of earlier
    /// processes unless the clock went back.
    pub(super) fn next_epoch(&self) -> Epoch {
        let now = u64::try_from(self.opener.now_ms()).unwrap_or_default();
        let mut state = self.state.lock();
        state.last_epoch = now.max(state.last_epoch + 1);
        Epoch(state.last_epoch)
    }
}

impl State {
    /// Returns the facts about the sessions, the one that changed last first.
    fn live_sessions(&self) -> Vec<LiveSession> {
        let mut all: Vec<LiveSession> = self.sessions.values().map(SessionHandle::facts).collect();
        gnoma_core::sort::by_key(&mut all, |session| std::cmp::Reverse(session.changed_ms));
        all
    }

    /// Reports whether a session of that id is to be started, which is not the case if it is already running.
    pub(super) fn may_open(&self, id: &SessionId) -> Result<bool, RequestError> {
        if self.is_stopping {
            return Err(process_ending_error());
        }
        if self.sessions.contains_key(id) {
            return Ok(false);
        }
        if self.sessions.len() >= MAX_SESSIONS {
            let cause = format!("this process has {MAX_SESSIONS} sessions already");
            return Err(RequestError::new(RequestErrorKind::Busy, cause)
                .with_remedy("`gnoma ps` lists them; close one."));
        }
        Ok(true)
    }

    /// Checks that the session may start another one.
    pub(super) fn may_have_child(&self, parent: &SessionId) -> Result<(), RequestError> {
        let above = self.sessions.get(parent).ok_or_else(|| no_session(parent))?;
        if above.kept.lock().is_ending {
            return Err(RequestError::new(RequestErrorKind::Closed, "the session is ending"));
        }
        let children = self.sessions.values().filter(|live| live.is_child_of(parent)).count();
        if children < MAX_CHILDREN {
            return Ok(());
        }
        let cause = format!("a session can run at most {MAX_CHILDREN} others at once");
        Err(RequestError::new(RequestErrorKind::Busy, cause).with_remedy("Wait for one to finish."))
    }
}

fn process_ending_error() -> RequestError {
    RequestError::new(RequestErrorKind::Closed, "the process is ending")
}

fn no_session(id: &SessionId) -> RequestError {
    let cause = format!("no session `{id}` in this process");
    RequestError::new(RequestErrorKind::NoSession, cause).with_remedy("`gnoma ps` lists them.")
}
