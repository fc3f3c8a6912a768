//! JSON for programs: one result object, or a line for each thing that happens.
//!
//! The lines have the shape that drivers of other agents read already (`system`, `assistant`, `user`,
//! `result`), with all that their strict parsers want; `routing` and `notice` are ours and may be ignored.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId, Content, Event, Message, ModelRef, RawJson, ResultPart, Role, ToolCall, ToolResult,
    Usage,
    info::ChildInfo,
    json_value::json,
    session::{NoticeLevel, Outcome},
};
use gnoma_guard::firewall::Firewall;
use gnoma_host::clock;
use serde_json::Value;

use super::{
    ending::Ending,
    output::{Output, OutputClosed},
    view::View,
};
use crate::report;

/// A turn as JSON.
pub(super) struct Json {
    stream: bool,
    model: ModelRef,
    firewall: Arc<Firewall>,
    session: String,
    started: Instant,
    /// Text of the last answer, with that of the answers that it goes on from.
    result: String,
    /// The next message goes on from what stands in the result.
    joins: bool,
    /// The next message is cut off, and the one after it goes on from it.
    is_cut: bool,
    denials: Vec<Value>,
    last_warning: Option<String>,
    sums: Sums,
    /// Whose lines it writes, where they are an elf's.
    elf: Option<ElfLines>,
}

/// The additional fields in the lines of an elf.
#[derive(Clone)]
pub(super) struct ElfLines {
    /// The session that is told of.
    pub(super) main: String,
    /// The elf's own session.
    pub(super) session: String,
    /// The call that started the elf, and the elf's name.
    pub(super) child: ChildInfo,
}

/// The totals that are reported at the end.
#[derive(Default)]
struct Sums {
    /// The calls of the last answer.
    calls: HashMap<CallId, ToolCall>,
    /// The calls that run now, in the order in which they started.
    running: Vec<ToolCall>,
    /// Since when a model is called.
    called: Option<Instant>,
    /// The total time that models took to answer.
    answering: Duration,
    last_call: Usage,
    micro_usd: u64,
    /// The price of a call was not known.
    is_partial: bool,
}

impl Sums {
    /// An answer has come.
    fn record_answer(&mut self, message: &Message) {
        self.answering += self.called.take().map(|called| called.elapsed()).unwrap_or_default();
        self.calls = message.tool_calls().map(|call| (call.id.clone(), call.clone())).collect();
    }

    /// Returns the cost of the session in dollars; `None` if the price of a call is not known.
    fn total_usd(&self) -> Option<f64> {
        (!self.is_partial).then(|| micro_usd_to_usd(self.micro_usd))
    }

    fn denial_to_json(&self, id: &CallId, reason: &str) -> Value {
        // A question that comes up in the middle of a call has an id of its own.
        let call = self.calls.get(id).or_else(|| self.running.last());
        json!({"tool_use_id": id, "reason": reason, "tool_name": call.map(|call| &call.name),
            "tool_input": call.map(|call| &call.arguments)})
    }
}

/// A name that no other message has.
fn random_id() -> String {
    format!("{:016x}{:016x}", clock::random_bits(), clock::random_bits())
}

/// Converts micro-dollars to dollars.
fn micro_usd_to_usd(micro_usd: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no sum is so large")]
    let micro_usd = micro_usd as f64;
    micro_usd / 1_000_000.0
}

fn usage_to_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    })
}

impl Json {
    pub(super) fn new(firewall: Arc<Firewall>, stream: bool) -> Self {
        Self {
            stream,
            model: ModelRef { provider: String::new(), model: String::new() },
            firewall,
            session: String::new(),
            started: Instant::now(),
            result: String::new(),
            joins: false,
            is_cut: false,
            denials: Vec::new(),
            last_warning: None,
            sums: Sums::default(),
            elf: None,
        }
    }

    /// The lines of an elf. How its turn ended is told by its parent's call.
    pub(super) fn of_elf(firewall: Arc<Firewall>, elf: ElfLines) -> Self {
        Self { elf: Some(elf), ..Self::new(firewall, true) }
    }

    /// The session that is told of.
    pub(super) fn session(&self) -> &str {
        &self.session
    }

