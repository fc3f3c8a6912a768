//! The ACP handshake (`initialize`), and how clients create and load sessions.

use std::path::Path;

use gnoma_core::{
    json_value::json,
    protocol::{Reply, Request, RequestError, RequestErrorKind, SessionSpec, Start},
};
use serde_json::Value;

use crate::{
    error::RpcError,
    params::{Params, missing_parameter},
    session::{ClientSession, SessionEntryMode},
    state::{AgentState, PendingHostRequest},
    wire::RpcId,
};

/// The version of the protocol that is spoken.
const VERSION: u64 = 1;
/// The ways to set up a provider: at a terminal that the client opens, and by oneself.
const TERMINAL: &str = "terminal";
const ELSEWHERE: &str = "provider";

/// The client says what it speaks and can; again where it says so again.
pub(crate) fn initialize_client(state: &mut AgentState, params: Params) -> Result<Value, RpcError> {
    if params.protocol_version.is_none() {
        return Err(missing_parameter("protocolVersion"));
    }
    let client = params.client_capabilities.unwrap_or_default();
    let methods = auth_methods(client.terminal_auth());
    state.capabilities = Some(client);
    Ok(json!({
        "protocolVersion": VERSION,
        "agentInfo": { "name": "gnoma", "title": "gnoma", "version": state.options.version },
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": { "image": true, "audio": false, "embeddedContext": true },
            "mcpCapabilities": { "http": true, "sse": false },
            "sessionCapabilities": {
                "list": {}, "delete": {}, "resume": {}, "fork": {}, "close": {},
                "additionalDirectories": {},
            },
        },
        "authMethods": methods,
    }))
}

fn auth_methods(has_terminal: bool) -> Value {
    let terminal = has_terminal.then(|| {
        json!({
            "type": "terminal",
            "id": TERMINAL,
            "name": "Set up a provider",
            "description": "Opens gnoma at a terminal, which asks for a provider and its key",
            "args": ["--setup"],
        })
    });
    let elsewhere = json!({
        "id": ELSEWHERE,
        "name": "Provider's key",
        "description": "Set a provider's key in the environment, or run `gnoma` at a terminal once",
    });
    terminal.into_iter().chain([elsewhere]).collect()
}

/// The person has set up a provider, or says so: the next session shows whether that is enough.
pub(crate) fn check_auth_method(params: &Params) -> Result<Value, RpcError> {
    match params.method_id.as_deref() {
        None => Err(missing_parameter("methodId")),
        Some(ELSEWHERE) => Ok(json!({})),
        Some(other) => Err(RpcError::invalid_params(format!("there is no method `{other}`"))),
    }
}

/// Opens a new or stored session for a request of the client.
pub(crate) fn open_session(
    state: &mut AgentState,
    request: &RpcId,
    mut params: Params,
    how: SessionEntryMode,
) -> Result<(), RpcError> {
    let start = match how {
        SessionEntryMode::New => Start::New,
        SessionEntryMode::Load | SessionEntryMode::Resume | SessionEntryMode::Fork => {
            let id = params.required_session()?.to_owned();
            // The host takes the beginning of an id for it; a client means one session.
            if !is_whole(&id) {
                let text = format!("there is no session `{id}`");
                return Err(RpcError::new(RpcError::NOT_FOUND, text));
            }
            Start::Stored { id, fork: how == SessionEntryMode::Fork }
        }
    };
    let (folder, more_folders) = (params.required_folder()?, params.more_folders()?);
    let mcp_servers = params.take_servers()?;
    let spec =
        SessionSpec { folder, more_folders, mcp_servers, start, ..state.options.spec.clone() };
    let asked =
        PendingHostRequest::Open { request: request.clone(), how, folder: spec.folder.clone() };
    state.request_host(None, Request::Open(Box::new(spec)), request, asked);
    Ok(())
}

/// Reports whether a text has the form of a session's id: `YYYYMMDD-HHMMSS-` and six hexadecimal digits.
fn is_whole(id: &str) -> bool {
    let is_place = |(place, byte): (usize, u8)| match place {
        8 | 15 => byte == b'-',
        0..15 => byte.is_ascii_digit(),
        _ => byte.is_ascii_hexdigit(),
    };
    id.len() == 22 && id.bytes().enumerate().all(is_place)
}

/// The host has opened a session, or has not.
pub(crate) fn on_session_opened(
    state: &mut AgentState,
    request: RpcId,
    how: SessionEntryMode,
    folder: &Path,
    result: Result<Reply, RequestError>,
) {
    let session = match result {
        Ok(Reply::Opened { session }) => session,
        Ok(_) => {
            let error = RpcError::new(RpcError::INTERNAL, "the session was not opened");
            return state.answer_request(&request, &Err(error));
        }
        Err(error) if how != SessionEntryMode::New && error.kind == RequestErrorKind::Invalid => {
            let error = RpcError { code: RpcError::NOT_FOUND, ..error.into() };
            return state.answer_request(&request, &Err(error));
        }
        Err(error) => return state.answer_request(&request, &Err(error.into())),
    };
    state.remember_folder(&session, folder);
    if let Some(known) = state.sessions.get_mut(&session) {
        let mut fx = Vec::new();
        known.open_again(request, how, &mut fx);
        return state.run_effects(&session, fx);
    }
    if !state.in_flight.contains(&request) {
        // The client cancelled the request and has not seen the session.
        return state.send_when_room(Some(&session), Request::Close, PendingHostRequest::Nothing);
    }
    let client = state.capabilities.clone().unwrap_or_default();
    let open = ClientSession::new(session.clone(), request.clone(), how, &client);
    let attach = Request::Attach { from: None };
    if state.request_host(
        Some(&session),
        attach,
        &request,
        PendingHostRequest::Attach(session.clone()),
    ) {
        state.sessions.insert(session, open);
    }
}
