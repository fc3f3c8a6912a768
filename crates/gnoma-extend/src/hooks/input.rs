//! The JSON that a hook receives on standard input.

use gnoma_core::{
    Event, ThinkingMode, ToolCall, ToolOutcome,
    lifecycle::{Point, PointKind},
    message::ResultPart,
    session::PermissionMode,
};
use serde_json::{Map, Value, json};

use super::hook::{Hook, HookContract};
use crate::{
    claude::{our_input, their_input},
    names::to_claude_name,
};

/// The facts that are the same at all points of a session.
#[derive(Clone, Debug, Default)]
pub struct HookSession {
    /// The id of the session.
    pub id: String,
    /// The folder that it works in.
    pub cwd: String,
    /// The path of the conversation; may be empty.
    pub transcript: String,
    /// If another session started it: its role there.
    pub agent: Option<HookAgent>,
    /// The model that is asked; empty until it is known.
    pub model: String,
    /// The effort that models put into thinking.
    pub effort: &'static str,
}

impl HookSession {
    /// Takes in what happens: which model is asked, and how much it thinks.
    pub(crate) fn observe_event(&mut self, event: &Event) {
        match event {
            Event::RoundStarted { arm, .. } | Event::ArmChanged { to: arm, .. } => {
                self.model.clone_from(&arm.model);
            }
            Event::ThinkingChanged { thinking } => self.effort = effort_name(*thinking),
            _ => (),
        }
    }
}

/// A session that another one started, as hooks know it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookAgent {
    /// The session at the top.
    pub session: String,
    /// The id of the sub-agent's own session.
    pub id: String,
    /// The agent that it works as, or its name.
    pub kind: String,
}

/// Returns the effort that models put into thinking, in the other program's words; the default if it was not
/// chosen.
#[must_use]
pub fn effort_name(thinking: Option<ThinkingMode>) -> &'static str {
    /// Up to how many tokens an effort is low, and up to how many medium.
    const LOW: u32 = 4_096;
    const MEDIUM: u32 = 16_384;
    match thinking {
        Some(ThinkingMode::Off | ThinkingMode::Tokens(..=LOW)) => "low",
        Some(ThinkingMode::Tokens(..=MEDIUM)) => "medium",
        Some(ThinkingMode::Tokens(_) | ThinkingMode::Adaptive) | None => "high",
    }
}

/// The facts of a point, as the hook's contract has them.
pub(crate) fn build_input(
    hook: &Hook,
    point: &Point,
    mode: PermissionMode,
    session: &HookSession,
    prompt: u64,
) -> Value {
    match hook.contract {
        HookContract::Claude => {
            let mut value = claude_input(hook, point, mode, session);
            // The number of the person's message that the event belongs to.
            if let Some(fields) = value.as_object_mut().filter(|_| prompt > 0) {
                let id = format!("{}-{prompt}", session.id);
                if hook.is_codex() {
                    fields.insert("turn_id".to_owned(), id.clone().into());
                }
                fields.insert("prompt_id".to_owned(), id.into());
            }
            value
        }
        HookContract::Own => gnoma_input(hook, point, session),
    }
}

fn claude_input(hook: &Hook, point: &Point, mode: PermissionMode, session: &HookSession) -> Value {
    let mut fields = Map::new();
    let mut put = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    match &session.agent {
        None => put("session_id", json!(session.id)),
        Some(HookAgent { session: top, id, kind }) => {
            put("session_id", json!(top));
            put("agent_id", json!(id));
            put("agent_type", json!(kind));
        }
    }
    put("transcript_path", json!(session.transcript));
    put("cwd", json!(session.cwd));
    put("permission_mode", json!(mode_name(mode)));
    put("hook_event_name", json!(hook.event));
    if !session.model.is_empty() {
        put("model", json!(session.model));
    }
    if has_effort(point.kind()) && !session.effort.is_empty() {
        put("effort", json!({ "level": session.effort }));
    }
    if let Some(call) = point.tool_call() {
        put("tool_name", json!(to_claude_name(&call.name)));
        put("tool_input", tool_input(call));
        put("tool_use_id", json!(call.id.as_str()));
    }
    if let Value::Object(more) = point_facts(point) {
        fields.extend(more);
    }
    Value::Object(fields)
}

