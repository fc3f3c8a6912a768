//! The conversation with an agent: which request is open, what came of it, and which of its calls go on.

use std::collections::{BTreeMap, VecDeque};

use gnoma_core::{
    StopReason, Usage,
    json_value::json,
    lines::Line,
    plan::{MAX_STEP_BYTES, MAX_STEPS, PlanStep, StepStatus},
};
use serde_json::{Value, value::RawValue};

use super::{
    answer::{AgentRequestKind, PendingAgentRequest, PermissionChoices, parse_error_text},
    call::{AgentCall, list_field, text_field},
    clean::clean_text,
};
use crate::wire::{self, AcpClientMessage, PeerError, RpcError, RpcId};

/// Longest line of an agent that is taken: as values it can take many times its length.
pub const MAX_AGENT_LINE_BYTES: usize = 4 << 20;
/// Lines that are no messages, such as logs, that are passed over in a conversation.
const MAX_STRAY_LINES: usize = 200;
/// Calls of an agent that go on at once; the oldest of more is forgotten.
const MAX_CALLS: usize = 256;
/// Longest id of a session or call, in bytes.
const MAX_ID_BYTES: usize = 1 << 10;
/// Requests of an agent that wait for their answers at once.
const MAX_ASKED: usize = 64;
/// The version of the protocol that is spoken.
const VERSION: u64 = 1;

/// An agent that does not keep to the protocol, so that the conversation with it ends. Displayed as words that follow
/// the agent's name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConversationError {
    /// A line of the agent is longer than [`MAX_AGENT_LINE_BYTES`].
    #[error("sent a message of more than {} MB", MAX_AGENT_LINE_BYTES >> 20)]
    MessageTooLong,
    /// Too many lines of the agent are no messages.
    #[error("writes something other than messages to its standard output")]
    StrayOutput,
    /// The agent speaks another version of the protocol.
    #[error("speaks version {version} of the protocol, not {}", VERSION)]
    Version {
        /// The version that the agent speaks.
        version: u64,
    },
    /// The answer to `initialize` has no version.
    #[error("named no version of the protocol")]
    NoVersion,
    /// The answer to `session/new` has no id of a session, or one that is too long.
    #[error("named no session")]
    NoSession,
}

gnoma_core::debug_as_display!(ConversationError);

/// A message from an agent about its state or its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentEvent {
    /// The agent is ready for requests.
    Ready,
    /// The session of the agent is open.
    Opened,
    /// Words of its answer.
    Text(String),
    /// Words of its reasoning.
    Thought(String),
    /// The whole plan of the agent.
    Plan(Vec<PlanStep>),
    /// A call of its own tools goes on.
    Began(String),
    /// A call of its own tools has ended: its id, and the call.
    Ended(String, Box<AgentCall>),
    /// The agent asks for something, and waits for the answer.
    Asks(AgentRequestKind),
    /// The agent's turn is over; includes the tokens it took, if the agent reported them.
    Stopped(StopReason, Option<Usage>),
    /// A request of ours failed.
    Failed(String),
}

/// The request that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenRequest {
    Nothing,
    Initialize,
    Session,
    Prompt,
}

/// A conversation with one agent, in one session of it.
#[derive(Debug)]
pub struct Conversation {
    open: OpenRequest,
    next_id: u64,
    session: String,
    calls: BTreeMap<String, AgentCall>,
    asked: VecDeque<PendingAgentRequest>,
    stray: usize,
}

impl Conversation {
    /// Begins it: the first line is written to `out`.
    pub fn start_conversation(out: &mut Vec<u8>) -> Self {
        let mut begun = Self {
            open: OpenRequest::Nothing,
            next_id: 0,
            session: String::new(),
            calls: BTreeMap::new(),
            asked: VecDeque::new(),
            stray: 0,
        };
        let params = json!({
            "protocolVersion": VERSION,
            "clientCapabilities": {
                "fs": { "readTextFile": true, "writeTextFile": true },
                "terminal": false,
            },
            "clientInfo": { "name": "gnoma", "version": env!("CARGO_PKG_VERSION") },
        });
        begun.send_request(OpenRequest::Initialize, "initialize", &params, out);
        begun
    }

    /// Opens a session in a folder.
    pub fn open_session(&mut self, cwd: &str, out: &mut Vec<u8>) {
        let nothing: [Value; 0] = [];
        let params = json!({ "cwd": cwd, "mcpServers": nothing.as_slice() });
        self.send_request(OpenRequest::Session, "session/new", &params, out);
    }

    /// Says something, which begins a turn.
    pub fn send_prompt(&mut self, text: &str, out: &mut Vec<u8>) {
        let session = self.session.clone();
        let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
        self.send_request(OpenRequest::Prompt, "session/prompt", &params, out);
    }

