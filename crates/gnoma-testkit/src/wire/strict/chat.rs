//! Chat completions: OpenAI's, their imitators', and Mistral's.
//!
//! Sources: OpenAI's API reference; Mistral's API reference and the messages of its errors (order of
//! roles, ids of calls); llama.cpp and vLLM for what imitators demand.

use serde_json::Value;

use super::{
    IssuedTokens, Wire,
    findings::{Findings, non_null_field},
    pairing::Pairing,
    tools,
};

const BODY: [&str; 16] = [
    "model",
    "messages",
    "stream",
    "max_tokens",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "n",
    "stop",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "reasoning_effort",
    "prompt_cache_key",
];
const OPENAI_BODY: [&str; 8] = [
    "stream_options",
    "max_completion_tokens",
    "seed",
    "user",
    "store",
    "metadata",
    "service_tier",
    "verbosity",
];
const COMPATIBLE_BODY: [&str; 3] = ["reasoning", "thinking", "chat_template_kwargs"];
const MISTRAL_BODY: [&str; 3] = ["prompt_mode", "random_seed", "safe_prompt"];

/// Longest id of a call that OpenAI takes.
const OPENAI_ID_BYTES: usize = 40;

/// Longest id of a call that imitators are taken to take.
const COMPATIBLE_ID_BYTES: usize = 256;

/// Length of an id of Mistral's: no more, no less.
const MISTRAL_ID_BYTES: usize = 9;

/// Checks one request for a chat completion.
pub(super) fn check_request(
    wire: Wire,
    body: &Value,
    issued: &IssuedTokens,
    findings: &mut Findings,
) {
    let mut known = BODY.to_vec();
    if wire == Wire::Mistral {
        known.extend(MISTRAL_BODY);
    } else {
        known.extend(OPENAI_BODY);
    }
    if wire == Wire::Compatible {
        known.extend(COMPATIBLE_BODY);
    }
    findings.check_fields("body", body, &known);
    findings.require_string("body", body, "model");
    let choices: &[&str] = match wire {
        Wire::Mistral => &["auto", "none", "any", "required"],
        _ => &["auto", "none", "required"],
    };
    tools::check_tools(body, choices, findings);
    let mut walk = Walk { wire, issued, findings, pairing: Pairing::default(), before: "" };
    let messages = walk.findings.require_list("body", body, "messages");
    for (nth, message) in messages.iter().enumerate() {
        walk.check_message(&format!("messages[{nth}]"), message);
    }
    walk.check_end();
}

/// A walk along the messages.
struct Walk<'a> {
    wire: Wire,
    issued: &'a IssuedTokens,
    findings: &'a mut Findings,
    pairing: Pairing,
    /// Role of the message before; empty in front of the first.
    before: &'a str,
}

impl<'a> Walk<'a> {
    fn check_message(&mut self, at: &str, message: &'a Value) {
        let role = message["role"].as_str().unwrap_or_default();
        if !self.may_follow(role) {
            let before = self.before;
            self.findings.add_violation(at, format_args!("`{role}` may not follow `{before}`"));
        }
        if role != "tool" {
            self.pairing.require_none_open(at, self.findings);
        }
        match role {
            "system" => {
                self.findings.check_fields(at, message, &["role", "content"]);
                self.check_content(at, &message["content"], &["text"]);
            }
            "user" => {
                self.findings.check_fields(at, message, &["role", "content"]);
                self.check_content(at, &message["content"], &["text", "image_url"]);
            }
            "assistant" => self.check_answer(at, message),
            "tool" => self.check_result(at, message),
            other => self.findings.add_violation(at, format_args!("there is no role `{other}`")),
        }
        self.before = role;
    }

    /// The system's words stand first. Beyond that, Mistral alone has an order.
    fn may_follow(&self, role: &str) -> bool {
        match (self.before, role) {
            ("" | "system", "system") => true,
            (_, "system") | ("" | "system", "tool") => false,
            ("user", "tool") | ("tool", "user") => self.wire != Wire::Mistral,
            _ => true,
        }
    }

    /// The end: an answer of the model cannot be answered, except by OpenAI.
    fn check_end(&mut self) {
        self.pairing.require_none_open("messages", self.findings);
        let open = matches!(self.before, "user" | "tool") || self.wire == Wire::OpenAi;
        self.findings.add_unless(open, "messages", "the last one must be a user's or a tool's");
    }

