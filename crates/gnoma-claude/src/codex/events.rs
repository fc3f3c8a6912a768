//! A turn as the events of `codex exec --json`: one JSON object a line, with items for what people see.

use std::sync::Arc;

use gnoma_core::{
    Content, Event, Message, RawJson, Role, ToolCall, ToolResult, Usage,
    json_value::json,
    message::CallId,
    plan::{PlanStep, StepStatus},
    session::{NoticeLevel, Outcome},
    tool::split_mcp_name,
};
use gnoma_front::{
    Ending, View,
    json::redact_value,
    output::{Output, OutputClosed},
};
use gnoma_guard::firewall::Firewall;
use serde_json::Value;

/// A turn as events of that program.
pub(super) struct Codex {
    firewall: Arc<Firewall>,
    /// Items that there were.
    items: u64,
    /// Calls that have begun, each with the item that stands for it.
    running: Vec<(CallId, String)>,
    /// The item of the plan, and what it says.
    plan: Option<(String, Value)>,
    usage: Usage,
    /// The text that the model said last.
    last: String,
}

impl Codex {
    pub(super) fn new(firewall: Arc<Firewall>) -> Self {
        Self {
            firewall,
            items: 0,
            running: Vec::new(),
            plan: None,
            usage: Usage::default(),
            last: String::new(),
        }
    }

    fn write_event(&self, out: &mut Output, event: &Value) -> Result<(), OutputClosed> {
        out.push_text(&format!("{}\n", redact_value(event, &self.firewall)))
    }

    fn write_item(
        &self,
        out: &mut Output,
        how: &str,
        id: &str,
        mut item: Value,
    ) -> Result<(), OutputClosed> {
        item["id"] = id.into();
        self.write_event(out, &json!({ "type": how, "item": item }))
    }

    fn new_id(&mut self) -> String {
        self.items += 1;
        format!("item_{}", self.items - 1)
    }

    /// An item that is complete when it comes.
    fn write_completed_item(&mut self, out: &mut Output, item: Value) -> Result<(), OutputClosed> {
        let id = self.new_id();
        self.write_item(out, "item.completed", &id, item)
    }

    fn write_message(&mut self, message: &Message, out: &mut Output) -> Result<(), OutputClosed> {
        for content in message.content() {
            match content {
                Content::Thinking(thinking) if !thinking.text.trim().is_empty() => {
                    self.write_completed_item(
                        out,
                        json!({ "type": "reasoning", "text": thinking.text }),
                    )?;
                }
                Content::Text(text) if !gnoma_core::names::is_blank(&text.text) => {
                    text.text.trim().clone_into(&mut self.last);
                    self.write_completed_item(
                        out,
                        json!({ "type": "agent_message", "text": text.text }),
                    )?;
                }
                _ => (),
            }
        }
        Ok(())
    }

    fn on_call_started(&mut self, call: &ToolCall, out: &mut Output) -> Result<(), OutputClosed> {
        let Some(item) = call_item(call, None, (None, None)).filter(|item| item["type"] != FILES)
        else {
            return Ok(());
        };
        let id = self.new_id();
        self.running.push((call.id.clone(), id.clone()));
        self.write_item(out, "item.started", &id, item)
    }

    fn on_call_finished(
        &mut self,
        call: &ToolCall,
        result: &ToolResult,
        facts: (Option<&str>, Option<i32>),
        out: &mut Output,
    ) -> Result<(), OutputClosed> {
        let Some(item) = call_item(call, Some(result), facts) else { return Ok(()) };
        let known = self.running.iter().position(|(running, _)| *running == call.id);
        let id = known.map(|at| self.running.swap_remove(at).1);
        let id = id.unwrap_or_else(|| self.new_id());
        self.write_item(out, "item.completed", &id, item)
    }

    fn write_plan(&mut self, steps: &[PlanStep], out: &mut Output) -> Result<(), OutputClosed> {
        let step = |step: &PlanStep| json!({ "text": step.text, "completed": step.status == StepStatus::Done });
        let item =
            json!({ "type": "todo_list", "items": steps.iter().map(step).collect::<Vec<_>>() });
        let (how, id) = match self.plan.take() {
            Some((id, _)) => ("item.updated", id),
            None => ("item.started", self.new_id()),
        };
        self.plan = Some((id.clone(), item.clone()));
        self.write_item(out, how, &id, item)
    }

