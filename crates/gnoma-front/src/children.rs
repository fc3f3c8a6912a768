//! Child sessions (elfs) of the main session, as a front end without a screen shows them.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    CallId,
    protocol::{Client, Envelope, Position, ProcessEvent, Request, ServerMessage},
    session::PermissionAnswer,
    store::SessionId,
};
use gnoma_host::live::Host;

/// A client that sees all sessions of the process but the main one.
pub struct Children {
    client: Client,
    main: SessionId,
    /// The position up to which each session's events have been seen; `None` if its start position must still be
    /// requested.
    seen: HashMap<SessionId, Option<Position>>,
}

impl Children {
    /// Watches the sessions of `host` besides `main`, as the client `name`.
    pub fn watch_host(host: &Host, name: &str, main: SessionId) -> Self {
        let mut client = host.connect(name);
        let _gone = client.send_request(None, Request::Watch);
        Self { client, main, seen: HashMap::new() }
    }

    /// Waits for the next event in one of the sessions. Never ends if the host is gone. Safe to drop.
    pub async fn next(&mut self) -> Arc<Envelope> {
        loop {
            let Some(message) = self.client.next().await else {
                return std::future::pending().await;
            };
            if let Some(told) = self.on_message(message) {
                return told;
            }
        }
    }

    fn on_message(&mut self, message: ServerMessage) -> Option<Arc<Envelope>> {
        match message {
            ServerMessage::Process(ProcessEvent::Opened { session }) if session != self.main => {
                let _gone =
                    self.client.send_request(Some(&session), Request::Attach { from: None });
                self.seen.insert(session, None);
            }
            ServerMessage::Process(ProcessEvent::Closed { session }) => {
                self.seen.remove(&session);
            }
            ServerMessage::Snapshot(view) => {
                let seen = self.seen.get_mut(&view.session)?;
                if seen.is_none() {
                    // All from its beginning.
                    let from = Position { epoch: view.epoch, seq: 0 };
                    *seen = Some(from);
                    let attach = Request::Attach { from: Some(from) };
                    let _gone = self.client.send_request(Some(&view.session), attach);
                } else {
                    *seen = Some(view.position());
                }
            }
            ServerMessage::Event(envelope) => {
                let seen = self.seen.get_mut(&envelope.session)?.as_mut()?;
                if envelope.epoch == seen.epoch && envelope.seq > seen.seq {
                    seen.seq = envelope.seq;
                    return Some(envelope);
                }
            }
            ServerMessage::Reply { .. } | ServerMessage::Process(_) => (),
        }
        None
    }

    /// Answers a question of `session`.
    pub fn answer_question(&mut self, session: &SessionId, call: CallId, answer: PermissionAnswer) {
        // Whoever answers too late has no effect.
        let _late = self.client.send_request(Some(session), Request::Answer { call, answer });
    }
}
