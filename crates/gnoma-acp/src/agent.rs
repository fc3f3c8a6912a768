//! The agent between its client and the host. It waits for nothing: messages of either side go in, and
//! what is to be written comes out.

use std::time::Duration;

use gnoma_core::{
    json_value::json,
    lines::Line,
    protocol::{Client, Reply, RequestError, RequestErrorKind, RequestId, ServerMessage},
    store::SessionId,
};
use serde_json::{Value, value::RawValue};
use tokio::time::timeout;

pub use crate::state::AgentOptions;
use crate::{
    error::RpcError,
    files::{self, WantedFile, WantedFiles},
    params::{Params, missing_parameter},
    permission,
    session::SessionEntryMode,
    session_control, session_setup,
    state::{AgentState, AskedQuestion, PendingHostRequest},
    stored,
    wire::{self, AcpClientMessage, RpcId},
};

/// Requests that a client may have open at once; one more is refused.
const MAX_IN_FLIGHT: usize = 256;
/// The time the host may take to hear that sessions are left.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// The method that comes first.
const INITIALIZE: &str = "initialize";

/// A message from the host's side of the agent.
#[derive(Debug)]
pub enum AgentMessage {
    /// A message of the host.
    Told(ServerMessage),
    /// A tool wants to see a file.
    File(WantedFile),
}

/// The agent's side of one connection.
#[derive(Debug)]
pub struct Agent(AgentState);

impl Agent {
    /// An agent whose sessions live where `client` leads.
    #[must_use]
    pub fn new(client: Client, options: AgentOptions) -> Self {
        Self(AgentState::new(client, options))
    }

    /// The same, with the files that tools in its process want to see.
    #[must_use]
    pub fn with_files(mut self, wanted: WantedFiles) -> Self {
        self.0.wanted = Some(wanted);
        self
    }

    /// Returns the bytes that wait to be written to the client. The caller removes the bytes that it has written.
    pub fn output_buffer(&mut self) -> &mut Vec<u8> {
        self.0.output_buffer()
    }

    /// Waits for the next message from the host's side; returns `None` once the host has gone. Safe to drop and
    /// call again.
    pub async fn next(&mut self) -> Option<AgentMessage> {
        let AgentState { client, wanted, .. } = &mut self.0;
        let file = async {
            match wanted {
                Some(wanted) => wanted.0.recv().await,
                None => None,
            }
        };
        tokio::select! {
            biased;
            Some(wanted) = file => Some(AgentMessage::File(wanted)),
            message = client.next() => message.map(AgentMessage::Told),
        }
    }

    /// Takes in what came from the host's side.
    pub fn on_message(&mut self, message: AgentMessage) {
        match message {
            AgentMessage::Told(message) => self.on_host_message(message),
            AgentMessage::File(wanted) => self.0.request_file(wanted),
        }
    }

    /// Takes in a line of the client.
    pub fn on_client_line(&mut self, line: &Line) {
        match wire::decode_line(line) {
            Ok(None) => (),
            Ok(Some(AcpClientMessage::Request { id, method, params })) => {
                self.on_request(&id, &method, params.as_deref());
            }
            Ok(Some(AcpClientMessage::Notification { method, params })) => {
                self.on_notification(&method, params.as_deref());
            }
            Ok(Some(AcpClientMessage::Response { id, result })) => {
                let result = result.as_deref().ok();
                if let Some(id) = id
                    && !self.0.deliver_file(id, result.and_then(files::parse_file_text))
                {
                    self.0.on_question_answered(id, |offers| {
                        permission::parse_answer(offers, result)
                    });
                }
            }
            Err(unreadable) => self.0.send_error(&unreadable.id, unreadable.error),
        }
    }

    fn on_request(&mut self, id: &RpcId, method: &str, params: Option<&RawValue>) {
        let state = &mut self.0;
        if state.in_flight.contains(id) {
            // Under its own id this would be taken for the answer to the first.
            let text = format!("the id {id} belongs to a request that is not answered yet");
            let error = RpcError::new(RpcError::INVALID_REQUEST, text);
            return state.send_error(&RpcId::none(), error);
        }
        if state.in_flight.len() >= MAX_IN_FLIGHT {
            let text = format!("{MAX_IN_FLIGHT} requests are already open");
            return state.send_error(id, RpcError::new(RpcError::INTERNAL, text));
        }
        state.in_flight.insert(id.clone());
        if let Err(error) = dispatch_request(state, id, method, params) {
            state.answer_request(id, &Err(error));
        }
    }

