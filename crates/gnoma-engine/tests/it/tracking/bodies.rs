//! Recorded requests as gnoma's messages: what of them fills a window.

use std::sync::Arc;

use gnoma_core::{
    CallId, Content, Image, Message, RawJson, Redacted, ResultPart, Thinking, ToolCall, ToolResult,
};
use gnoma_testkit::{Cassette, cassette::Api};
use serde_json::Value;

/// The conversation of a request, as the wire divides it.
pub(super) fn items(api: Api, body: &Value) -> Vec<Value> {
    let list = match api {
        Api::Google => &body["contents"],
        Api::Responses => &body["input"],
        Api::Anthropic | Api::OpenAi | Api::Mistral | Api::Ollama => &body["messages"],
    };
    match list {
        Value::Array(items) => items.clone(),
        Value::Null => Vec::new(),
        one if api == Api::Google => vec![one.clone()],
        text => vec![serde_json::json!({"role": "user", "content": text})],
    }
}

/// Without marks for caches, which move, and with texts as lists.
pub(super) fn plain(items: &[Value]) -> Vec<Value> {
    fn stripped(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
                let field = |(name, value): (&String, &Value)| {
                    let value = match value {
                        Value::String(text) if name == "content" => {
                            serde_json::json!([{"type": "text", "text": text}])
                        }
                        other => stripped(other),
                    };
                    (name.clone(), value)
                };
                Value::Object(kept.map(field).collect())
            }
            Value::Array(items) => Value::Array(items.iter().map(stripped).collect()),
            other => other.clone(),
        }
    }
    items.iter().map(stripped).collect()
}

/// Why a request cannot be predicted from the one before: all of it is what gnoma never sends.
pub(super) fn beyond(before: &Cassette, next: &Cassette, new: &[Value]) -> Option<&'static str> {
    let body = |cassette: &Cassette, field: &str| cassette.request.body[field].clone();
    let text = Value::Array(new.to_vec()).to_string();
    let has = |word: &str| text.contains(word);
    let tools = body(next, "tools");
    let kinds = || tools.as_array().into_iter().flatten().filter_map(|tool| tool["type"].as_str());
    let asks = |word: &str| kinds().any(|kind| kind.starts_with(word));
    let fields =
        ["tools", "tool_choice", "text", "system", "instructions", "response_format", "thinking"];
    if ["server_tool_use", "web_search_call", "tool_search_call", "file_search_call"]
        .into_iter()
        .any(has)
        || ["web_search", "file_search", "web_fetch", "code_interpreter"].into_iter().any(asks)
    {
        Some("a tool on the provider's side, whose hidden results come and go")
    } else if has("file_data") || has("fileData") || has("\"input_file\"") || has("\"document\"") {
        Some("a document, which only the provider opens")
    } else if has("\"url\":\"http") || has("\"image_url\":\"http") {
        Some("a picture by its address, which only the provider fetches")
    } else if fields
        .into_iter()
        .any(|field| plain(&[body(before, field)]) != plain(&[body(next, field)]))
    {
        Some("tools, system prompt or the form of the answer changed between the requests")
    } else if body(next, "previous_response_id") != Value::Null {
        Some("the provider keeps the conversation")
    } else {
        None
    }
}

/// The items as messages. Neighbours of one role are one message, as gnoma would send them.
pub(super) fn messages(api: Api, items: &[Value]) -> Vec<Message> {
    let mut parts: Vec<(&str, Vec<Content>)> = Vec::new();
    for item in items {
        let (role, content) = match api {
            Api::Google => google(item),
            Api::Responses => responses(item),
            Api::Anthropic | Api::OpenAi | Api::Mistral | Api::Ollama => chat(item),
        };
        match parts.last_mut() {
            Some((last, before)) if *last == role && role != "user" => before.extend(content),
            _ if content.is_empty() => (),
            _ => parts.push((role, content)),
        }
    }
    parts.into_iter().filter_map(|(role, content)| message(role, content)).collect()
}

fn message(role: &str, mut content: Vec<Content>) -> Option<Message> {
    // Ids need not be unique where answers were put together.
    for (number, part) in content.iter_mut().enumerate() {
        let id = CallId::new(format!("c{number}"));
        match part {
            Content::ToolCall(call) => call.id = id,
            Content::ToolResult(result) => result.call_id = id,
            _ => (),
        }
    }
    match role {
        "assistant" => Message::assistant(content, None, None).ok(),
        "tool" => {
            let results = content.into_iter().filter_map(|part| match part {
                Content::ToolResult(result) => Some(result),
                _ => None,
            });
            Message::results(results.collect()).ok()
        }
        _ => Message::user(content).ok(),
    }
}

/// What is inside the envelope, whichever case its name is written in.
fn either<'a>(part: &'a Value, one: &str, other: &str) -> &'a Value {
    part.get(one).or_else(|| part.get(other)).unwrap_or(&Value::Null)
}

