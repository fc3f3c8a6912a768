//! The session as the pipe gets it from its host: every event once and in order. What was missed is
//! read before what follows it is shown.

use std::{collections::VecDeque, sync::Arc};

use anyhow::{Error, Result};
use gnoma_core::{
    Event, Message,
    protocol::{
        Client, Reply, Request, RequestError, RequestErrorKind, RequestId, ServerMessage,
        SessionSpec, SessionView,
    },
    session::SessionState,
    store::SessionId,
};
use gnoma_host::{HostError, live::Host};

use super::seen::Seen;
use crate::{continuing, environment::ProcessEnvironment};

/// Messages that are read at once.
const MAX_PAGE: u32 = 200;

/// A session, seen and steered by one client. Dropping it leaves the session.
pub(crate) struct Attached {
    client: Client,
    session: SessionId,
    seen: Seen,
    /// What comes next.
    events: VecDeque<Event>,
    behind: Option<Behind>,
    /// The request to say something, until it is answered.
    said: Option<RequestId>,
    /// Why the session takes nothing.
    refusal: Option<RequestError>,
    /// It has ended, and has said so.
    is_over: bool,
}

/// Some messages were missed and are being read.
struct Behind {
    asked: RequestId,
    view: Box<SessionView>,
    /// The last page first.
    pages: Vec<Vec<Arc<Message>>>,
    /// What has come meanwhile; no more than wait in a connection.
    later: VecDeque<ServerMessage>,
}

impl Attached {
    /// Opens a session; a copy of one that is open elsewhere, where the person agrees.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(crate) async fn open(
        host: &Host,
        spec: &mut SessionSpec,
        around: &ProcessEnvironment,
    ) -> Result<Self> {
        let mut client = host.connect("pipe");
        let session = continuing::open(&mut client, spec, around).await?;
        let attach = Request::Attach { from: None };
        client.request(Some(&session), attach).map_err(HostError::from)?;
        let mut attached = Self {
            client,
            session,
            seen: Seen::default(),
            events: VecDeque::new(),
            behind: None,
            said: None,
            refusal: None,
            is_over: false,
        };
        // What was said before is told from what will be said by the number of messages at the start.
        while !attached.seen.has_begun() {
            let Some(message) = attached.client.next().await else { break };
            attached.take(message);
        }
        Ok(attached)
    }

    /// Sends a request.
    pub(super) fn tell(&mut self, request: Request) {
        let says = matches!(request, Request::Send { .. });
        match self.client.request(Some(&self.session), request) {
            Ok(id) if says => self.said = Some(id),
            Err(error) if says => self.refusal = Some(error),
            // Whoever cancels or answers too late has no effect.
            Ok(_) | Err(_) => (),
        }
    }

    /// Why the session takes nothing, where it does not.
    pub(super) fn refusal(&mut self) -> Option<Error> {
        self.refusal.take().map(|error| HostError::from(error).into())
    }

    /// The next event; `None` where no more will come. Safe to drop and call again.
    pub(super) async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.pop() {
                return Some(event);
            }
            if self.is_over || self.refusal.is_some() {
                return None;
            }
            let message = self.client.next().await?;
            self.take(message);
        }
    }

    /// The next event, if it is there already.
    pub(super) fn ready(&mut self) -> Option<Event> {
        while self.events.is_empty() && self.refusal.is_none() {
            let message = self.client.ready()?;
            self.take(message);
        }
        self.pop()
    }

    fn pop(&mut self) -> Option<Event> {
        let event = self.events.pop_front()?;
        self.is_over |= matches!(event, Event::State(SessionState::Closed));
        Some(event)
    }

    fn take(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Reply { id, result } => self.answered(id, result),
            ServerMessage::Event(_) | ServerMessage::Snapshot(_) => match &mut self.behind {
                Some(behind) => behind.later.push_back(message),
                None => self.told(message),
            },
            ServerMessage::Process(_) => (),
        }
    }

    fn told(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Event(envelope) => self.seen.envelope(&envelope, &mut self.events),
            ServerMessage::Snapshot(view) => {
                if self.seen.missed(&view).is_empty() {
                    return self.seen.catch_up(&view, Vec::new(), &mut self.events);
                }
                self.read_before(view, Vec::new(), None);
            }
            ServerMessage::Reply { .. } | ServerMessage::Process(_) => (),
        }
    }

    /// Asks for the messages that were missed before the one of that number.
    fn read_before(
        &mut self,
        view: Box<SessionView>,
        pages: Vec<Vec<Arc<Message>>>,
        before: Option<u64>,
    ) {
        let missed = self.seen.missed(&view);
        let before = before.unwrap_or(missed.end);
        let max = u32::try_from(before - missed.start).unwrap_or(MAX_PAGE).min(MAX_PAGE);
        let request = Request::History { before: Some(before), max };
        match self.client.request(Some(&self.session), request) {
            Ok(asked) => {
                self.behind = Some(Behind { asked, view, pages, later: VecDeque::new() });
            }
            Err(error) => self.refusal = Some(error),
        }
    }

    fn answered(&mut self, id: RequestId, result: Result<Reply, RequestError>) {
        if self.said.take_if(|said| *said == id).is_some() {
            self.refusal = result.err();
            return;
        }
        let gone = [RequestErrorKind::NoSession, RequestErrorKind::Closed];
        self.is_over |= result.as_ref().is_err_and(|error| gone.contains(&error.kind));
        let Some(Behind { view, mut pages, later, .. }) =
            self.behind.take_if(|behind| behind.asked == id)
        else {
            return;
        };
        match result {
            Ok(Reply::History { first, messages }) => {
                let missed = self.seen.missed(&view);
                let is_all = first <= missed.start || messages.is_empty();
                pages.push(messages);
                if is_all {
                    let messages = pages.into_iter().rev().flatten().collect();
                    self.seen.catch_up(&view, messages, &mut self.events);
                } else {
                    self.read_before(view, pages, Some(first));
                }
            }
            Ok(_) => {
                let cause = "the session host did not send the missed events";
                self.refusal = Some(RequestError::new(RequestErrorKind::Failed, cause));
            }
            Err(error) => self.refusal = Some(error),
        }
        for message in later {
            self.take(message);
        }
    }
}
