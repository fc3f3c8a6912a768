//! What happens in a session, as updates of the protocol. A fold: events in, updates out.

use std::time::Duration;

use std::hash::{BuildHasher as _, RandomState};

use gnoma_core::{
    Content, Event, Message, ModelRef, Role, duration,
    json_value::json,
    plan::{PlanStep, StepStatus},
    session::{NoticeLevel, Routing},
};
use serde_json::Value;

use crate::{calls::Calls, params::ClientCapabilities};

/// Turns the events of one session into updates.
#[derive(Debug, Default)]
pub(crate) struct Translator {
    pub(crate) calls: Calls,
    cwd: String,
    client: ClientCapabilities,
    /// Number of the message that chunks belong to.
    message: u64,
    /// Stands before the numbers of messages, so that a session that is opened again repeats none.
    opening: u64,
    /// `true` if part of the current message was shown.
    has_text: bool,
    compactions: u64,
    /// The models that were told to answer last.
    models: Vec<ModelRef>,
}

impl Translator {
    pub(crate) fn new(client: ClientCapabilities) -> Self {
        // What a map is seeded with: random, and taken from no clock.
        let opening = RandomState::new().hash_one(());
        Self { client, opening, ..Self::default() }
    }

    fn message_id(&self) -> String {
        format!("{:016x}-{}", self.opening, self.message)
    }

    /// The folder that relative paths start from.
    pub(crate) fn work_in(&mut self, cwd: &str) {
        cwd.clone_into(&mut self.cwd);
    }

    pub(crate) fn cwd(&self) -> &str {
        &self.cwd
    }

    /// Tells an event. `choices`: how many models there are to choose from.
    pub(crate) fn push_event(&mut self, event: &Event, choices: usize, out: &mut Vec<Value>) {
        match event {
            Event::Text { text } => {
                self.has_text = true;
                out.push(self.message_chunk("agent_message_chunk", text));
            }
            Event::Thinking { text } => out.push(self.message_chunk("agent_thought_chunk", text)),
            Event::ToolCallDrafted { call, name } => self.calls.show_draft(call, name, out),
            Event::Appended(message) => self.push_appended(message, out),
            Event::ToolStarted { call } => self.calls.mark_running(call, &self.cwd, out),
            Event::ToolProgress { call, text } => self.calls.append_output(call, text),
            Event::ToolEnded { call, result, diff, .. } => {
                self.calls.show_call(call, &self.cwd, out);
                self.calls.close_call(&call.id, result, diff.as_deref(), &self.cwd, out);
            }
            Event::RoundStarted { .. } => self.next_message(out),
            Event::Routed(routing) => self.push_routing(routing, choices, out),
            Event::ArmChanged { .. } | Event::Retrying { .. } => self.push_retry(event, out),
            Event::Conferred { members, author, .. } => {
                let members: Vec<_> = members.iter().map(ToString::to_string).collect();
                let members = members.join(", ");
                self.push_thought(&format!("Asked {members}; the answer of {author} stands."), out);
            }
            Event::Checking { by, .. } => {
                self.push_thought(&format!("Checking the work: {by}"), out);
            }
            Event::Checked { by, passed, evidence, .. } => {
                let how = if *passed { "passed" } else { "failed" };
                self.push_thought(&format!("Check {by}: {how}\n{evidence}"), out);
            }
            Event::PlanChanged { steps } => out.push(plan_update(steps)),
            Event::Compacted { summary, .. } => self.push_compaction(summary, out),
            Event::Notice { level, text } => self.push_notice(*level, text, out),
            _ => (),
        }
    }

    /// Tells that the call of a model failed, and is made again by the same or another model.
    fn push_retry(&mut self, event: &Event, out: &mut Vec<Value>) {
        self.next_message(out);
        match event {
            Event::ArmChanged { from, to, why, retracted } => {
                self.models = vec![to.clone()];
                let again = if *retracted { " Its partial answer is discarded." } else { "" };
                self.push_remark(
                    &format!("{from} failed: {why}. Continuing with {to}.{again}"),
                    out,
                );
            }
            Event::Retrying { error, wait_ms, retracted, .. } => {
                let again = if *retracted { " The answer starts over." } else { "" };
                let wait = duration::format_duration(Duration::from_secs(wait_ms.div_ceil(1_000)));
                self.push_thought(&format!("{error}; retrying in {wait}.{again}"), out);
            }
            _ => (),
        }
    }

