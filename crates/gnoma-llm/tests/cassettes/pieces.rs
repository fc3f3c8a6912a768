//! The assistant's turns of a request body, in one form for all protocols.

use gnoma_testkit::cassette::Api;
use serde_json::Value;

/// One piece of what a model said, as a request carries it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Piece {
    /// Words; neighbours are joined.
    Text(String),
    /// Visible reasoning; neighbours are joined.
    Thinking(String),
    /// An opaque token: signature, redacted block, encrypted reasoning.
    Token(String),
    /// Whether the words that follow are a remark or the answer.
    Phase(String),
    /// The id of the reasoning that follows.
    ItemId(String),
    /// The id of the call that follows.
    CallId(String),
    /// A call.
    Call {
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
}

impl Piece {
    /// What kind of content it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Thinking(_) => "thinking",
            Self::Token(_) => "a signature",
            Self::Phase(_) => "the phase of a message",
            Self::ItemId(_) => "the id of its reasoning",
            Self::CallId(_) => "the id of a call",
            Self::Call { .. } => "a call",
        }
    }
}

/// The pieces of one turn.
pub(crate) type Turn = Vec<Piece>;

/// The assistant's turns in `body`, in order; messages without anybody else's in between are one.
pub(crate) fn turns(api: Api, body: &Value) -> Vec<Turn> {
    let key = match api {
        Api::Google => "contents",
        Api::Responses => "input",
        Api::Anthropic | Api::OpenAi | Api::Mistral | Api::Ollama => "messages",
    };
    let mut turns: Vec<Turn> = Vec::new();
    let mut open = false;
    for message in list(body, key) {
        let own = is_own(api, message);
        if own {
            if !open {
                turns.push(Turn::new());
            }
            if let Some(turn) = turns.last_mut() {
                take(api, message, turn);
            }
        }
        open = own;
    }
    turns
}

/// The pieces of an answer, read from its body without any adapter; `None` for streams that would need
/// one to be put together.
pub(crate) fn answer(api: Api, body: &str) -> Option<Turn> {
    let records = records(body);
    let mut turn = Turn::new();
    match (api, records.as_slice()) {
        (Api::Google, records) => {
            let contents = records.iter().filter_map(|it| it.pointer("/candidates/0/content"));
            for part in contents.flat_map(|content| list(content, "parts")) {
                google_part(part, &mut turn);
            }
        }
        (Api::Responses, [whole]) => list(whole, "output").for_each(|it| item(it, &mut turn)),
        (Api::Responses, events) => {
            let is_done =
                |event: &&Value| string(event, &["type"]) == Some("response.output_item.done");
            let items = events.iter().filter(is_done).filter_map(|event| event.get("item"));
            items.for_each(|it| item(it, &mut turn));
        }
        (Api::Anthropic, [whole]) => blocks(whole, &mut turn),
        (Api::Ollama, [whole]) => chat(whole.get("message")?, &mut turn),
        (Api::OpenAi | Api::Mistral, [whole]) => {
            chat(whole.pointer("/choices/0/message")?, &mut turn);
        }
        _ => return None,
    }
    Some(turn)
}

/// The JSON records of a body: one, an array of them, or the data of server-sent events.
fn records(body: &str) -> Vec<Value> {
    match serde_json::from_str(body) {
        Ok(Value::Array(records)) => records,
        Ok(whole) => vec![whole],
        Err(_) => body
            .lines()
            .filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok())
            .collect(),
    }
}

fn is_own(api: Api, message: &Value) -> bool {
    let role = message.get("role").and_then(Value::as_str);
    match (api, role) {
        (Api::Google, role) => role == Some("model"),
        // Items without a role are the model's, unless they are outcomes.
        (Api::Responses, None) => {
            !string(message, &["type"]).is_some_and(|kind| kind.ends_with("_output"))
        }
        (_, role) => role == Some("assistant"),
    }
}

fn take(api: Api, message: &Value, turn: &mut Turn) {
    match api {
        Api::OpenAi | Api::Mistral | Api::Ollama => chat(message, turn),
        Api::Anthropic => blocks(message, turn),
        Api::Google => list(message, "parts").for_each(|part| google_part(part, turn)),
        Api::Responses => item(message, turn),
    }
}

fn chat(message: &Value, turn: &mut Turn) {
    let details: Vec<&Value> = list(message, "reasoning_details").collect();
    let plain = string(message, &["reasoning_content", "reasoning", "thinking"]);
    if let Some(text) = plain {
        thinking(turn, text);
    }
    for detail in details {
        if let (None, Some(text)) = (plain, string(detail, &["text", "summary"])) {
            thinking(turn, text);
        }
        token(turn, string(detail, &["signature", "data"]));
    }
    blocks(message, turn);
    if let Some(refusal) = string(message, &["refusal"]) {
        text(turn, refusal);
    }
    for called in list(message, "tool_calls") {
        id(turn, string(called, &["id"]));
        call(turn, called.get("function").unwrap_or(called), "arguments");
    }
    if let Some(called) = message.get("function_call") {
        call(turn, called, "arguments");
    }
}

