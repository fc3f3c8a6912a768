//! Google Gemini, `POST /v1beta/models/{model}:streamGenerateContent`.
//!
//! Format: Google's API reference for `generateContent`, which Vertex shares. Google's own tools (search,
//! code execution) are not offered; where an answer holds their parts all the same, they are read over.

mod arguments;
mod decode;
mod encode;
mod model;
mod wire;

use std::sync::Arc;

use gnoma_core::{Message, ModelInfo, ModelRequest, RawJson, ToolSpec};

pub(crate) use self::model::{always_thinks, is_third_generation};
use crate::{
    Profile,
    dialect::{AnswerDecoder, Dialect, Headers, MessageCx},
    envelope::Envelope,
    names::NameMap,
};

/// The prefix by which the API's own lists spell a model; everywhere else the name stands without it.
const MODEL_PREFIX: &str = "models/";

/// The dialect of one Gemini endpoint.
pub(crate) struct Google {
    profile: Arc<Profile>,
}

impl Google {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}

impl Dialect for Google {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn answer_path(&self, model: &str) -> String {
        // `tunedModels/mine` brings its own collection.
        let prefix = if model.contains('/') { "" } else { MODEL_PREFIX };
        format!("/{prefix}{model}:streamGenerateContent?alt=sse")
    }

    fn request_headers(&self) -> Headers {
        let key = self.profile.key.iter();
        key.map(|key| ("x-goog-api-key", key.clone())).collect()
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
        encode::encode_envelope(request, tools, names)
    }

    fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
        encode::encode_message(message, cx)
    }

    fn new_decoder(&self, names: Arc<NameMap>) -> Box<dyn AnswerDecoder> {
        Box::new(decode::GoogleDecoder::new(Arc::clone(&self.profile), names))
    }

    fn models_path(&self) -> &'static str {
        "/models?pageSize=1000"
    }

    fn parse_models(&self, body: &[u8]) -> Vec<ModelInfo> {
        let list: wire::ModelList<'_> = gnoma_core::json::from_bytes(body).unwrap_or_default();
        list.models
            .into_iter()
            .filter(wire::GoogleModel::can_generate)
            .map(|model| {
                let name = model.name.as_str();
                ModelInfo {
                    id: name.strip_prefix(MODEL_PREFIX).unwrap_or(name).to_owned(),
                    context_window: model.context_window(),
                    parameters: None,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    fn dialect() -> Google {
        let profile = Profile::new("google", Protocol::Google, "http://x");
        Google::new(Arc::new(profile))
    }

    #[test]
    fn google_model_path_accepts_ids_with_or_without_prefix() {
        let path = |model| dialect().answer_path(model);
        let expected = "/models/gemini-2.5-flash:streamGenerateContent?alt=sse";
        assert_eq!(path("gemini-2.5-flash"), expected);
        assert_eq!(path("models/gemini-2.5-flash"), expected);
        assert!(path("tunedModels/mine").starts_with("/tunedModels/mine:"));
    }

    #[test]
    fn only_models_that_generate_are_listed() {
        let body = br#"{"models":[
            {"name":"models/gemini-3-flash","inputTokenLimit":1048576,
             "supportedGenerationMethods":["generateContent","countTokens"]},
            {"name":"models/embedding-001","supportedGenerationMethods":["embedContent"]},
            {"name":"models/bare"}, {}]}"#;
        let models = dialect().parse_models(body);
        let read: Vec<_> =
            models.iter().map(|model| (model.id.as_str(), model.context_window)).collect();
        assert_eq!(read, [("gemini-3-flash", Some(1_048_576)), ("bare", None)]);
        assert!(dialect().parse_models(b"nonsense").is_empty());
    }
}