    /// Reports whether the agent is in a turn.
    #[must_use]
    pub fn is_in_turn(&self) -> bool {
        self.open == OpenRequest::Prompt
    }

    /// Stops the turn: what it asked for is withdrawn.
    pub fn cancel(&mut self, out: &mut Vec<u8>) {
        wire::write_notification("session/cancel", &json!({ "sessionId": self.session }), out);
        for PendingAgentRequest { id, answers } in self.asked.drain(..) {
            let answer = match answers {
                Some(_) => Ok(PermissionChoices::default().outcome_json(false)),
                None => Err(RpcError::new(RpcError::CANCELLED, "the turn was stopped")),
            };
            wire::write_answer(&id, &answer, out);
        }
    }

    /// Answers what was asked first: a yes with the text that was wanted, where one was, or a no.
    pub fn answer_question(&mut self, answer: Result<&str, &str>, out: &mut Vec<u8>) {
        let Some(PendingAgentRequest { id, answers }) = self.asked.pop_front() else { return };
        let answer = match (answers, answer) {
            (Some(answers), answer) => Ok(answers.outcome_json(answer.is_ok())),
            (None, Ok(text)) => Ok(json!({ "content": text })),
            (None, Err(why)) => Err(RpcError::new(RpcError::INTERNAL, why)),
        };
        wire::write_answer(&id, &answer, out);
    }

    /// Reports whether the agent waits for an answer.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !self.asked.is_empty()
    }

    fn send_request(&mut self, open: OpenRequest, method: &str, params: &Value, out: &mut Vec<u8>) {
        self.next_id += 1;
        self.open = open;
        wire::write_request(self.next_id, method, params, out);
    }

    /// Takes a line of the agent and returns the event that it reports, if any. Requests that cannot be granted are
    /// answered to `out` at once.
    ///
    /// # Errors
    /// The agent does not keep to the protocol.
    pub fn receive_line(
        &mut self,
        line: &Line,
        out: &mut Vec<u8>,
    ) -> Result<Option<AgentEvent>, ConversationError> {
        if *line == Line::TooLong {
            return Err(ConversationError::MessageTooLong);
        }
        match wire::decode_line(line) {
            Ok(None) => Ok(None),
            Ok(Some(AcpClientMessage::Request { id, method, params })) => {
                Ok(self.on_request(id, &method, &parse_value(params.as_deref()), out))
            }
            Ok(Some(AcpClientMessage::Notification { method, params })) => {
                let params = parse_value(params.as_deref());
                let is_own = text_field(&params, "sessionId") == Some(&self.session);
                let update = params.get("update").filter(|_| is_own && method == "session/update");
                Ok(update.and_then(|update| self.on_update(update)))
            }
            Ok(Some(AcpClientMessage::Response { id, result })) => {
                // An answer that comes late is to a request that was given up.
                let is_open = id == Some(self.next_id) && self.open != OpenRequest::Nothing;
                if is_open { self.on_response(result).map(Some) } else { Ok(None) }
            }
            Err(_) => {
                self.stray += 1;
                if self.stray > MAX_STRAY_LINES {
                    return Err(ConversationError::StrayOutput);
                }
                Ok(None)
            }
        }
    }

    fn on_response(
        &mut self,
        result: Result<Box<RawValue>, PeerError>,
    ) -> Result<AgentEvent, ConversationError> {
        let open = std::mem::replace(&mut self.open, OpenRequest::Nothing);
        let result = match result {
            Ok(result) => parse_value(Some(&result)),
            Err(error) => return Ok(AgentEvent::Failed(parse_error_text(&error.0))),
        };
        match open {
            OpenRequest::Nothing | OpenRequest::Initialize => {
                let version = result.get("protocolVersion").and_then(Value::as_u64);
                match version {
                    Some(VERSION) => Ok(AgentEvent::Ready),
                    Some(version) => Err(ConversationError::Version { version }),
                    None => Err(ConversationError::NoVersion),
                }
            }
            OpenRequest::Session => {
                let session =
                    text_field(&result, "sessionId").filter(|id| id.len() <= MAX_ID_BYTES);
                session.ok_or(ConversationError::NoSession)?.clone_into(&mut self.session);
                Ok(AgentEvent::Opened)
            }
            OpenRequest::Prompt => {
                self.calls.clear();
                let usage = result.get("usage").map(parse_usage);
                Ok(AgentEvent::Stopped(parse_stop_reason(text_field(&result, "stopReason")), usage))
            }
        }
    }

    fn on_request(
        &mut self,
        id: RpcId,
        method: &str,
        params: &Value,
        out: &mut Vec<u8>,
    ) -> Option<AgentEvent> {
        let (wish, answers) = match method {
            "session/request_permission" => {
                let call = params.get("toolCall").unwrap_or(&Value::Null);
                let answers = PermissionChoices::from_params(params);
                let (name, call) = self.merge_call(call);
                let wish = AgentRequestKind::Permission {
                    id: name,
                    call: call.into(),
                    answers: answers.clone(),
                };
                (Some(wish), Some(answers))
            }
            _ => (AgentRequestKind::of_file(method, params), None),
        };
        let is_file = method.starts_with("fs/");
        let refused = match &wish {
            None if is_file => Some(RpcError::invalid_params("the path or the text is missing")),
            None => Some(RpcError::new(RpcError::NO_METHOD, "gnoma has no such method")),
            Some(_) if !self.is_in_turn() => {
                Some(RpcError::new(RpcError::INVALID_REQUEST, "no turn is running"))
            }
            Some(_) if self.asked.len() >= MAX_ASKED => {
                Some(RpcError::new(RpcError::INTERNAL, "too many requests are already waiting"))
            }
            Some(_) => None,
        };
        if let Some(error) = refused {
            wire::write_answer(&id, &Err(error), out);
            return None;
        }
        self.asked.push_back(PendingAgentRequest { id, answers });
        wish.map(AgentEvent::Asks)
    }

    /// The call that a question is about: what was told of it before, and what comes with the question.
    fn merge_call(&mut self, told: &Value) -> (String, AgentCall) {
        let id = text_field(told, "toolCallId").unwrap_or_default();
        let mut call = self.calls.get(id).cloned().unwrap_or_default();
        let _has_ended = call.apply_update(told);
        let id = id.get(..id.floor_char_boundary(MAX_ID_BYTES)).unwrap_or_default();
        (id.to_owned(), call)
    }

    fn on_update(&mut self, update: &Value) -> Option<AgentEvent> {
        let content = || update.get("content").and_then(|content| text_field(content, "text"));
        match text_field(update, "sessionUpdate")? {
            "agent_message_chunk" => Some(AgentEvent::Text(clean_text(content()?))),
            "agent_thought_chunk" => Some(AgentEvent::Thought(clean_text(content()?))),
            "plan" => Some(AgentEvent::Plan(parse_plan(update))),
            "tool_call" | "tool_call_update" => self.on_call_update(update),
            _ => None,
        }
    }

    fn on_call_update(&mut self, update: &Value) -> Option<AgentEvent> {
        let id = text_field(update, "toolCallId").filter(|id| id.len() <= MAX_ID_BYTES)?;
        let is_new = !self.calls.contains_key(id);
        if is_new && self.calls.len() >= MAX_CALLS {
            self.calls.pop_first();
        }
        let call = self.calls.entry(id.to_owned()).or_default();
        if call.apply_update(update) {
            let call = self.calls.remove(id)?;
            return Some(AgentEvent::Ended(id.to_owned(), call.into()));
        }
        let title = call.title.clone();
        (is_new && !title.is_empty()).then_some(AgentEvent::Began(title))
    }
}