/// Returns the facts of the other program's contract that only a point of this kind has.
fn point_facts(point: &Point) -> Value {
    match point {
        Point::SessionStart { is_resumed } => {
            let source = if *is_resumed { "resume" } else { "startup" };
            json!({ "source": source })
        }
        Point::SessionEnd => json!({ "reason": "other" }),
        Point::Prompt { text } => json!({ "prompt": text }),
        Point::AfterTool { outcome, duration_ms, .. } => outcome_facts(outcome, *duration_ms),
        Point::BeforeCompaction { is_asked, focus } => {
            let trigger = if *is_asked { "manual" } else { "auto" };
            json!({ "trigger": trigger, "custom_instructions": focus })
        }
        Point::AfterCompaction { summary } => json!({ "compact_summary": summary }),
        Point::BeforeStop { is_again, last_words } => json!({
            "stop_hook_active": is_again,
            "last_assistant_message": last_words,
            "background_tasks": [],
        }),
        Point::Notification { text } => {
            json!({ "message": text, "notification_type": "permission_prompt" })
        }
        Point::ModelSwitched { to } => json!({ "model": to }),
        Point::ChildStart { id, name, task } => {
            json!({ "agent_id": id, "agent_type": name, "prompt": task })
        }
        Point::ChildStop { id, name, last_words } => json!({
            "agent_id": id,
            "agent_type": name,
            "stop_hook_active": false,
            "last_assistant_message": last_words,
        }),
        Point::PermissionAsked { reason, .. } | Point::PermissionDenied { reason, .. } => {
            json!({ "reason": reason })
        }
        Point::BeforeTool { .. } => json!({}),
    }
}

/// Returns the facts of a call that is over.
fn outcome_facts(outcome: &ToolOutcome, duration_ms: u64) -> Value {
    let (text, failed) = outcome_text(outcome);
    if failed {
        return json!({ "error": text, "duration_ms": duration_ms });
    }
    let response = json!({ "content": text, "stdout": text, "success": true });
    json!({ "tool_response": response, "duration_ms": duration_ms })
}

fn gnoma_input(hook: &Hook, point: &Point, session: &HookSession) -> Value {
    let arguments = |call: &ToolCall| call.arguments.read::<Value>().unwrap_or_default();
    match point {
        Point::BeforeTool { call } => {
            json!({"event": hook.event, "tool": call.name, "args": arguments(call)})
        }
        Point::AfterTool { call, outcome, .. } => json!({
            "event": hook.event, "tool": call.name, "args": arguments(call),
            "result": {"output": outcome_text(outcome).0, "metadata": {}},
        }),
        Point::BeforeStop { .. } => json!({"event": hook.event, "reason": "end_turn"}),
        Point::Prompt { text } => json!({"event": hook.event, "prompt": text}),
        Point::Notification { text } => json!({"event": hook.event, "message": text}),
        Point::PermissionAsked { call, reason } | Point::PermissionDenied { call, reason } => {
            json!({
                "event": hook.event, "tool": call.name, "args": arguments(call), "reason": reason,
            })
        }
        Point::ModelSwitched { to } => json!({"event": hook.event, "model": to}),
        Point::ChildStart { id: _, name, task } => {
            json!({"event": hook.event, "agent": name, "prompt": task})
        }
        Point::ChildStop { id: _, name, last_words } => {
            json!({"event": hook.event, "agent": name, "output": last_words})
        }
        _ => json!({"event": hook.event, "session_id": session.id}),
    }
}

/// Reports whether a model is at work at such a point.
fn has_effort(kind: PointKind) -> bool {
    match kind {
        PointKind::BeforeTool
        | PointKind::AfterTool
        | PointKind::ToolFailed
        | PointKind::PermissionAsked
        | PointKind::PermissionDenied
        | PointKind::BeforeStop
        | PointKind::Prompt
        | PointKind::ChildStart
        | PointKind::ChildStop => true,
        PointKind::SessionStart
        | PointKind::SessionEnd
        | PointKind::BeforeCompaction
        | PointKind::AfterCompaction
        | PointKind::Notification
        | PointKind::ModelSwitched => false,
    }
}

/// The arguments as the other program names them, so that scripts find what they look for.
pub(crate) fn tool_input(call: &ToolCall) -> Value {
    their_input(&call.name, call.arguments.read().unwrap_or_default())
}

/// Arguments that a hook changed, as our tool names them.
pub(crate) fn own_arguments(call: &ToolCall, changed: Value) -> Value {
    our_input(&call.name, changed)
}

/// Returns the text of a tool's outcome, and whether the tool failed.
pub(crate) fn outcome_text(outcome: &ToolOutcome) -> (String, bool) {
    let text = |parts: &[ResultPart]| {
        let texts = parts.iter().filter_map(|part| match part {
            ResultPart::Text { text } => Some(text.as_str()),
            ResultPart::Image(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    };
    match outcome {
        ToolOutcome::Done(output) => (text(&output.parts), false),
        ToolOutcome::Failed(output) => (text(&output.parts), true),
        ToolOutcome::Denied(why) => (why.clone(), true),
        ToolOutcome::Interrupted(so_far) => (so_far.clone(), true),
    }
}

fn mode_name(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::AcceptEdits => "acceptEdits",
        PermissionMode::Bypass => "bypassPermissions",
        PermissionMode::Plan => "plan",
        PermissionMode::Default | PermissionMode::Auto | PermissionMode::Deny => "default",
    }
}
