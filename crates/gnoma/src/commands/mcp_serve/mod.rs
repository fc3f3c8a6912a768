//! `gnoma mcp serve`: gnoma as a server of the Model Context Protocol, on standard input and output.
//!
//! It offers sessions as tools (`ask`, `continue`, `status`, `cancel`) and gnoma's own file tools. Whoever
//! calls is a program: nobody can be asked, so what needs approval is refused. What is answered goes
//! through the firewall. No resources, prompts, sampling or logging; no HTTP.

mod files;
mod talks;
mod wire;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Result;
use gnoma_core::{
    protocol::{SessionSpec, Start},
    store::SessionId,
};
use gnoma_guard::firewall::Firewall;
use gnoma_host::{Project, Shared};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    task::{AbortHandle, JoinSet},
};

use self::{
    files::FileTools,
    talks::Talks,
    wire::{Incoming, ServedCall},
};
use crate::{
    args::TurnArgs,
    environment::ProcessEnvironment,
    lowering,
    report::{self, Exit},
};

/// Longest line of a client, in bytes.
const MAX_LINE_BYTES: u64 = 16 << 20;
/// Most calls at once.
const MAX_CALLS: usize = 32;
/// How long a call waits for the end of a turn unless it says otherwise, and at the most, in seconds. Many
/// clients give a call up after a minute.
const USUAL_WAIT_S: u64 = 45;
const MAX_WAIT_S: u64 = 3600;

/// What all calls share.
struct ServedTools {
    talks: Arc<Talks>,
    files: FileTools,
    firewall: Arc<Firewall>,
}

pub(super) async fn run(args: &TurnArgs, around: &ProcessEnvironment) -> Result<Exit> {
    let project =
        Project::open(lowering::spec(args, around), report::notices(), Shared::default())?;
    project.refuse_whole_system()?;
    let spec = SessionSpec { start: Start::New, interactive: false, ..project.spec.clone() };
    let served = Arc::new(ServedTools {
        talks: Talks::new(spec),
        firewall: Arc::clone(&project.firewall),
        files: FileTools::new(project)?,
    });
    let ended = serve(&served).await;
    served.talks.shut_down().await;
    ended
}

async fn serve(served: &Arc<ServedTools>) -> Result<Exit> {
    let mut input = BufReader::new(tokio::io::stdin());
    let mut output = tokio::io::stdout();
    let mut tools = own_tools();
    tools.extend(served.files.listed());
    let tools = Value::Array(tools);
    let mut calls = RunningCalls::default();
    let mut line = Vec::new();
    loop {
        let answer = tokio::select! {
            read = next_line(&mut input, &mut line) => {
                if !read? {
                    return Ok(Exit::Done);
                }
                let incoming = wire::read(&String::from_utf8_lossy(&line), &tools);
                line.clear();
                calls.take(served, incoming)
            }
            Some(done) = calls.all.join_next() => done.ok().map(|(id, answer)| {
                calls.by_id.remove(&id.to_string());
                answer
            }),
        };
        if let Some(answer) = answer {
            let text = format!("{answer}\n");
            output.write_all(text.as_bytes()).await?;
            output.flush().await?;
        }
    }
}

/// The calls that run. Dropped, they end.
#[derive(Default)]
struct RunningCalls {
    all: JoinSet<(Value, Value)>,
    by_id: BTreeMap<String, AbortHandle>,
}

impl RunningCalls {
    /// Does what a client wants; gives what is answered at once.
    fn take(&mut self, served: &Arc<ServedTools>, incoming: Incoming) -> Option<Value> {
        match incoming {
            Incoming::Answered(answer) => Some(answer),
            Incoming::Nothing => None,
            Incoming::Cancelled(id) => {
                if let Some(call) = self.by_id.remove(&id.to_string()) {
                    call.abort();
                }
                None
            }
            Incoming::Call(call) if self.all.len() >= MAX_CALLS => {
                let text = format!("{MAX_CALLS} calls run already; call again later");
                let refused = wire::outcome(&text, true, None);
                Some(wire::success(&call.id, refused, call.is_stateless))
            }
            Incoming::Call(call) => {
                let id = call.id.to_string();
                self.by_id.insert(id, self.all.spawn(answered(Arc::clone(served), call)));
                None
            }
        }
    }
}

