//! Detects a stream of another API by its first record. Pure.

use gnoma_core::ProviderError;
use serde_json::Value;

use super::foreign_answer;
use crate::{Profile, Protocol};

/// Returns the error for a stream that begins with the record `data`, if another wire than the endpoint's has such
/// records: the server would say the same again.
pub(crate) fn foreign_stream(profile: &Profile, data: &str) -> Option<ProviderError> {
    let wire = record_wire(data)?;
    let own = match profile.protocol {
        Protocol::Mistral => Protocol::OpenAi,
        own => own,
    };
    let (expected, found) = (profile.protocol.describe(), wire.describe());
    let message = format!("the answer is not in the form of {expected}: it looks like {found}");
    (wire != own).then(|| foreign_answer(profile, &message))
}

/// Returns the wire of a record, by fields that no other wire has.
fn record_wire(data: &str) -> Option<Protocol> {
    let record: Value = serde_json::from_str(data).ok()?;
    let has = |field: &str| record.get(field).is_some();
    match record.get("type").and_then(Value::as_str).unwrap_or_default() {
        kind if kind.starts_with("response.") => Some(Protocol::Responses),
        "message_start" => Some(Protocol::Anthropic),
        _ if has("choices") => Some(Protocol::OpenAi),
        _ if has("candidates") => Some(Protocol::Google),
        _ if has("done") && has("message") => Some(Protocol::Ollama),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::ErrorKind;

    use super::*;

    #[test]
    fn stream_of_another_protocol_is_named_by_its_first_record() {
        let records = [
            (r#"{"type":"response.created","response":{}}"#, Protocol::Responses),
            (r#"{"type":"message_start","message":{}}"#, Protocol::Anthropic),
            (r#"{"id":"1","choices":[]}"#, Protocol::OpenAi),
            (r#"{"candidates":[]}"#, Protocol::Google),
            (r#"{"model":"m","message":{},"done":false}"#, Protocol::Ollama),
        ];
        for (_, own) in records {
            let profile = Profile::new("p", own, "http://x");
            for (data, wire) in records {
                let error = foreign_stream(&profile, data);
                assert_eq!(error.is_some(), wire != own, "{data}");
                if let Some(error) = error {
                    assert_eq!(error.kind, ErrorKind::WrongServer);
                    assert!(error.message.ends_with(wire.describe()), "{error:?}");
                    assert!(error.hint.unwrap().contains("provider.protocols.p"), "{data}");
                }
            }
            for data in ["{}", "[DONE]", r#"{"type":"ping"}"#, r#"{"error":{"message":"no"}}"#] {
                assert_eq!(foreign_stream(&profile, data), None, "{data}");
            }
        }
        let mistral = Profile::new("m", Protocol::Mistral, "http://x");
        assert_eq!(foreign_stream(&mistral, r#"{"choices":[]}"#), None);
    }
}
