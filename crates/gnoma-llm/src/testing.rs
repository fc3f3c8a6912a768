//! What the tests of all dialects need.

use std::sync::Arc;

use gnoma_core::{
    Accumulator, Message, ProviderError, RawJson, Response, StreamEvent, ToolSpec,
    tool::{Access, Tier, ToolKind},
};
use serde_json::Value;

use crate::{
    dialect::{AnswerDecoder, Dialect, Events, Frame, MessageCx},
    names::NameMap,
};

/// One tool, whose name no wire takes as it is.
pub(crate) fn tools() -> Vec<Arc<ToolSpec>> {
    vec![Arc::new(ToolSpec {
        name: "fs.read".into(),
        description: "reads".into(),
        parameters: RawJson::parse(r#"{"type": "object"}"#).unwrap(),
        access: Access::Read,
        touches: [].into(),
        kind: ToolKind::Other,
        tier: Tier::Full,
    })]
}

/// The names of [`tools`].
pub(crate) fn names() -> Arc<NameMap> {
    Arc::new(NameMap::new(&tools()))
}

/// What a decoder makes of an answer: all that came, and the failure that ended it. An answer that does
/// not fail has exactly one stop, and nothing after it.
pub(crate) fn read(
    decoder: &mut dyn AnswerDecoder,
    records: &[&str],
    whole: bool,
) -> (Response, Option<ProviderError>) {
    let mut events = Events::new();
    let frame = |data| Frame { event: "", data, whole };
    let mut records = records.iter();
    let mut went = records.try_for_each(|data| decoder.decode_frame(frame(data), &mut events));
    if went.is_ok() {
        went = decoder.finish(&mut events);
    }
    let is_stop = |event: &StreamEvent| matches!(event, StreamEvent::Stop(_));
    assert_eq!(events.iter().filter(|event| is_stop(event)).count(), usize::from(went.is_ok()));
    assert_eq!(events.back().is_some_and(is_stop), went.is_ok());
    let mut answer = Accumulator::new();
    events.iter().for_each(|event| answer.push(event));
    (answer.into_response(), went.err())
}

/// Reads the records of an answer that must be whole: the error where it is not.
pub(crate) fn answer(
    decoder: &mut dyn AnswerDecoder,
    records: &[&str],
    whole: bool,
) -> Result<Response, ProviderError> {
    let (response, error) = read(decoder, records, whole);
    error.map_or(Ok(response), Err)
}

/// The items that `message` becomes when the model `m` of the dialect's endpoint is asked.
pub(crate) fn items(dialect: &dyn Dialect, message: &Message) -> Value {
    let provider = dialect.profile().name.clone();
    let target = gnoma_core::ModelRef { provider, model: "m".into() };
    let names = names();
    let cx = MessageCx { names: &names, target: &target, before: None, breakpoint: false };
    let items = String::from_utf8(dialect.encode_message(message, cx)).unwrap();
    serde_json::from_str(&format!("[{items}]")).unwrap()
}
