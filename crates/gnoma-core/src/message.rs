//! Messages: what a conversation is made of.
//!
//! Laws, kept by the constructors: a message has content; only an assistant's message holds calls
//! and thinking; only a [`Role::Tool`] message holds results, and nothing else. What binds messages
//! to each other (every call answered by the next message) is the engine's to keep.

use std::{fmt, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

use crate::{json::RawJson, stop::StopReason};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, or the engine on their behalf.
    User,
    /// The model.
    Assistant,
    /// The tools, answering the assistant message just before.
    Tool,
}

/// Identifies a call within its assistant message; its result has the same id.
///
/// The provider's own id if it sent a usable one, otherwise one of ours. Unique within one message,
/// not across a session: some servers start at `call_0` every round.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct CallId(Arc<str>);

impl CallId {
    /// Wraps an id.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The beginning of a message that gnoma, and no person, has put into the user's place.
pub const SYSTEM_NOTE: &str = "[system] ";

/// The model that wrote a message: decides which opaque parts may be sent back.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelRef {
    /// Name of the provider as configured, such as `anthropic`.
    pub provider: String,
    /// Model id as sent on the wire.
    pub model: String,
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.provider, self.model)
    }
}

/// A text of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Text {
    /// The text; empty only if it has a signature.
    pub text: String,
    /// Opaque token the provider wants back with this text (Gemini thought signatures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Image {
    /// Media type, such as `image/png`.
    pub mime: String,
    /// The file's bytes in standard base64, as every wire wants them.
    pub base64: Arc<str>,
}

impl Image {
    /// Encodes `bytes`.
    #[must_use]
    pub fn from_bytes(mime: impl Into<String>, bytes: &[u8]) -> Self {
        Self { mime: mime.into(), base64: STANDARD.encode(bytes).into() }
    }
}

/// A model's reasoning that it shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thinking {
    /// The reasoning; may be empty when the provider hides it and sends only a signature.
    pub text: String,
    /// Opaque token to be sent back unchanged, to this provider only: Anthropic's signature, a
    /// Gemini thought signature, OpenAI's encrypted content, OpenRouter's reasoning details.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The vendor's id of the item this thinking is part of; neighbours with one id are one item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

/// Reasoning that the provider hides; only its token is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Redacted {
    /// The opaque block, to be sent back unchanged.
    pub data: String,
}

/// A model's request to run a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// Ties the result to the call.
    pub id: CallId,
    /// Our name of the tool, such as `fs.read`.
    pub name: String,
    /// The arguments as the model wrote them. Valid JSON, or a JSON string holding the text that
    /// was not (see [`broken`](Self::broken)).
    pub arguments: RawJson,
    /// The model's arguments were not JSON: `arguments` is that text as a JSON string, and the
    /// engine repairs it or refuses the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub broken: bool,
    /// Opaque token the provider wants back with this call (Gemini thought signatures).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The vendor's id of the item, where it differs from the call id (OpenAI Responses).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
}

impl ToolCall {
    /// A call with valid arguments and nothing else.
    #[must_use]
    pub fn new(id: CallId, name: impl Into<String>, arguments: RawJson) -> Self {
        Self { id, name: name.into(), arguments, broken: false, signature: None, item: None }
    }
}

/// One piece of a tool's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ResultPart {
    /// Output as text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture the tool read.
    Image(Image),
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The call this answers.
    pub call_id: CallId,
    /// Our name of the tool that was called (some wires pair by name).
    pub name: String,
    /// The answer; never empty.
    pub parts: Vec<ResultPart>,
    /// The call failed, was refused, or was cut short.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

impl ToolResult {
    /// A result that is one text.
    pub fn from_text(call: &ToolCall, text: impl Into<String>, is_error: bool) -> Self {
        Self {
            call_id: call.id.clone(),
            name: call.name.clone(),
            parts: vec![ResultPart::Text { text: text.into() }],
            is_error,
        }
    }

