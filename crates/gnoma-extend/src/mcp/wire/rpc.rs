//! Messages of JSON-RPC, as a server writes them: read as far as they can be understood. Nothing here waits or sends.

use gnoma_core::RawJson;
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value, json, value::RawValue};

use super::json;

/// An error that a server answered with, or that is answered to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    /// The number of the error; zero where it has none.
    pub(crate) code: i64,
    /// The error message of the server.
    pub(crate) message: String,
    /// The other data of the error.
    pub(crate) data: Value,
}

/// The message is no valid request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// The method is not known.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// Headers do not say what the message says.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The version of the protocol is not spoken.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
/// Numbers of errors that only servers without a handshake answer with.
const STATELESS_CODES: std::ops::RangeInclusive<i64> = -32022..=-32020;

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }

    /// Returns whether only a server that speaks the wire without a handshake answers so.
    pub(crate) fn is_stateless(&self) -> bool {
        STATELESS_CODES.contains(&self.code)
    }

    /// Returns the message, and after it the data if they say more.
    pub(crate) fn to_line(&self) -> String {
        let data = value_text(&self.data);
        let says_nothing = matches!(data.as_str(), "" | "null" | "{}" | "[]");
        if says_nothing || self.message.contains(&data) {
            return self.message.clone();
        }
        format!("{}: {data}", self.message)
    }

    /// Reads the `error` of a response, whatever it is.
    fn from_value(error: &Value) -> Self {
        let message = value_text(error.get("message").unwrap_or(error));
        let code = error.get("code");
        let code = code.and_then(|code| code.as_i64().or_else(|| code.as_str()?.parse().ok()));
        let data = error.get("data").cloned().unwrap_or_default();
        Self { code: code.unwrap_or_default(), message, data }
    }
}

/// Returns a text as it is, and any other value as JSON.
pub(crate) fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum ServerRpcMessage {
    /// The answer to the request of that number.
    Response(u64, Result<Value, RpcError>),
    /// An error that belongs to no request.
    Orphan(RpcError),
    /// A result that does not say of which request it is.
    Unaddressed(Value),
    /// A request that the server wants answered, with the id as the server wrote it.
    Request(Value, String, Value),
    /// A notification from the server.
    Notification(String, Value),
    /// An answer that cannot be read; to which request, where that can be seen.
    Unreadable(Option<u64>),
    /// No message: a server's log, for instance.
    Noise,
}

/// The parameters of a request. The arguments of a call are sent as the model wrote them: a parsed copy would round
/// their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestParams {
    /// All parameters but the arguments of a call.
    pub(crate) fields: Map<String, Value>,
    arguments: Option<RawJson>,
}

impl RequestParams {
    /// Makes the parameters of a call with these arguments, on one line.
    pub(crate) fn with_arguments(fields: Map<String, Value>, arguments: &RawJson) -> Self {
        // Outside of strings a line break is only white space, and a message of a program is one line.
        let line = arguments.get().replace(['\n', '\r'], " ");
        let arguments = RawJson::parse(line).unwrap_or_else(|_| arguments.clone());
        Self { fields, arguments: Some(arguments) }
    }
}

impl From<Map<String, Value>> for RequestParams {
    fn from(fields: Map<String, Value>) -> Self {
        Self { fields, arguments: None }
    }
}

impl Serialize for RequestParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all = serializer.serialize_map(None)?;
        for (name, value) in &self.fields {
            all.serialize_entry(name, value)?;
        }
        if let Some(arguments) = &self.arguments {
            all.serialize_entry("arguments", arguments)?;
        }
        all.end()
    }
}

/// Reads the messages of a text: one, or several as a list.
pub(crate) fn parse_messages(text: &str) -> Vec<ServerRpcMessage> {
    match json::parse_lenient(text) {
        Some(Value::Array(all)) => all.iter().map(classify_message).collect(),
        Some(mut value) => {
            keep_structure_text(text, &mut value);
            vec![classify_message(&value)]
        }
        None => read_from_middle(text),
    }
}