    /// Words, or a list of parts of these kinds.
    fn check_content(&mut self, at: &str, content: &Value, kinds: &[&str]) {
        match content {
            Value::String(text) => {
                self.findings.add_unless(!text.is_empty(), at, "the content is empty");
            }
            Value::Array(parts) if !parts.is_empty() => {
                for part in parts {
                    self.check_part(at, part, kinds);
                }
            }
            _ => self.findings.add_violation(at, "the content must be a text or a list of parts"),
        }
    }

    fn check_part(&mut self, at: &str, part: &Value, kinds: &[&str]) {
        let kind = part["type"].as_str().unwrap_or_default();
        if !kinds.contains(&kind) {
            self.findings.add_violation(at, format_args!("there is no part `{kind}` in this role"));
            return;
        }
        self.findings.check_fields(at, part, &["type", kind]);
        if kind == "text" {
            self.findings.require_string(at, part, "text");
        } else {
            let url = part["image_url"]["url"].as_str().unwrap_or_default();
            self.findings.add_unless(url.contains(':'), at, "a picture needs its address");
        }
    }

    fn check_answer(&mut self, at: &str, message: &'a Value) {
        let mut known = vec!["role", "content", "tool_calls"];
        match self.wire {
            Wire::Mistral => known.push("prefix"),
            Wire::Compatible => known.extend(["reasoning_content", "reasoning"]),
            _ => known.push("refusal"),
        }
        self.findings.check_fields(at, message, &known);
        for field in ["reasoning_content", "reasoning"] {
            // An empty one says that nothing was thought, which some demand to be told.
            if let Some(text) = non_null_field(message, field).filter(|text| *text != "") {
                self.own_thought(at, text);
            }
        }
        let calls = non_null_field(message, "tool_calls").and_then(Value::as_array);
        let says = self.words_of_model(at, non_null_field(message, "content"));
        self.findings.add_unless(
            says || calls.is_some(),
            at,
            "an answer must have content or calls, and has neither",
        );
        if non_null_field(message, "tool_calls").is_some() {
            self.findings.require_list(at, message, "tool_calls");
        }
        for call in calls.into_iter().flatten() {
            let id = tools::check_call(at, call, |id| self.wire.takes_id(id), self.findings);
            self.pairing.open_call(at, id, self.findings);
        }
    }

    /// Checks the words of a model and reports whether there are any.
    fn words_of_model(&mut self, at: &str, content: Option<&'a Value>) -> bool {
        match content {
            None => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Array(parts)) => {
                for part in parts {
                    if self.wire == Wire::Mistral && part["type"] == "thinking" {
                        self.findings.check_fields(at, part, &["type", "thinking", "closed"]);
                        for text in self.findings.require_list(at, part, "thinking") {
                            self.own_thought(at, &text["text"]);
                        }
                    } else {
                        self.check_part(at, part, &["text"]);
                    }
                }
                !parts.is_empty()
            }
            Some(_) => {
                self.findings.add_violation(at, "the content must be a text or a list of parts");
                false
            }
        }
    }

    fn own_thought(&mut self, at: &str, text: &Value) {
        let own = text.as_str().is_some_and(|text| self.issued.has_thought(text));
        self.findings.add_unless(own, at, "thinking that this server's model has not thought");
    }

    fn check_result(&mut self, at: &str, message: &Value) {
        let mut known = vec!["role", "content", "tool_call_id"];
        if self.wire == Wire::Mistral {
            known.push("name");
        }
        self.findings.check_fields(at, message, &known);
        if !message["content"].is_string() {
            self.check_content(at, &message["content"], &["text"]);
        }
        let id = self.findings.require_string(at, message, "tool_call_id");
        self.pairing.close_call(at, id, self.findings);
    }
}

impl Wire {
    /// Reports whether a call may have this id in chat completions.
    fn takes_id(self, id: &str) -> bool {
        match self {
            Self::Mistral => {
                id.len() == MISTRAL_ID_BYTES && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            }
            Self::OpenAi => id.len() <= OPENAI_ID_BYTES,
            _ => id.len() <= COMPATIBLE_ID_BYTES,
        }
    }
}