    fn write_stream_line(&self, out: &mut Output, value: &Value) -> Result<(), OutputClosed> {
        if self.stream { self.write_value(out, value) } else { Ok(()) }
    }

    fn write_value(&self, out: &mut Output, value: &Value) -> Result<(), OutputClosed> {
        let Some(ElfLines { main, session, child }) = &self.elf else {
            return out.push_text(&format!("{}\n", redact_value(value, &self.firewall)));
        };
        let mut value = value.clone();
        value["session_id"] = main.as_str().into();
        value["parent_tool_use_id"] = child.call.as_str().into();
        value["elf"] = json!({"session_id": session, "name": child.name});
        out.push_text(&format!("{}\n", redact_value(&value, &self.firewall)))
    }

    fn write_message(&mut self, message: &Message, out: &mut Output) -> Result<(), OutputClosed> {
        let session = &self.session;
        let content: Vec<_> = message.content().iter().filter_map(content_block).collect();
        match message.role() {
            Role::Assistant => {
                self.sums.record_answer(message);
                if !std::mem::replace(&mut self.joins, std::mem::take(&mut self.is_cut)) {
                    self.result.clear();
                }
                self.result.push_str(&message.text_content());
                let model = &self.model.model;
                self.write_stream_line(
                    out,
                    &json!({"type": "assistant", "session_id": session, "uuid": random_id(),
                        "parent_tool_use_id": null, "message": {"id": format!("msg_{}", random_id()),
                        "type": "message", "role": "assistant", "model": model,
                        "content": content, "stop_reason": message.stop_reason(), "stop_sequence": null,
                        "usage": usage_to_json(self.sums.last_call)}}),
                )
            }
            Role::Tool | Role::User => self.write_stream_line(
                out,
                &json!({"type": "user", "session_id": session, "uuid": random_id(),
                    "parent_tool_use_id": null, "message": {"role": "user", "content": content}}),
            ),
        }
    }

    /// Remembers what later lines tell.
    fn record_event(&mut self, event: &Event) {
        match event {
            Event::Info(info) => {
                let named = info.model.as_deref().and_then(|model| model.split_once('/'));
                if let Some((provider, model)) = named {
                    self.model =
                        ModelRef { provider: provider.to_owned(), model: model.to_owned() };
                }
            }
            Event::Started { session, .. } => self.session.clone_from(session),
            Event::RoundStarted { arm, .. } => {
                self.model.clone_from(arm);
                self.sums.called = Some(Instant::now());
            }
            Event::Usage { round, .. } => self.sums.last_call = *round,
            Event::Cost { call_micro_usd, session_micro_usd, .. } => {
                self.sums.micro_usd = *session_micro_usd;
                self.sums.is_partial |= call_micro_usd.is_none();
            }
            Event::ArmChanged { to: arm, .. } | Event::Conferred { author: arm, .. } => {
                self.model.clone_from(arm);
            }
            Event::PermissionDecided { call, allowed: false, reason } => {
                self.denials.push(self.sums.denial_to_json(call, reason));
            }
            Event::ToolStarted { call } => self.sums.running.push(call.clone()),
            Event::ToolEnded { result, .. } => {
                self.sums.running.retain(|call| call.id != result.call_id);
            }
            Event::Continuing { joins, .. } => self.is_cut = *joins,
            Event::Notice { level: NoticeLevel::Warning, text } => {
                self.last_warning = Some(text.clone());
            }
            _ => (),
        }
    }