    /// The text parts, joined by line breaks.
    #[must_use]
    pub fn joined_text(&self) -> String {
        let mut out = String::new();
        for part in &self.parts {
            if let ResultPart::Text { text } = part {
                if !out.is_empty() {
                    out.push('\n');
                }
                out.push_str(text);
            }
        }
        out
    }

    /// Bytes of its texts and pictures.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        let bytes = |part: &ResultPart| match part {
            ResultPart::Text { text } => text.len(),
            ResultPart::Image(image) => image.base64.len(),
        };
        self.parts.iter().map(bytes).sum()
    }

    /// The pictures among the parts.
    pub fn images(&self) -> impl Iterator<Item = &Image> {
        self.parts.iter().filter_map(|part| match part {
            ResultPart::Image(image) => Some(image),
            ResultPart::Text { .. } => None,
        })
    }
}

/// One block of a message.
///
/// Stored as `{"text": {…}}`: an internal tag would make serde buffer the value, and raw JSON cannot
/// be read from a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Text, from anybody.
    Text(Text),
    /// A picture, from the user.
    Image(Image),
    /// Reasoning, from the model.
    Thinking(Thinking),
    /// Hidden reasoning, from the model.
    RedactedThinking(Redacted),
    /// A request to run a tool, from the model.
    ToolCall(ToolCall),
    /// The answer to a call.
    ToolResult(ToolResult),
}

impl Content {
    /// Plain text.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self::Text(Text { text: text.into(), signature: None })
    }
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    role: Role,
    content: Vec<Content>,
    /// Who wrote it, on assistant messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<ModelRef>,
    /// Why the model stopped, on assistant messages; `None` when it was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop: Option<StopReason>,
}

/// Why content is not a valid message.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// No content at all.
    #[error("a message needs content")]
    Empty,
    /// A block that this role cannot hold.
    #[error("content of a kind that this role cannot hold")]
    Misplaced,
    /// Two calls or two results share an id.
    #[error("a call id occurs twice in one message")]
    DuplicateCall,
}

crate::debug_as_display!(MessageError);

impl Message {
    /// A user's message.
    ///
    /// # Errors
    /// When `content` is empty or holds anything but text and images.
    pub fn user(content: Vec<Content>) -> Result<Self, MessageError> {
        Self::build_checked(Role::User, content, None, None)
    }

    /// A user's message of one text. An empty text becomes a single space: messages have content.
    pub fn user_text(text: impl Into<String>) -> Self {
        let mut text: String = text.into();
        if text.is_empty() {
            text.push(' ');
        }
        Self { role: Role::User, content: vec![Content::from_text(text)], origin: None, stop: None }
    }

    /// A model's message.
    ///
    /// # Errors
    /// When `content` is empty, holds results or images, or repeats a call id.
    pub fn assistant(
        content: Vec<Content>,
        origin: Option<ModelRef>,
        stop: Option<StopReason>,
    ) -> Result<Self, MessageError> {
        Self::build_checked(Role::Assistant, content, origin, stop)
    }

    /// The answers to the calls of the message before, in the order of the calls.
    ///
    /// # Errors
    /// When there is no result or two answer the same call.
    pub fn results(results: Vec<ToolResult>) -> Result<Self, MessageError> {
        let content = results.into_iter().map(Content::ToolResult).collect();
        Self::build_checked(Role::Tool, content, None, None)
    }

