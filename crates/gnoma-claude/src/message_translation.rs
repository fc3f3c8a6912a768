//! What happens in a session, as the messages of that wire. Pure: events in, messages out.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use gnoma_core::{
    CallId, Event, Message, RawJson, Role, Usage,
    json_value::json,
    message::{Content, ToolCall, ToolResult},
    session::{Outcome, SessionState},
};
use gnoma_extend::claude::{their_input, their_name};
use serde_json::Value;
use tokio::time::Instant;

use super::{blocks, ids::random_uuid, partial_answer::PartialAnswer, partial_answer::stop_reason};

/// Calls that are remembered of a session.
const MAX_CALLS: usize = 10_000;

/// Speaks for one session.
pub(super) struct MessageTranslator {
    session: String,
    /// The call that started it, where it is a sub-agent.
    parent: Option<String>,
    /// Pieces of answers are told, too.
    tells_pieces: bool,
    model: String,
    /// The id of the answer that is being written.
    answer: String,
    partial: PartialAnswer,
    /// The model's calls that were already sent to the program.
    calls: HashMap<CallId, ToolCall>,
    /// Since when a model is called.
    called: Option<Instant>,
    last_usage: Usage,
    pub(super) turn: TurnSums,
    pub(super) all: AllSums,
}

/// The totals and the answer of one turn.
#[derive(Default)]
pub(super) struct TurnSums {
    pub(super) text: String,
    joins: bool,
    is_cut: bool,
    pub(super) denials: Vec<Value>,
    pub(super) stop: Option<&'static str>,
}

/// The totals of the whole session.
#[derive(Default)]
pub(super) struct AllSums {
    pub(super) micro_usd: u64,
    pub(super) api_ms: u64,
    /// Tokens and micro-dollars, by model.
    models: BTreeMap<String, (Usage, u64)>,
}

/// The end of a turn, with its outcome and usage.
pub(super) struct EndedTurn {
    pub(super) outcome: Outcome,
    pub(super) rounds: u32,
    pub(super) usage: Usage,
    /// The answer, where it had to have a form.
    pub(super) answer: Option<RawJson>,
}

impl MessageTranslator {
    pub(super) fn new(session: &str, parent: Option<String>, tells_pieces: bool) -> Self {
        Self {
            session: session.to_owned(),
            parent,
            tells_pieces,
            model: String::new(),
            answer: answer_id(),
            partial: PartialAnswer::default(),
            calls: HashMap::new(),
            called: None,
            last_usage: Usage::default(),
            turn: TurnSums::default(),
            all: AllSums::default(),
        }
    }

    /// The model that is asked.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    pub(super) fn set_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    /// True if the model's call was already sent to the program.
    pub(super) fn has_told(&self, call: &str) -> bool {
        self.calls.keys().any(|told| told.as_str() == call)
    }

    /// A new turn begins.
    pub(super) fn begin_turn(&mut self) {
        self.turn = TurnSums::default();
    }

    /// The messages of an event.
    pub(super) fn render_event(&mut self, event: &Event) -> Vec<Value> {
        self.record_event(event);
        match event {
            Event::ArmChanged { retracted, .. } | Event::Retrying { retracted, .. } => {
                self.taken_back(*retracted)
            }
            Event::Text { text } => {
                self.partial_events(|it, id, model| it.text_events(false, text, id, model))
            }
            Event::Thinking { text } => {
                self.partial_events(|it, id, model| it.text_events(true, text, id, model))
            }
            Event::ToolCallDrafted { call, name } => {
                self.partial_events(|it, id, model| it.call_start_events(call, name, id, model))
            }
            Event::ToolCallDelta { call, fragment } => {
                self.partial_events(|it, _, _| it.argument_events(call, fragment))
            }
            Event::Appended(message) if message.role() == Role::Assistant => {
                self.assistant_messages(message)
            }
            Event::PermissionDecided { call, allowed: false, reason } => {
                self.denial_messages(call, reason)
            }
            Event::ToolEnded { call, result, diff, .. } if self.calls.contains_key(&call.id) => {
                vec![self.tool_result_message(result, diff.as_deref())]
            }
            Event::Compacted { messages, .. } => {
                let facts = json!({"trigger": "auto", "pre_tokens": self.last_usage.total_tokens(),
                    "messages": messages});
                vec![self.system_message("compact_boundary", "compact_metadata", facts)]
            }
            _ => Vec::new(),
        }
    }