/// Reads the next line that says something; false at the end. What was read stays in `line` when this is
/// dropped.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Result<bool> {
    loop {
        let left = MAX_LINE_BYTES.saturating_sub(line.len() as u64);
        let count = (&mut *input).take(left).read_until(b'\n', line).await?;
        if count == 0 && left == 0 {
            anyhow::bail!("a line of the client is longer than {} MiB", MAX_LINE_BYTES >> 20);
        }
        if count == 0 || line.ends_with(b"\n") {
            if line.trim_ascii().is_empty() && count > 0 {
                line.clear();
                continue;
            }
            return Ok(!line.is_empty());
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
            "Gives a task to gnoma, a coding agent that works in this project by itself. Answers when it is \
             done, or with the session's id when that takes longer.",
            json!({"prompt": prompt, "wait_s": wait}),
            &["prompt"],
        ),
        tool(
            "continue",
            "Says more in a session of `ask`, or in a saved one.",
            json!({"session": session, "prompt": prompt, "wait_s": wait}),
            &["session", "prompt"],
        ),
        tool(
            "status",
            "Waits for the end of the work in a session, and tells how it is and its last answer.",
            json!({"session": session, "wait_s": wait}),
            &["session"],
        ),
        tool(
            "cancel",
            "Stops the work in a session. What it has done stays.",
            json!({"session": session}),
            &["session"],
        ),
    ]
}

/// The answer to a call, with the request's id.
async fn answered(served: Arc<ServedTools>, call: ServedCall) -> (Value, Value) {
    let ServedCall { id, tool, arguments, is_stateless } = call;
    let outcome = if served.files.has(&tool) {
        match served.files.call(&tool, &Value::Object(arguments)).await {
            Ok((text, is_error)) => (text, is_error, None),
            Err(error) => (format!("{error:#}"), true, None),
        }
    } else {
        match talk(&served.talks, &tool, &arguments).await {
            Ok((text, is_error, facts)) => (text, is_error, Some(facts)),
            Err(why) => (why, true, None),
        }
    };
    let (text, is_error, facts) = outcome;
    let firewall = &served.firewall;
    let facts = facts.map(|facts| guarded(&facts, firewall));
    let result = wire::outcome(&firewall.text(&text), is_error, facts);
    (id.clone(), wire::success(&id, result, is_stateless))
}

/// Without secrets.
fn guarded(value: &Value, firewall: &Firewall) -> Value {
    match value {
        Value::String(text) => firewall.text(text).into(),
        Value::Array(items) => items.iter().map(|item| guarded(item, firewall)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(name, item)| (name.clone(), guarded(item, firewall))).collect()
        }
        other => other.clone(),
    }
}

async fn talk(
    talks: &Arc<Talks>,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Result<(String, bool, Value), String> {
    let text = |name: &str| {
        let value = arguments.get(name).and_then(Value::as_str).map(str::trim);
        value.filter(|value| !value.is_empty()).ok_or_else(|| format!("`{name}` is needed"))
    };
    let wait = arguments.get("wait_s").and_then(Value::as_u64).unwrap_or(USUAL_WAIT_S);
    let wait = Duration::from_secs(wait.min(MAX_WAIT_S));
    let named = || text("session").map(SessionId::new);
    let said = |session: SessionId, prompt: &str| {
        let turn = talks.say(&session, prompt)?;
        Ok::<_, String>(Awaited { talks: Arc::clone(talks), session, turn, stops: true })
    };
    let mut awaited = match tool {
        "ask" => {
            let prompt = text("prompt")?;
            said(talks.open(Start::New).await?, prompt)?
        }
        "continue" => {
            let (mut session, prompt) = (named()?, text("prompt")?);
            if !talks.has(&session) {
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
            Awaited { talks: Arc::clone(talks), session, turn: 0, stops: false }
        }
    };
    let seen = talks.seen(&awaited.session, wait, awaited.turn).await;
    awaited.stops = false;
    Ok(seen?.told(&awaited.session))
}

/// A turn whose end a call waits for. A call that the client cancels before cancels the turn: nobody else
/// knows of it.
struct Awaited {
    talks: Arc<Talks>,
    session: SessionId,
    turn: u64,
    stops: bool,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        if self.stops {
            self.talks.cancel(&self.session).ok();
        }
    }
}