    /// Returns the line for a routing event: the arm that is asked, the reason, and the cost.
    fn of_routing(&self, event: &Event) -> Option<Value> {
        let session = &self.session;
        Some(match event {
            Event::RoundStarted { round, arm, why } => json!({"type": "routing",
                "session_id": session, "round": round, "arm": arm.to_string(), "reason": why}),
            Event::Routed(routing) => json!({"type": "route", "session_id": session,
                "task": routing.kind, "complexity": routing.complexity,
                "decided_by": routing.decided_by, "strategy": routing.strategy,
                "arms": arm_names(&routing.arms), "reason": routing.why,
                "candidates": routing.candidates, "seed": routing.seed}),
            Event::ArmChanged { from, to, why, retracted } => json!({"type": "arm_changed",
                "session_id": session, "from": from.to_string(), "to": to.to_string(),
                "reason": why, "retracted": retracted}),
            Event::Conferred { members, chair, author } => {
                let chair = chair.as_ref().map(ToString::to_string);
                json!({"type": "conferred", "session_id": session, "members": arm_names(members),
                    "chair": chair, "author": author.to_string()})
            }
            Event::Checking { arm, by } => json!({"type": "checking", "session_id": session,
                "arm": arm.to_string(), "by": by}),
            Event::Checked { arm, by, passed, evidence } => json!({"type": "checked",
                "session_id": session, "arm": arm.to_string(), "by": by, "passed": passed,
                "evidence": evidence}),
            Event::Cost { arm, call_micro_usd, turn_micro_usd, session_micro_usd, estimated } => {
                json!({"type": "cost", "session_id": session, "arm": arm.to_string(),
                    "call_micro_usd": call_micro_usd, "turn_micro_usd": turn_micro_usd,
                    "session_micro_usd": session_micro_usd, "estimated": estimated})
            }
            _ => return None,
        })
    }

    /// Returns the line for an event about the start of a turn or what delays it.
    fn of_turn(&self, event: &Event) -> Option<Value> {
        let session = &self.session;
        Some(match event {
            Event::Started { session, cwd, tools, mode, .. } => json!({"type": "system",
                "subtype": "init", "session_id": session, "cwd": cwd, "uuid": random_id(),
                "model": self.model.to_string(), "tools": tools, "permissionMode": mode}),
            Event::Compacted { summary, messages } => json!({"type": "compacted",
                "session_id": session, "messages": messages, "summary": summary}),
            Event::Uncompacted { summary, messages } => json!({"type": "uncompacted",
                "session_id": session, "messages": messages, "summary": summary}),
            Event::Context(context) => json!({"type": "context", "session_id": session,
                "tokens": context.tokens, "window": context.window, "fullness": context.fullness}),
            Event::Retrying { error, attempt, wait_ms, retracted, limit } => {
                json!({"type": "notice",
                "session_id": session, "text": error.to_string(), "attempt": attempt,
                "wait_ms": wait_ms, "retracted": retracted, "limit": limit})
            }
            Event::Waiting { arm, waited_ms, limit_ms } => json!({"type": "waiting",
                "session_id": session, "arm": arm.to_string(), "waited_ms": waited_ms,
                "limit_ms": limit_ms}),
            Event::Continuing { time, most, joins } => json!({"type": "continuing",
                "session_id": session, "time": time, "most": most, "joins": joins}),
            Event::PlanChanged { steps } => json!({"type": "plan", "session_id": session,
                "steps": steps}),
            Event::Notice { level, text } => json!({"type": "notice", "session_id": session,
                "level": level, "text": text}),
            _ => return None,
        })
    }

    fn write_result(
        &self,
        outcome: &Outcome,
        rounds: u32,
        usage: Usage,
        answer: Option<&RawJson>,
        out: &mut Output,
    ) -> Result<(), OutputClosed> {
        let Ending { subtype, error, stop, kept_partial } =
            Ending::of_turn(outcome, rounds, self.last_warning.as_deref());
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let errors: Vec<_> = error.iter().collect();
        let mut result = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": subtype != "success",
            "duration_ms": millis(self.started.elapsed()),
            "duration_api_ms": millis(self.sums.answering),
            "total_cost_usd": self.sums.total_usd(),
            "uuid": random_id(),
            "errors": errors,
            "num_turns": rounds,
            "result": self.result,
            "stop_reason": stop,
            "error": error,
            "kept_partial": kept_partial,
            "session_id": self.session,
            "model": self.model.to_string(),
            "usage": usage_to_json(usage),
            "permission_denials": self.denials,
        });
        if let Some(answer) = answer {
            // The words around it were not asked for.
            result["result"] = answer.get().into();
            result["structured_output"] = answer.read().unwrap_or_default();
        }
        self.write_value(out, &result)
    }
}

impl View for Json {
    fn on_event(&mut self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        self.record_event(event);
        if let Event::Notice { level: NoticeLevel::Warning, text } = event
            && !self.stream
        {
            report::print_line(format_args!("warning: {text}"));
        }
        match event {
            Event::Appended(message) => self.write_message(message, out),
            Event::TurnEnded { .. } if self.elf.is_some() => Ok(()),
            Event::TurnEnded { outcome, rounds, usage, answer, .. } => {
                self.write_result(outcome, *rounds, *usage, answer.as_ref(), out)
            }
            event => self.write_event_line(event, out),
        }
    }
}