    /// Takes in what later messages tell.
    fn record_event(&mut self, event: &Event) {
        match event {
            Event::RoundStarted { arm, .. } => {
                self.model.clone_from(&arm.model);
                self.called = Some(Instant::now());
            }
            Event::ArmChanged { to: arm, .. } | Event::Conferred { author: arm, .. } => {
                self.model.clone_from(&arm.model);
            }
            Event::Continuing { joins, .. } => self.turn.is_cut = *joins,
            Event::Usage { round, .. } => {
                self.last_usage = *round;
                self.all.models.entry(self.model.clone()).or_default().0 += *round;
            }
            Event::Cost { arm, call_micro_usd, session_micro_usd, .. } => {
                self.all.micro_usd = *session_micro_usd;
                let model = self.all.models.entry(arm.model.clone()).or_default();
                model.1 = model.1.saturating_add(call_micro_usd.unwrap_or_default());
            }
            _ => (),
        }
    }

    /// The message with the result of a call.
    fn tool_result_message(&self, result: &ToolResult, diff: Option<&str>) -> Value {
        let text = result.joined_text();
        let told = json!({"content": text, "diff": diff, "stdout": text, "stderr": "",
            "interrupted": false});
        let mut message = self.user_message(&[blocks::tool_result(result)]);
        set_field(&mut message, "tool_use_result", told);
        message
    }

    fn partial_events(
        &mut self,
        tell: impl FnOnce(&mut PartialAnswer, &str, &str) -> Vec<Value>,
    ) -> Vec<Value> {
        if !self.tells_pieces {
            return Vec::new();
        }
        let events = tell(&mut self.partial, &self.answer, &self.model);
        self.stream_events(events)
    }

    fn stream_events(&self, events: Vec<Value>) -> Vec<Value> {
        let event = |event: Value| {
            json!({"type": "stream_event", "event": event, "session_id": self.session,
                "parent_tool_use_id": self.parent, "uuid": random_uuid()})
        };
        events.into_iter().map(event).collect()
    }

    /// Discards what was written of an answer, and returns the stream events that end it.
    fn taken_back(&mut self, is_written: bool) -> Vec<Value> {
        let events =
            if is_written { self.partial.end_events(None, Usage::default()) } else { Vec::new() };
        self.answer = answer_id();
        self.stream_events(events)
    }

