//! `gnoma mcp serve`: gnoma as a server of the Model Context Protocol, on standard input and output.
//!
//! It offers sessions as tools (`ask`, `continue`, `status`, `cancel`) and gnoma's own file tools. The caller is a
//! program, so nobody can be asked, and calls that need approval are refused. Answers go through the firewall. No
//! resources, prompts, sampling or logging; no HTTP.

mod calls;
mod error;
mod files;
mod lines;
mod served_sessions;
mod wire;

use std::{sync::Arc, time::Duration};

use anyhow::Result;
use gnoma_core::{
    json_value::json,
    lines::Line,
    protocol::{SessionSpec, Start},
    store::SessionId,
};
use gnoma_guard::firewall::Firewall;
use gnoma_host::{ProcessResources, Project};
use serde_json::{Map, Value};
use tokio::io::{AsyncWriteExt as _, BufReader};

use self::{
    calls::RunningCalls,
    error::ServedSessionError,
    files::FileTools,
    lines::{ClientLines, MAX_LINE_BYTES},
    served_sessions::ServedSessions,
    wire::ServedCall,
};
use crate::{
    args::TurnArgs,
    environment::ProcessEnvironment,
    launch_request,
    report::{self, Exit},
};

/// The time that a call waits for the end of a turn, in seconds: the default, and the maximum. Many clients give a
/// call up after a minute.
const USUAL_WAIT_S: u64 = 45;
const MAX_WAIT_S: u64 = 3600;

/// The services that all calls share.
struct ServedTools {
    talks: Arc<ServedSessions>,
    files: FileTools,
    firewall: Arc<Firewall>,
}

pub(super) async fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let project = Project::open(
        launch_request::spec_from_args(args, around),
        report::stderr_notices(),
        ProcessResources::default(),
    )?;
    project.refuse_whole_system()?;
    let spec = SessionSpec { start: Start::New, interactive: false, ..project.spec.clone() };
    let served = Arc::new(ServedTools {
        talks: ServedSessions::new(spec),
        firewall: Arc::clone(&project.firewall),
        files: FileTools::new(project)?,
    });
    let ended = serve_stdio(&served).await;
    served.talks.shut_down().await;
    ended
}

async fn serve_stdio(served: &Arc<ServedTools>) -> Result<Exit> {
    let mut lines = ClientLines::new(BufReader::new(tokio::io::stdin()));
    let mut output = tokio::io::stdout();
    let mut tools = own_tools();
    tools.extend(served.files.list_tools());
    let tools = Value::Array(tools);
    let mut calls = RunningCalls::default();
    let mut is_greeted = false;
    loop {
        let answer = tokio::select! {
            line = lines.next() => match line? {
                None => return Ok(Exit::Done),
                Some(Line::TooLong) => Some(wire::too_long(MAX_LINE_BYTES)),
                Some(Line::Whole(line)) => {
                    let line = String::from_utf8_lossy(&line);
                    let incoming = wire::parse_line(&line, &tools, &mut is_greeted);
                    calls.on_incoming(incoming, |call| answer_call(Arc::clone(served), call))
                }
            },
            answer = calls.next() => answer,
        };
        if let Some(answer) = answer {
            let text = format!("{answer}\n");
            output.write_all(text.as_bytes()).await?;
            output.flush().await?;
        }
    }
}

/// The tools by which a client talks to sessions.
fn own_tools() -> Vec<Value> {
    let prompt = json!({"type": "string", "description": "What to do, or to say."});
    let session = json!({"type": "string", "description": "The session's id, as `ask` gave it."});
    let wait = json!({
        "type": "integer", "minimum": 0, "maximum": MAX_WAIT_S,
        "description": format!("Seconds to wait for the end of the work; {USUAL_WAIT_S} unless set."),
    });
    let tool = |name: &str, about: &str, fields: Value, required: &[&str]| {
        let schema = json!({
            "type": "object", "properties": fields, "required": required, "additionalProperties": false,
        });
        json!({"name": name, "description": about, "inputSchema": schema})
    };
    vec![
        tool(
            "ask",
            "Gives a task to gnoma, a coding agent that works in this project on its own. \
             Answers when it is done, or with the session's id when that takes longer.",
            json!({"prompt": prompt, "wait_s": wait}),
            &["prompt"],
        ),
        tool(
            "continue",
            "Sends another message to a session of `ask`, or to a saved one.",
            json!({"session": session, "prompt": prompt, "wait_s": wait}),
            &["session", "prompt"],
        ),
        tool(
            "status",
            "Waits until the work in a session ends; returns its state and last answer.",
            json!({"session": session, "wait_s": wait}),
            &["session"],
        ),
        tool(
            "cancel",
            "Stops the work in a session. Changes that it has made stay.",
            json!({"session": session}),
            &["session"],
        ),
    ]
}

