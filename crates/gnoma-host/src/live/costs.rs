//! Passes the cost of calls from a session to its clients and to the sessions above it.

use gnoma_core::{Event, session::SessionState, sync::Mutex};

use super::{handle::SessionMeta, log::EventLog, shared::HostShared};

/// Adds what a call cost to the sums of its session and of those above it, whose clients are told, too. Returns the
/// event as the session's own clients get it.
pub(super) fn count_cost(
    session: &Mutex<SessionMeta>,
    log: &EventLog,
    shared: Option<&HostShared>,
    event: Event,
) -> Event {
    match &event {
        Event::State(SessionState::Active) => session.lock().spending.begin_turn(),
        Event::Cost { .. } => {
            if let Some(shared) = shared {
                tell_above(log, shared, &event);
            }
            return session.lock().spending.add_own(&event).unwrap_or(event);
        }
        _ => (),
    }
    event
}

fn tell_above(log: &EventLog, shared: &HostShared, event: &Event) {
    let mut parent = log.with_view(|view| view.parent.clone());
    while let Some(live) = parent.and_then(|parent| shared.find_session(&parent).ok()) {
        if let Some(event) = live.kept.lock().spending.add_below(event) {
            live.log().push(event, shared.opener.now_ms());
        }
        parent = live.log().with_view(|view| view.parent.clone());
    }
}
