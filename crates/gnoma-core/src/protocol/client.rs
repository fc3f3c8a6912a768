//! A front end's end of the protocol: requests go in, replies and events come out. It cannot tell
//! whether the host is in this process or behind a socket.

use std::{any::Any, fmt};

use tokio::sync::mpsc;

use super::{ClientMessage, Request, RequestError, RequestErrorKind, RequestId, ServerMessage};
use crate::store::SessionId;

/// Requests that may wait for the host.
pub const MAX_REQUESTS: usize = 64;
/// Messages that may wait for the front end; then its own connection waits, and nobody else.
pub const MAX_MESSAGES: usize = 64;

/// A connection to a host. Dropping it ends the connection, not the sessions.
pub struct Client {
    requests: mpsc::Sender<ClientMessage>,
    messages: mpsc::Receiver<ServerMessage>,
    next_id: u64,
    /// The transport of the messages, if that is not the host itself.
    _carrier: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("next_id", &self.next_id).finish_non_exhaustive()
    }
}

/// The host's end of a [`Client`].
#[derive(Debug)]
pub struct Peer {
    /// The requests of the client.
    pub requests: mpsc::Receiver<ClientMessage>,
    /// The messages to the client.
    pub messages: mpsc::Sender<ServerMessage>,
}

/// The way in for requests that have their ids already. Keeps the connection open.
#[derive(Debug)]
pub struct Requests(mpsc::Sender<ClientMessage>);

/// The stream of messages from the host.
pub struct Messages {
    messages: mpsc::Receiver<ServerMessage>,
    _carrier: Option<Box<dyn Any + Send>>,
}

impl fmt::Debug for Messages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").finish_non_exhaustive()
    }
}

impl Messages {
    /// The next message; `None` once the connection has ended. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<ServerMessage> {
        self.messages.recv().await
    }

    /// The next message, if one is there already.
    pub fn try_next(&mut self) -> Option<ServerMessage> {
        self.messages.try_recv().ok()
    }
}

impl Requests {
    /// Passes on a request. Waits where the host does not keep up.
    ///
    /// # Errors
    /// The connection has ended; the request comes back.
    pub async fn forward(&self, message: ClientMessage) -> Result<(), ClientMessage> {
        self.0.send(message).await.map_err(|unsent| unsent.0)
    }
}

impl Client {
    /// A client, and the other end of its connection.
    #[must_use]
    pub fn new_pair() -> (Self, Peer) {
        let (ask, requests) = mpsc::channel(MAX_REQUESTS);
        let (messages, inbox) = mpsc::channel(MAX_MESSAGES);
        let client = Self { requests: ask, messages: inbox, next_id: 1, _carrier: None };
        (client, Peer { requests, messages })
    }

    /// The client, which from now on owns what carries its messages and drops it with itself.
    #[must_use]
    pub fn carried_by(mut self, carrier: impl Any + Send) -> Self {
        self._carrier = Some(Box::new(carrier));
        self
    }

    /// The two halves of the connection, for whoever carries it on. Once the requests are dropped, the
    /// host answers those that it has and ends the connection.
    #[must_use]
    pub fn into_halves(self) -> (Requests, Messages) {
        let Self { requests, messages, _carrier, .. } = self;
        (Requests(requests), Messages { messages, _carrier })
    }

    /// Sends a request without waiting and gives the id that its reply will carry.
    ///
    /// # Errors
    /// [`RequestErrorKind::Busy`] where too many requests wait, [`RequestErrorKind::Closed`] where the
    /// connection has ended. The request is not sent then.
    pub fn send_request(
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

    /// True if there is room for one more request.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.requests.capacity() > 0
    }

    /// The next message; `None` once the connection has ended. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<ServerMessage> {
        self.messages.recv().await
    }

    /// The next message, if one is there already.
    pub fn try_next(&mut self) -> Option<ServerMessage> {
        self.messages.try_recv().ok()
    }
}
