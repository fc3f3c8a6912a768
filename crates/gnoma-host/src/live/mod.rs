//! Sessions that live in this process, and the clients that see and steer them.
//!
//! [`Host`] owns the sessions and the connections of clients. A session is one task that owns its engine
//! and writes its [`EventLog`]; a connection is one task that carries requests to sessions, and events
//! and replies back. Nobody waits for a client: a slow one is behind in the log, and that is all.

mod change;
mod connection;
mod log;
mod replier;
mod replies;
mod session;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gnoma_core::{
    Message,
    protocol::{
        Choice, Client, Epoch, LiveSession, ProcessEvent, Request, RequestError, RequestErrorKind,
        SessionInfo, SessionSpec, Start,
    },
    store::SessionId,
    tool::BoxFuture,
};
use gnoma_engine::Handle;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
    time::timeout,
};

pub use self::log::{Delivery, EventLog, Subscription};
use self::{
    connection::Connection,
    replies::{Outcome, Replies},
    session::Live,
};
use crate::Notices;

/// Sessions that may live at once.
const MAX_SESSIONS: usize = 256;
/// Process events that are kept for clients that watch.
const MAX_PROCESS_EVENTS: usize = 256;
/// How long sessions may take to end when the process does.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(30);

/// What opens sessions: settings, stores and models become an engine.
pub trait Opener: Send + Sync + 'static {
    /// Reads what a session needs from this machine. What needs a network or a lock is left to
    /// [`Prepared::opening`].
    fn open(&self, wanted: Opening) -> BoxFuture<'static, Result<Prepared, RequestError>>;

    /// Milliseconds since 1970.
    fn now_ms(&self) -> i64;
}

/// What is to be opened.
pub struct Opening {
    /// What the client wants.
    pub spec: SessionSpec,
    /// The session that goes on under its id, where it lived in this process before.
    pub session: Option<SessionId>,
    /// Its conversation, where it is not stored.
    pub carried: Vec<Arc<Message>>,
    /// Where what is said by the way goes.
    pub notices: Notices,
}

/// A session that is about to open.
pub struct Prepared {
    /// Its id.
    pub id: SessionId,
    /// The session that started it, where it is a child.
    pub parent: Option<SessionId>,
    /// What front ends show of it.
    pub info: SessionInfo,
    /// The conversation that goes on.
    pub messages: Vec<Arc<Message>>,
    /// The rest of its making.
    pub opening: BoxFuture<'static, Result<Opened, RequestError>>,
    /// What answers requests that the engine does not.
    pub services: Arc<dyn Services>,
}

/// A session that is open.
pub struct Opened {
    /// Its engine.
    pub engine: Handle,
    /// What works beside it, such as the search for local models; ends with it.
    pub beside: Box<dyn std::any::Any + Send>,
    /// The models that can be chosen, as far as they are known now.
    pub models: Box<dyn Fn() -> Vec<Choice> + Send>,
}

/// What a session's project can do besides the conversation. Nothing here runs on the session's loop.
pub trait Services: Send + Sync {
    /// Answers a request that changes nothing in the engine.
    fn answer(&self, request: Request) -> BoxFuture<'static, Outcome>;

    /// Does what a request wants of the stored conversation and the files while no engine is open, and
    /// says what the session goes on with.
    fn change(&self, change: Change) -> BoxFuture<'static, Result<Changed, RequestError>>;

    /// What the session is opened with to go on as it was, given what it was opened with.
    fn unchanged(&self, spec: SessionSpec) -> SessionSpec;

    /// The engine has ended: forgets what is too old. Nobody waits for it long.
    fn tidy(&self) -> BoxFuture<'static, ()>;
}

/// A change for which a session is opened anew.
pub struct Change {
    /// What is asked: a switch, a rewind, a redo or a fork.
    pub request: Request,
    /// What the session was opened with.
    pub spec: SessionSpec,
}

/// What a change leads to.
pub struct Changed {
    /// What the session is opened with from now on.
    pub spec: SessionSpec,
    /// The conversation goes on; where it is not stored, as it is in memory.
    pub keeps_messages: bool,
    /// For people.
    pub told: String,
}

/// The sessions of a process and its clients. Dropping it ends everything.
pub struct Host {
    shared: Arc<Shared>,
    connections: Mutex<JoinSet<()>>,
}

/// What the tasks of a host share. It owns none of the tasks that own it.
struct Shared {
    opener: Box<dyn Opener>,
    state: Mutex<State>,
    /// Counts what happened to sessions, and wakes who waits for that.
    changed: watch::Sender<u64>,
    /// Somebody wants the process to end.
    shutdown: Notify,
}

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, Live>,
    replies: Replies,
    /// The last things that happened to sessions, numbered like `changed`.
    events: std::collections::VecDeque<(u64, ProcessEvent)>,
    last_epoch: u64,
    is_stopping: bool,
}

