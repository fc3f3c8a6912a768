//! What the client wants of a session that it has: prompts, cancelling, modes and options.

use gnoma_core::{
    Content,
    info::Choice,
    json_value::json,
    protocol::{Reply, Request, RequestError, TaskRequest, TaskRunState},
    store::SessionId,
};
use serde_json::Value;

use crate::{
    config::{self, ConfigChoice},
    error::RpcError,
    params::{Params, missing_parameter},
    prompt,
    session::{COMPACT, TASK},
    state::{AgentState, PendingHostRequest, SetOption},
    wire::RpcId,
};

/// Says something. It is answered when the turn is over.
pub(crate) fn submit_prompt(
    state: &mut AgentState,
    request: &RpcId,
    mut params: Params,
) -> Result<(), RpcError> {
    let blocks = params.prompt.take().ok_or_else(|| missing_parameter("prompt"))?;
    let (id, session) = state.open(params.required_session()?)?;
    let content = prompt::parse_content(blocks)?;
    if let Some(words) = parse_own_command(&content, TASK) {
        let elsewhere = || {
            let text = format!("`/task {words}` is for a terminal; `gnoma task --help` says how");
            RpcError::invalid_params(text)
        };
        let wanted = Request::Task(TaskRequest::parse(&words).ok_or_else(elsewhere)?);
        let asked = PendingHostRequest::Task { session: id.clone(), request: request.clone() };
        if state.request_host(Some(&id), wanted, request, asked)
            && let Some(session) = state.sessions.get_mut(&id)
        {
            session.begin_task_request();
        }
        return Ok(());
    }
    let (content, wanted) = match parse_own_command(&content, COMPACT) {
        Some(focus) => (Vec::new(), Request::Compact { focus }),
        None => (content.clone(), Request::Send { content }),
    };
    session.turns.add_prompt(request.clone(), content);
    let asked = PendingHostRequest::Prompt { session: id.clone(), request: request.clone() };
    if !state.request_host(Some(&id), wanted, request, asked)
        && let Some(session) = state.sessions.get_mut(&id)
    {
        session.turns.remove_refused(request);
    }
    Ok(())
}

/// Returns the words behind one of gnoma's own commands, if the message is that command.
fn parse_own_command(content: &[Content], name: &str) -> Option<String> {
    let [Content::Text(text)] = content else { return None };
    let rest = text.text.strip_prefix('/')?.strip_prefix(name)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim().to_owned())
}

/// Answers a request for a task that could not run, after the notice that is held back.
fn fail_task(state: &mut AgentState, session: &SessionId, request: &RpcId, error: RequestError) {
    let mut fx = Vec::new();
    if let Some(open) = state.sessions.get_mut(session) {
        open.end_task_request(&mut fx);
    }
    state.run_effects(session, fx);
    state.answer_request(request, &Err(error.into()));
}

/// The host has answered about tasks, or a run has ended.
pub(crate) fn on_task_reply(
    state: &mut AgentState,
    session: &SessionId,
    request: &RpcId,
    result: Result<Reply, RequestError>,
) {
    let (text, reason) = match result {
        Err(error) => return fail_task(state, session, request, error),
        Ok(Reply::Task(report)) if report.state == TaskRunState::Stopped => {
            (report.summary, "cancelled")
        }
        Ok(Reply::Task(report)) => (report.summary, "end_turn"),
        Ok(Reply::Text(text)) => (text, "end_turn"),
        Ok(Reply::Choices(tasks)) if tasks.is_empty() => ("no tasks".to_owned(), "end_turn"),
        Ok(Reply::Choices(tasks)) => {
            let line = |task: &Choice| format!("- `/task {}`: {}\n", task.name, task.about);
            (tasks.iter().map(line).collect(), "end_turn")
        }
        Ok(_) => (String::new(), "end_turn"),
    };
    let mut fx = Vec::new();
    if let Some(open) = state.sessions.get_mut(session) {
        open.answer_task_request(&text, &mut fx);
    }
    state.run_effects(session, fx);
    state.answer_request(request, &Ok(json!({ "stopReason": reason })));
}

