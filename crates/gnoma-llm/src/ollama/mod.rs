//! Ollama's own `/api/chat`: the only wire on which the size of the window can be asked for.
//!
//! `keep_alive` is not sent: how long a model stays loaded is the user's setting of the server.

mod decode;
mod encode;
mod wire;

use std::sync::Arc;

use crate::{
    Profile,
    dialect::{AnswerDecoder, Dialect, MessageCx},
    envelope::Envelope,
    names::NameMap,
};
use gnoma_core::{Message, ModelRequest, RawJson};

/// The dialect of one Ollama endpoint.
pub(crate) struct Ollama {
    profile: Arc<Profile>,
}

impl Ollama {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}

impl Dialect for Ollama {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn answer_path(&self, _model: &str) -> String {
        "/api/chat".to_owned()
    }

    fn encode_envelope(
        &self,
        request: &ModelRequest,
        tools: Option<&RawJson>,
        _names: &NameMap,
    ) -> Envelope {
        encode::encode_envelope(request, tools)
    }

    fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
        encode::encode_message(message, cx)
    }

    fn new_decoder(&self, names: Arc<NameMap>) -> Box<dyn AnswerDecoder> {
        Box::new(decode::OllamaDecoder::new(Arc::clone(&self.profile), names))
    }

    fn models_path(&self) -> &'static str {
        "/api/tags"
    }
}

#[cfg(test)]
mod tests;