    fn assistant_messages(&mut self, message: &Arc<Message>) -> Vec<Value> {
        if let Some(called) = self.called.take() {
            let took_ms = u64::try_from(called.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.all.api_ms = self.all.api_ms.saturating_add(took_ms);
        }
        let goes_on =
            std::mem::replace(&mut self.turn.joins, std::mem::take(&mut self.turn.is_cut));
        if !goes_on {
            self.turn.text.clear();
        }
        self.turn.text.push_str(&message.text_content());
        self.turn.stop = message.stop_reason().map(stop_reason);
        if self.calls.len() + message.tool_calls().count() > MAX_CALLS {
            self.calls.clear();
        }
        for call in message.tool_calls() {
            self.calls.insert(call.id.clone(), call.clone());
        }
        let usage = blocks::usage_to_json(self.last_usage);
        let one = |content: &Content| {
            let block = blocks::block_to_json(content)?;
            Some(json!({"type": "assistant", "message": {"id": self.answer, "type": "message",
                "role": "assistant", "model": self.model, "content": [block],
                "stop_reason": null, "stop_sequence": null, "usage": usage},
                "parent_tool_use_id": self.parent, "session_id": self.session, "uuid": random_uuid()}))
        };
        let mut messages: Vec<_> = message.content().iter().filter_map(one).collect();
        let events = self.partial.end_events(message.stop_reason(), self.last_usage);
        messages.extend(self.stream_events(events));
        self.answer = answer_id();
        messages
    }

    fn denial_messages(&mut self, id: &CallId, reason: &str) -> Vec<Value> {
        let Some(call) = self.calls.get(id) else { return Vec::new() };
        let input = their_input(&call.name, call.arguments.read().unwrap_or_default());
        let name = their_name(&call.name);
        let denial = json!({"tool_name": name, "tool_use_id": id, "tool_input": input});
        self.turn.denials.push(denial);
        let mut message = self.system_message("permission_denied", "message", reason.into());
        set_field(&mut message, "tool_name", name.into());
        set_field(&mut message, "tool_use_id", id.as_str().into());
        vec![message]
    }

    /// A message from the person's side.
    pub(super) fn user_message(&self, content: &[Value]) -> Value {
        json!({"type": "user", "message": {"role": "user", "content": content},
            "parent_tool_use_id": self.parent, "session_id": self.session, "uuid": random_uuid()})
    }

    /// A message of the system, with one more field.
    pub(super) fn system_message(&self, subtype: &str, field: &str, value: Value) -> Value {
        let mut message = json!({"type": "system", "subtype": subtype,
            "session_id": self.session, "uuid": random_uuid()});
        set_field(&mut message, field, value);
        message
    }

    /// Returns the tokens and the cost of each model.
    pub(super) fn model_usage(&self) -> Value {
        let one = |(model, (usage, micro_usd)): (&String, &(Usage, u64))| {
            let facts = json!({"inputTokens": usage.input, "outputTokens": usage.output,
                "cacheReadInputTokens": usage.cache_read,
                "cacheCreationInputTokens": usage.cache_write, "webSearchRequests": 0,
                "costUSD": micro_usd_to_usd(*micro_usd), "contextWindow": 0, "maxOutputTokens": 0});
            (model.clone(), facts)
        };
        self.all.models.iter().map(one).collect()
    }

    /// The result of a turn that took so long.
    pub(super) fn result_message(
        &self,
        ended: &EndedTurn,
        took_ms: u64,
        over_budget: bool,
    ) -> Value {
        let TurnVerdict { subtype, errors } = turn_verdict(&ended.outcome, over_budget);
        let is_error = !errors.is_empty();
        let mut result = json!({
            "type": "result",
            "subtype": subtype,
            "is_error": is_error,
            "duration_ms": took_ms,
            "duration_api_ms": self.all.api_ms,
            "num_turns": ended.rounds,
            "stop_reason": self.turn.stop,
            "session_id": self.session,
            "total_cost_usd": micro_usd_to_usd(self.all.micro_usd),
            "usage": blocks::usage_to_json(ended.usage),
            "modelUsage": self.model_usage(),
            "permission_denials": self.turn.denials,
            "uuid": random_uuid(),
        });
        if let Some(answer) = &ended.answer {
            set_field(&mut result, "structured_output", answer.read().unwrap_or_default());
        }
        if subtype == "success" {
            let text = if is_error { errors.join("; ") } else { self.turn.text.clone() };
            set_field(&mut result, "result", text.into());
        } else {
            set_field(&mut result, "errors", json!(errors));
        }
        result
    }
}

/// The outcome of a turn, in the words of the wire.
struct TurnVerdict {
    subtype: &'static str,
    errors: Vec<String>,
}

fn turn_verdict(outcome: &Outcome, over_budget: bool) -> TurnVerdict {
    let failed = |why: String| TurnVerdict { subtype: "error_during_execution", errors: vec![why] };
    match outcome {
        Outcome::Cancelled if over_budget => TurnVerdict {
            subtype: "error_max_budget_usd",
            errors: vec!["Reached the maximum budget".to_owned()],
        },
        Outcome::Complete { .. } => TurnVerdict { subtype: "success", errors: Vec::new() },
        Outcome::RoundLimit { rounds } => TurnVerdict {
            subtype: "error_max_turns",
            errors: vec![format!("Reached maximum number of turns ({rounds})")],
        },
        Outcome::Cancelled => failed("Request interrupted by user".to_owned()),
        Outcome::Stuck { what } => failed(what.clone()),
        Outcome::Unfit { why, .. } => TurnVerdict {
            subtype: "error_max_structured_output_retries",
            errors: vec![format!("No answer fits the schema: {why}")],
        },
        // As that program tells failures of its provider.
        Outcome::Failed { error, .. } => {
            TurnVerdict { subtype: "success", errors: vec![format!("API Error: {error}")] }
        }
    }
}

/// The result of a session that could not begin.
pub(super) fn failure_result(why: &str, session: &str) -> Value {
    json!({"type": "result", "subtype": "error_during_execution", "is_error": true,
        "duration_ms": 0, "duration_api_ms": 0, "num_turns": 0, "stop_reason": null,
        "session_id": session, "total_cost_usd": 0.0, "usage": blocks::usage_to_json(Usage::default()),
        "modelUsage": {}, "permission_denials": [], "errors": [why], "uuid": random_uuid()})
}

/// True if nothing more happens in the turn after this event.
pub(super) fn is_end(event: &Event) -> bool {
    matches!(event, Event::State(SessionState::Idle))
}

fn micro_usd_to_usd(micro_usd: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "no sum is so large")]
    let micro_usd = micro_usd as f64;
    micro_usd / 1_000_000.0
}

fn answer_id() -> String {
    format!("msg_{}", random_uuid().replace('-', ""))
}