/// Replaces the structured content of a result by its own text: models read it as text, and the parsed value has
/// rounded its numbers.
fn keep_structure_text(text: &str, message: &mut Value) {
    #[derive(Deserialize)]
    struct ReadAnswer<'a> {
        #[serde(borrow)]
        result: StructuredResult<'a>,
    }
    #[derive(Deserialize)]
    struct StructuredResult<'a> {
        #[serde(borrow, rename = "structuredContent")]
        structure: &'a RawValue,
    }
    let Some(structure) = message.pointer_mut("/result/structuredContent") else { return };
    let answer = gnoma_core::json::from_str::<ReadAnswer<'_>>(text.trim_start_matches('\u{feff}'));
    if let Ok(answer) = answer
        && !structure.is_null()
    {
        *structure = Value::from(answer.result.structure.get());
    }
}

/// Reads messages of a line that is no single document: several in a row, with a log without a line end before or behind
/// them; or one that is broken.
fn read_from_middle(text: &str) -> Vec<ServerRpcMessage> {
    const BEGIN: &str = "{\"jsonrpc\"";
    /// Places that are tried.
    const MAX_STARTS: usize = 16;
    let text = text.trim_start_matches('\u{feff}').trim();
    let is_document = text.starts_with(['{', '[']);
    if let Some((messages, _)) = read_row(text).filter(|_| is_document) {
        return messages;
    }
    for (at, _) in text.match_indices(BEGIN).take(MAX_STARTS) {
        let Some((messages, behind)) = text.get(at..).and_then(read_row) else { continue };
        // What ends before the end of a broken message may be a part of it.
        if !is_document || behind.is_empty() {
            return messages;
        }
    }
    let is_message = is_document && text.contains("\"jsonrpc\"");
    vec![if is_message {
        ServerRpcMessage::Unreadable(find_id(text))
    } else {
        ServerRpcMessage::Noise
    }]
}

/// Reads the documents that a text begins with, one behind the other; at least one of them is a message. Also gives what
/// is behind them.
fn read_row(text: &str) -> Option<(Vec<ServerRpcMessage>, &str)> {
    let (mut messages, mut rest) = (Vec::new(), text);
    while rest.starts_with(['{', '[']) {
        let Some((value, behind)) = json::read_first(rest) else { break };
        match value {
            Value::Array(all) => messages.extend(all.iter().map(classify_message)),
            value => messages.push(classify_message(&value)),
        }
        rest = behind.trim_start();
    }
    let is_read = |message: &ServerRpcMessage| {
        !matches!(message, ServerRpcMessage::Noise | ServerRpcMessage::Unreadable(_))
    };
    messages.iter().any(is_read).then_some((messages, rest))
}

/// A request, in the words of the wire.
pub(crate) fn request_line(id: u64, method: &str, params: &RequestParams) -> String {
    #[derive(Serialize)]
    struct WrittenRequest<'a> {
        jsonrpc: &'static str,
        id: u64,
        method: &'a str,
        params: &'a RequestParams,
    }
    let request = WrittenRequest { jsonrpc: "2.0", id, method, params };
    // It holds only texts and JSON, so it can always be written.
    serde_json::to_string(&request).unwrap_or_default()
}

/// A notification, in the words of the wire.
pub(crate) fn notification_line(method: &str, params: &Map<String, Value>) -> String {
    if params.is_empty() {
        return json!({"jsonrpc": "2.0", "method": method}).to_string();
    }
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// An answer to a server's request.
pub(crate) fn response_line(id: &Value, outcome: Result<Value, RpcError>) -> String {
    match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string(),
        Err(RpcError { code, message, .. }) => {
            let error = json!({"code": code, "message": message});
            json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
        }
    }
}

