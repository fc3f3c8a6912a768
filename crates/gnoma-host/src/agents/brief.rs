//! The input of an agent: the person's message, and as text what it has not seen of the conversation. Pure.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use gnoma_core::{Content, Message, ResultPart, Role, message::ModelRef, text_truncation};

/// Most text about the past, in bytes: its end is kept.
const MAX_PAST_BYTES: usize = 48 << 10;
/// Most text of one call or result of the past, in bytes.
const MAX_PIECE_BYTES: usize = 2 << 10;

const PAST: &str = "This is the conversation so far. Other models may have written parts of it; what they did \
     is done.";
const NOW: &str = "Now continue with this:";

/// The part of a conversation that an agent has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenPart {
    messages: usize,
    hash: u64,
}

impl SeenPart {
    /// All of these messages.
    pub(super) fn from_messages(messages: &[Arc<Message>]) -> Self {
        let mut hasher = DefaultHasher::new();
        for message in messages {
            message.role().hash(&mut hasher);
            message.text_content().hash(&mut hasher);
            for call in message.tool_calls() {
                call.id.hash(&mut hasher);
            }
        }
        Self { messages: messages.len(), hash: hasher.finish() }
    }

    /// Returns the messages after the seen part if this is the same conversation; `None` if it is another one, such
    /// as after a rewind.
    pub(super) fn unseen_messages<'m>(
        &self,
        messages: &'m [Arc<Message>],
    ) -> Option<&'m [Arc<Message>]> {
        let (known, rest) = messages.split_at_checked(self.messages)?;
        (Self::from_messages(known) == *self).then_some(rest)
    }
}

/// The text of a prompt: the person's last words, and before them, if there is any, the past that the
/// agent `me` has no part in. What it said and did itself it knows, unless it is `new` to the conversation.
pub(super) fn build_prompt(messages: &[Arc<Message>], me: &ModelRef, new: bool) -> String {
    let last = messages.iter().rposition(|message| message.role() != Role::User);
    let (past, now) = messages.split_at(last.map_or(0, |last| last + 1));
    let now = user_text(now);
    let mut told = String::new();
    let mut is_mine = false;
    for message in past {
        match message.role() {
            Role::Assistant => is_mine = !new && message.origin() == Some(me),
            Role::User => is_mine = false,
            Role::Tool => (),
        }
        if !is_mine {
            append_message(message, &mut told);
        }
    }
    if told.is_empty() {
        return now;
    }
    let end = text_truncation::word_suffix(&told, MAX_PAST_BYTES);
    let left_out = if end.len() < told.len() { "[the beginning is left out]\n" } else { "" };
    format!("{PAST}\n\n{left_out}{}\n\n{NOW}\n\n{now}", end.trim())
}

/// Returns the words of the user in these messages.
pub(super) fn user_text(messages: &[Arc<Message>]) -> String {
    let mut all = Vec::new();
    for message in messages {
        let pictures = message.content().iter().filter(|it| matches!(it, Content::Image(_)));
        let pictures = pictures.map(|_| "[a picture, which cannot be shown to you]".to_owned());
        all.push(message.text_content());
        all.extend(pictures);
    }
    all.join("\n\n")
}

fn append_message(message: &Message, told: &mut String) {
    let who = if message.role() == Role::User { "User" } else { "Assistant" };
    for content in message.content() {
        let line = match content {
            Content::Text(text) if !text.text.trim().is_empty() => {
                format!("{who}: {}", text.text.trim())
            }
            Content::ToolCall(call) => {
                format!("[called {} {}]", call.name, shorten_piece(call.arguments.get()))
            }
            Content::ToolResult(result) => {
                let texts = result.parts.iter().filter_map(|part| match part {
                    ResultPart::Text { text } => Some(text.as_str()),
                    ResultPart::Image(_) => None,
                });
                let text = texts.collect::<Vec<_>>().join("\n");
                let went = if result.is_error { "failed" } else { "gave" };
                format!("[{} {went}: {}]", result.name, shorten_piece(&text))
            }
            Content::Text(_)
            | Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_) => continue,
        };
        told.push_str(&line);
        told.push_str("\n\n");
    }
}

fn shorten_piece(text: &str) -> String {
    let head = text_truncation::word_prefix(text, MAX_PIECE_BYTES);
    if head.len() < text.len() { format!("{head}…") } else { head.to_owned() }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{CallId, RawJson, StopReason, ToolCall, ToolOutcome};

    use super::*;

    fn me() -> ModelRef {
        ModelRef { provider: "agent".into(), model: "a".into() }
    }

    fn says(text: &str, by: &ModelRef) -> Arc<Message> {
        let said = vec![Content::from_text(text)];
        let message = Message::assistant(said, Some(by.clone()), Some(StopReason::EndTurn));
        Arc::new(message.unwrap())
    }

    fn person(text: &str) -> Arc<Message> {
        Arc::new(Message::user_text(text))
    }

    #[test]
    fn first_message_is_sent_to_an_external_agent_unchanged() {
        assert_eq!(build_prompt(&[person("do it")], &me(), true), "do it");
    }

    #[test]
    fn external_agent_prompt_includes_other_models_messages_only() {
        let other = ModelRef { provider: "mistral".into(), model: "m".into() };
        let call =
            ToolCall::new(CallId::new("c"), "bash", RawJson::parse(r#"{"command":"ls"}"#).unwrap());
        let result = ToolOutcome::success_text("a.txt").into_result(&call);
        let called =
            Message::assistant(vec![Content::ToolCall(call)], Some(other.clone()), None).unwrap();
        let messages = [
            person("one"),
            says("mine", &me()),
            person("two"),
            Arc::new(called),
            Arc::new(Message::results(vec![result]).unwrap()),
            says("theirs", &other),
            person("three"),
        ];
        let seen = SeenPart::from_messages(messages.get(..1).unwrap());
        let told = build_prompt(seen.unseen_messages(&messages).unwrap(), &me(), false);
        for part in
            ["User: two", "[called bash {\"command\":\"ls\"}]", "[bash gave: a.txt]", "theirs"]
        {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("mine") && told.ends_with("three"), "{told}");
        assert!(build_prompt(&messages, &me(), true).contains("Assistant: mine"));
    }

    #[test]
    fn rewind_starts_a_new_external_agent_conversation() {
        let seen = SeenPart::from_messages(&[person("one"), person("two")]);
        assert!(seen.unseen_messages(&[person("one"), person("other"), person("x")]).is_none());
        assert!(seen.unseen_messages(&[person("one")]).is_none());
    }

    #[test]
    fn external_agent_prompt_truncates_a_long_history_at_the_start() {
        let other = ModelRef { provider: "p".into(), model: "m".into() };
        let mut messages: Vec<_> =
            (0..100).map(|n| says(&format!("{n} {}", "x".repeat(2_000)), &other)).collect();
        messages.push(person("now"));
        let told = build_prompt(&messages, &me(), true);
        assert!(told.len() < MAX_PAST_BYTES + 1_000 && told.contains("left out"));
        assert!(told.contains("99 x") && !told.contains("\n1 x"));
    }
}
