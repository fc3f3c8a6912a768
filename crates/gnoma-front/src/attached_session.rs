//! The event stream of a session for front ends without a screen: every event once and in order. What was missed is
//! read before what follows it is shown.

use std::collections::{HashSet, VecDeque};

use anyhow::{Error, Result};
use gnoma_core::{
    Event,
    protocol::{
        Client, Follower, Reply, Request, RequestError, RequestErrorKind, RequestId, ServerMessage,
        SessionSpec,
    },
    session::SessionState,
    store::SessionId,
};
use gnoma_host::{HostError, live::Host};

use crate::{environment::ProcessEnvironment, session_resume};

/// A session, seen and steered by one client. Dropping it leaves the session.
pub struct AttachedSession {
    client: Client,
    session: SessionId,
    follower: Follower,
    /// The request that reads messages that were missed.
    reading: Option<RequestId>,
    /// The request to say something, until it is answered.
    said: Option<RequestId>,
    /// The reason why the session does not accept messages.
    refusal: Option<RequestError>,
    /// Requests whose replies are wanted.
    wanted: HashSet<RequestId>,
    replies: VecDeque<(RequestId, Result<Reply, RequestError>)>,
    /// True if the session has ended and has reported so.
    is_over: bool,
}

/// One item that is received from a session.
pub enum AttachedMessage {
    /// An event of the session.
    Event(Box<Event>),
    /// The reply to a request.
    Reply(RequestId, Result<Reply, RequestError>),
}

impl AttachedSession {
    /// Opens a session, or a copy of one that is open elsewhere if the person agrees to that.
    ///
    /// # Errors
    /// The session cannot be opened.
    pub async fn open(
        host: &Host,
        spec: &mut SessionSpec,
        around: &ProcessEnvironment,
    ) -> Result<Self> {
        let mut client = host.connect("pipe");
        let session = session_resume::open_or_copy(&mut client, spec, around).await?;
        Self::join(client, session).await
    }

    /// Follows a session that this client has opened.
    ///
    /// # Errors
    /// The session takes no requests.
    pub async fn join(mut client: Client, session: SessionId) -> Result<Self> {
        let attach = Request::Attach { from: None };
        client.send_request(Some(&session), attach).map_err(HostError::from)?;
        let mut attached = Self {
            client,
            session,
            follower: Follower::default(),
            reading: None,
            said: None,
            refusal: None,
            wanted: HashSet::new(),
            replies: VecDeque::new(),
            is_over: false,
        };
        // What was said before is told from what will be said by the number of messages at the start.
        while !attached.follower.has_begun() {
            let Some(message) = attached.client.next().await else { break };
            attached.on_message(message);
        }
        Ok(attached)
    }

    /// Returns the id of the session.
    pub fn id(&self) -> &SessionId {
        &self.session
    }

    /// Sends a request whose reply [`Self::next_event_or_reply`] returns.
    ///
    /// # Errors
    /// The request cannot be sent.
    pub fn request_with_reply(&mut self, request: Request) -> Result<RequestId, RequestError> {
        let id = self.client.send_request(Some(&self.session), request)?;
        self.wanted.insert(id);
        Ok(id)
    }

    /// Returns the next item from the session, replies included; `None` if no more will come. Safe to drop and call
    /// again.
    pub async fn next_event_or_reply(&mut self) -> Option<AttachedMessage> {
        loop {
            if let Some((id, result)) = self.replies.pop_front() {
                return Some(AttachedMessage::Reply(id, result));
            }
            if let Some(event) = self.pop_event() {
                return Some(AttachedMessage::Event(Box::new(event)));
            }
            if self.is_over {
                return None;
            }
            let message = self.client.next().await?;
            self.on_message(message);
        }
    }

    /// Sends a request to the session. Its reply is ignored, but if the session refuses a message, its
    /// events end.
    pub fn send_request(&mut self, request: Request) {
        let says = matches!(request, Request::Send { .. });
        match self.client.send_request(Some(&self.session), request) {
            Ok(id) if says => self.said = Some(id),
            Err(error) if says => self.refusal = Some(error),
            // Whoever cancels or answers too late has no effect.
            Ok(_) | Err(_) => (),
        }
    }

    /// Returns the reason why the session does not accept messages, if it does not.
    pub(super) fn take_refusal(&mut self) -> Option<Error> {
        self.refusal.take().map(|error| HostError::from(error).into())
    }

    /// Waits for the next event; `None` if no more will come. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pop_event() {
                return Some(event);
            }
            if self.is_over || self.refusal.is_some() {
                return None;
            }
            let message = self.client.next().await?;
            self.on_message(message);
        }
    }

    /// The next event, if it is there already.
    pub(super) fn next_ready_event(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pop_event() {
                return Some(event);
            }
            if self.refusal.is_some() {
                return None;
            }
            let message = self.client.try_next()?;
            self.on_message(message);
        }
    }

    fn pop_event(&mut self) -> Option<Event> {
        let event = self.follower.next_event()?;
        self.is_over |= matches!(event, Event::State(SessionState::Closed));
        Some(event)
    }

    fn on_message(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Reply { id, result } => self.on_reply(id, result),
            message => {
                let missed = self.follower.apply_message(message);
                self.read_missed(missed);
            }
        }
    }

    /// Asks for messages that were missed.
    fn read_missed(&mut self, missed: Option<Request>) {
        let Some(request) = missed else { return };
        match self.client.send_request(Some(&self.session), request) {
            Ok(asked) => self.reading = Some(asked),
            Err(error) => self.refusal = Some(error),
        }
    }

    fn on_reply(&mut self, id: RequestId, result: Result<Reply, RequestError>) {
        if self.wanted.remove(&id) {
            return self.replies.push_back((id, result));
        }
        if self.said.take_if(|said| *said == id).is_some() {
            self.refusal = result.err();
            return;
        }
        let gone = [RequestErrorKind::NoSession, RequestErrorKind::Closed];
        self.is_over |= result.as_ref().is_err_and(|error| gone.contains(&error.kind));
        if self.reading.take_if(|reading| *reading == id).is_none() {
            return;
        }
        match self.follower.apply_reply(result) {
            Ok(missed) => self.read_missed(missed),
            Err(error) => self.refusal = Some(error),
        }
    }
}
