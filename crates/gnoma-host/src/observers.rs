//! What watches a session from its events: the debug log, telemetry and the person's own statistics. One place for all,
//! so that they see the same borders.

use std::sync::Arc;

use gnoma_core::{Event, info::ChildInfo, store::SessionId};

use crate::{
    Project,
    analytics::SessionCounts,
    debug_log::SessionLog,
    telemetry::{SessionTrace, TracedSession},
};

/// The session that is watched.
pub struct ObservedSession {
    /// The id of the session.
    pub id: SessionId,
    /// The session that started it, with the call that did.
    pub parent: Option<(SessionId, ChildInfo)>,
}

/// The observers that watch one session; usually there are none.
#[derive(Default)]
pub struct SessionObservers {
    log: Option<SessionLog>,
    trace: Option<SessionTrace>,
    counts: Option<SessionCounts>,
}

impl SessionObservers {
    /// Begins to watch a session as its project wants it. Must be called within a runtime.
    pub(crate) fn open(
        project: &Arc<Project>,
        ObservedSession { id, parent }: ObservedSession,
    ) -> Self {
        let log = SessionLog::open(project);
        let counts = SessionCounts::open(project, parent.is_some());
        Self { log, counts, trace: SessionTrace::open(project, TracedSession { id, parent }) }
    }

    /// Takes in what happens.
    pub(crate) fn observe(&mut self, session: &SessionId, event: &Event) {
        if let Some(log) = &mut self.log {
            log.write(session, event);
        }
        if let Some(trace) = &mut self.trace {
            trace.observe(event);
        }
        if let Some(counts) = &mut self.counts {
            counts.observe(event);
        }
    }
}
