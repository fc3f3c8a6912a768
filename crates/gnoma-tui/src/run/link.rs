//! The connection of the view to a session: requests go out with what they are for, and what comes back is turned into
//! inputs. Knows which session the window is attached to and gets it back when a connection breaks.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    pin::Pin,
    time::Duration,
};

use gnoma_core::{
    Event,
    protocol::{
        Client, Reply, Request, RequestError, RequestErrorKind, RequestId, ServerMessage,
        SessionSpec, Start, Switch,
    },
    session::SessionState,
    store::SessionId,
};
use tokio::time::timeout;

use crate::{
    ask::{Purpose, ViewRequest},
    input::Input,
};

/// Requests that wait for a session on its way; one more is refused.
const MAX_HELD: usize = 64;
/// Requests whose replies are waited for; one more is refused.
const MAX_ASKED: usize = 1_024;
/// The time that a host may take to know that the window leaves.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// Gives a new connection in place of one that has ended, once there is one.
pub type Connector = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = Client>>>>;

/// The progress of the window's attachment to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attachment {
    /// The session is being opened, or the window attached to it.
    OnItsWay,
    Attached,
    /// There is no session, or it has ended.
    Nothing,
}

/// The purpose of a reply.
enum PendingPurpose {
    Opening,
    Attaching,
    Detaching,
    /// The session to be watched: an elf's, or the one that the person opened.
    Watching {
        purpose: Purpose,
        is_elf: bool,
    },
    View(Purpose),
}

/// The way to a session. Dropping it leaves the session.
pub struct Link {
    /// `None` where the connection has ended.
    client: Option<Client>,
    spec: Option<Box<SessionSpec>>,
    session: SessionId,
    /// The session that the person opened, where one below it is watched.
    top: Option<SessionId>,
    reach: Attachment,
    /// The session has been seen.
    is_known: bool,
    asked: BTreeMap<RequestId, PendingPurpose>,
    held: VecDeque<ViewRequest>,
    inputs: VecDeque<Input>,
    connector: Option<Connector>,
    connecting: Option<Pin<Box<dyn Future<Output = Client>>>>,
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("session", &self.session)
            .field("reach", &self.reach)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// Attaches to the session. With a `spec`, another session is opened if this one no longer exists; with a
    /// `connector`, a lost connection is restored.
    #[must_use]
    pub fn new(
        client: Client,
        session: SessionId,
        spec: Option<Box<SessionSpec>>,
        connector: Option<Connector>,
    ) -> Self {
        let mut link = Self {
            client: Some(client),
            spec,
            session,
            top: None,
            reach: Attachment::OnItsWay,
            is_known: false,
            asked: BTreeMap::new(),
            held: VecDeque::new(),
            inputs: VecDeque::new(),
            connector,
            connecting: None,
        };
        link.attach();
        link
    }

    /// Sends a request, as soon as there is a session. Its reply always comes as an input.
    pub fn submit_request(&mut self, ask: ViewRequest) {
        let refused = |kind, cause: &str| RequestError::new(kind, cause);
        match self.reach {
            Attachment::OnItsWay if self.client.is_none() => {
                let closed = refused(RequestErrorKind::Closed, "cannot reach the server");
                self.push_reply(ask.purpose, Err(closed));
            }
            Attachment::OnItsWay if self.held.len() == MAX_HELD => {
                let busy = refused(RequestErrorKind::Busy, "too many requests are waiting");
                self.push_reply(ask.purpose, Err(busy));
            }
            Attachment::OnItsWay => self.held.push_back(ask),
            Attachment::Attached => self.pass_on(ask),
            Attachment::Nothing => match self.to_start(&ask.request) {
                Some(start) => {
                    self.open(start);
                    self.push_reply(ask.purpose, Ok(Reply::Done));
                }
                None => self.pass_on(ask),
            },
        }
    }

