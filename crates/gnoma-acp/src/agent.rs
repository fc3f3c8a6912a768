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
    opening,
    params::{Params, missing},
    permission,
    session::How,
    state::{AgentState, HostAsked},
    steering, stored,
    wire::{self, Incoming, RpcId},
};

/// Requests that a client may have open at once; one more is refused.
const MAX_IN_FLIGHT: usize = 256;
/// How long the host may take to hear that sessions are left.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);
/// The method that comes first.
const INITIALIZE: &str = "initialize";

/// What comes from the host's side.
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

    /// What is to be written to the client. Whoever writes some of it takes it out.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.0.out()
    }

    /// What comes next from the host's side; `None` once it has gone. Safe to drop and call again.
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
    pub fn hear(&mut self, message: AgentMessage) {
        match message {
            AgentMessage::Told(message) => self.message(message),
            AgentMessage::File(wanted) => self.0.want(wanted),
        }
    }

    /// Takes in a line of the client.
    pub fn line(&mut self, line: &Line) {
        match wire::decode(line) {
            Ok(None) => (),
            Ok(Some(Incoming::Request { id, method, params })) => {
                self.request(&id, &method, params.as_deref());
            }
            Ok(Some(Incoming::Notification { method, params })) => {
                self.notification(&method, params.as_deref());
            }
            Ok(Some(Incoming::Response { id, result })) => {
                let result = result.as_deref().map_err(String::as_str);
                if let Some(id) = id
                    && !self.0.shown(id, result.ok().and_then(files::text))
                {
                    self.0.answered(id, |offers| permission::answer(offers, result));
                }
            }
            Err(unreadable) => self.0.complain(&unreadable.id, unreadable.error),
        }
    }

    fn request(&mut self, id: &RpcId, method: &str, params: Option<&RawValue>) {
        let state = &mut self.0;
        if state.in_flight.contains(id) {
            // Under its own id this would be taken for the answer to the first.
            let text = format!("the id {id} belongs to a request that is not answered yet");
            let error = RpcError::new(RpcError::INVALID_REQUEST, text);
            return state.complain(&RpcId::none(), error);
        }
        if state.in_flight.len() >= MAX_IN_FLIGHT {
            let text = format!("{MAX_IN_FLIGHT} requests are already open");
            return state.complain(id, RpcError::new(RpcError::INTERNAL, text));
        }
        state.in_flight.insert(id.clone());
        if let Err(error) = dispatch(state, id, method, params) {
            state.answer(id, &Err(error));
        }
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        let state = &mut self.0;
        let Ok(params) = Params::read(params) else { return };
        match (method, &params.session_id, &params.request_id) {
            ("session/cancel", Some(session), _) => steering::cancel(state, session),
            ("$/cancel_request", _, Some(request)) => {
                if let Some(id) = RpcId::read(request.get()) {
                    cancel_request(state, &id);
                }
            }
            _ => (),
        }
    }

    /// Takes in a message of the host.
    fn message(&mut self, message: ServerMessage) {
        let state = &mut self.0;
        state.send_waiting();
        let session = match &message {
            ServerMessage::Event(envelope) => envelope.session.clone(),
            ServerMessage::Snapshot(view) => view.session.clone(),
            ServerMessage::Reply { .. } => {
                if let ServerMessage::Reply { id, result } = message {
                    reply(state, id, result);
                }
                return;
            }
            ServerMessage::Process(_) => {
                if let ServerMessage::Process(event) = message {
                    stored::process(state, event);
                }
                return;
            }
        };
        let mut fx = Vec::new();
        if let Some(open) = state.sessions.get_mut(&session) {
            open.take(message, &mut fx);
        }
        state.perform(&session, fx);
        stored::leave_resting(state);
    }

    /// Whether the host has not taken yet what the client wants. It is not heard until then.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.0.is_behind()
    }

    /// Whether running calls have said something that is not shown yet.
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
            self.0.perform(&id, fx);
        }
    }

    /// The client has gone: leaves its sessions.
    pub fn leave(&mut self) {
        let ids: Vec<SessionId> = self.0.sessions.keys().cloned().collect();
        for id in &ids {
            self.0.forget(id);
        }
    }

    /// Waits until the host has heard that its sessions are left, but not long.
    pub async fn left(&mut self) {
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

/// Does what a request asks for. What is answered later is answered by whoever has the answer.
fn dispatch(
    state: &mut AgentState,
    id: &RpcId,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), RpcError> {
    let is_known = METHODS.contains(&method);
    if method != INITIALIZE && is_known && state.capabilities.is_none() {
        let text = "send `initialize` first";
        return Err(RpcError::new(RpcError::INVALID_REQUEST, text));
    }
    if !is_known {
        let method: String = method.chars().take(100).collect();
        let text = format!("there is no method `{method}`");
        return Err(RpcError::new(RpcError::NO_METHOD, text));
    }
    let params = Params::read(params)?;
    let answer = match method {
        INITIALIZE => opening::initialize(state, params)?,
        "authenticate" => opening::authenticate(&params)?,
        "session/new" => return opening::open(state, id, params, How::New),
        "session/load" => return opening::open(state, id, params, How::Load),
        "session/resume" => return opening::open(state, id, params, How::Resume),
        "session/fork" => return opening::open(state, id, params, How::Fork),
        "session/list" => return stored::list(state, id, &params),
        "session/close" => return stored::close(state, id, &params),
        "session/delete" => return stored::delete(state, id, &params),
        "session/prompt" => return steering::say(state, id, params),
        "session/set_mode" => return steering::set_mode(state, id, &params),
        "session/set_config_option" => return steering::set_option(state, id, &params),
        // A notification that came as a request.
        _ => {
            let session = params.session_id.as_deref().ok_or_else(|| missing("sessionId"))?;
            steering::cancel(state, session);
            json!({})
        }
    };
    state.answer(id, &Ok(answer));
    Ok(())
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
        HostAsked::Prompt { session, request } if request == id => Some(session.clone()),
        _ => None,
    });
    let running = || {
        let mut sessions = state.sessions.iter();
        sessions.find(|(_, session)| session.turns.has(id)).map(|(session, _)| session.clone())
    };
    match prompt.or_else(running) {
        Some(session) => steering::cancel(state, session.as_str()),
        None => {
            let error = RpcError::new(RpcError::CANCELLED, "the request was cancelled");
            state.answer(id, &Err(error));
        }
    }
}