    /// A message of a person, for clients that did not send it themselves.
    pub(crate) fn push_user_message(&mut self, message: &Message, out: &mut Vec<Value>) {
        if message.is_system_note() {
            return;
        }
        self.message += 1;
        for content in message.content() {
            match content {
                Content::Text(text) => {
                    out.push(self.message_chunk("user_message_chunk", &text.text));
                }
                Content::Image(image) => out.push(json!({
                    "sessionUpdate": "user_message_chunk",
                    "messageId": self.message_id(),
                    "content": { "type": "image", "mimeType": image.mime, "data": &*image.base64 },
                })),
                Content::Thinking(_)
                | Content::RedactedThinking(_)
                | Content::ToolCall(_)
                | Content::ToolResult(_) => (),
            }
        }
        self.message += 1;
    }

    /// A message of the past, whole.
    pub(crate) fn replay_message(&mut self, message: &Message, out: &mut Vec<Value>) {
        if message.role() == Role::User {
            return self.push_user_message(message, out);
        }
        for content in message.content() {
            match content {
                Content::Text(text) if !text.text.is_empty() => {
                    out.push(self.message_chunk("agent_message_chunk", &text.text));
                }
                Content::Thinking(thinking) if !thinking.text.is_empty() => {
                    out.push(self.message_chunk("agent_thought_chunk", &thinking.text));
                }
                _ => (),
            }
        }
        self.push_appended(message, out);
    }

    fn push_appended(&mut self, message: &Message, out: &mut Vec<Value>) {
        match message.role() {
            Role::User => (),
            Role::Assistant => {
                for call in message.tool_calls() {
                    self.calls.show_call(call, &self.cwd, out);
                }
                self.next_message(out);
            }
            Role::Tool => {
                for result in message.tool_results() {
                    self.calls.close_call(&result.call_id, result, None, &self.cwd, out);
                }
            }
        }
    }

    /// Starts the next message; calls that were drafted for the last message and are not in it are dropped.
    fn next_message(&mut self, out: &mut Vec<Value>) {
        self.calls.drop_drafts(out);
        self.message += 1;
        self.has_text = false;
    }

    fn message_chunk(&self, kind: &str, text: &str) -> Value {
        json!({
            "sessionUpdate": kind,
            "messageId": self.message_id(),
            "content": { "type": "text", "text": text },
        })
    }

    /// Tells which models answer, if there was a choice and they differ from the last ones.
    fn push_routing(&mut self, routing: &Routing, choices: usize, out: &mut Vec<Value>) {
        if choices < 2 || self.models == routing.arms {
            return;
        }
        self.models.clone_from(&routing.arms);
        let models: Vec<_> = routing.arms.iter().map(ToString::to_string).collect();
        self.push_thought(&format!("Model: {} ({})", models.join(", "), routing.why), out);
    }

    fn push_compaction(&mut self, summary: &str, out: &mut Vec<Value>) {
        if !self.client.shows_compaction() {
            let text = "The conversation so far was replaced with a summary.";
            return self.push_thought(text, out);
        }
        self.compactions += 1;
        out.push(json!({
            "sessionUpdate": "compaction_update",
            "compactionId": self.compactions.to_string(),
            "status": "completed",
            "summary": [{ "type": "text", "text": summary }],
        }));
    }

    fn push_notice(&mut self, level: NoticeLevel, text: &str, out: &mut Vec<Value>) {
        if self.client.shows_notices() {
            let severity = match level {
                NoticeLevel::Info => "info",
                NoticeLevel::Warning => "warning",
            };
            out.push(json!({ "sessionUpdate": "notice", "severity": severity, "title": text }));
            return;
        }
        match level {
            NoticeLevel::Info => self.push_thought(text, out),
            NoticeLevel::Warning => self.push_remark(text, out),
        }
    }