fn classify_message(message: &Value) -> ServerRpcMessage {
    let Some(fields) = message.as_object() else { return ServerRpcMessage::Noise };
    let field = |name: &str| fields.get(name).filter(|value| !value.is_null());
    let params = || field("params").cloned().unwrap_or_default();
    if let Some(method) = field("method").and_then(Value::as_str) {
        return match field("id") {
            Some(id) => ServerRpcMessage::Request(id.clone(), method.to_owned(), params()),
            None => ServerRpcMessage::Notification(method.to_owned(), params()),
        };
    }
    let id = field("id").and_then(request_number);
    match (id, field("error"), fields.get("result")) {
        (Some(id), None, Some(result)) => ServerRpcMessage::Response(id, Ok(result.clone())),
        (Some(id), Some(error), _) => {
            ServerRpcMessage::Response(id, Err(RpcError::from_value(error)))
        }
        (None, Some(error), None) => ServerRpcMessage::Orphan(RpcError::from_value(error)),
        (None, None, Some(result)) if is_without_id(fields) => {
            ServerRpcMessage::Unaddressed(result.clone())
        }
        // A log in JSON has an id of its own, perhaps, but is no message.
        (id, _, _) if fields.contains_key("jsonrpc") => ServerRpcMessage::Unreadable(id),
        _ => ServerRpcMessage::Noise,
    }
}

/// Reports whether a message has no id, or `null` as its id.
fn is_without_id(fields: &Map<String, Value>) -> bool {
    fields.contains_key("jsonrpc") && fields.get("id").is_none_or(Value::is_null)
}

/// The number of one of our requests, also where a server writes it as text.
fn request_number(id: &Value) -> Option<u64> {
    let whole = |number: f64| (number.fract() == 0.0 && number >= 0.0).then_some(number as u64);
    id.as_u64().or_else(|| id.as_str()?.trim().parse().ok()).or_else(|| whole(id.as_f64()?))
}

