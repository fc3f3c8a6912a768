//! Texts of spans: without secrets, and of limited size.

use std::sync::Arc;

use gnoma_core::{Content, Message, json_value::json, message::ResultPart};
use gnoma_guard::firewall::Firewall;

/// Bytes of a name, such as that of a tool.
const MAX_NAME_BYTES: usize = 120;
/// Most bytes of a text that a person, a model or a tool wrote.
const MAX_CONTENT_BYTES: usize = 16 << 10;

/// Replaces the secrets of a text.
#[derive(Clone)]
pub(super) struct Redaction(pub(super) [Arc<Firewall>; 2]);

impl Redaction {
    fn redact(&self, text: &str) -> String {
        let Self([own, strict]) = self;
        strict.redact_text(&own.redact_text(text)).into_owned()
    }

    /// A name, such as that of a tool, which a model may have made up.
    pub(super) fn redact_name(&self, name: &str) -> String {
        clean_name(&self.redact(name))
    }

    /// Redacts and shortens a text that a person, a model or a tool wrote. A cut or escaped secret no longer looks like
    /// one, so that comes last.
    pub(super) fn redact_content(&self, text: &str) -> String {
        let text = self.redact(text);
        gnoma_core::text_truncation::word_prefix(&text, MAX_CONTENT_BYTES).to_owned()
    }

    /// The texts of a message in the form of `gen_ai.input.messages` and `gen_ai.output.messages`.
    pub(super) fn format_message(&self, role: &str, message: &Message) -> String {
        let texts = message.content().iter().filter_map(|content| match content {
            Content::Text(text) => Some(&*text.text),
            Content::Image(_)
            | Content::Thinking(_)
            | Content::RedactedThinking(_)
            | Content::ToolCall(_)
            | Content::ToolResult(_) => None,
        });
        let text = self.redact_content(&texts.collect::<Vec<_>>().join("\n"));
        json!([{"role": role, "parts": [{"type": "text", "content": text}]}]).to_string()
    }
}

/// Returns a name without controls and of limited size.
pub(super) fn clean_name(name: &str) -> String {
    let name = gnoma_core::text_truncation::word_prefix(name, MAX_NAME_BYTES);
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns the texts of a result.
pub(super) fn result_text(parts: &[ResultPart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        ResultPart::Text { text } => Some(text.as_str()),
        ResultPart::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
