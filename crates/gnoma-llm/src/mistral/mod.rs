//! Mistral chat completions, the reference adapter.

mod decode;
mod encode;
mod wire;

use std::sync::Arc;

use gnoma_core::{Message, ModelRequest, RawJson};

use crate::{
    Profile,
    completions::decode::CompletionsDecoder,
    dialect::{AnswerDecoder, Dialect, MessageCx},
    envelope::Envelope,
    names::NameMap,
};

/// The dialect of Mistral's `/chat/completions`.
pub(crate) struct Mistral {
    profile: Arc<Profile>,
}

impl Mistral {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}

impl Dialect for Mistral {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn answer_path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn encode_envelope(
        &self,
        request: &ModelRequest,
        tools: Option<&RawJson>,
        names: &NameMap,
    ) -> Envelope {
        encode::encode_envelope(request, tools, names)
    }

    fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
        encode::encode_message(message, cx)
    }

    fn new_decoder(&self, names: Arc<NameMap>) -> Box<dyn AnswerDecoder> {
        let profile = Arc::clone(&self.profile);
        Box::new(CompletionsDecoder::new(profile, names, decode::Mistral))
    }
}
