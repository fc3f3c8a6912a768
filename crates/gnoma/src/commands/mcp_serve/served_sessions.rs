//! Sessions that a client of the server talks to: each in the care of a task that follows it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gnoma_core::{
    Content, Event, Role,
    json_value::json,
    protocol::{Client, Reply, Request, RequestId, ServerMessage, SessionSpec, Start},
    session::{Outcome, SessionState},
    store::SessionId,
    task::box_future,
};
use gnoma_host::{live::Host, session_opening::Projects};
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::timeout,
};

use super::error::ServedSessionError;
use crate::session_resume;

/// Most sessions of a client.
const MAX_TALKS: usize = 64;
/// The time that a session may take to close before another takes its place.
const MAX_CLOSING: Duration = Duration::from_secs(10);
/// Requests that may wait for a session.
const MAX_WAITING: usize = 16;
/// Most reasons of refusals that are told of a turn.
const MAX_REFUSED: usize = 10;
/// Messages in which the last answer is looked for.
const MAX_LOOKED: u32 = 8;

/// The state of a session, as a client sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct ServedSessionStatus {
    /// The number of messages that were sent to the session.
    turns: u64,
    /// True if a turn runs.
    is_working: bool,
    /// True if the session has ended.
    is_over: bool,
    /// The end of the last turn, in a word.
    how: Option<&'static str>,
    /// The reason why the last turn failed, if it did.
    why: Option<String>,
    /// The last answer of the model.
    answer: String,
    /// The reasons why calls were refused in the last turn.
    refused: Vec<String>,
}

impl ServedSessionStatus {
    /// The state in a word.
    fn state_word(&self) -> &'static str {
        match self.how {
            _ if self.is_working => "working",
            _ if self.is_over => "ended",
            Some(how) => how,
            None => "idle",
        }
    }

    /// Formats the state for a client, and reports whether the turn failed.
    pub(super) fn render_reply(&self, session: &SessionId) -> (String, bool, Value) {
        let state = self.state_word();
        let mut text = match (&self.why, self.is_working) {
            (_, true) => "Still working. Call `status` for the answer.".to_owned(),
            (Some(why), _) => format!("{}{}{why}", self.answer, paragraph_gap(&self.answer)),
            (None, _) => self.answer.clone(),
        };
        for reason in &self.refused {
            text.push_str(&format!("{}Refused: {reason}", paragraph_gap(&text)));
        }
        text.push_str(&format!("{}[session {session}, {state}]", paragraph_gap(&text)));
        let facts = json!({
            "session": session.as_str(), "state": state, "answer": self.answer, "refused": self.refused,
        });
        (text, state == "failed", facts)
    }
}

fn paragraph_gap(text: &str) -> &'static str {
    if text.is_empty() { "" } else { "\n\n" }
}

/// A session with the task that follows it.
#[derive(Clone)]
struct ServedSession {
    requests: mpsc::Sender<Request>,
    seen: watch::Receiver<ServedSessionStatus>,
    /// The number of messages that were sent to the session, including those still on their way.
    said: u64,
    /// The time of the last use, counted in uses of all sessions.
    used: u64,
}

impl ServedSession {
    fn is_working(&self) -> bool {
        let seen = self.seen.borrow();
        !seen.is_over && (seen.is_working || seen.turns < self.said)
    }
}

/// The sessions of a client.
pub(super) struct ServedSessions {
    host: Host,
    spec: SessionSpec,
    state: Mutex<ServedSessionsState>,
}

#[derive(Default)]
struct ServedSessionsState {
    talks: BTreeMap<SessionId, ServedSession>,
    /// Sessions that are being opened.
    opening: usize,
    /// The number of sessions that were opened.
    opened: u64,
    uses: u64,
    following: JoinSet<()>,
}

impl ServedSessions {
    pub(super) fn new(spec: SessionSpec) -> Arc<Self> {
        let host = Host::new(Projects::default());
        Arc::new(Self { host, spec, state: Mutex::default() })
    }

