//! OpenAI Responses, and everything that speaks it (Azure, Copilot, xAI, OpenRouter, local servers).
//!
//! Nothing is stored at the provider: each request carries the whole conversation, with the model's
//! own reasoning as encrypted items. Server-side tools are neither offered nor replayed.

mod decode;
mod encode;
mod items;
mod phase;
mod reasoning;
mod wire;

use std::sync::Arc;

use crate::{
    Profile,
    dialect::{AnswerDecoder, Dialect, MessageCx},
    envelope::Envelope,
    names::NameMap,
};
use gnoma_core::{Message, ModelRequest, RawJson, ToolSpec};

/// The dialect of one Responses endpoint.
pub(crate) struct Responses {
    profile: Arc<Profile>,
}

impl Responses {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}

impl Dialect for Responses {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn answer_path(&self, _model: &str) -> String {
        "/responses".to_owned()
    }

    fn encode_tools(&self, tools: &[Arc<ToolSpec>], names: &NameMap) -> Option<RawJson> {
        encode::encode_tools(tools, names)
    }

    fn encode_envelope(
        &self,
        request: &ModelRequest,
        tools: Option<&RawJson>,
        names: &NameMap,
    ) -> Envelope {
        encode::encode_envelope(request, tools, names, &self.profile.quirks)
    }

    fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
        encode::encode_message(message, cx)
    }

    fn new_decoder(&self, names: Arc<NameMap>) -> Box<dyn AnswerDecoder> {
        Box::new(decode::ResponsesDecoder::new(Arc::clone(&self.profile), names))
    }
}

#[cfg(test)]
mod tests;