/// The id in a text that is no JSON: of the first or the last `"id":` that has a number behind it and is not
/// inside of something.
pub(crate) fn find_id(text: &str) -> Option<u64> {
    /// The number of bytes at either end in which ids are looked for.
    const LOOKED_AT: usize = 256;
    let behind = |part: &str, at: usize| -> Option<u64> {
        let after = part.get(at..)?.strip_prefix("\"id\"")?.trim_start().strip_prefix(':')?;
        let after = after.trim_start().trim_start_matches('"');
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        after.get(..digits)?.parse().ok()
    };
    let head = gnoma_core::text_truncation::word_prefix(text, LOOKED_AT);
    let is_outer = |at: usize| head.get(..at).is_some_and(|part| part.matches('{').count() == 1);
    let first = head.find("\"id\"").filter(|at| is_outer(*at)).and_then(|at| behind(head, at));
    first.or_else(|| {
        let from = text.ceil_char_boundary(text.len().saturating_sub(LOOKED_AT));
        let tail = text.get(from..)?;
        behind(tail, tail.rfind("\"id\"")?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> ServerRpcMessage {
        let mut all = parse_messages(text);
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0)
    }

    #[test]
    fn json_rpc_responses_are_parsed_in_every_variant() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":1}"#,
            r#"{"id":"7","result":1,"error":null}"#,
            r#"{"jsonrpc":"2.0","id":7.0,"result":1}"#,
        ] {
            assert_eq!(one(text), ServerRpcMessage::Response(7, Ok(json!(1))), "{text}");
        }
        let refused = one(r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#);
        assert_eq!(refused, ServerRpcMessage::Response(7, Err(RpcError::new(0, "no"))));
        let refused = one(r#"{"jsonrpc":"2.0","id":7,"error":{"code":"-3","message":{"a":1}}}"#);
        assert_eq!(refused, ServerRpcMessage::Response(7, Err(RpcError::new(-3, "{\"a\":1}"))));
        assert_eq!(parse_messages(r#"[{"id":1,"result":{}},{"id":2,"result":{}}]"#).len(), 2);
        let null = one(r#"{"jsonrpc":"2.0","id":7,"result":null}"#);
        assert_eq!(null, ServerRpcMessage::Response(7, Ok(Value::Null)));
    }

    #[test]
    fn json_rpc_error_data_is_appended_if_it_adds_information() {
        for (error, line) in [
            (json!({"message": "Invalid", "data": "who is required"}), "Invalid: who is required"),
            (json!({"message": "no", "data": {"field": "who"}}), "no: {\"field\":\"who\"}"),
            (json!({"message": "no: who is missing", "data": "missing"}), "no: who is missing"),
            (json!({"message": "no", "data": {}}), "no"),
            (json!({"message": "no"}), "no"),
            (json!({"data": "why"}), "{\"data\":\"why\"}"),
        ] {
            assert_eq!(RpcError::from_value(&error).to_line(), line, "{error}");
        }
    }

    #[test]
    fn json_rpc_request_preserves_raw_numbers() {
        let arguments = "{\"who\": 123456789012345678901234,\r\n\"b\": 1.10, \"c\": \"a\\nb\"}";
        let fields = json!({"name": "t"}).as_object().cloned().unwrap();
        let raw = RawJson::parse(arguments).unwrap();
        let line = request_line(7, "tools/call", &RequestParams::with_arguments(fields, &raw));
        assert_eq!(
            line,
            "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\
             \"arguments\":{\"who\": 123456789012345678901234,  \"b\": 1.10, \"c\": \"a\\nb\"}}}"
        );
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"structuredContent":{"n":1.10}}}"#;
        let ServerRpcMessage::Response(7, Ok(result)) = one(answer) else { panic!() };
        assert_eq!(result["structuredContent"], r#"{"n":1.10}"#);
        let null = one(r#"{"jsonrpc":"2.0","id":7,"result":{"structuredContent":null}}"#);
        let nothing = json!({"structuredContent": null});
        assert_eq!(null, ServerRpcMessage::Response(7, Ok(nothing)));
    }

    #[test]
    fn several_messages_on_one_line_are_all_read() {
        let answer = r#"{"jsonrpc":"2.0","id":7,"result":1}"#;
        let tells = r#"{"jsonrpc":"2.0","method":"m"}"#;
        let is_answer = || ServerRpcMessage::Response(7, Ok(json!(1)));
        let is_told = || ServerRpcMessage::Notification("m".to_owned(), Value::Null);
        for (text, messages) in [
            (format!("{tells}{answer}"), vec![is_told(), is_answer()]),
            (format!("{answer} {tells}"), vec![is_answer(), is_told()]),
            (format!("[{answer}]{tells}"), vec![is_answer(), is_told()]),
            (format!("INFO begun{tells}{answer}"), vec![is_told(), is_answer()]),
            (format!("[info] begun {answer}"), vec![is_answer()]),
            (format!("{answer} done in 3 ms"), vec![is_answer()]),
            (format!("{answer}{{\"jsonrpc\":"), vec![is_answer()]),
        ] {
            assert_eq!(parse_messages(&text), messages, "{text}");
        }
        let inside = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"x":bad,"y":{answer}}}}}"#);
        assert_eq!(parse_messages(&inside), [ServerRpcMessage::Unreadable(Some(3))]);
    }

    #[test]
    fn json_rpc_result_without_id_is_unaddressed() {
        for text in [r#"{"jsonrpc":"2.0","id":null,"result":1}"#, r#"{"jsonrpc":"2.0","result":1}"#]
        {
            assert_eq!(one(text), ServerRpcMessage::Unaddressed(json!(1)), "{text}");
        }
        assert_eq!(one(r#"{"result":1}"#), ServerRpcMessage::Noise);
        assert_eq!(
            one(r#"{"jsonrpc":"2.0","id":{},"result":1}"#),
            ServerRpcMessage::Unreadable(None)
        );
    }

    #[test]
    fn unreadable_json_rpc_response_still_yields_its_request_id() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"te"#,
            r#"{"jsonrpc":"2.0","result":{"id":3,"x":bad},"id":7}"#,
            r#"{"jsonrpc":"2.0","id": "7"}"#,
        ] {
            assert_eq!(one(text), ServerRpcMessage::Unreadable(Some(7)), "{text}");
        }
    }

    #[test]
    fn log_lines_on_stdout_are_no_json_rpc_messages() {
        for text in ["Starting ...", r#"{"level":"info","msg":"x"}"#, "{oops", "1"] {
            assert_eq!(one(text), ServerRpcMessage::Noise, "{text}");
        }
        assert_eq!(
            parse_messages("[1,2,3]"),
            [ServerRpcMessage::Noise, ServerRpcMessage::Noise, ServerRpcMessage::Noise]
        );
        assert_eq!(parse_messages("[]"), []);
    }
}
