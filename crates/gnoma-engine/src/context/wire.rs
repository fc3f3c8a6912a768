//! How providers count: by what vocabulary, what a message's frame takes, and whether they count
//! reasoning that is sent back.
//!
//! The numbers are those that recorded requests show (`--test it tracking` prints how far off they
//! are); what they cannot know of a model, the tracker learns.

use gnoma_core::{Message, ModelRef, Role, message::Content, picture::Pixels};
use gnoma_router::{Arm, Wire};

use super::size::{ContextSize, scale_tokens};

/// The model that counts tokens, and its protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// The protocol by which the model is asked.
    pub wire: Wire,
    /// The name of the model.
    pub name: ModelRef,
}

/// Tokens that Claude counts for each further result of a message.
const CLAUDE_FURTHER_RESULT: u64 = 40;
/// Tokens of Claude's frame around a call.
const CLAUDE_CALL: u64 = 45;
/// Tokens of the frame around a call elsewhere.
const CALL: u64 = 12;
/// Tokens of the frame around a result.
const RESULT: u64 = 10;
/// Tokens of the frame around something said.
const SAID: u64 = 8;
/// Tokens of any picture, where the wire says nothing better.
const PICTURE: u64 = 1_000;

impl Counter {
    /// Returns how the arm counts tokens.
    #[must_use]
    pub fn for_arm(arm: &Arm) -> Self {
        Self { wire: arm.wire, name: arm.id.clone() }
    }

    fn is_claude(&self) -> bool {
        self.name.model.contains("claude")
    }

    /// Returns the number of the model's own tokens for one of gnoma's estimate, before anything is learned about
    /// the model.
    pub(super) fn usual_ratio(&self) -> f64 {
        let model = &self.name.model;
        match self.wire {
            _ if self.is_claude() && is_new_claude(model) => 1.45,
            _ if self.is_claude() => 1.3,
            Wire::Ollama | Wire::Google => 1.0,
            Wire::Anthropic | Wire::Chat | Wire::Responses | Wire::Mistral | Wire::Agent => 1.1,
        }
    }

    /// Tokens without any reasoning, if one of gnoma's is `ratio` of its own.
    pub(super) fn count_tokens(&self, size: &ContextSize, ratio: f64) -> u64 {
        scale_tokens(size.words, ratio) + self.non_text_tokens(size)
    }

    /// Tokens of what is no words.
    pub(super) fn non_text_tokens(&self, size: &ContextSize) -> u64 {
        let pictures = size.pictures.iter().map(|pixels| self.picture_tokens(*pixels));
        self.frame_tokens(size) + pictures.sum::<u64>()
    }

    /// Tokens of the frame around the words.
    fn frame_tokens(&self, size: &ContextSize) -> u64 {
        let further = size.results.saturating_sub(size.result_messages);
        let results = if self.is_claude() {
            size.results * RESULT + further * CLAUDE_FURTHER_RESULT
        } else {
            size.results * RESULT
        };
        let call = if self.is_claude() { CLAUDE_CALL } else { CALL };
        results + size.calls * call + size.said * SAID
    }

    /// Tokens of a picture.
    fn picture_tokens(&self, pixels: Option<Pixels>) -> u64 {
        let Some(Pixels { width, height }) = pixels else { return PICTURE };
        let (width, height) = (u64::from(width), u64::from(height));
        let tiles = |edge: u64| width.div_ceil(edge) * height.div_ceil(edge);
        if self.is_claude() || self.wire == Wire::Anthropic {
            return (width * height / 750 + 8).min(1_600);
        }
        match self.wire {
            Wire::Google if self.name.model.contains("gemini-3") => 1_100,
            Wire::Google if width.max(height) <= 384 => 258,
            Wire::Google => (258 * tiles(768)).min(258 * 16),
            Wire::Mistral => (tiles(28) + height.div_ceil(28)).min(3_025),
            Wire::Chat | Wire::Responses if self.name.model.contains("grok") => 256 + 16,
            Wire::Chat | Wire::Responses => 85 + 170 * shown_tiles(width, height),
            Wire::Ollama | Wire::Anthropic | Wire::Agent => PICTURE,
        }
    }

    /// Reports whether the model counts the reasoning of `answer` in requests whose next message comes from a tool
    /// or a person.
    pub(super) fn keeps_thinking(&self, answer: &Message, next: Role) -> bool {
        let model = &self.name.model;
        let is_in_turn = next == Role::Tool;
        let is_sent = || {
            let thinking =
                |it: &Content| matches!(it, Content::Thinking(_) | Content::RedactedThinking(_));
            answer.content().iter().any(thinking)
        };
        match self.wire {
            Wire::Anthropic => is_in_turn || is_new_claude(model),
            Wire::Responses => is_in_turn || model.contains("grok"),
            Wire::Chat if model.starts_with("grok") => true,
            // Passed on by others, its reasoning is dropped.
            Wire::Chat if model.contains("x-ai/") => false,
            Wire::Chat | Wire::Mistral | Wire::Ollama => is_in_turn && is_sent(),
            Wire::Google | Wire::Agent => false,
        }
    }
}

/// Reports whether a Claude model retains its earlier thinking when a person speaks, as Opus 4.5 and the models
/// after 4.5 do.
fn is_new_claude(model: &str) -> bool {
    let old = ["claude-3", "claude-2", "-4-0", "-4-1", "-4-2025", "sonnet-4-5", "haiku-4-5", "4.5"];
    model.contains("claude") && !old.iter().any(|old| model.contains(old))
}

/// Tiles of 512 pixels of a picture as it is shown to OpenAI's models: within 2,048 pixels, and its
/// shorter edge within 768.
fn shown_tiles(width: u64, height: u64) -> u64 {
    let (long, short) = (width.max(height).max(1), width.min(height).max(1));
    let (long, short) = if long > 2_048 { (2_048, short * 2_048 / long) } else { (long, short) };
    let (long, short) = if short > 768 { (long * 768 / short, 768) } else { (long, short) };
    long.div_ceil(512) * short.max(1).div_ceil(512)
}