/// The host has answered.
fn reply(state: &mut AgentState, id: RequestId, result: Result<Reply, RequestError>) {
    let Some(asked) = state.asked.remove(&id) else { return };
    match asked {
        HostAsked::Open { request, how, folder } => {
            opening::opened(state, request, how, &folder, result);
        }
        HostAsked::Attach(_) | HostAsked::Catch(_) | HostAsked::Page(_) => {
            told(state, &asked, result);
        }
        HostAsked::Prompt { session, request } => steering::said(state, &session, &request, result),
        HostAsked::Plain(request) => state.answer(&request, &done(result)),
        HostAsked::Option { request, session, option } => {
            let answer = steering::option_set(state, &session, option, result);
            state.answer(&request, &answer);
        }
        HostAsked::Leave { session, request } => stored::left(state, session, request),
        HostAsked::Living => {
            if let Ok(Reply::Live(all)) = result {
                stored::living(state, &all);
            }
        }
        HostAsked::Stored { request, folder, from } => {
            let answer = stored::listed(state, result, folder.as_deref(), from);
            state.answer(&request, &answer);
        }
        HostAsked::Answer(question) => {
            if result.is_err_and(|error| error.kind == RequestErrorKind::Busy) {
                state.not_answered(question);
            }
        }
        HostAsked::Delete { session, request } => {
            let answer = stored::deleted(state, &session, result);
            state.answer(&request, &answer);
        }
        HostAsked::Nothing => (),
    }
    stored::leave_resting(state);
}

/// The host has answered a session of the client.
fn told(state: &mut AgentState, asked: &HostAsked, result: Result<Reply, RequestError>) {
    let (HostAsked::Attach(id) | HostAsked::Catch(id) | HostAsked::Page(id)) = asked else {
        return;
    };
    let mut fx = Vec::new();
    if let Some(session) = state.sessions.get_mut(id) {
        match (asked, result) {
            (HostAsked::Catch(_), result) => session.caught(result, &mut fx),
            (HostAsked::Page(_), result) => session.page(result, &mut fx),
            (_, Err(error)) => session.not_attached(error, &mut fx),
            (_, Ok(_)) => (),
        }
    }
    state.perform(id, fx);
}

/// There is nothing to say but that it is done.
fn done(result: Result<Reply, RequestError>) -> Result<Value, RpcError> {
    result.map(|_| json!({})).map_err(RpcError::from)
}