    fn lock_state(&self) -> MutexGuard<'_, ServedSessionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session, a new one or a saved one.
    pub(super) async fn open(&self, start: Start) -> Result<SessionId, ServedSessionError> {
        let place = self.reserve_place().await?;
        // Requests are known by their client's name and number: under one name, a second session would be the
        // first one again.
        let mut client = self.host.connect(&format!("mcp-{}", place.number));
        let spec = SessionSpec { start, ..self.spec.clone() };
        let session = session_resume::open_session(&mut client, &spec).await?;
        client.send_request(Some(&session), Request::Attach { from: None })?;
        let (tell, seen) = watch::channel(ServedSessionStatus::default());
        let (requests, wanted) = mpsc::channel(MAX_WAITING);
        let mut state = self.lock_state();
        let following = ServedSessionFollower {
            client,
            session: session.clone(),
            tell,
            is_attached: false,
            asked: None,
            said: None,
        };
        state.following.spawn(box_future(following.run(wanted)));
        state.uses += 1;
        let used = state.uses;
        state.talks.insert(session.clone(), ServedSession { requests, seen, said: 0, used });
        Ok(session)
    }

    /// A place for one more session. Where there is none, the one that rests longest is closed: it is saved, and
    /// goes on when something is said in it.
    async fn reserve_place(&self) -> Result<ServedSessionSlot<'_>, ServedSessionError> {
        loop {
            let resting = {
                let mut state = self.lock_state();
                while state.following.try_join_next().is_some() {}
                state.talks.retain(|_, talk| !talk.seen.borrow().is_over);
                if state.talks.len() + state.opening < MAX_TALKS {
                    state.opening += 1;
                    state.opened += 1;
                    return Ok(ServedSessionSlot { talks: self, number: state.opened });
                }
                let resting = state.talks.iter().filter(|(_, talk)| !talk.is_working());
                let longest = resting.min_by_key(|(_, talk)| talk.used).map(|(id, _)| id.clone());
                longest.and_then(|id| state.talks.remove(&id))
            };
            let Some(ServedSession { requests, mut seen, .. }) = resting else {
                return Err(ServedSessionError::TooManySessions { max: MAX_TALKS });
            };
            requests.send(Request::Close).await.ok();
            timeout(MAX_CLOSING, seen.wait_for(|seen| seen.is_over)).await.ok();
        }
    }

    fn find_talk(&self, session: &SessionId) -> Result<ServedSession, ServedSessionError> {
        let mut state = self.lock_state();
        state.uses += 1;
        let used = state.uses;
        let talk = state.talks.get_mut(session);
        let talk = talk.ok_or_else(|| ServedSessionError::UnknownSession(session.clone()))?;
        talk.used = used;
        Ok(talk.clone())
    }

    /// True if the client already talks to that session.
    pub(super) fn has_session(&self, session: &SessionId) -> bool {
        self.find_talk(session).is_ok_and(|talk| !talk.seen.borrow().is_over)
    }

    /// Sends a message to a session, and returns the number of its turn.
    pub(super) fn send_prompt(
        &self,
        session: &SessionId,
        prompt: &str,
    ) -> Result<u64, ServedSessionError> {
        let mut state = self.lock_state();
        let talk = state.talks.get_mut(session);
        let talk = talk.ok_or_else(|| ServedSessionError::UnknownSession(session.clone()))?;
        if talk.is_working() {
            return Err(ServedSessionError::TurnRuns);
        }
        let request = Request::Send { content: vec![Content::from_text(prompt)] };
        talk.requests.try_send(request).map_err(|_| ServedSessionError::NotAccepting)?;
        talk.said = talk.seen.borrow().turns + 1;
        Ok(talk.said)
    }

    /// Stops the turn that runs in a session.
    pub(super) fn cancel(&self, session: &SessionId) -> Result<(), ServedSessionError> {
        let sent = self.find_talk(session)?.requests.try_send(Request::Cancel);
        sent.map_err(|_| ServedSessionError::NotAccepting)
    }

    /// Waits until the turn of that number has ended, or that time has passed, and returns the state of the
    /// session.
    pub(super) async fn wait_for_turn(
        &self,
        session: &SessionId,
        wait: Duration,
        turn: u64,
    ) -> Result<ServedSessionStatus, ServedSessionError> {
        let talk = self.find_talk(session)?;
        let mut seen = talk.seen.clone();
        let is_done =
            |seen: &ServedSessionStatus| seen.is_over || (seen.turns >= turn && !seen.is_working);
        timeout(wait, seen.wait_for(is_done)).await.ok();
        Ok(talk.seen.borrow().clone())
    }

    /// Ends all sessions, which save what they have.
    pub(super) async fn shut_down(&self) {
        self.host.shut_down().await;
    }
}

/// The place of a session that is being opened.
struct ServedSessionSlot<'a> {
    talks: &'a ServedSessions,
    /// Of all that were opened.
    number: u64,
}

impl Drop for ServedSessionSlot<'_> {
    fn drop(&mut self) {
        self.talks.lock_state().opening -= 1;
    }
}

