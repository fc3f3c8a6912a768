//! The state that the ACP agent keeps between messages.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    path::{Path, PathBuf},
    sync::mpsc::SyncSender,
};

use gnoma_core::{
    CallId, ThinkingMode,
    json_value::json,
    protocol::{Client, Request, RequestError, RequestErrorKind, RequestId, SessionSpec},
    session::{PermissionAnswer, PermissionMode},
    store::SessionId,
};
use serde_json::Value;

use crate::{
    config::PinnedModel,
    effect::SessionEffect,
    error::RpcError,
    files::{WantedFile, WantedFiles},
    params::ClientCapabilities,
    permission::{AnswerOffer, ClientQuestion},
    session::{ClientSession, SessionEntryMode},
    wire::{self, RpcId},
};

/// Sessions of which the folder is kept in mind.
const MAX_FOLDERS: usize = 8_192;
/// Requests that wait for the host to take them. The client is not heard meanwhile, and nothing waits twice.
const MAX_UNSENT: usize = 1_024;

/// Files that the client may be asked for at a time; a client that answers nothing is soon asked no more.
const MAX_FILES: usize = 32;

/// The options that an agent is started with.
#[derive(Clone, Debug)]
pub struct AgentOptions {
    /// The options that sessions are opened with, except for what the client says.
    pub spec: SessionSpec,
    /// The version of the program.
    pub version: String,
}

/// The state of the agent: its client, sessions and open requests.
#[derive(Debug)]
pub(crate) struct AgentState {
    pub client: Client,
    pub options: AgentOptions,
    /// The capabilities of the client; `None` until the client has told them.
    pub capabilities: Option<ClientCapabilities>,
    pub sessions: HashMap<SessionId, ClientSession>,
    /// The requests to the host that wait for a reply.
    pub asked: HashMap<RequestId, PendingHostRequest>,
    /// Requests of the client that are not answered yet.
    pub in_flight: HashSet<RpcId>,
    /// Sessions that are being left, until the host says that they are gone.
    pub leaving: Vec<(SessionId, RpcId)>,
    pub watches: bool,
    /// The folders of the sessions that the client was told of.
    folders: HashMap<SessionId, PathBuf>,
    questions: HashMap<u64, AskedQuestion>,
    /// The requests that the host had no room for yet, in their order.
    unsent: VecDeque<(Option<SessionId>, Request, PendingHostRequest)>,
    /// Files that the client is asked for.
    pub files: HashMap<u64, SyncSender<String>>,
    pub wanted: Option<WantedFiles>,
    next_id: u64,
    out: Vec<u8>,
}

/// A question that the client puts to the person.
#[derive(Debug)]
pub(crate) struct AskedQuestion {
    session: SessionId,
    asking: Box<ClientQuestion>,
}

/// The purpose of a reply of the host.
#[derive(Debug)]
pub(crate) enum PendingHostRequest {
    /// A session is opened in a folder.
    Open { request: RpcId, how: SessionEntryMode, folder: PathBuf },
    /// The client follows the session from now on.
    Attach(SessionId),
    /// Messages that were missed.
    Catch(SessionId),
    /// A page of the past.
    Page(SessionId),
    /// A prompt for a session.
    Prompt { session: SessionId, request: RpcId },
    /// A prompt that asks about tasks, or runs one.
    Task { session: SessionId, request: RpcId },
    /// The client's request is answered only with the fact that it is done.
    Plain(RpcId),
    /// An option is set.
    Option { request: RpcId, session: SessionId, option: SetOption },
    /// The session is left.
    Leave { session: SessionId, request: RpcId },
    /// The reply tells whether a session that was left has gone, and the titles of the others.
    Living,
    /// Stored sessions, from that place on; under the folder that was asked for.
    Stored { request: RpcId, folder: Option<String>, from: usize },
    /// A question is answered.
    Answer(AskedQuestion),
    /// A session is deleted.
    Delete { session: SessionId, request: RpcId },
    /// The reply is not waited for.
    Nothing,
}

/// An option that is set once the session has taken it.
#[derive(Debug)]
pub(crate) enum SetOption {
    Mode(PermissionMode),
    Model(PinnedModel),
    Thinking(Option<ThinkingMode>),
}