/// Adds a field to a message.
pub(super) fn set_field(message: &mut Value, name: &str, value: Value) {
    if let Some(fields) = message.as_object_mut() {
        fields.insert(name.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{ModelRef, StopReason};

    use super::*;

    fn told(voice: &mut MessageTranslator, events: &[Event]) -> Vec<Value> {
        events.iter().flat_map(|event| voice.render_event(event)).collect()
    }

    fn call() -> ToolCall {
        let arguments = RawJson::from_value(&json!({"path": "a", "content": "x"})).unwrap();
        ToolCall::new(CallId::new("c"), "fs.write", arguments)
    }

    fn answer(content: Vec<Content>, stop: StopReason) -> Event {
        Event::Appended(Arc::new(Message::assistant(content, None, Some(stop)).unwrap()))
    }

    fn round() -> Event {
        let arm = ModelRef { provider: "p".into(), model: "m".into() };
        Event::RoundStarted { round: 1, arm, why: String::new() }
    }

    #[test]
    fn tool_call_denial_and_result_are_translated() {
        let mut voice = MessageTranslator::new("s", None, false);
        let calls = vec![Content::from_text("ok"), Content::ToolCall(call())];
        let (id, reason) = (call().id, "no".to_owned());
        let told = told(
            &mut voice,
            &[
                round(),
                answer(calls, StopReason::ToolUse),
                Event::PermissionDecided { call: id, allowed: false, reason },
                Event::ToolEnded {
                    call: call(),
                    result: ToolResult::from_text(&call(), "no", true),
                    diff: None,
                    duration_ms: 1,
                    command: None,
                },
            ],
        );
        let types: Vec<_> = told.iter().map(|it| it["type"].as_str().unwrap()).collect();
        assert_eq!(types, ["assistant", "assistant", "system", "user"]);
        assert_eq!(told[0]["message"]["id"], told[1]["message"]["id"]);
        assert_eq!(told[1]["message"]["content"][0]["name"], "Write");
        assert_eq!(told[3]["message"]["content"][0]["is_error"], true);
        let input = json!({"file_path": "a", "content": "x"});
        let denial = json!({"tool_name": "Write", "tool_use_id": "c", "tool_input": input});
        assert_eq!(voice.turn.denials, [denial]);
        assert!(voice.has_told("c") && !voice.has_told("d"));
    }

    #[test]
    fn result_message_has_all_expected_fields() {
        let mut voice = MessageTranslator::new("s", None, false);
        told(&mut voice, &[round(), answer(vec![Content::from_text("hi")], StopReason::EndTurn)]);
        let outcome = Outcome::Complete { stop: StopReason::EndTurn };
        let ended = EndedTurn { outcome, rounds: 1, usage: Usage::default(), answer: None };
        let result = voice.result_message(&ended, 5, false);
        let wanted = [
            "subtype",
            "duration_ms",
            "duration_api_ms",
            "is_error",
            "num_turns",
            "session_id",
            "total_cost_usd",
            "usage",
            "modelUsage",
            "permission_denials",
            "uuid",
        ];
        assert!(wanted.iter().all(|name| result.get(name).is_some()), "{result}");
        assert_eq!((&result["result"], &result["subtype"]), (&json!("hi"), &json!("success")));
        let ended = EndedTurn { outcome: Outcome::RoundLimit { rounds: 1 }, ..ended };
        let result = voice.result_message(&ended, 5, false);
        assert_eq!(result["subtype"], "error_max_turns");
        assert_eq!(result["errors"], json!(["Reached maximum number of turns (1)"]));
        let ended = EndedTurn { outcome: Outcome::Cancelled, ..ended };
        assert_eq!(voice.result_message(&ended, 5, true)["subtype"], "error_max_budget_usd");
    }

    #[test]
    fn partial_messages_are_sent_only_if_requested() {
        let text = || Event::Text { text: "hi".into() };
        let mut quiet = MessageTranslator::new("s", None, false);
        assert!(told(&mut quiet, &[round(), text()]).is_empty());
        let mut voice = MessageTranslator::new("s", Some("p".into()), true);
        let ends = answer(vec![Content::from_text("hi")], StopReason::EndTurn);
        let told = told(&mut voice, &[round(), text(), ends]);
        let kinds: Vec<_> =
            told.iter().map(|it| it["event"]["type"].as_str().unwrap_or("assistant")).collect();
        let wanted = [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "assistant",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ];
        assert_eq!(kinds, wanted);
        assert!(told.iter().all(|it| it["parent_tool_use_id"] == "p"));
    }
}