impl Json {
    /// Writes the line of an event that is neither a message nor the end of the turn, if it has one.
    fn write_event_line(&self, event: &Event, out: &mut Output) -> Result<(), OutputClosed> {
        match event {
            Event::Started { .. }
            | Event::RoundStarted { .. }
            | Event::Routed(_)
            | Event::ArmChanged { .. }
            | Event::Conferred { .. }
            | Event::Checking { .. }
            | Event::Checked { .. }
            | Event::Cost { .. }
            | Event::Compacted { .. }
            | Event::Uncompacted { .. }
            | Event::Context(_)
            | Event::Retrying { .. }
            | Event::Waiting { .. }
            | Event::Continuing { .. }
            | Event::PlanChanged { .. }
            | Event::Notice { .. } => {
                let line = self.of_routing(event).or_else(|| self.of_turn(event));
                line.map_or(Ok(()), |line| self.write_stream_line(out, &line))
            }
            Event::Appended(_)
            | Event::TurnEnded { .. }
            | Event::Info(_)
            | Event::State(_)
            | Event::ModeChanged { .. }
            | Event::ThinkingChanged { .. }
            | Event::Models { .. }
            | Event::Queued { .. }
            | Event::ToolCallDelta { .. }
            | Event::Unknown
            | Event::Text { .. }
            | Event::Thinking { .. }
            | Event::ToolCallDrafted { .. }
            | Event::PermissionAsked { .. }
            | Event::PermissionDecided { .. }
            | Event::ToolStarted { .. }
            | Event::ToolProgress { .. }
            | Event::ToolEnded { .. }
            | Event::Usage { .. } => Ok(()),
        }
    }
}

/// Returns the result object of a turn that could not begin, as one line.
pub fn failure_result(error: &anyhow::Error) -> String {
    let result = json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
        "num_turns": 0, "result": "", "error": format!("{error:#}"), "duration_ms": 0,
        "duration_api_ms": 0, "total_cost_usd": 0.0, "session_id": ""});
    format!("{result}\n")
}

fn arm_names(arms: &[ModelRef]) -> Vec<String> {
    arms.iter().map(ToString::to_string).collect()
}

/// Returns `value` without the secrets that `firewall` finds in its texts and names.
pub fn redact_value(value: &Value, firewall: &Firewall) -> Value {
    match value {
        Value::String(text) => firewall.redact_text(text).into(),
        Value::Array(items) => items.iter().map(|item| redact_value(item, firewall)).collect(),
        Value::Object(fields) => {
            let field = |(name, item): (&String, &Value)| {
                (firewall.redact_text(name).into_owned(), redact_value(item, firewall))
            };
            fields.iter().map(field).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn content_block(content: &Content) -> Option<Value> {
    Some(match content {
        Content::Text(text) => json!({"type": "text", "text": text.text}),
        Content::Image(image) => {
            json!({"type": "image", "source": image_source(&image.mime, &image.base64)})
        }
        Content::Thinking(thinking) => json!({"type": "thinking", "thinking": thinking.text,
            "signature": thinking.signature.clone().unwrap_or_default()}),
        Content::RedactedThinking(_) => return None,
        Content::ToolCall(call) => {
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
        }
        Content::ToolResult(result) => json!({"type": "tool_result", "tool_use_id": result.call_id,
            "content": result_parts(result), "is_error": result.is_error}),
    })
}

fn result_parts(result: &ToolResult) -> Value {
    if result.images().next().is_none() {
        return Value::String(result.joined_text());
    }
    let part = |part: &ResultPart| match part {
        ResultPart::Text { text } => json!({"type": "text", "text": text}),
        ResultPart::Image(image) => {
            json!({"type": "image", "source": image_source(&image.mime, &image.base64)})
        }
    };
    result.parts.iter().map(part).collect()
}

fn image_source(mime: &str, base64: &str) -> Value {
    json!({"type": "base64", "media_type": mime, "data": base64})
}