    fn turn_ended(
        &mut self,
        (outcome, rounds): (&Outcome, u32),
        answer: Option<&str>,
        out: &mut Output,
    ) -> Result<(), OutputClosed> {
        if let Some((id, item)) = self.plan.take() {
            self.write_item(out, "item.completed", &id, item)?;
        }
        if let Some(answer) = answer.filter(|answer| *answer != self.last) {
            // What the model wrote may have words around it; the last message is what was asked for.
            self.write_completed_item(out, json!({ "type": "agent_message", "text": answer }))?;
        }
        let ending = Ending::of_turn(outcome, rounds, None);
        if ending.subtype == "success" {
            let Usage { input, output, cache_read, cache_write, reasoning } = self.usage;
            let usage = json!({
                "input_tokens": input, "cached_input_tokens": cache_read, "cache_write_input_tokens": cache_write,
                "output_tokens": output, "reasoning_output_tokens": reasoning,
            });
            return self.write_event(out, &json!({ "type": "turn.completed", "usage": usage }));
        }
        let message = ending.error.unwrap_or_else(|| ending.subtype.replace('_', " "));
        self.write_event(out, &json!({ "type": "turn.failed", "error": { "message": message } }))
    }
}

impl View for Codex {
    fn on_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        match event {
            Event::Started { session, .. } => {
                self.write_event(out, &json!({ "type": "thread.started", "thread_id": session }))?;
                self.write_event(out, &json!({ "type": "turn.started" }))
            }
            Event::Appended(message) if message.role() == Role::Assistant => {
                self.write_message(message, out)
            }
            Event::ToolStarted { call } => self.on_call_started(call, out),
            Event::ToolEnded { call, result, diff, command, .. } => {
                let code = command.and_then(|command| command.exit_code);
                self.on_call_finished(call, result, (diff.as_deref(), code), out)
            }
            Event::PlanChanged { steps } => self.write_plan(steps, out),
            Event::Notice { level: NoticeLevel::Warning, text } => {
                self.write_completed_item(out, json!({ "type": "error", "message": text }))
            }
            Event::Usage { turn, .. } => {
                self.usage = *turn;
                Ok(())
            }
            Event::TurnEnded { outcome, rounds, usage, answer, .. } => {
                self.usage = *usage;
                self.turn_ended((outcome, *rounds), answer.as_ref().map(RawJson::get), out)
            }
            _ => Ok(()),
        }
    }
}

/// The type of the item that lists changed files.
const FILES: &str = "file_change";

/// The item that stands for a call, with its diff and exit code; `None` where something else tells of it.
fn call_item(
    call: &ToolCall,
    result: Option<&ToolResult>,
    (diff, code): (Option<&str>, Option<i32>),
) -> Option<Value> {
    let arguments: Value = call.arguments.read().unwrap_or_default();
    let status = match result {
        None => "in_progress",
        Some(result) if result.is_error => "failed",
        Some(_) => "completed",
    };
    let text = result.map(ToolResult::joined_text).unwrap_or_default();
    Some(match &*call.name {
        "plan" => return None,
        "bash" => {
            let command = arguments["command"].as_str().unwrap_or_default();
            let has_succeeded = result.is_some_and(|result| !result.is_error);
            let code = code.or(has_succeeded.then_some(0));
            build_command_item(command, status, &text, code)
        }
        "fs.write" | "fs.edit" => {
            let path = arguments["path"].as_str().unwrap_or_default();
            let is_new = diff.is_some_and(|diff| diff.starts_with("--- /dev/null"));
            let kind = if is_new { "add" } else { "update" };
            json!({ "type": FILES, "changes": [{ "path": path, "kind": kind }], "status": status })
        }
        name => {
            let (server, tool) = split_mcp_name(name).unwrap_or(("gnoma", name));
            let mut item = json!({
                "type": "mcp_tool_call", "server": server, "tool": tool, "arguments": arguments, "status": status,
            });
            match result {
                Some(result) if result.is_error => item["error"] = json!({ "message": text }),
                Some(_) => {
                    let content = json!([{ "type": "text", "text": text }]);
                    item["result"] = json!({ "content": content, "structured_content": null });
                }
                None => (),
            }
            item
        }
    })
}

/// Builds the item of a shell command with its exit code.
fn build_command_item(command: &str, status: &str, text: &str, code: Option<i32>) -> Value {
    // The result of a command that failed begins with its code, for models.
    let line = code.filter(|code| *code != 0).map(|code| format!("Exit code {code}"));
    let output = match (line, text.split_once('\n').unwrap_or((text, ""))) {
        (Some(line), (first, rest)) if line == first => rest,
        _ => text,
    };
    let mut item = json!({
        "type": "command_execution", "command": command, "aggregated_output": output, "status": status,
    });
    if let Some(code) = code {
        item["exit_code"] = code.into();
    }
    item
}
