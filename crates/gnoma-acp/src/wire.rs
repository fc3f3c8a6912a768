//! JSON-RPC 2.0, one message a line. Pure; the sender of the lines may send anything.

use std::fmt;

use gnoma_core::{
    json_value::json,
    lines::{Line, MAX_LINE_BYTES},
};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::{
    Value,
    error::Category,
    value::{RawValue, to_raw_value},
};

pub use crate::error::RpcError;

/// Longest id that is taken, in bytes: it comes back with the answer.
const MAX_ID_BYTES: usize = 1_024;
/// Longest part of an error of the client that is kept.
const MAX_ERROR_BYTES: usize = 1_024;

/// The id of a request: a text, a whole number or null, as its sender wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RpcId(String);

impl RpcId {
    /// The id of an answer to what has none.
    #[must_use]
    pub fn none() -> Self {
        Self("null".to_owned())
    }

    /// The id by its JSON text; `None` where that is no id.
    #[must_use]
    pub fn from_json(json: &str) -> Option<Self> {
        let is_number = || json.parse::<i64>().is_ok() || json.parse::<u64>().is_ok();
        let is_id = json.starts_with('"') || json == "null" || is_number();
        (is_id && json.len() <= MAX_ID_BYTES).then(|| Self(json.to_owned()))
    }
}

impl fmt::Display for RpcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A message from the client.
#[derive(Debug)]
pub enum AcpClientMessage {
    /// A request, which wants an answer.
    Request {
        /// The id for the answer.
        id: RpcId,
        /// The name of the method that is asked for.
        method: String,
        /// The rest, as it came.
        params: Option<Box<RawValue>>,
    },
    /// A notification, which wants no answer.
    Notification {
        /// The name of the event that has happened.
        method: String,
        /// The rest, as it came.
        params: Option<Box<RawValue>>,
    },
    /// The answer to a request of ours.
    Response {
        /// The id of the request; `None` where it is none of ours.
        id: Option<u64>,
        /// The result, or the error that came in its place.
        result: Result<Box<RawValue>, PeerError>,
    },
}

/// The error with which the other side answered a request: the first KiB of its JSON, empty where the answer has
/// neither a result nor an error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PeerError(pub String);

gnoma_core::debug_as_display!(PeerError);

/// A line that is no message: under which id its error goes back, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableMessage {
    /// The id, as far as it was readable.
    pub id: RpcId,
    /// The reason why the line is no message.
    pub error: RpcError,
}

/// A message before it is known what it is. Nothing of it is built that is not needed: as values it could
/// take many times the memory of its line.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RpcFrame<'a> {
    #[serde(borrow, deserialize_with = "deserialize_present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "deserialize_present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "deserialize_present")]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "deserialize_present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// A field that is there, be it null.
fn deserialize_present<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a line; `None` where it is blank.
///
/// # Errors
/// It is no message: too long, no JSON in UTF-8, a batch, or no JSON-RPC 2.0.
pub fn decode_line(line: &Line) -> Result<Option<AcpClientMessage>, UnreadableMessage> {
    let bytes = match line {
        Line::Whole(bytes) => bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes),
        Line::TooLong => {
            let most = MAX_LINE_BYTES >> 20;
            return Err(invalid_request(format!(
                "the message was not read: it is larger than {most} MB"
            )));
        }
    };
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Err(parse_failure("the message is not UTF-8".to_owned()));
    };
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    // Checked first: a struct is read off an array, too.
    if text.starts_with('[') {
        return Err(match serde_json::from_str::<IgnoredAny>(text) {
            Ok(_) => {
                invalid_request("batches are not supported; send one message a line".to_owned())
            }
            Err(why) => parse_failure(format!("the message is not JSON: {why}")),
        });
    }
    match gnoma_core::json::from_str::<RpcFrame<'_>>(text) {
        Ok(frame) => decode_message(&frame).map(Some),
        Err(why) if why.classify() == Category::Data => {
            Err(invalid_request(format!("the message is not a request: {why}")))
        }
        Err(why) => Err(parse_failure(format!("the message is not JSON: {why}"))),
    }
}

