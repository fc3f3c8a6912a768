//! Lists, closes and deletes stored sessions over ACP.

use std::path::Path;

use gnoma_core::{
    json_value::json,
    protocol::{
        LiveSession, ProcessEvent, Reply, Request, RequestError, RequestErrorKind, SessionSpec,
    },
    store::{SessionFacts, SessionId},
};
use serde_json::Value;

use crate::{
    error::RpcError,
    params::Params,
    session::ClientSession,
    state::{AgentState, PendingHostRequest},
    time::format_iso8601,
    tools::without_paths,
    wire::RpcId,
};

/// Most sessions of a folder that are listed at all.
const MAX_LISTED: usize = 1_000;
/// Sessions in one answer.
const PAGE: usize = 100;

/// Lists the stored sessions of a folder; without one those of the folder that the agent was started in.
pub(crate) fn list_sessions(
    state: &mut AgentState,
    request: &RpcId,
    params: &Params,
) -> Result<(), RpcError> {
    let from = match params.cursor.as_deref() {
        None => 0,
        Some(cursor) => {
            cursor.parse().map_err(|_| RpcError::invalid_params("the cursor is unknown"))?
        }
    };
    let folder = params.folder_if_any()?;
    let shown = folder.as_ref().map(|folder| folder.display().to_string());
    let own = state.options.spec.clone();
    let spec = SessionSpec { folder: folder.unwrap_or_else(|| own.folder.clone()), ..own };
    let asked = PendingHostRequest::Stored { request: request.clone(), folder: shown, from };
    let wanted = Request::StoredIn { spec: Box::new(spec), max: MAX_LISTED };
    state.request_host(None, wanted, request, asked);
    Ok(())
}

/// The page of stored sessions that begins at a place.
pub(crate) fn sessions_page(
    state: &mut AgentState,
    result: Result<Reply, RequestError>,
    folder: Option<&str>,
    from: usize,
) -> Result<Value, RpcError> {
    let Reply::Stored(all) = result? else {
        return Err(RpcError::new(RpcError::INTERNAL, "the sessions could not be listed"));
    };
    let session = |facts: &SessionFacts| {
        json!({
            "sessionId": facts.id.as_str(),
            // A folder that was asked for comes back: the session can be opened there.
            "cwd": folder.unwrap_or(&facts.project),
            "title": without_paths(&facts.title),
            "updatedAt": format_iso8601(facts.changed_ms),
        })
    };
    for facts in all.iter().skip(from).take(PAGE) {
        state.remember_folder(&facts.id, Path::new(folder.unwrap_or(&facts.project)));
    }
    let page: Vec<_> = all.iter().skip(from).take(PAGE).map(session).collect();
    let next = from.saturating_add(PAGE);
    let mut answer = json!({ "sessions": page });
    if next < all.len() {
        answer["nextCursor"] = json!(next.to_string());
    }
    Ok(answer)
}

/// Closes a session of the client: what it does is cancelled. It goes on where others see it.
pub(crate) fn close_session(
    state: &mut AgentState,
    request: &RpcId,
    params: &Params,
) -> Result<(), RpcError> {
    let (id, session) = state.open(params.required_session()?)?;
    let is_at_work = session.turns.cancel();
    if is_at_work {
        state.send_when_room(Some(&id), Request::Cancel, PendingHostRequest::Nothing);
    }
    if !state.watches {
        state.watches = true;
        state.send_when_room(None, Request::Watch, PendingHostRequest::Nothing);
    }
    if is_at_work {
        // Left once its prompts are answered.
        state.leaving.push((id, request.clone()));
        return Ok(());
    }
    detach_session(state, &id, request);
    Ok(())
}

fn detach_session(state: &mut AgentState, session: &SessionId, request: &RpcId) {
    let asked = PendingHostRequest::Leave { session: session.clone(), request: request.clone() };
    if state.request_host(Some(session), Request::Detach, request, asked) {
        state.sessions.remove(session);
    }
}

/// Leaves sessions that were to be closed and have come to rest.
pub(crate) fn leave_resting(state: &mut AgentState) {
    let sessions = &state.sessions;
    let rests = |session: &ClientSession| !session.turns.is_waited_for();
    let ready: Vec<_> =
        state.leaving.extract_if(.., |(id, _)| sessions.get(id).is_some_and(rests)).collect();
    for (session, request) in ready {
        detach_session(state, &session, &request);
    }
}

/// Asks the host whether a session that was left has ended: a client that opens it again at once must know.
pub(crate) fn on_detached(state: &mut AgentState, session: SessionId, request: RpcId) {
    state.leaving.push((session, request));
    state.send_when_room(None, Request::List, PendingHostRequest::Living);
}

/// Answers the requests to close sessions that have ended or that other clients see. Titles may have changed.
pub(crate) fn on_live_sessions(state: &mut AgentState, all: &[LiveSession]) {
    let is_there =
        |id: &SessionId| all.iter().any(|live| live.status.session == *id && live.subscribers == 0);
    let sessions = &state.sessions;
    let gone: Vec<_> = state
        .leaving
        .extract_if(.., |(id, _)| !sessions.contains_key(id) && !is_there(id))
        .collect();
    for (_, request) in gone {
        state.answer_request(&request, &Ok(json!({})));
    }
    for live in all {
        let id = &live.status.session;
        let mut fx = Vec::new();
        if let Some(session) = state.sessions.get_mut(id) {
            session.tell_title(&live.title, &format_iso8601(live.changed_ms), &mut fx);
        }
        state.run_effects(id, fx);
    }
}

/// Handles an event about a session of the host.
pub(crate) fn on_process_event(state: &mut AgentState, event: ProcessEvent) {
    match event {
        ProcessEvent::Closed { session } => {
            let closed: Vec<_> = state.leaving.extract_if(.., |(id, _)| *id == session).collect();
            for (_, request) in closed {
                state.answer_request(&request, &Ok(json!({})));
            }
        }
        ProcessEvent::Lagged { sessions } => on_live_sessions(state, &sessions),
        ProcessEvent::Opened { .. } | ProcessEvent::Changed { .. } | ProcessEvent::Stopping => (),
    }
}

/// Deletes a stored session, also one that the client has open.
pub(crate) fn delete_session(
    state: &mut AgentState,
    request: &RpcId,
    params: &Params,
) -> Result<(), RpcError> {
    let id = SessionId::new(params.required_session()?);
    if let Some(session) = state.sessions.get_mut(&id) {
        session.turns.cancel();
    }
    let folder = params.folder_if_any()?.unwrap_or_else(|| state.session_folder(&id));
    let spec = SessionSpec { folder, ..state.options.spec.clone() };
    let asked = PendingHostRequest::Delete { session: id.clone(), request: request.clone() };
    let wanted = Request::Delete { spec: Box::new(spec), id };
    state.request_host(None, wanted, request, asked);
    Ok(())
}

/// A session is deleted; one that there is not is as good as that.
pub(crate) fn on_session_deleted(
    state: &mut AgentState,
    session: &SessionId,
    result: Result<Reply, RequestError>,
) -> Result<Value, RpcError> {
    let is_gone = |error: &RequestError| {
        matches!(error.kind, RequestErrorKind::NotFound | RequestErrorKind::Invalid)
    };
    match result {
        Err(error) if !is_gone(&error) => return Err(error.into()),
        Ok(_) | Err(_) => (),
    }
    state.sessions.remove(session);
    Ok(json!({}))
}