/// A client that follows a session and reports its state.
struct ServedSessionFollower {
    client: Client,
    session: SessionId,
    tell: watch::Sender<ServedSessionStatus>,
    /// The state at the beginning was told.
    is_attached: bool,
    /// The request for the last messages, at the end of a turn.
    asked: Option<RequestId>,
    /// The request to say something, until it is answered.
    said: Option<RequestId>,
}

impl ServedSessionFollower {
    async fn run(mut self, mut wanted: mpsc::Receiver<Request>) {
        loop {
            tokio::select! {
                request = wanted.recv() => match request {
                    Some(request) => self.send_request(request),
                    None => return,
                },
                message = self.client.next() => match message {
                    Some(message) => self.on_message(message),
                    None => return self.mark_over(),
                },
            }
        }
    }

    fn mark_over(&self) {
        self.tell.send_modify(|seen| (seen.is_working, seen.is_over) = (false, true));
    }

    fn send_request(&mut self, request: Request) {
        let says = matches!(request, Request::Send { .. });
        if says {
            self.tell.send_modify(|seen| {
                let turns = seen.turns + 1;
                *seen = ServedSessionStatus {
                    turns,
                    is_working: true,
                    ..ServedSessionStatus::default()
                };
            });
        }
        match self.client.send_request(Some(&self.session), request) {
            Ok(id) if says => self.said = Some(id),
            Ok(_) => (),
            Err(error) => self.mark_failed(&error.cause),
        }
    }

    fn mark_failed(&self, why: &str) {
        self.tell.send_modify(|seen| {
            (seen.is_working, seen.how) = (false, Some("failed"));
            seen.why = Some(why.to_owned());
        });
    }

    fn on_message(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Event(envelope) => self.on_event(&envelope.event),
            ServerMessage::Snapshot(_) if !self.is_attached => self.is_attached = true,
            // Events were missed: where no turn runs any more, the answer is there.
            ServerMessage::Snapshot(view) => {
                let waits = self.tell.borrow().is_working && self.said.is_none();
                if waits && view.state == SessionState::Idle && view.turn.is_none() {
                    self.ask_for_answer();
                }
            }
            ServerMessage::Reply { id, result }
                if self.said.take_if(|said| *said == id).is_some() =>
            {
                if let Err(error) = result {
                    self.mark_failed(&error.cause);
                }
            }
            ServerMessage::Reply { id, result } if self.asked.take_if(|it| *it == id).is_some() => {
                let messages = match result {
                    Ok(Reply::History { messages, .. }) => messages,
                    _ => Vec::new(),
                };
                let answer = messages.iter().rev().find(|it| it.role() == Role::Assistant);
                let answer = answer.map(|message| message.text_content()).unwrap_or_default();
                self.tell.send_modify(|seen| {
                    seen.is_working = false;
                    seen.answer = answer;
                });
            }
            ServerMessage::Reply { .. } | ServerMessage::Process(_) => (),
        }
    }

    fn ask_for_answer(&mut self) {
        let request = Request::History { before: None, max: MAX_LOOKED };
        match self.client.send_request(Some(&self.session), request) {
            Ok(id) => self.asked = Some(id),
            Err(error) => self.mark_failed(&error.cause),
        }
    }

    fn on_event(&mut self, event: &Event) {
        match event {
            Event::PermissionDecided { allowed: false, reason, .. } => {
                self.tell.send_if_modified(|seen| {
                    let is_new = seen.refused.len() < MAX_REFUSED && !seen.refused.contains(reason);
                    if is_new {
                        seen.refused.push(reason.clone());
                    }
                    is_new
                });
            }
            Event::TurnEnded { outcome, .. } => {
                let (how, why) = describe_outcome(outcome);
                self.tell.send_modify(|seen| (seen.how, seen.why) = (Some(how), why));
                self.ask_for_answer();
            }
            Event::State(SessionState::Closed) => self.mark_over(),
            _ => (),
        }
    }
}

/// Describes the end of a turn in a word, with the reason if the turn did not end well.
fn describe_outcome(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Complete { .. } => ("done", None),
        Outcome::Cancelled => ("cancelled", Some("The turn was cancelled.".to_owned())),
        Outcome::RoundLimit { rounds } => {
            ("failed", Some(format!("Stopped after {rounds} model calls.")))
        }
        Outcome::Stuck { what } => ("failed", Some(format!("Stopped: {what}."))),
        Outcome::Unfit { why, .. } => ("failed", Some(why.clone())),
        Outcome::Failed { error, .. } => ("failed", Some(error.to_string())),
    }
}
