//! Anthropic Messages, `POST /v1/messages`.
//!
//! Format: Anthropic's API reference, version `2023-06-01`. Server tools (search, code execution, MCP,
//! compaction) are not offered; where an answer holds their blocks all the same, they are read over.

mod decode;
mod effort;
mod encode;
mod wire;

use std::sync::Arc;

use gnoma_core::{Message, ModelInfo, ModelRef, ModelRequest, RawJson, Secret, ToolSpec};

pub(crate) use self::effort::{always_thinks, takes_schemas};
use crate::{
    Profile,
    dialect::{AnswerDecoder, Dialect, Headers, MessageCx},
    envelope::Envelope,
    names::NameMap,
};

/// The prefix of a key that stands for a signed-in person and not for an API account.
const SIGNED_IN_KEY: &str = "sk-ant-oat";

/// The dialect of one Anthropic endpoint.
pub(crate) struct Anthropic {
    profile: Arc<Profile>,
}

impl Anthropic {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}

impl Dialect for Anthropic {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn answer_path(&self, _model: &str) -> String {
        "/messages".to_owned()
    }

    fn request_headers(&self) -> Headers {
        let plain = |value: &str| Secret::new(value.to_owned());
        let mut headers = vec![("anthropic-version", plain("2023-06-01"))];
        if let Some(key) = &self.profile.key {
            let is_signed_in = key.expose().starts_with(SIGNED_IN_KEY);
            headers.push(if is_signed_in || self.profile.has_bearer_key {
                ("authorization", Secret::new(format!("Bearer {}", key.expose())))
            } else {
                ("x-api-key", key.clone())
            });
            if is_signed_in {
                headers.push(("anthropic-beta", plain("oauth-2025-04-20")));
            }
        }
        headers
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
        let asked =
            ModelRef { provider: self.profile.name.clone(), model: request.model.to_string() };
        encode::encode_envelope(request, &asked, tools, names)
    }

    fn encode_message(&self, message: &Message, cx: MessageCx<'_>) -> Vec<u8> {
        encode::encode_message(message, cx)
    }

    fn has_breakpoints(&self) -> bool {
        true
    }

    fn new_decoder(&self, names: Arc<NameMap>) -> Box<dyn AnswerDecoder> {
        Box::new(decode::AnthropicDecoder::new(Arc::clone(&self.profile), names))
    }

    fn models_path(&self) -> &'static str {
        "/models?limit=1000"
    }

    fn parse_models(&self, body: &[u8]) -> Vec<ModelInfo> {
        let list: wire::ModelList<'_> = gnoma_core::json::from_bytes(body).unwrap_or_default();
        list.data
            .into_iter()
            .filter(|model| !model.id.is_empty())
            .map(|model| ModelInfo {
                context_window: model.context_window(),
                id: model.id.into_string(),
                parameters: None,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Protocol;

    fn headers(key: Option<&str>) -> Vec<(&'static str, String)> {
        headers_of(key, false)
    }

    fn headers_of(key: Option<&str>, has_bearer_key: bool) -> Vec<(&'static str, String)> {
        let mut profile = Profile::new("anthropic", Protocol::Anthropic, "http://x");
        profile.key = key.map(|key| Secret::new(key.to_owned()));
        profile.has_bearer_key = has_bearer_key;
        let headers = Anthropic::new(Arc::new(profile)).request_headers();
        headers.into_iter().map(|(name, value)| (name, value.expose().clone())).collect()
    }

    #[test]
    fn anthropic_api_key_and_oauth_token_use_different_headers() {
        let has = |headers: &[(&str, String)], name: &str, value: &str| {
            headers.iter().any(|header| *header == (name, value.to_owned()))
        };
        assert!(has(&headers(Some("sk-ant-api")), "x-api-key", "sk-ant-api"));
        let signed_in = headers(Some("sk-ant-oat-1"));
        assert!(has(&signed_in, "authorization", "Bearer sk-ant-oat-1"));
        assert!(!signed_in.iter().any(|(name, _)| *name == "x-api-key"));
        assert_eq!(headers(None).len(), 1);
        let gateway = headers_of(Some("x"), true);
        assert!(has(&gateway, "authorization", "Bearer x") && gateway.len() == 2, "{gateway:?}");
    }

    #[test]
    fn anthropic_model_list_includes_the_context_window() {
        let profile = Profile::new("anthropic", Protocol::Anthropic, "http://x");
        let dialect = Anthropic::new(Arc::new(profile));
        let body =
            br#"{"data":[{"type":"model","id":"a","max_input_tokens":200000},{"id":"b"},{}]}"#;
        let models = dialect.parse_models(body);
        let read: Vec<_> =
            models.iter().map(|model| (model.id.as_str(), model.context_window)).collect();
        assert_eq!(read, [("a", Some(200_000)), ("b", None)]);
        assert!(dialect.parse_models(b"{\"error\":{}}").is_empty());
        assert!(dialect.parse_models(b"<html>").is_empty());
    }
}
