//! Parses protocol requests from HTTP bodies. Pure.

use gnoma_core::protocol::{
    ClientMessage, Request, RequestError, RequestErrorKind, RequestId, SessionSpec,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Longest part of a parser's complaint that goes back.
const MAX_SHOWN_CHARS: usize = 300;

/// Reads a request by its name and its fields. A request without fields needs no body.
///
/// # Errors
/// There is no such request, or its fields are others.
pub(crate) fn parse_named_request(name: &str, body: &[u8]) -> Result<Request, RequestError> {
    let body =
        std::str::from_utf8(body).map_err(|_| malformed_error("the body is not UTF-8"))?.trim();
    let fields = if body.is_empty() { "{}" } else { body };
    let fields: &RawValue =
        gnoma_core::json::from_str(fields).map_err(|error| malformed_error(&error.to_string()))?;
    let bare = gnoma_core::json::from_str(&format!("\"{name}\""));
    if let (Ok(request), true) = (bare, fields.get().len() <= "{}".len()) {
        return Ok(request);
    }
    gnoma_core::json::from_str(&format!("{{\"{name}\":{}}}", fields.get())).map_err(|error| {
        let cause =
            format!("the request `{name}` cannot be read: {}", clip_message(&error.to_string()));
        RequestError::new(RequestErrorKind::Unknown, cause)
            .with_remedy("`gnoma protocol --openapi` describes all requests.")
    })
}

/// Reads a message of the protocol.
///
/// # Errors
/// It is none.
pub(crate) fn parse_message(body: &[u8]) -> Result<ClientMessage, (RequestId, RequestError)> {
    #[derive(Deserialize)]
    struct Numbered {
        id: RequestId,
    }
    let text = std::str::from_utf8(body).map_err(serde::de::Error::custom);
    text.and_then(ClientMessage::from_json).map_err(|error| {
        let id = gnoma_core::json::from_bytes(body).map_or(RequestId(0), |Numbered { id }| id);
        (id, malformed_error(&error.to_string()))
    })
}

/// The spec of a session that is opened from afar: by a person, and it goes on without a window.
pub(crate) fn complete_spec(
    request: &mut Request,
    complete: impl FnOnce(SessionSpec) -> SessionSpec,
) {
    if let Request::Open(spec) | Request::StoredIn { spec, .. } | Request::Delete { spec, .. } =
        request
    {
        **spec = complete(std::mem::take(&mut **spec));
    }
}

fn malformed_error(why: &str) -> RequestError {
    RequestError::new(RequestErrorKind::Malformed, clip_message(why))
}

fn clip_message(why: &str) -> String {
    why.chars().take(MAX_SHOWN_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use gnoma_core::{Content, session::PermissionMode};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn named_requests_are_parsed() {
        assert_eq!(parse_named_request("cancel", b""), Ok(Request::Cancel));
        assert_eq!(parse_named_request("cancel", b" {} "), Ok(Request::Cancel));
        let plan = Request::SetMode { mode: PermissionMode::Plan };
        assert_eq!(parse_named_request("set_mode", b"{\"mode\":\"plan\"}"), Ok(plan));
        let hi = Request::Send { content: vec![Content::from_text("hi")] };
        assert_eq!(
            parse_named_request("send", b"{\"content\":[{\"text\":{\"text\":\"hi\"}}]}"),
            Ok(hi)
        );
        assert!(matches!(parse_named_request("open", b""), Ok(Request::Open(_))));
        for (name, body, kind) in [
            ("dance", "", RequestErrorKind::Unknown),
            ("send", "", RequestErrorKind::Unknown),
            ("send", "{", RequestErrorKind::Malformed),
            ("send", "{}{}", RequestErrorKind::Malformed),
            ("cancel", "}, \"x\": {", RequestErrorKind::Malformed),
        ] {
            assert_eq!(
                parse_named_request(name, body.as_bytes()).unwrap_err().kind,
                kind,
                "{name} {body}"
            );
        }
        let deep = "[".repeat(100_000);
        assert_eq!(
            parse_named_request("send", deep.as_bytes()).unwrap_err().kind,
            RequestErrorKind::Malformed
        );
    }

    proptest! {
        /// Whatever bytes come, reading them ends in a request or an error.
        #[test]
        fn request_parser_never_panics(name in "[a-z_]{1,12}", bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (parse_named_request(&name, &bytes).is_ok(), parse_message(&bytes).is_ok());
        }
    }
}