/// The answer to a call.
async fn answer_call(served: Arc<ServedTools>, call: ServedCall) -> Value {
    let ServedCall { id, tool, arguments, is_stateless } = call;
    let outcome = if served.files.has_tool(&tool) {
        match served.files.call_tool(&tool, &Value::Object(arguments)).await {
            Ok((text, is_error)) => (text, is_error, None),
            Err(error) => (format!("{error:#}"), true, None),
        }
    } else {
        match run_talk_tool(&served.talks, &tool, &arguments).await {
            Ok((text, is_error, facts)) => (text, is_error, Some(facts)),
            Err(error) => (error.to_string(), true, None),
        }
    };
    let (text, is_error, facts) = outcome;
    let firewall = &served.firewall;
    let facts = facts.map(|facts| redact_value(&facts, firewall));
    let result = wire::tool_result(&firewall.redact_text(&text), is_error, facts);
    wire::success_response(&id, result, is_stateless)
}

/// Returns the value with its secrets redacted.
fn redact_value(value: &Value, firewall: &Firewall) -> Value {
    match value {
        Value::String(text) => firewall.redact_text(text).into(),
        Value::Array(items) => items.iter().map(|item| redact_value(item, firewall)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, item)| (name.clone(), redact_value(item, firewall))).collect()
        }
        other => other.clone(),
    }
}

async fn run_talk_tool(
    talks: &Arc<ServedSessions>,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Result<(String, bool, Value), ServedSessionError> {
    let text = |name: &'static str| {
        let value = arguments.get(name).and_then(Value::as_str).map(str::trim);
        value.filter(|value| !value.is_empty()).ok_or(ServedSessionError::MissingArgument(name))
    };
    let wait = arguments.get("wait_s").and_then(Value::as_u64).unwrap_or(USUAL_WAIT_S);
    let wait = Duration::from_secs(wait.min(MAX_WAIT_S));
    let named = || text("session").map(SessionId::new);
    let said = |session: SessionId, prompt: &str| {
        let (talks, turn) = (Arc::clone(talks), talks.send_prompt(&session, prompt)?);
        Ok::<_, ServedSessionError>(AwaitedTurn { talks, session, turn, stops: true })
    };
    let mut awaited = match tool {
        "ask" => {
            let prompt = text("prompt")?;
            said(talks.open(Start::New).await?, prompt)?
        }
        "continue" => {
            let (mut session, prompt) = (named()?, text("prompt")?);
            if !talks.has_session(&session) {
                let id = session.as_str().to_owned();
                session = talks.open(Start::Stored { id, fork: false }).await?;
            }
            said(session, prompt)?
        }
        _ => {
            let session = named()?;
            if tool == "cancel" {
                talks.cancel(&session)?;
            }
            AwaitedTurn { talks: Arc::clone(talks), session, turn: 0, stops: false }
        }
    };
    let seen = talks.wait_for_turn(&awaited.session, wait, awaited.turn).await;
    awaited.stops = false;
    Ok(seen?.render_reply(&awaited.session))
}

/// A turn whose end a call waits for. If the client cancels the call before, the turn is cancelled: no
/// other client knows of it.
struct AwaitedTurn {
    talks: Arc<ServedSessions>,
    session: SessionId,
    turn: u64,
    stops: bool,
}

impl Drop for AwaitedTurn {
    fn drop(&mut self) {
        if self.stops {
            self.talks.cancel(&self.session).ok();
        }
    }
}
