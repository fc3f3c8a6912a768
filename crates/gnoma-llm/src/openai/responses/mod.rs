//! stub
use crate::{
    Profile,
    body::Envelope,
    dialect::{Decode, Dialect, Headers, MessageCx},
    names::NameMap,
};
use gnoma_core::{Message, ModelInfo, ModelRequest, RawJson, ToolSpec};
use std::sync::Arc;
pub(crate) struct Responses {
    profile: Arc<Profile>,
}
impl Responses {
    pub(crate) fn new(profile: Arc<Profile>) -> Self {
        Self { profile }
    }
}
impl Dialect for Responses {
    fn path(&self, _model: &str) -> String {
        todo!()
    }
    fn headers(&self) -> Headers {
        todo!()
    }
    fn tools(&self, _tools: &[Arc<ToolSpec>], _names: &NameMap) -> Option<RawJson> {
        todo!()
    }
    fn envelope(
        &self,
        _request: &ModelRequest,
        _tools: Option<&RawJson>,
        _names: &NameMap,
    ) -> Envelope {
        todo!()
    }
    fn message(&self, _message: &Message, _cx: MessageCx<'_>) -> Vec<u8> {
        todo!()
    }
    fn decoder(&self, _names: Arc<NameMap>) -> Box<dyn Decode> {
        let _ = &self.profile;
        todo!()
    }
    fn models(&self, _body: &[u8]) -> Vec<ModelInfo> {
        todo!()
    }
}
