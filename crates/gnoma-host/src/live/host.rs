//! The host: all sessions of a process, and its clients.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_core::{
    protocol::{Client, LiveSession, ProcessEvent},
    session::SessionState,
    sync::Mutex,
    task::box_future,
};
use tokio::{task::JoinSet, time::timeout};

use super::{
    children::Children,
    connection::Connection,
    handle::SessionHandle,
    ports::Opener,
    session_start,
    shared::{HostShared, SessionOpener},
};

/// The time that sessions may take to end when the process does.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(30);

/// The sessions of a process and its clients. Dropping it ends everything.
pub struct Host {
    shared: Arc<HostShared>,
    connections: Mutex<JoinSet<()>>,
}

impl Host {
    /// A host without sessions.
    #[must_use]
    pub fn new(opener: impl Opener) -> Self {
        let open: SessionOpener = |shared, spec| {
            Box::pin(async move { session_start::open_session(&shared, spec).await })
        };
        let shared = Arc::new_cyclic(|shared| {
            HostShared::new(Box::new(opener), open, Arc::new(Children(Weak::clone(shared))))
        });
        Self { shared, connections: Mutex::default() }
    }

    /// Connects a client. `name` is the same over all its connections, and no other client's. Must be called
    /// within a runtime.
    #[must_use]
    pub fn connect(&self, name: &str) -> Client {
        let (client, peer) = Client::new_pair();
        let connection = Connection::new(Arc::clone(&self.shared), name.to_owned());
        let mut connections = self.connections.lock();
        while connections.try_join_next().is_some() {}
        connections.spawn(box_future(connection.run(peer)));
        client
    }

    /// The sessions, the one that changed last first.
    #[must_use]
    pub fn sessions(&self) -> Vec<LiveSession> {
        self.shared.sessions()
    }

    /// Reports whether the process is not needed: no session is seen, at work (also in the background) or waiting
    /// for a user.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.shared.state.lock().sessions.values().all(SessionHandle::is_idle)
    }

    /// Reports whether a session runs commands in the background. Their end is not reported.
    #[must_use]
    pub fn has_jobs(&self) -> bool {
        self.shared.state.lock().sessions.values().any(|live| live.count_jobs() > 0)
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
        self.shared.state.lock().is_stopping = true;
        self.shared.publish_event(ProcessEvent::Stopping);
        let all: Vec<SessionHandle> = self.shared.state.lock().sessions.values().cloned().collect();
        let ended = async {
            for live in &all {
                live.close();
            }
            for live in &all {
                live.wait_until_ended().await;
            }
        };
        let _late = timeout(SHUTDOWN_PATIENCE, ended).await;
        self.shared.opener.finish().await;
        running
    }
}

fn is_at_work(session: &LiveSession) -> bool {
    session.jobs > 0
        || matches!(session.status.state, SessionState::Active | SessionState::Cancelling)
}