/// The `content` of a message: a string, or a list of typed blocks.
fn blocks(message: &Value, turn: &mut Turn) {
    if let Some(words) = string(message, &["content"]) {
        text(turn, words);
    }
    for block in list(message, "content") {
        match string(block, &["type"]) {
            Some("text" | "output_text") => {
                text(turn, string(block, &["text"]).unwrap_or_default());
            }
            Some("refusal") => text(turn, string(block, &["refusal"]).unwrap_or_default()),
            Some("thinking") => {
                thinking(turn, string(block, &["thinking"]).unwrap_or_default());
                for part in list(block, "thinking") {
                    thinking(turn, string(part, &["text"]).unwrap_or_default());
                }
                token(turn, string(block, &["signature"]));
            }
            Some("redacted_thinking") => token(turn, string(block, &["data"])),
            Some("tool_use") => {
                id(turn, string(block, &["id"]));
                call(turn, block, "input");
            }
            _ => (),
        }
    }
}

fn google_part(part: &Value, turn: &mut Turn) {
    if let Some(words) = string(part, &["text"]) {
        if part.get("thought").and_then(Value::as_bool) == Some(true) {
            thinking(turn, words);
        } else {
            text(turn, words);
        }
    }
    let called = part.get("functionCall").or(part.get("function_call"));
    if let Some(called) = called {
        id(turn, string(called, &["id"]));
        call(turn, called, "args");
    }
    let signature = string(part, &["thoughtSignature", "thought_signature"]).map(standard_base64);
    token(turn, signature.as_deref());
}

/// Google takes its tokens back in either alphabet of base64, and its Python SDK changes it.
pub(crate) fn standard_base64(token: &str) -> String {
    token.replace('-', "+").replace('_', "/")
}

fn item(item: &Value, turn: &mut Turn) {
    match string(item, &["type"]) {
        Some("function_call") => {
            id(turn, string(item, &["call_id"]));
            call(turn, item, "arguments");
        }
        Some("reasoning") => {
            if let Some(id) = string(item, &["id"]) {
                turn.push(Piece::ItemId(id.to_owned()));
            }
            for part in list(item, "summary").chain(list(item, "content")) {
                thinking(turn, string(part, &["text"]).unwrap_or_default());
            }
            token(turn, string(item, &["encrypted_content"]));
        }
        Some("message") | None => {
            if let Some(phase) = string(item, &["phase"]) {
                turn.push(Piece::Phase(phase.to_owned()));
            }
            blocks(item, turn);
        }
        Some(_) => (),
    }
}

fn text(turn: &mut Turn, words: &str) {
    match turn.last_mut() {
        Some(Piece::Text(so_far)) => so_far.push_str(words),
        _ if words.is_empty() => (),
        _ => turn.push(Piece::Text(words.to_owned())),
    }
}

fn thinking(turn: &mut Turn, words: &str) {
    match turn.last_mut() {
        Some(Piece::Thinking(so_far)) => so_far.push_str(words),
        _ if words.is_empty() => (),
        _ => turn.push(Piece::Thinking(words.to_owned())),
    }
}

fn token(turn: &mut Turn, token: Option<&str>) {
    if let Some(token) = token.filter(|token| !token.is_empty()) {
        turn.push(Piece::Token(token.to_owned()));
    }
}

fn id(turn: &mut Turn, id: Option<&str>) {
    if let Some(id) = id.filter(|id| !id.is_empty()) {
        turn.push(Piece::CallId(id.to_owned()));
    }
}

/// A call whose arguments are JSON, or JSON in a string.
fn call(turn: &mut Turn, called: &Value, key: &str) {
    let Some(name) = string(called, &["name"]) else {
        return;
    };
    let arguments = match called.get(key) {
        Some(Value::String(text)) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
        }
        Some(value) => value.clone(),
        None => Value::Null,
    };
    turn.push(Piece::Call { name: name.to_owned(), arguments: or_empty(arguments) });
}

/// No arguments may be written as `{}`, nothing, `null` or an empty string.
pub(crate) fn or_empty(arguments: Value) -> Value {
    match arguments {
        Value::Null => Value::Object(serde_json::Map::new()),
        Value::String(text) if text.is_empty() => Value::Object(serde_json::Map::new()),
        other => other,
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

/// The first of `keys` that holds a string.
fn string<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| value.get(key)?.as_str())
}
