//! How large messages are, by gnoma's own count. Signatures and encrypted reasoning count as nothing, a
//! picture by its pixels: none of them is read as text.

use gnoma_core::{Message, Role, message::Content, picture::Pixels, tool::ToolSpec};

use crate::tokens;

/// Tokens of a tool's frame besides its words.
const TOOL_FRAME_TOKENS: usize = 8;

/// The composition of messages: tokens, calls, results and pictures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContextSize {
    /// Tokens of all words but reasoning, as gnoma estimates them.
    pub(super) words: u64,
    /// Tokens of reasoning that is shown, as gnoma estimates them.
    pub(super) thinking: u64,
    /// The number of tool calls.
    pub(super) calls: u64,
    /// The number of tool results.
    pub(super) results: u64,
    /// Messages that hold results.
    pub(super) result_messages: u64,
    /// Messages of a person or a model.
    pub(super) said: u64,
    /// Pictures, by their pixels where these are known.
    pub(super) pictures: Vec<Option<Pixels>>,
}

impl ContextSize {
    /// Adds a message to the counts.
    pub(crate) fn add_message(&mut self, message: &Message) {
        match message.role() {
            Role::Tool => self.result_messages += 1,
            Role::User | Role::Assistant => self.said += 1,
        }
        for content in message.content() {
            match content {
                Content::Text(text) => self.words += estimate_words(&text.text),
                Content::Image(image) => self.pictures.push(image.pixels()),
                Content::Thinking(thinking) => self.thinking += estimate_words(&thinking.text),
                Content::RedactedThinking(_) => (),
                Content::ToolCall(call) => {
                    self.calls += 1;
                    self.words += estimate_words(&call.name) + estimate_words(call.arguments.get());
                }
                Content::ToolResult(result) => {
                    self.results += 1;
                    self.words += estimate_words(&result.joined_text());
                    self.pictures.extend(result.images().map(gnoma_core::Image::pixels));
                }
            }
        }
    }

    /// The messages that `messages` are.
    pub(crate) fn from_messages<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut size = Self::default();
        messages.into_iter().for_each(|message| size.add_message(message));
        size
    }
}

/// Tokens of a system prompt and tools, as gnoma estimates them.
pub(crate) fn of_prefix<'a>(system: &str, tools: impl IntoIterator<Item = &'a ToolSpec>) -> u64 {
    let of_tool = |spec: &ToolSpec| {
        let words = [&*spec.name, &*spec.description, spec.parameters.get()];
        words.map(tokens::estimate).iter().sum::<usize>() + TOOL_FRAME_TOKENS
    };
    estimate_words(system) + tools.into_iter().map(of_tool).sum::<usize>() as u64
}

pub(super) fn scale_tokens(tokens: u64, ratio: f64) -> u64 {
    // Counts of a conversation are far below where a float is exact.
    (tokens as f64 * ratio).round() as u64
}

fn estimate_words(text: &str) -> u64 {
    tokens::estimate(text) as u64
}