fn invalid_request(message: String) -> UnreadableMessage {
    UnreadableMessage {
        id: RpcId::none(),
        error: RpcError::new(RpcError::INVALID_REQUEST, message),
    }
}

fn parse_failure(message: String) -> UnreadableMessage {
    UnreadableMessage { id: RpcId::none(), error: RpcError::new(RpcError::PARSE, message) }
}

fn decode_message(frame: &RpcFrame<'_>) -> Result<AcpClientMessage, UnreadableMessage> {
    let id = match frame.id.map(|id| RpcId::from_json(id.get())) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => {
            return Err(invalid_request("`id` is not a string, whole number or null".to_owned()));
        }
    };
    let wrong = |why: &str| {
        let id = id.clone().unwrap_or_else(RpcId::none);
        UnreadableMessage { id, ..invalid_request(why.to_owned()) }
    };
    if frame.jsonrpc.map(RawValue::get) != Some("\"2.0\"") {
        return Err(wrong("`jsonrpc` is not \"2.0\""));
    }
    let Some(method) = frame.method else {
        if id.is_none() || (frame.result.is_none() && frame.error.is_none()) {
            return Err(wrong("the message has no `method`"));
        }
        return Ok(decode_response(frame));
    };
    let Ok(method) = gnoma_core::json::from_str::<String>(method.get()) else {
        return Err(wrong("`method` is not a string"));
    };
    let params = frame.params.map(RawValue::to_owned);
    if params.as_ref().is_some_and(|params| !params.get().starts_with(['{', '['])) {
        return Err(wrong("`params` is not an object"));
    }
    Ok(match id {
        Some(id) => AcpClientMessage::Request { id, method, params },
        None => AcpClientMessage::Notification { method, params },
    })
}

fn decode_response(frame: &RpcFrame<'_>) -> AcpClientMessage {
    let id = frame.id.and_then(|id| id.get().parse().ok());
    let result = match (frame.error, frame.result) {
        (Some(error), _) => {
            let mut text = error.get().to_owned();
            text.truncate(text.floor_char_boundary(MAX_ERROR_BYTES));
            Err(PeerError(text))
        }
        (None, Some(result)) => Ok(result.to_owned()),
        (None, None) => Err(PeerError(String::new())),
    };
    AcpClientMessage::Response { id, result }
}

/// Writes the answer to a request.
pub fn write_answer(id: &RpcId, result: &Result<Value, RpcError>, out: &mut Vec<u8>) {
    let id = id.to_string();
    match result {
        Ok(result) => write_frame(&[("id", &id)], "result", result, out),
        Err(failed) => {
            let mut error = json!({ "code": failed.code, "message": failed.message });
            if let Some(data) = failed.data() {
                error["data"] = data;
            }
            write_frame(&[("id", &id)], "error", &error, out);
        }
    }
}

/// Writes a request of ours.
pub fn write_request(id: u64, method: &str, params: &Value, out: &mut Vec<u8>) {
    write_frame(&[("id", &id.to_string()), ("method", &quote_json(method))], "params", params, out);
}

/// Writes a notification as one line of the protocol.
pub fn write_notification(method: &str, params: &Value, out: &mut Vec<u8>) {
    write_frame(&[("method", &quote_json(method))], "params", params, out);
}

fn quote_json(text: &str) -> String {
    to_raw_value(text).map_or_else(|_| String::new(), |quoted| quoted.get().to_owned())
}

fn write_frame(head: &[(&str, &str)], last: &str, value: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    for (name, json) in head {
        out.extend_from_slice(format!(",\"{name}\":{json}").as_bytes());
    }
    out.extend_from_slice(format!(",\"{last}\":").as_bytes());
    // Writing values to memory does not fail.
    let _infallible = serde_json::to_writer(&mut *out, value);
    out.extend_from_slice(b"}\n");
}