/// The host has taken a prompt, or has not.
pub(crate) fn on_prompt_reply(
    state: &mut AgentState,
    session: &SessionId,
    request: &RpcId,
    result: Result<Reply, RequestError>,
) {
    let Some(open) = state.sessions.get_mut(session) else {
        let gone = RpcError::no_session(session.as_str());
        return state.answer_request(request, &Err(gone));
    };
    match result {
        Ok(_) => open.turns.mark_accepted(request),
        Err(error) => {
            let was_cancelled = open.turns.remove_refused(request);
            let answer = if was_cancelled {
                Ok(json!({ "stopReason": "cancelled" }))
            } else {
                Err(error.into())
            };
            state.answer_request(request, &answer);
        }
    }
}

/// Cancels what a session does. Where it does nothing, nothing happens.
pub(crate) fn cancel_turn(state: &mut AgentState, session: &str) {
    if let Ok((id, session)) = state.open(session) {
        session.turns.cancel();
        state.send_when_room(Some(&id), Request::Cancel, PendingHostRequest::Nothing);
    }
}

/// Sets the session's permission mode for a request of the client.
pub(crate) fn set_mode(
    state: &mut AgentState,
    request: &RpcId,
    params: &Params,
) -> Result<(), RpcError> {
    let (id, _) = state.open(params.required_session()?)?;
    let mode =
        config::parse_mode(params.mode_id.as_deref().ok_or_else(|| missing_parameter("modeId"))?)?;
    let asked = PendingHostRequest::Plain(request.clone());
    state.request_host(Some(&id), Request::SetMode { mode }, request, asked);
    Ok(())
}

/// Sets an option of a session: its mode, its model or how much models think.
pub(crate) fn set_option(
    state: &mut AgentState,
    request: &RpcId,
    params: &Params,
) -> Result<(), RpcError> {
    let (id, session) = state.open(params.required_session()?)?;
    let option = params.config_id.as_deref().ok_or_else(|| missing_parameter("configId"))?;
    let value = params.value.as_ref().ok_or_else(|| missing_parameter("value"))?;
    let value: String = gnoma_core::json::from_str(value.get()).map_err(|_| {
        RpcError::invalid_params(format!("the value of `{option}` is not a string"))
    })?;
    let (wanted, option) = match config::parse_choice(&session.view, option, &value)? {
        ConfigChoice::Mode(mode) => (Request::SetMode { mode }, SetOption::Mode(mode)),
        ConfigChoice::Model(pinned, arm) => (Request::Pin { arm }, SetOption::Model(pinned)),
        ConfigChoice::Thinking(thinking) => {
            (Request::SetThinking { thinking }, SetOption::Thinking(thinking))
        }
    };
    let asked =
        PendingHostRequest::Option { request: request.clone(), session: id.clone(), option };
    state.request_host(Some(&id), wanted, request, asked);
    Ok(())
}

/// The option is set, or is not.
pub(crate) fn option_set(
    state: &mut AgentState,
    session: &SessionId,
    option: SetOption,
    result: Result<Reply, RequestError>,
) -> Result<Value, RpcError> {
    result?;
    let gone = || RpcError::no_session(session.as_str());
    let session = state.sessions.get_mut(session).ok_or_else(gone)?;
    match option {
        // The session says so itself a little later.
        SetOption::Mode(mode) => session.view.mode = mode,
        SetOption::Thinking(thinking) => session.view.thinking = thinking,
        SetOption::Model(pinned) => session.pinned = pinned,
    }
    Ok(json!({ "configOptions": session.options() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_command_is_distinguished_from_prompt_text() {
        let of = |text: &str| parse_own_command(&[Content::from_text(text)], COMPACT);
        assert_eq!(of("/compact"), Some(String::new()));
        assert_eq!(of("/compact  the tests "), Some("the tests".to_owned()));
        assert_eq!(of("/compactor"), None);
        assert_eq!(of("compact"), None);
    }
}