    /// The next input; `None` once nothing more can come. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<Input> {
        loop {
            if let Some(input) = self.inputs.pop_front() {
                return Some(input);
            }
            if let Some(client) = &mut self.client {
                match client.next().await {
                    Some(message) => self.on_message(message),
                    None => self.on_connection_lost(),
                }
            } else {
                let client = self.connecting.as_mut()?.await;
                self.reconnect(client);
            }
        }
    }

    /// The next input, if one has arrived.
    pub fn try_next(&mut self) -> Option<Input> {
        loop {
            if let Some(input) = self.inputs.pop_front() {
                return Some(input);
            }
            let message = self.client.as_mut()?.try_next()?;
            self.on_message(message);
        }
    }

    /// Goes on over another connection, with a view of the session as it is by then.
    pub fn reconnect(&mut self, client: Client) {
        (self.client, self.connecting) = (Some(client), None);
        self.reach = Attachment::OnItsWay;
        self.inputs.push_back(Input::Connected);
        self.attach();
    }

    /// Leaves the session for good, and waits a moment for the host to learn of it: the session ends with the last
    /// window that leaves, but not with one that merely disappears.
    pub async fn leave_session(mut self) {
        let Some(client) = &mut self.client else { return };
        let own = self.top.as_ref().unwrap_or(&self.session);
        let Ok(asked) = client.send_request(Some(own), Request::Detach) else { return };
        let told = async {
            while let Some(message) = client.next().await {
                if matches!(message, ServerMessage::Reply { id, .. } if id == asked) {
                    return;
                }
            }
        };
        let _silent = timeout(LEAVE_PATIENCE, told).await;
    }

    fn open(&mut self, start: Start) {
        let Some(mut spec) = self.spec.clone() else { return };
        spec.start = start;
        self.reach = Attachment::OnItsWay;
        self.send_request(None, Request::Open(spec), PendingPurpose::Opening);
    }

    fn attach(&mut self) {
        self.reach = Attachment::OnItsWay;
        let session = self.session.clone();
        self.send_request(
            Some(&session),
            Request::Attach { from: None },
            PendingPurpose::Attaching,
        );
    }

    /// Returns the start that a request for another session means if there is none: to begin with that.
    fn to_start(&self, request: &Request) -> Option<Start> {
        self.spec.as_ref()?;
        match request {
            Request::Switch(Switch::New) => Some(Start::New),
            Request::Switch(Switch::Stored(id)) => Some(stored_start(id, false)),
            Request::Switch(Switch::Copy(id)) => Some(stored_start(id, true)),
            _ => None,
        }
    }

    fn pass_on(&mut self, ViewRequest { request, purpose }: ViewRequest) {
        let session = self.session.clone();
        if let Request::WatchElf { name } = request {
            let asked = PendingPurpose::Watching { purpose, is_elf: !name.is_empty() };
            return self.send_request(Some(&session), Request::WatchElf { name }, asked);
        }
        self.send_request(Some(&session), request, PendingPurpose::View(purpose));
    }

    fn send_request(
        &mut self,
        session: Option<&SessionId>,
        request: Request,
        asked: PendingPurpose,
    ) {
        let sent = match &mut self.client {
            Some(client) if self.asked.len() < MAX_ASKED => client.send_request(session, request),
            Some(_) => {
                Err(RequestError::new(RequestErrorKind::Busy, "too many requests are waiting"))
            }
            None => Err(RequestError::new(RequestErrorKind::Closed, "the connection has ended")),
        };
        match sent {
            Ok(id) => {
                self.asked.insert(id, asked);
            }
            Err(error) => self.on_reply(asked, Err(error)),
        }
    }

    fn on_message(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Reply { id, result } => {
                if let Some(asked) = self.asked.remove(&id) {
                    self.on_reply(asked, result);
                }
            }
            // What another session said last, before the window was detached from it.
            ServerMessage::Event(envelope) if self.session != envelope.session => {}
            ServerMessage::Event(envelope) => {
                self.is_known = true;
                let is_over = envelope.event == Event::State(SessionState::Closed);
                self.inputs.push_back(Input::Session(envelope));
                match self.top.take_if(|_| is_over) {
                    // An elf that was watched has ended.
                    Some(top) => self.show_session(top),
                    None if is_over => self.reach = Attachment::Nothing,
                    None => {}
                }
            }
            ServerMessage::Snapshot(view) if self.session == view.session => {
                self.is_known = true;
                if view.state != SessionState::Closed {
                    self.reach = Attachment::Attached;
                }
                self.inputs.push_back(Input::Snapshot(view));
            }
            ServerMessage::Snapshot(_) | ServerMessage::Process(_) => {}
        }
    }

    fn on_reply(&mut self, asked: PendingPurpose, result: Result<Reply, RequestError>) {
        match (asked, result) {
            (PendingPurpose::View(purpose), Ok(Reply::Opened { session })) => {
                self.move_to(&session);
                self.push_reply(purpose, Ok(Reply::Opened { session }));
            }
            (PendingPurpose::Watching { purpose, is_elf }, Ok(Reply::Opened { session })) => {
                // The session that the person opened continues, and is not left for it.
                let own = self.top.take().unwrap_or_else(|| self.session.clone());
                self.top = is_elf.then_some(own);
                self.show_session(session.clone());
                self.push_reply(purpose, Ok(Reply::Opened { session }));
            }
            (PendingPurpose::View(purpose) | PendingPurpose::Watching { purpose, .. }, result) => {
                self.push_reply(purpose, result);
            }
            (PendingPurpose::Opening, Ok(Reply::Opened { session })) => self.move_to(&session),
            (PendingPurpose::Attaching, Ok(_)) => {
                self.reach = Attachment::Attached;
                for ask in std::mem::take(&mut self.held) {
                    self.pass_on(ask);
                }
            }
            (PendingPurpose::Attaching, Err(error)) => self.on_attach_failed(&error),
            (PendingPurpose::Opening, Err(error)) => self.on_no_session(&error),
            (PendingPurpose::Opening, Ok(_)) => {
                let kind = RequestErrorKind::Unknown;
                self.on_no_session(&RequestError::new(kind, "no session was opened"));
            }
            (PendingPurpose::Detaching, _) => {}
        }
    }

    /// A session that lives no more, because its server was ended, is opened again as it was stored.
    fn on_attach_failed(&mut self, error: &RequestError) {
        // An elf may have ended meanwhile.
        if let Some(top) = self.top.take() {
            return self.show_session(top);
        }
        let is_gone = error.kind == RequestErrorKind::NoSession && self.spec.is_some();
        if std::mem::take(&mut self.is_known) && is_gone {
            let id = self.session.to_string();
            return self.open(Start::Stored { id, fork: false });
        }
        self.on_no_session(error);
    }

    fn on_no_session(&mut self, error: &RequestError) {
        self.reach = Attachment::Nothing;
        self.inputs.push_back(Input::NoSession(error.clone()));
        for ask in std::mem::take(&mut self.held) {
            self.push_reply(ask.purpose, Err(error.clone()));
        }
    }

    fn move_to(&mut self, session: &SessionId) {
        let before = std::mem::replace(&mut self.session, session.clone());
        if before != *session {
            self.send_request(Some(&before), Request::Detach, PendingPurpose::Detaching);
        }
        self.is_known = false;
        self.attach();
    }

    /// Attaches to a session without leaving the one before.
    fn show_session(&mut self, session: SessionId) {
        self.session = session;
        self.is_known = false;
        self.attach();
    }

    fn push_reply(&mut self, purpose: Purpose, result: Result<Reply, RequestError>) {
        self.inputs.push_back(Input::Reply { purpose, result });
    }

    /// The connection has ended: nothing that was asked gets a reply any more.
    fn on_connection_lost(&mut self) {
        (self.client, self.reach) = (None, Attachment::OnItsWay);
        let error = RequestError::new(RequestErrorKind::Closed, "the connection has ended");
        // The last first: the view puts each before what it has.
        let asked = std::mem::take(&mut self.asked).into_values().rev();
        let asked = asked.filter_map(|asked| match asked {
            PendingPurpose::View(purpose) | PendingPurpose::Watching { purpose, .. } => {
                Some(purpose)
            }
            PendingPurpose::Opening | PendingPurpose::Attaching | PendingPurpose::Detaching => None,
        });
        let held = std::mem::take(&mut self.held).into_iter().rev().map(|ask| ask.purpose);
        let purposes: Vec<Purpose> = held.chain(asked).collect();
        for purpose in purposes {
            self.push_reply(purpose, Err(error.clone()));
        }
        self.connecting = self.connector.as_mut().map(|connect| connect());
        self.inputs.push_back(Input::Disconnected { returns: self.connecting.is_some() });
    }
}

fn stored_start(id: &Option<String>, fork: bool) -> Start {
    match id.clone() {
        Some(id) => Start::Stored { id, fork },
        None => Start::Newest { fork },
    }
}
