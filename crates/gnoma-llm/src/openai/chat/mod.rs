//! OpenAI chat completions, and everything compatible: the differences between servers are rows of
//! [`crate::profile`].

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

/// The dialect of `/chat/completions`.
pub(crate) struct Chat {
    profile: Arc<Profile>,
}

impl Chat {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}

impl Dialect for Chat {
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
        encode::encode_envelope(request, tools, names, &self.profile.quirks)
    }

    fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
        encode::encode_message(message, cx, &self.profile.quirks)
    }

    fn new_decoder(&self, names: Arc<NameMap>) -> Box<dyn AnswerDecoder> {
        let profile = Arc::clone(&self.profile);
        Box::new(CompletionsDecoder::new(profile, names, decode::Chat::default()))
    }
}