fn parse_value(json: Option<&RawValue>) -> Value {
    json.and_then(|json| gnoma_core::json::from_str(json.get()).ok()).unwrap_or_default()
}

fn parse_stop_reason(reason: Option<&str>) -> StopReason {
    match reason {
        Some("end_turn" | "cancelled") => StopReason::EndTurn,
        Some("max_tokens") => StopReason::MaxTokens,
        Some("refusal") => StopReason::Refusal,
        _ => StopReason::Other,
    }
}

fn parse_usage(told: &Value) -> Usage {
    let count = |name: &str| told.get(name).and_then(Value::as_u64).unwrap_or(0);
    Usage {
        input: count("inputTokens"),
        output: count("outputTokens"),
        cache_read: count("cachedReadTokens"),
        cache_write: count("cachedWriteTokens"),
        reasoning: count("thoughtTokens"),
    }
}

fn parse_plan(update: &Value) -> Vec<PlanStep> {
    let step = |entry: &Value| {
        let words = clean_text(text_field(entry, "content")?);
        let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = line.get(..line.floor_char_boundary(MAX_STEP_BYTES)).unwrap_or_default();
        let status = match text_field(entry, "status") {
            Some("completed") => StepStatus::Done,
            Some("in_progress") => StepStatus::Active,
            _ => StepStatus::Pending,
        };
        (!line.is_empty()).then(|| PlanStep { text: line.to_owned(), status })
    };
    list_field(update, "entries").iter().filter_map(step).take(MAX_STEPS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn heard(
        it: &mut Conversation,
        message: &Value,
    ) -> (Result<Option<AgentEvent>, ConversationError>, Vec<Value>) {
        let mut out = Vec::new();
        let said = it.receive_line(&Line::Whole(message.to_string().into_bytes()), &mut out);
        let lines = std::str::from_utf8(&out).unwrap().lines();
        (said, lines.map(|line| serde_json::from_str(line).unwrap()).collect())
    }

    fn answer(id: u64, result: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
    }

    fn update(update: &Value) -> Value {
        json!({ "jsonrpc": "2.0", "method": "session/update",
            "params": { "sessionId": "s", "update": update } })
    }

    /// A conversation in its first turn.
    fn talking() -> Conversation {
        let mut out = Vec::new();
        let mut it = Conversation::start_conversation(&mut out);
        let ready = heard(&mut it, &answer(1, &json!({ "protocolVersion": 1 }))).0;
        assert_eq!(ready, Ok(Some(AgentEvent::Ready)));
        it.open_session("/w", &mut out);
        let opened = heard(&mut it, &answer(2, &json!({ "sessionId": "s" }))).0;
        assert_eq!(opened, Ok(Some(AgentEvent::Opened)));
        it.send_prompt("do it", &mut out);
        it
    }

    #[test]
    fn agent_turn_is_read_to_its_stop_reason() {
        let mut it = talking();
        let chunk = |kind: &str, text: &str| {
            update(&json!({ "sessionUpdate": kind, "content": { "type": "text", "text": text } }))
        };
        let text = heard(&mut it, &chunk("agent_message_chunk", "hi\u{7}")).0;
        assert_eq!(text, Ok(Some(AgentEvent::Text("hi".into()))));
        let end = json!({ "stopReason": "end_turn", "usage": { "inputTokens": 7 } });
        let usage = Some(Usage { input: 7, ..Usage::default() });
        let stopped = heard(&mut it, &answer(3, &end)).0;
        assert_eq!(stopped, Ok(Some(AgentEvent::Stopped(StopReason::EndTurn, usage))));
        assert!(!it.is_in_turn());
    }

    #[test]
    fn agent_requests_are_answered_in_order() {
        let mut it = talking();
        heard(
            &mut it,
            &update(&json!({ "sessionUpdate": "tool_call", "toolCallId": "c",
            "title": "Test", "kind": "execute", "rawInput": { "command": "make" } })),
        )
        .0
        .unwrap();
        let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": "session/request_permission",
            "params": { "sessionId": "s", "toolCall": { "toolCallId": "c" },
                "options": [{ "optionId": "y", "kind": "allow_once" }] } });
        let Ok(Some(AgentEvent::Asks(AgentRequestKind::Permission { id, call, .. }))) =
            heard(&mut it, &ask).0
        else {
            panic!("it does not ask");
        };
        assert_eq!((&*id, call.command.as_deref()), ("c", Some("make")));
        let read = json!({ "jsonrpc": "2.0", "id": 9, "method": "fs/read_text_file",
            "params": { "sessionId": "s", "path": "/w/a" } });
        let wish = AgentRequestKind::Read { path: "/w/a".into(), line: None, limit: None };
        assert_eq!(heard(&mut it, &read).0, Ok(Some(AgentEvent::Asks(wish))));
        let mut out = Vec::new();
        it.answer_question(Ok(""), &mut out);
        it.answer_question(Ok("text"), &mut out);
        let lines: Vec<Value> = std::str::from_utf8(&out)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["id"], "q");
        assert_eq!(lines[0]["result"]["outcome"]["optionId"], "y");
        assert_eq!(lines[1]["result"]["content"], "text");
        assert!(!it.is_waiting());
    }

    #[test]
    fn unsupported_agent_requests_and_repeated_stray_lines_are_refused() {
        let mut it = talking();
        let ask = json!({ "jsonrpc": "2.0", "id": 1, "method": "terminal/create", "params": {} });
        let (said, answers) = heard(&mut it, &ask);
        assert_eq!((said, &answers[0]["error"]["code"]), (Ok(None), &json!(-32_601)));
        let mut out = Vec::new();
        for _ in 0..MAX_STRAY_LINES {
            assert_eq!(it.receive_line(&Line::Whole(b"npm warn".to_vec()), &mut out), Ok(None));
        }
        assert!(it.receive_line(&Line::Whole(b"npm warn".to_vec()), &mut out).is_err());
        assert!(it.receive_line(&Line::TooLong, &mut out).is_err());
    }

    #[test]
    fn cancel_withdraws_a_pending_permission_request() {
        let mut it = talking();
        let ask = json!({ "jsonrpc": "2.0", "id": 5, "method": "session/request_permission",
            "params": { "toolCall": { "toolCallId": "c" }, "options": [] } });
        heard(&mut it, &ask).0.unwrap();
        let mut out = Vec::new();
        it.cancel(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("session/cancel") && text.contains("\"outcome\":\"cancelled\""));
        assert!(!it.is_waiting());
    }
}
