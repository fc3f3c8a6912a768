//! A front end's end of the protocol: requests go in, replies and events come out. It cannot tell
//! whether the host is in this process or behind a socket.

use tokio::sync::mpsc;

use super::{ClientMessage, Request, RequestError, RequestErrorKind, RequestId, ServerMessage};
use crate::store::SessionId;

/// Requests that may wait for the host.
pub const MAX_REQUESTS: usize = 64;
/// Messages that may wait for the front end; then its own connection waits, and nobody else.
pub const MAX_MESSAGES: usize = 64;

/// A connection to a host. Dropping it ends the connection, not the sessions.
#[derive(Debug)]
pub struct Client {
    requests: mpsc::Sender<ClientMessage>,
    messages: mpsc::Receiver<ServerMessage>,
    next_id: u64,
}

/// The host's end of a [`Client`].
#[derive(Debug)]
pub struct Peer {
    /// What the client asks.
    pub requests: mpsc::Receiver<ClientMessage>,
    /// What it is told.
    pub messages: mpsc::Sender<ServerMessage>,
}

impl Client {
    /// A client, and the other end of its connection.
    #[must_use]
    pub fn pair() -> (Self, Peer) {
        let (ask, requests) = mpsc::channel(MAX_REQUESTS);
        let (messages, inbox) = mpsc::channel(MAX_MESSAGES);
        (Self { requests: ask, messages: inbox, next_id: 1 }, Peer { requests, messages })
    }

    /// Sends a request without waiting and gives the id that its reply will carry.
    ///
    /// # Errors
    /// [`RequestErrorKind::Busy`] where too many requests wait, [`RequestErrorKind::Closed`] where the
    /// connection has ended. The request is not sent then.
    pub fn request(
        &mut self,
        session: Option<&SessionId>,
        request: Request,
    ) -> Result<RequestId, RequestError> {
        let id = RequestId(self.next_id);
        let message = ClientMessage { id, session: session.cloned(), request };
        self.requests.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                RequestError::new(RequestErrorKind::Busy, "too many requests wait for the session")
            }
            mpsc::error::TrySendError::Closed(_) => {
                RequestError::new(RequestErrorKind::Closed, "the connection has ended")
            }
        })?;
        self.next_id += 1;
        Ok(id)
    }

    /// The next message; `None` once the connection has ended. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<ServerMessage> {
        self.messages.recv().await
    }

    /// The next message, if one is there already.
    pub fn ready(&mut self) -> Option<ServerMessage> {
        self.messages.try_recv().ok()
    }
}
