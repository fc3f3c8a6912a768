//! The observers of a session's events: the debug log, telemetry, the person's own statistics, notifications and
//! spending caps. One place for all, so that they see the same borders.

use std::sync::Arc;

use gnoma_core::{Event, info::ChildInfo, store::SessionId};

use crate::{
    Project,
    analytics::SessionCounts,
    cap_watch::{CapWatch, LevelReader},
    debug_log::SessionLog,
    notify::{NotificationSender, SessionNotifier},
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
    notifier: Option<SessionNotifier>,
    caps: Option<CapWatch>,
}

impl SessionObservers {
    /// Begins to watch a session as its project wants it. `caps` reads the levels of spending caps, if there are any.
    /// Must be called within a runtime.
    pub(crate) fn open(
        project: &Arc<Project>,
        ObservedSession { id, parent }: ObservedSession,
        caps: Option<LevelReader>,
    ) -> Self {
        let log = SessionLog::open(project);
        let counts = SessionCounts::open(project, parent.is_some());
        // Questions of elfs are shown at their parent's call, too, and their spending is in its sums.
        let (sender, caps) = match &parent {
            Some(_) => (None, None),
            None => {
                let sender = NotificationSender::open(project, &id);
                let caps = caps.map(|caps| CapWatch::new(project, sender.as_ref(), caps));
                (sender, caps)
            }
        };
        let notifier = sender.map(SessionNotifier::new);
        let trace = SessionTrace::open(project, TracedSession { id, parent });
        Self { log, trace, counts, notifier, caps }
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
        if let Some(notifier) = &mut self.notifier {
            notifier.observe(event);
        }
        if let Some(caps) = &mut self.caps {
            caps.observe(event);
        }
    }
}