impl AgentState {
    pub(crate) fn new(client: Client, options: AgentOptions) -> Self {
        Self {
            client,
            options,
            capabilities: None,
            sessions: HashMap::new(),
            asked: HashMap::new(),
            in_flight: HashSet::new(),
            leaving: Vec::new(),
            watches: false,
            folders: HashMap::new(),
            questions: HashMap::new(),
            unsent: VecDeque::new(),
            files: HashMap::new(),
            wanted: None,
            next_id: 1,
            out: Vec::new(),
        }
    }

    /// A session of that folder is known to the client.
    pub(crate) fn remember_folder(&mut self, session: &SessionId, folder: &Path) {
        if self.folders.len() >= MAX_FOLDERS {
            self.folders.clear();
        }
        self.folders.insert(session.clone(), folder.to_owned());
    }

    /// The folder that a session belongs to; that of the agent, where the client was not told of it.
    pub(crate) fn session_folder(&self, session: &SessionId) -> PathBuf {
        self.folders.get(session).unwrap_or(&self.options.spec.folder).clone()
    }

    /// Returns the bytes that wait to be written.
    pub(crate) fn output_buffer(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Answers a request of the client; only once.
    pub(crate) fn answer_request(&mut self, id: &RpcId, result: &Result<Value, RpcError>) {
        if self.in_flight.remove(id) {
            wire::write_answer(id, result, &mut self.out);
        }
    }

    /// Answers what is no request that could be answered.
    pub(crate) fn send_error(&mut self, id: &RpcId, error: RpcError) {
        wire::write_answer(id, &Err(error), &mut self.out);
    }

    /// Asks the host for a request of the client, which gets the error where it cannot be asked.
    pub(crate) fn request_host(
        &mut self,
        session: Option<&SessionId>,
        request: Request,
        for_request: &RpcId,
        asked: PendingHostRequest,
    ) -> bool {
        self.send_waiting();
        // Nothing overtakes what waits.
        let sent = if self.unsent.is_empty() {
            self.client.send_request(session, request)
        } else {
            let cause = "too many requests wait for the session";
            Err(RequestError::new(RequestErrorKind::Busy, cause))
        };
        match sent {
            Ok(id) => {
                self.asked.insert(id, asked);
                true
            }
            Err(error) => {
                self.answer_request(for_request, &Err(error.into()));
                false
            }
        }
    }

    /// Sends a request to the host once it has room for it.
    pub(crate) fn send_when_room(
        &mut self,
        session: Option<&SessionId>,
        request: Request,
        asked: PendingHostRequest,
    ) {
        let is_same = |(other, known, _): &(Option<SessionId>, Request, PendingHostRequest)| {
            other.as_ref() == session && *known == request
        };
        if self.unsent.len() < MAX_UNSENT && !self.unsent.iter().any(is_same) {
            self.unsent.push_back((session.cloned(), request, asked));
        }
        self.send_waiting();
    }

    /// Sends what waits, as far as the host has room.
    pub(crate) fn send_waiting(&mut self) {
        while self.client.has_room()
            && let Some((session, request, asked)) = self.unsent.pop_front()
        {
            if let Ok(id) = self.client.send_request(session.as_ref(), request) {
                self.asked.insert(id, asked);
            }
        }
    }

    /// Reports whether requests wait for the host.
    pub(crate) fn is_behind(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// The session, where the client has it open.
    pub(crate) fn open(&mut self, id: &str) -> Result<(SessionId, &mut ClientSession), RpcError> {
        let key = SessionId::new(id);
        match self.sessions.get_mut(&key).filter(|session| session.is_open()) {
            Some(session) => Ok((key, session)),
            None => Err(RpcError::no_session(id)),
        }
    }

    /// Does what a session wants done.
    pub(crate) fn run_effects(&mut self, session: &SessionId, fx: Vec<SessionEffect>) {
        for effect in fx {
            match effect {
                SessionEffect::Update(update) => self.send_update(session, &update),
                SessionEffect::Answer(id, result) => self.answer_request(&id, &result),
                SessionEffect::Ask(asking) => self.send_question(session.clone(), asking),
                SessionEffect::Withdraw(call) => self.withdraw_questions(session, Some(&call)),
                SessionEffect::Catch(request) => {
                    self.send_when_room(
                        Some(session),
                        request,
                        PendingHostRequest::Catch(session.clone()),
                    );
                }
                SessionEffect::Page(request) => {
                    self.send_when_room(
                        Some(session),
                        request,
                        PendingHostRequest::Page(session.clone()),
                    );
                }
                SessionEffect::Title => {
                    self.send_when_room(None, Request::List, PendingHostRequest::Living);
                }
            }
        }
        if self.sessions.get(session).is_some_and(ClientSession::has_ended) {
            self.detach_session(session);
        }
    }

    /// The session is the client's no more.
    pub(crate) fn detach_session(&mut self, session: &SessionId) {
        self.sessions.remove(session);
        self.withdraw_questions(session, None);
        self.send_when_room(Some(session), Request::Detach, PendingHostRequest::Nothing);
    }

    fn send_update(&mut self, session: &SessionId, update: &Value) {
        let params = json!({ "sessionId": session.as_str(), "update": update });
        wire::write_notification("session/update", &params, &mut self.out);
    }

    /// Puts a question to the person.
    fn send_question(&mut self, session: SessionId, asking: Box<ClientQuestion>) {
        let id = self.next_id;
        self.next_id += 1;
        wire::write_request(id, asking.method, &asking.params, &mut self.out);
        self.questions.insert(id, AskedQuestion { session, asking });
    }

    /// Asks the client for a file, where it shows them and has the session.
    pub(crate) fn request_file(&mut self, wanted: WantedFile) {
        let WantedFile { session, path, reply } = wanted;
        let shows = self.capabilities.as_ref().is_some_and(ClientCapabilities::reads_files);
        let Some(path) = path.to_str().filter(|_| shows && self.files.len() < MAX_FILES) else {
            return;
        };
        if !self.sessions.contains_key(&session) {
            return;
        }
        let id = self.next_id;
        self.next_id += 1;
        let params = json!({ "sessionId": session.as_str(), "path": path });
        wire::write_request(id, "fs/read_text_file", &params, &mut self.out);
        self.files.insert(id, reply);
    }

    /// The client has shown a file, or has not; whether it was asked for one under this id.
    pub(crate) fn deliver_file(&mut self, id: u64, text: Option<String>) -> bool {
        let Some(reply) = self.files.remove(&id) else { return false };
        if let Some(text) = text {
            // A tool that has waited too long has read the file as it is saved.
            let _late = reply.try_send(text);
        }
        true
    }

    /// Takes questions back that were answered elsewhere: one, or all of the session.
    fn withdraw_questions(&mut self, session: &SessionId, call: Option<&CallId>) {
        let is_it = |question: &AskedQuestion| {
            question.session == *session && call.is_none_or(|call| question.asking.call == *call)
        };
        let gone: Vec<u64> =
            self.questions.iter().filter(|(_, it)| is_it(it)).map(|(id, _)| *id).collect();
        for id in gone {
            self.questions.remove(&id);
            let params = json!({ "requestId": id });
            wire::write_notification("$/cancel_request", &params, &mut self.out);
        }
    }

    /// The person has answered a question; one that is not open is passed over.
    pub(crate) fn on_question_answered(
        &mut self,
        id: u64,
        read: impl FnOnce(&AnswerOffer) -> PermissionAnswer,
    ) {
        let Some(question) = self.questions.remove(&id) else { return };
        let answer = read(&question.asking.offers);
        let request = Request::Answer { call: question.asking.call.clone(), answer };
        let session = question.session.clone();
        self.send_when_room(Some(&session), request, PendingHostRequest::Answer(question));
    }

    /// The session has no room for an answer: the question is still open, and is put again.
    pub(crate) fn not_answered(&mut self, question: AskedQuestion) {
        let AskedQuestion { session, asking } = question;
        let is_open =
            self.sessions.get(&session).is_some_and(|open| open.has_question(&asking.call));
        if is_open {
            self.send_question(session, asking);
        }
    }
}