    /// Adds a remark, which clients show where they show thoughts.
    fn push_thought(&mut self, text: &str, out: &mut Vec<Value>) {
        self.message += 1;
        out.push(self.message_chunk("agent_thought_chunk", &format!("{text}\n\n")));
        self.message += 1;
    }

    /// Adds a text of several lines that answers a command of gnoma's own.
    pub(crate) fn push_answer(&mut self, text: &str, out: &mut Vec<Value>) {
        self.message += 1;
        out.push(self.message_chunk("agent_message_chunk", &format!("{text}\n\n")));
        self.message += 1;
    }

    /// Adds a text that must be seen in every client: in the answer, apart from the model's words.
    pub(crate) fn push_remark(&mut self, text: &str, out: &mut Vec<Value>) {
        self.message += 1;
        let apart = if self.has_text { "\n\n" } else { "" };
        out.push(self.message_chunk("agent_message_chunk", &format!("{apart}*{text}*\n\n")));
        self.message += 1;
    }
}

/// The plan of the work, whole: a client replaces what it has.
pub(crate) fn plan_update(steps: &[PlanStep]) -> Value {
    let entry = |step: &PlanStep| {
        let status = match step.status {
            StepStatus::Pending => "pending",
            StepStatus::Active => "in_progress",
            StepStatus::Done => "completed",
        };
        json!({ "content": step.text, "priority": "medium", "status": status })
    };
    json!({ "sessionUpdate": "plan", "entries": steps.iter().map(entry).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{CallId, ErrorKind, ProviderError, RawJson, StopReason, ToolCall, ToolResult};

    use super::*;

    fn kinds(out: &[Value]) -> Vec<&str> {
        out.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect()
    }

    fn client(json: &str) -> ClientCapabilities {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn answer_with_a_tool_call_is_translated_in_order() {
        let mut translator = Translator::default();
        let mut out = Vec::new();
        let call =
            ToolCall::new(CallId::new("c"), "bash", RawJson::parse(r#"{"command":"ls"}"#).unwrap());
        let content = vec![Content::from_text("hi"), Content::ToolCall(call.clone())];
        let answer = Message::assistant(content, None, Some(StopReason::ToolUse)).unwrap();
        let result = ToolResult::from_text(&call, "a.txt", false);
        for event in [
            Event::Thinking { text: "hm".into() },
            Event::Text { text: "hi".into() },
            Event::ToolCallDrafted { call: call.id.clone(), name: "bash".into() },
            Event::Appended(Arc::new(answer)),
            Event::ToolStarted { call: call.clone() },
            Event::ToolEnded {
                call,
                result: result.clone(),
                diff: None,
                duration_ms: 1,
                command: None,
            },
            Event::Appended(Arc::new(Message::results(vec![result]).unwrap())),
        ] {
            translator.push_event(&event, 1, &mut out);
        }
        assert_eq!(
            kinds(&out),
            [
                "agent_thought_chunk",
                "agent_message_chunk",
                "tool_call",
                "tool_call_update",
                "tool_call_update",
                "tool_call_update"
            ]
        );
        assert_eq!(out[0]["messageId"], out[1]["messageId"]);
        assert_eq!(out[5]["status"], "completed");
    }

    #[test]
    fn a_session_that_is_opened_again_repeats_no_message_id() {
        let opened = || Translator::new(ClientCapabilities::default()).message_id();
        assert_ne!(opened(), opened());
    }

    #[test]
    fn failover_ends_drafts_of_the_failed_model_and_is_reported() {
        let (mut translator, mut out) = (Translator::default(), Vec::new());
        let model = |name: &str| ModelRef { provider: "p".into(), model: name.into() };
        for event in [
            Event::Text { text: "half".into() },
            Event::ToolCallDrafted { call: CallId::new("c"), name: "bash".into() },
            Event::ArmChanged {
                from: model("a"),
                to: model("b"),
                why: "busy".into(),
                retracted: true,
            },
        ] {
            translator.push_event(&event, 2, &mut out);
        }
        assert_eq!(out[2]["status"], "failed");
        let told = out[3]["content"]["text"].as_str().unwrap();
        assert!(told.contains("p/a failed: busy. Continuing with p/b."), "{told}");
        assert_ne!(out[0]["messageId"], out[3]["messageId"]);
    }

    #[test]
    fn notices_use_the_update_that_the_client_supports() {
        let notice = |level| Event::Notice { level, text: "careful".into() };
        let told = |json: &str, level| {
            let mut out = Vec::new();
            Translator::new(client(json)).push_event(&notice(level), 1, &mut out);
            out[0]["sessionUpdate"].as_str().unwrap().to_owned()
        };
        let shows = r#"{"session":{"notices":{},"compaction":{}}}"#;
        assert_eq!(told(shows, NoticeLevel::Info), "notice");
        assert_eq!(told("{}", NoticeLevel::Info), "agent_thought_chunk");
        assert_eq!(told("{}", NoticeLevel::Warning), "agent_message_chunk");
        let compacted = Event::Compacted { summary: "short".into(), messages: 9 };
        let mut out = Vec::new();
        Translator::new(client(shows)).push_event(&compacted, 1, &mut out);
        Translator::default().push_event(&compacted, 1, &mut out);
        assert_eq!(kinds(&out), ["compaction_update", "agent_thought_chunk"]);
    }

    #[test]
    fn chosen_model_is_reported_only_when_it_changes() {
        let model = ModelRef { provider: "p".into(), model: "m".into() };
        let routed = Event::Routed(Box::new(Routing {
            kind: "debug".into(),
            complexity: 1,
            decided_by: "heuristic".into(),
            strategy: "single".into(),
            arms: vec![model],
            why: "cheap".into(),
            candidates: Vec::new(),
            seed: 1,
        }));
        let (mut translator, mut out) = (Translator::default(), Vec::new());
        translator.push_event(&routed, 1, &mut out);
        assert!(out.is_empty());
        translator.push_event(&routed, 2, &mut out);
        translator.push_event(&routed, 2, &mut out);
        assert_eq!(kinds(&out), ["agent_thought_chunk"]);
        assert_eq!(out[0]["content"]["text"], "Model: p/m (cheap)\n\n");
    }

    #[test]
    fn history_replay_skips_messages_no_person_wrote() {
        let (mut translator, mut out) = (Translator::default(), Vec::new());
        let call =
            ToolCall::new(CallId::new("c"), "fs.read", RawJson::parse(r#"{"path":"a"}"#).unwrap());
        let answer = Message::assistant(
            vec![Content::from_text("ok"), Content::ToolCall(call.clone())],
            None,
            None,
        );
        for message in [
            Message::user_text("hello"),
            Message::user_text("[system] go on"),
            answer.unwrap(),
            Message::results(vec![ToolResult::from_text(&call, "no such file", true)]).unwrap(),
        ] {
            translator.replay_message(&message, &mut out);
        }
        assert_eq!(
            kinds(&out),
            ["user_message_chunk", "agent_message_chunk", "tool_call", "tool_call_update"]
        );
        assert_eq!(out[3]["status"], "failed");
    }

    #[test]
    fn plan_is_sent_with_all_its_entries() {
        let step = |text: &str, status| PlanStep { text: text.into(), status };
        let steps = vec![step("look", StepStatus::Done), step("mend", StepStatus::Active)];
        let mut out = Vec::new();
        Translator::default().push_event(&Event::PlanChanged { steps }, 1, &mut out);
        assert_eq!(out[0]["sessionUpdate"], "plan");
        assert_eq!(out[0]["entries"][0]["status"], "completed");
        assert_eq!(
            out[0]["entries"][1],
            json!({ "content": "mend", "priority": "medium", "status": "in_progress" })
        );
    }

    #[test]
    fn a_retry_says_when() {
        let error = ProviderError {
            kind: ErrorKind::Overloaded,
            provider: "p".into(),
            message: "busy".into(),
            status: None,
            code: None,
            retry_after: None,
            hint: None,
        };
        let (attempt, wait_ms, retracted, limit) = (2, 1_500, false, None);
        let event = Event::Retrying { error, attempt, wait_ms, retracted, limit };
        let mut out = Vec::new();
        Translator::default().push_event(&event, 1, &mut out);
        assert!(out[0]["content"]["text"].as_str().unwrap().contains("retrying in 2s"));
    }
}