    fn on_notification(&mut self, method: &str, params: Option<&RawValue>) {
        let state = &mut self.0;
        let Ok(params) = Params::from_raw(params) else { return };
        match (method, &params.session_id, &params.request_id) {
            ("session/cancel", Some(session), _) => session_control::cancel_turn(state, session),
            ("$/cancel_request", _, Some(request)) => {
                if let Some(id) = RpcId::from_json(request.get()) {
                    cancel_request(state, &id);
                }
            }
            _ => (),
        }
    }

    /// Takes in a message of the host.
    fn on_host_message(&mut self, message: ServerMessage) {
        let state = &mut self.0;
        state.send_waiting();
        let session = match &message {
            ServerMessage::Event(envelope) => envelope.session.clone(),
            ServerMessage::Snapshot(view) => view.session.clone(),
            ServerMessage::Reply { .. } => {
                if let ServerMessage::Reply { id, result } = message {
                    on_host_reply(state, id, result);
                }
                return;
            }
            ServerMessage::Process(_) => {
                if let ServerMessage::Process(event) = message {
                    stored::on_process_event(state, event);
                }
                return;
            }
        };
        let mut fx = Vec::new();
        if let Some(open) = state.sessions.get_mut(&session) {
            open.on_host_message(message, &mut fx);
        }
        state.run_effects(&session, fx);
        stored::leave_resting(state);
    }

    /// Reports whether requests of the client still wait for room at the host. The client is not read until the
    /// host has taken them.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.0.is_behind()
    }

    /// Reports whether running calls have output that is not shown yet.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.0.sessions.values().any(|session| session.translator.calls.has_output())
    }

    /// Shows what running calls have said.
    pub fn show_output(&mut self) {
        let ids: Vec<SessionId> = self.0.sessions.keys().cloned().collect();
        for id in ids {
            let mut fx = Vec::new();
            if let Some(session) = self.0.sessions.get_mut(&id) {
                session.show_output(&mut fx);
            }
            self.0.run_effects(&id, fx);
        }
    }

    /// The client has gone: leaves its sessions.
    pub fn detach_sessions(&mut self) {
        let ids: Vec<SessionId> = self.0.sessions.keys().cloned().collect();
        for id in &ids {
            self.0.detach_session(id);
        }
    }

    /// Waits until the host has heard that its sessions are left, but not long.
    pub async fn wait_until_detached(&mut self) {
        let heard = async {
            while (self.is_behind() || !self.0.asked.is_empty())
                && let Some(message) = self.0.client.next().await
            {
                self.0.send_waiting();
                if let ServerMessage::Reply { id, .. } = message {
                    self.0.asked.remove(&id);
                }
            }
        };
        let _late = timeout(LEAVE_PATIENCE, heard).await;
    }
}

/// Carries out a request. Requests whose answer is not known yet are answered later.
fn dispatch_request(
    state: &mut AgentState,
    id: &RpcId,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), RpcError> {
    check_method(state, method)?;
    let params = Params::from_raw(params)?;
    if let Some(mode) = session_entry_mode(method) {
        return session_setup::open_session(state, id, params, mode);
    }
    let answer = match method {
        INITIALIZE => session_setup::initialize_client(state, params)?,
        "authenticate" => session_setup::check_auth_method(&params)?,
        "session/list" => return stored::list_sessions(state, id, &params),
        "session/close" => return stored::close_session(state, id, &params),
        "session/delete" => return stored::delete_session(state, id, &params),
        "session/prompt" => return session_control::submit_prompt(state, id, params),
        "session/set_mode" => return session_control::set_mode(state, id, &params),
        "session/set_config_option" => return session_control::set_option(state, id, &params),
        // A notification that came as a request.
        _ => {
            let session =
                params.session_id.as_deref().ok_or_else(|| missing_parameter("sessionId"))?;
            session_control::cancel_turn(state, session);
            json!({})
        }
    };
    state.answer_request(id, &Ok(answer));
    Ok(())
}

/// Refuses methods that do not exist, and all but `initialize` before it was called.
fn check_method(state: &AgentState, method: &str) -> Result<(), RpcError> {
    if !METHODS.contains(&method) {
        let method: String = method.chars().take(100).collect();
        let text = format!("there is no method `{method}`");
        return Err(RpcError::new(RpcError::NO_METHOD, text));
    }
    if method != INITIALIZE && state.capabilities.is_none() {
        let text = "send `initialize` first";
        return Err(RpcError::new(RpcError::INVALID_REQUEST, text));
    }
    Ok(())
}