fn google(item: &Value) -> (&'static str, Vec<Content>) {
    let mut content = Vec::new();
    let mut role = if item["role"] == "model" { "assistant" } else { "user" };
    for part in item["parts"].as_array().into_iter().flatten() {
        let (call, response) = (
            either(part, "functionCall", "function_call"),
            either(part, "functionResponse", "function_response"),
        );
        let picture = either(part, "inlineData", "inline_data");
        if call.is_object() {
            content.push(called(&call["name"], &call["args"]));
        } else if response.is_object() {
            role = "tool";
            let mut parts = vec![ResultPart::Text {
                text: response["name"].to_string() + &response["response"].to_string(),
            }];
            let pictures = response["parts"].as_array().into_iter().flatten();
            let pictures = pictures.map(|part| either(part, "inlineData", "inline_data"));
            parts.extend(pictures.filter_map(|it| image(&it["data"])).map(ResultPart::Image));
            content.push(result(parts));
        } else if part["thought"] == true {
            content.push(thought(&part["text"], false));
        } else if let Some(picture) = image(&picture["data"]) {
            content.push(Content::Image(picture));
        } else if let Some(text) = part["text"].as_str() {
            content.push(Content::from_text(text));
        }
    }
    (role, content)
}

fn responses(item: &Value) -> (&'static str, Vec<Content>) {
    match item["type"].as_str() {
        Some("reasoning") => {
            let texts = item["summary"].as_array().into_iter().flatten();
            let text: String = texts.filter_map(|it| it["text"].as_str()).collect();
            ("assistant", vec![thought(&Value::String(text), true)])
        }
        Some("function_call") => {
            let arguments = item["arguments"].as_str().unwrap_or("{}");
            let arguments = serde_json::from_str(arguments).unwrap_or(Value::Null);
            ("assistant", vec![called(&item["name"], &arguments)])
        }
        Some("function_call_output") => ("tool", vec![result(output(&item["output"]))]),
        Some("message") | None => chat(item),
        Some(_) => ("assistant", Vec::new()),
    }
}

fn chat(item: &Value) -> (&'static str, Vec<Content>) {
    let role = match item["role"].as_str() {
        Some("assistant") => "assistant",
        Some("tool") => return ("tool", vec![result(output(&item["content"]))]),
        _ => "user",
    };
    let mut content = Vec::new();
    for field in ["reasoning_content", "reasoning", "thinking"] {
        if item[field].as_str().is_some_and(|text| !text.is_empty()) {
            content.push(thought(&item[field], false));
        }
    }
    if item["reasoning_details"].is_array() {
        content.push(thought(&Value::Null, true));
    }
    let (said, results) = blocks(&item["content"]);
    content.extend(said);
    for call in item["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let arguments = match &function["arguments"] {
            Value::String(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            other => other.clone(),
        };
        content.push(called(&function["name"], &arguments));
    }
    if results.is_empty() { (role, content) } else { ("tool", results) }
}

/// What a list of blocks says, and the results in it.
fn blocks(content: &Value) -> (Vec<Content>, Vec<Content>) {
    let (mut said, mut results) = (Vec::new(), Vec::new());
    if let Some(text) = content.as_str().filter(|text| !text.is_empty()) {
        said.push(Content::from_text(text));
    }
    for block in content.as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("thinking") => {
                said.push(thought(&block["thinking"], block["signature"].is_string()));
            }
            Some("redacted_thinking") => {
                said.push(Content::RedactedThinking(Redacted { data: String::new() }));
            }
            Some("tool_use") => said.push(called(&block["name"], &block["input"])),
            Some("tool_result") => results.push(result(output(&block["content"]))),
            _ => {
                let text = block.as_str().or(block["text"].as_str());
                said.extend(text.filter(|text| !text.is_empty()).map(Content::from_text));
                said.extend(picture(block).map(Content::Image));
            }
        }
    }
    (said, results)
}

fn output(content: &Value) -> Vec<ResultPart> {
    let mut parts = Vec::new();
    for part in blocks(content).0 {
        match part {
            Content::Text(text) => parts.push(ResultPart::Text { text: text.text }),
            Content::Image(image) => parts.push(ResultPart::Image(image)),
            _ => (),
        }
    }
    parts
}

fn picture(block: &Value) -> Option<Image> {
    let url = match &block["image_url"] {
        Value::String(url) => Some(url.as_str()),
        other => other["url"].as_str(),
    };
    match url {
        Some(url) => {
            let data = url.split_once("base64,").map_or("", |(_, data)| data);
            Some(Image { mime: "image/png".to_owned(), base64: data.into() })
        }
        None if block["type"] == "image" => image(&block["source"]["data"]),
        None => None,
    }
}

fn image(data: &Value) -> Option<Image> {
    let base64 = Arc::from(data.as_str()?);
    Some(Image { mime: "image/png".to_owned(), base64 })
}

fn thought(text: &Value, is_signed: bool) -> Content {
    let text = text.as_str().unwrap_or_default().to_owned();
    Content::Thinking(Thinking { text, signature: is_signed.then(String::new), item: None })
}

fn called(name: &Value, arguments: &Value) -> Content {
    let arguments =
        RawJson::parse(arguments.to_string()).unwrap_or_else(|_| RawJson::empty_object());
    Content::ToolCall(ToolCall::new(CallId::new("c"), name.as_str().unwrap_or_default(), arguments))
}

fn result(mut parts: Vec<ResultPart>) -> Content {
    if parts.is_empty() {
        parts.push(ResultPart::Text { text: String::new() });
    }
    let (call_id, name) = (CallId::new("c"), String::new());
    Content::ToolResult(ToolResult { call_id, name, parts, is_error: false })
}
