//! Ollama's own `/api/chat`: the only wire on which the size of the window can be asked for.
//!
//! `keep_alive` is not sent: how long a model stays loaded is the user's setting of the server.

mod decode;
mod encode;
mod wire;

use std::sync::Arc;

use crate::{
    Profile,
    body::Envelope,
    completions::{self, models::models},
    dialect::{Decode, Dialect, Headers, MessageCx},
    names::NameMap,
};
use gnoma_core::{Message, ModelInfo, ModelRequest, RawJson, ToolSpec};

/// The dialect.
pub(crate) struct Ollama {
    profile: Arc<Profile>,
}

impl Ollama {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}

impl Dialect for Ollama {
    fn path(&self, _model: &str) -> String {
        "/api/chat".to_owned()
    }

    /// A local server wants no key; Ollama's cloud does.
    fn headers(&self) -> Headers {
        self.profile.bearer().into_iter().collect()
    }

    fn tools(&self, tools: &[Arc<ToolSpec>], names: &NameMap) -> Option<RawJson> {
        completions::encode::tools(tools, names)
    }

    fn envelope(
        &self,
        request: &ModelRequest,
        tools: Option<&RawJson>,
        _names: &NameMap,
    ) -> Envelope {
        encode::envelope(request, tools)
    }

    fn message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
        encode::message(message, cx)
    }

    fn decoder(&self, names: Arc<NameMap>) -> Box<dyn Decode> {
        Box::new(decode::Decoder::new(Arc::clone(&self.profile), names))
    }

    fn models_path(&self) -> &'static str {
        "/api/tags"
    }

    fn models(&self, body: &[u8]) -> Vec<ModelInfo> {
        models(body)
    }
}

#[cfg(test)]
mod tests;