impl Host {
    /// A host without sessions.
    #[must_use]
    pub fn new(opener: impl Opener) -> Self {
        let shared = Arc::new(Shared {
            opener: Box::new(opener),
            state: Mutex::default(),
            changed: watch::Sender::new(0),
            shutdown: Notify::new(),
        });
        Self { shared, connections: Mutex::default() }
    }

    /// Connects a client. `name` is the same over all its connections, and nobody else's. Must be called
    /// within a runtime.
    #[must_use]
    pub fn connect(&self, name: &str) -> Client {
        let (client, peer) = Client::pair();
        let connection = Connection::new(Arc::clone(&self.shared), name.to_owned());
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        while connections.try_join_next().is_some() {}
        connections.spawn(connection.run(peer));
        client
    }

    /// The sessions, the one that changed last first.
    #[must_use]
    pub fn sessions(&self) -> Vec<LiveSession> {
        self.shared.sessions()
    }

    /// Whether nobody needs the process: no session is seen, at work or waiting for a person.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shared.state().sessions.values().all(Live::is_idle)
    }

    /// Waits until something has happened to a session, counted from `seen`; gives the count.
    pub async fn changed_since(&self, seen: u64) -> u64 {
        let mut changed = self.shared.changed.subscribe();
        let count = changed.wait_for(|count| *count != seen).await;
        count.map_or(seen, |count| *count)
    }

    /// Waits until a client wants the process to end.
    pub async fn shutdown_wanted(&self) {
        self.shared.shutdown.notified().await;
    }

    /// Ends all sessions, which store what they have. Gives what was running.
    pub async fn shut_down(&self) -> Vec<LiveSession> {
        let running: Vec<_> = self.sessions().into_iter().filter(is_at_work).collect();
        self.shared.state().is_stopping = true;
        self.shared.tell(ProcessEvent::Stopping);
        let all: Vec<Live> = self.shared.state().sessions.values().cloned().collect();
        let ended = async {
            for live in &all {
                live.close();
            }
            for live in &all {
                live.ended().await;
            }
        };
        let _late = timeout(SHUTDOWN_PATIENCE, ended).await;
        running
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn open(self: &Arc<Self>, spec: SessionSpec) -> Result<SessionId, RequestError> {
        let (is_stopping, count) = {
            let state = self.state();
            (state.is_stopping, state.sessions.len())
        };
        if is_stopping {
            return Err(RequestError::new(RequestErrorKind::Closed, "the process is ending"));
        }
        if count >= MAX_SESSIONS {
            let cause = format!("{MAX_SESSIONS} sessions live in this process already");
            return Err(RequestError::new(RequestErrorKind::Busy, cause)
                .with_remedy("`gnoma ps` lists them; close one."));
        }
        session::open(self, spec).await
    }

    fn sessions(&self) -> Vec<LiveSession> {
        let state = self.state();
        let mut all: Vec<LiveSession> = state.sessions.values().map(Live::facts).collect();
        all.sort_by_key(|session| std::cmp::Reverse(session.changed_ms));
        all
    }

    /// The session that a spec wants to go on with, where it lives here already.
    fn living(&self, spec: &SessionSpec) -> Option<SessionId> {
        let Start::Stored { id, fork: false } = &spec.start else { return None };
        let state = self.state();
        let mut found = state.sessions.keys().filter(|living| living.as_str().starts_with(id));
        let first = found.next().filter(|_| !id.is_empty())?;
        found.next().is_none().then(|| first.clone())
    }

    fn session(&self, id: &SessionId) -> Result<Live, RequestError> {
        self.state().sessions.get(id).cloned().ok_or_else(|| no_session(id))
    }

    fn tell(&self, event: ProcessEvent) {
        let mut state = self.state();
        let number = *self.changed.borrow() + 1;
        if state.events.len() == MAX_PROCESS_EVENTS {
            state.events.pop_front();
        }
        state.events.push_back((number, event));
        self.changed.send_replace(number);
    }

    /// What happened to sessions after `seen`, as far as it is kept, and how much has happened.
    fn told_since(&self, seen: u64) -> (Vec<ProcessEvent>, u64) {
        let state = self.state();
        let after = state.events.iter().filter(|(number, _)| *number > seen);
        let events = after.map(|(_, event)| event.clone()).collect();
        (events, state.events.back().map_or(seen, |(number, _)| *number))
    }

    /// Another number for the life of a session; greater than all before, also those of earlier
    /// processes unless the clock went back.
    fn next_epoch(&self) -> Epoch {
        let now = u64::try_from(self.opener.now_ms()).unwrap_or_default();
        let mut state = self.state();
        state.last_epoch = now.max(state.last_epoch + 1);
        Epoch(state.last_epoch)
    }
}

fn is_at_work(session: &LiveSession) -> bool {
    use gnoma_core::session::SessionState;
    matches!(session.status.state, SessionState::Active | SessionState::Cancelling)
}

fn no_session(id: &SessionId) -> RequestError {
    let cause = format!("there is no session `{id}` in this process");
    RequestError::new(RequestErrorKind::NoSession, cause).with_remedy("`gnoma ps` lists them.")
}