/// Returns how a method enters a session; `None` for a method that opens none.
fn session_entry_mode(method: &str) -> Option<SessionEntryMode> {
    match method {
        "session/new" => Some(SessionEntryMode::New),
        "session/load" => Some(SessionEntryMode::Load),
        "session/resume" => Some(SessionEntryMode::Resume),
        "session/fork" => Some(SessionEntryMode::Fork),
        _ => None,
    }
}

/// The methods that there are.
const METHODS: [&str; 13] = [
    INITIALIZE,
    "authenticate",
    "session/new",
    "session/load",
    "session/resume",
    "session/fork",
    "session/list",
    "session/close",
    "session/delete",
    "session/prompt",
    "session/set_mode",
    "session/set_config_option",
    "session/cancel",
];

/// The client does not want an answer any more. A prompt still gets the one that says so.
fn cancel_request(state: &mut AgentState, id: &RpcId) {
    let prompt = state.asked.values().find_map(|asked| match asked {
        PendingHostRequest::Prompt { session, request }
        | PendingHostRequest::Task { session, request }
            if request == id =>
        {
            Some(session.clone())
        }
        _ => None,
    });
    let running = || {
        let mut sessions = state.sessions.iter();
        sessions
            .find(|(_, session)| session.turns.has_prompt(id))
            .map(|(session, _)| session.clone())
    };
    match prompt.or_else(running) {
        Some(session) => session_control::cancel_turn(state, session.as_str()),
        None => {
            let error = RpcError::new(RpcError::CANCELLED, "the request was cancelled");
            state.answer_request(id, &Err(error));
        }
    }
}

/// The host has answered.
fn on_host_reply(state: &mut AgentState, id: RequestId, result: Result<Reply, RequestError>) {
    let Some(asked) = state.asked.remove(&id) else { return };
    match asked {
        PendingHostRequest::Open { request, how, folder } => {
            session_setup::on_session_opened(state, request, how, &folder, result);
        }
        PendingHostRequest::Attach(_)
        | PendingHostRequest::Catch(_)
        | PendingHostRequest::Page(_) => {
            on_session_reply(state, &asked, result);
        }
        PendingHostRequest::Prompt { session, request } => {
            session_control::on_prompt_reply(state, &session, &request, result);
        }
        PendingHostRequest::Task { session, request } => {
            session_control::on_task_reply(state, &session, &request, result);
        }
        PendingHostRequest::Plain(request) => {
            state.answer_request(&request, &to_empty_result(result));
        }
        PendingHostRequest::Option { request, session, option } => {
            let answer = session_control::option_set(state, &session, option, result);
            state.answer_request(&request, &answer);
        }
        PendingHostRequest::Leave { session, request } => {
            stored::on_detached(state, session, request);
        }
        PendingHostRequest::Living => {
            if let Ok(Reply::Live(all)) = result {
                stored::on_live_sessions(state, &all);
            }
        }
        PendingHostRequest::Stored { request, folder, from } => {
            let answer = stored::sessions_page(state, result, folder.as_deref(), from);
            state.answer_request(&request, &answer);
        }
        PendingHostRequest::Answer(question) => on_answer_reply(state, question, &result),
        PendingHostRequest::Delete { session, request } => {
            let answer = stored::on_session_deleted(state, &session, result);
            state.answer_request(&request, &answer);
        }
        PendingHostRequest::Nothing => (),
    }
    stored::leave_resting(state);
}

/// The host has answered the answer to a question: one that it could not take is asked again.
fn on_answer_reply(
    state: &mut AgentState,
    question: AskedQuestion,
    result: &Result<Reply, RequestError>,
) {
    if result.as_ref().is_err_and(|error| error.kind == RequestErrorKind::Busy) {
        state.not_answered(question);
    }
}

/// The host has answered a session of the client.
fn on_session_reply(
    state: &mut AgentState,
    asked: &PendingHostRequest,
    result: Result<Reply, RequestError>,
) {
    let (PendingHostRequest::Attach(id)
    | PendingHostRequest::Catch(id)
    | PendingHostRequest::Page(id)) = asked
    else {
        return;
    };
    let mut fx = Vec::new();
    if let Some(session) = state.sessions.get_mut(id) {
        match (asked, result) {
            (PendingHostRequest::Catch(_), result) => session.on_caught_up(result, &mut fx),
            (PendingHostRequest::Page(_), result) => session.on_history_page(result, &mut fx),
            (_, Err(error)) => session.not_attached(error, &mut fx),
            (_, Ok(_)) => (),
        }
    }
    state.run_effects(id, fx);
}

/// There is nothing to say but that it is done.
fn to_empty_result(result: Result<Reply, RequestError>) -> Result<Value, RpcError> {
    result.map(|_| json!({})).map_err(RpcError::from)
}