    fn build_checked(
        role: Role,
        content: Vec<Content>,
        origin: Option<ModelRef>,
        stop: Option<StopReason>,
    ) -> Result<Self, MessageError> {
        if content.is_empty() {
            return Err(MessageError::Empty);
        }
        let fits = |block: &Content| match block {
            Content::Text(_) => role != Role::Tool,
            Content::Image(_) => role == Role::User,
            Content::Thinking(_) | Content::RedactedThinking(_) | Content::ToolCall(_) => {
                role == Role::Assistant
            }
            Content::ToolResult(result) => role == Role::Tool && !result.parts.is_empty(),
        };
        if !content.iter().all(fits) {
            return Err(MessageError::Misplaced);
        }
        let mut ids = std::collections::HashSet::new();
        let distinct = content.iter().all(|block| match block {
            Content::ToolCall(call) => ids.insert(&call.id),
            Content::ToolResult(result) => ids.insert(&result.call_id),
            Content::Text(_)
            | Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_) => true,
        });
        if !distinct {
            return Err(MessageError::DuplicateCall);
        }
        drop(ids);
        Ok(Self { role, content, origin, stop })
    }

    /// Who speaks.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The blocks, at least one.
    #[must_use]
    pub fn content(&self) -> &[Content] {
        &self.content
    }

    /// The model that wrote it, when known.
    #[must_use]
    pub fn origin(&self) -> Option<&ModelRef> {
        self.origin.as_ref()
    }

    /// Why the model stopped; `None` for other roles and for an answer that was cut off.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// The calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Content::ToolCall(call) => Some(call),
            Content::Text(_)
            | Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolResult(_) => None,
        })
    }

    /// The results, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|block| match block {
            Content::ToolResult(result) => Some(result),
            Content::Text(_)
            | Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolCall(_) => None,
        })
    }

    /// Bytes of its texts, pictures, arguments and results.
    #[must_use]
    pub fn content_bytes(&self) -> usize {
        let bytes = |block: &Content| match block {
            Content::Text(text) => text.text.len(),
            Content::Image(image) => image.base64.len(),
            Content::Thinking(thinking) => thinking.text.len(),
            Content::RedactedThinking(redacted) => redacted.data.len(),
            Content::ToolCall(call) => call.arguments.get().len(),
            Content::ToolResult(result) => result.content_bytes(),
        };
        self.content.iter().map(bytes).sum()
    }

    /// All text blocks, one after the other.
    #[must_use]
    pub fn text_content(&self) -> String {
        let mut out = String::new();
        for block in &self.content {
            if let Content::Text(text) = block {
                out.push_str(&text.text);
            }
        }
        out
    }

    /// Returns whether gnoma, and no person, has put the message into the user's place.
    #[must_use]
    pub fn is_system_note(&self) -> bool {
        matches!(self.content.first(), Some(Content::Text(text)) if text.text.starts_with(SYSTEM_NOTE))
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Stored {
            role: Role,
            content: Vec<Content>,
            #[serde(default)]
            origin: Option<ModelRef>,
            #[serde(default)]
            stop: Option<StopReason>,
        }
        let stored = Stored::deserialize(deserializer)?;
        Self::build_checked(stored.role, stored.content, stored.origin, stored.stop)
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_round_trips_through_json_with_thinking_and_tool_calls() {
        let call = ToolCall::new(CallId::new("c1"), "fs.read", RawJson::empty_object());
        let message = Message::assistant(
            vec![
                Content::Thinking(Thinking {
                    text: "hm".into(),
                    signature: Some("sig==".into()),
                    item: None,
                }),
                Content::from_text("I look"),
                Content::ToolCall(call),
            ],
            Some(ModelRef { provider: "anthropic".into(), model: "m".into() }),
            Some(StopReason::ToolUse),
        )
        .unwrap();
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
    }

    #[test]
    fn message_rejects_empty_misplaced_or_duplicate_content() {
        assert_eq!(Message::user(vec![]), Err(MessageError::Empty));
        let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
        assert_eq!(
            Message::user(vec![Content::ToolCall(call.clone())]),
            Err(MessageError::Misplaced)
        );
        let twice = vec![Content::ToolCall(call.clone()), Content::ToolCall(call)];
        assert_eq!(Message::assistant(twice, None, None), Err(MessageError::DuplicateCall));
    }
}
