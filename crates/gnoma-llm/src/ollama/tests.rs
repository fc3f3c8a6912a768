use gnoma_core::{
    CallId, Content, Effort, ErrorKind, Image, ModelRef, ProviderError, Response, ResultPart,
    StopReason, Thinking, ToolCall, ToolChoice, ToolResult,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    Protocol,
    testing::{answer, items, names, tools},
};

fn dialect() -> Ollama {
    let profile = Profile::new("ollama", Protocol::Ollama, "http://x");
    Ollama::new(Arc::new(profile))
}

fn decode(lines: &[&str]) -> Result<Response, ProviderError> {
    answer(&mut *dialect().new_decoder(names()), lines, true)
}

fn thinking(text: &str) -> Content {
    Content::Thinking(Thinking { text: text.into(), ..Thinking::default() })
}

#[test]
fn ollama_lines_decode_to_thinking_text_and_call_blocks_in_order() {
    let response = decode(&[
        r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"so "},"done":false}"#,
        r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"far"},"done":false}"#,
        r#"{"model":"m","message":{"content":"I ","thinking":null,"tool_calls":null},"done":false}"#,
        r#"{"model":"m","message":{"content":"read\n"},"done":false}"#,
        r#"{"model":"m","message":{"content":"","tool_calls":[{"function":{"index":0,"name":"fs_read","arguments":{"path": "a"}}},{"id":"x","function":{"name":"bash","arguments":"{\"b\":1}"}}]},"done":false}"#,
        r#"{"model":"m","message":{"content":"after"},"done":false}"#,
        r#"{"model":"m","message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":7,"eval_count":3}"#,
    ])
    .unwrap();
    assert_eq!(response.content[0], thinking("so far"));
    assert_eq!(response.content[1], Content::from_text("I read\n"));
    assert_eq!(response.content[4], Content::from_text("after"));
    let calls: Vec<_> =
        response.tool_calls().map(|call| (call.name.as_str(), call.arguments.get())).collect();
    assert_eq!(calls, [("fs.read", r#"{"path": "a"}"#), ("bash", r#"{"b":1}"#)]);
    assert_eq!(response.stop, Some(StopReason::ToolUse));
    let usage = response.usage.unwrap();
    assert_eq!((usage.input, usage.output), (7, 3));
}

#[test]
fn ollama_repeated_tool_call_fills_empty_arguments() {
    let call = |arguments: &str| {
        format!(
            r#"{{"message":{{"tool_calls":[{{"id":"x","function":{{"name":"bash","arguments":{arguments}}}}}]}},"done":false}}"#
        )
    };
    let end = r#"{"done":true,"done_reason":"stop"}"#;
    let response = decode(&[&call("{}"), &call(r#"{"command":"ls"}"#), end]).unwrap();
    let calls: Vec<_> = response.tool_calls().map(|call| call.arguments.get()).collect();
    assert_eq!(calls, [r#"{"command":"ls"}"#]);
    let response = decode(&[&call(r#"{"a":1}"#), &call(r#"{"a":2}"#), end]).unwrap();
    assert_eq!(response.tool_calls().count(), 2, "two calls that share an id");
}

#[test]
fn ollama_done_reasons_are_mapped() {
    for (end, stop) in [
        (r#"{"done":true}"#, StopReason::EndTurn),
        (r#"{"done":true,"done_reason":"stop"}"#, StopReason::EndTurn),
        (r#"{"done":true,"done_reason":"length"}"#, StopReason::MaxTokens),
        (r#"{"done":true,"done_reason":"load"}"#, StopReason::Other),
    ] {
        assert_eq!(decode(&[end]).unwrap().stop, Some(stop), "{end}");
    }
    for word in ["error", "abort", "unload"] {
        let end =
            format!(r#"{{"message":{{"content":"part"}},"done":true,"done_reason":"{word}"}}"#);
        assert_eq!(decode(&[&end]).unwrap_err().kind, ErrorKind::ServerError, "{word}");
    }
    let limit = decode(&[r#"{"done":true,"done_reason":"limit"}"#]).unwrap();
    assert_eq!(limit.stop, Some(StopReason::MaxTokens));
    let call = r#"{"message":{"tool_calls":[{"function":{"name":"bash"}}]},"done":true,"done_reason":"length"}"#;
    assert_eq!(decode(&[call]).unwrap().stop, Some(StopReason::MaxTokens));
}

#[test]
fn ollama_errors_and_truncated_streams_are_reported() {
    let said = r#"{"message":{"content":"x"},"done":false}"#;
    let error = decode(&[said, r#"{"error":"an error was encountered"}"#]).unwrap_err();
    assert_eq!(error.message, "an error was encountered");
    assert_eq!(decode(&[said]).unwrap_err().kind, ErrorKind::Network);
    assert_eq!(decode(&[r#"{"choices":[]}"#]).unwrap_err().kind, ErrorKind::WrongServer);
    assert_eq!(decode(&["{oops"]).unwrap_err().kind, ErrorKind::Garbled);
}

fn origin(model: &str) -> Option<ModelRef> {
    Some(ModelRef { provider: "ollama".into(), model: model.into() })
}

fn encode(message: &Message) -> Value {
    items(&dialect(), message)
}

#[test]
fn ollama_assistant_message_is_sent_back_with_calls_and_own_thinking() {
    let mut broken =
        ToolCall::new(CallId::new("d"), "bash", RawJson::from_value(&"{\"cut").unwrap());
    broken.broken = true;
    let content = vec![
        thinking("hm"),
        Content::from_text("I read"),
        Content::ToolCall(ToolCall::new(
            CallId::new("c"),
            "fs.read",
            RawJson::parse(r#"{"path":"a"}"#).unwrap(),
        )),
        Content::ToolCall(broken),
    ];
    let said = |model| {
        let message = Message::assistant(content.clone(), origin(model), Some(StopReason::ToolUse));
        encode(&message.unwrap())
    };
    let mut expected = json!([{"role": "assistant", "content": "I read", "thinking": "hm", "tool_calls": [
        {"id": "c", "function": {"name": "fs_read", "arguments": {"path": "a"}}},
        {"id": "d", "function": {"name": "bash", "arguments": {"_raw": "{\"cut"}}}]}]);
    assert_eq!(said("m"), expected);
    expected[0].as_object_mut().unwrap().remove("thinking");
    assert_eq!(said("other"), expected);
    let thoughts = Message::assistant(vec![thinking("x")], origin("other"), None).unwrap();
    assert_eq!(encode(&thoughts), json!([]));
}

#[test]
fn ollama_tool_result_images_follow_the_results() {
    let result = |id: &str, parts| ToolResult {
        call_id: CallId::new(id),
        name: "fs.read".into(),
        parts,
        is_error: false,
    };
    let words = |text: &str| ResultPart::Text { text: text.into() };
    let picture = || ResultPart::Image(Image::from_bytes("image/png", b"p"));
    let message = Message::results(vec![
        result("c", vec![words("a"), picture()]),
        result("d", vec![words("b")]),
        result("e", vec![picture()]),
    ]);
    let expected = json!([
        {"role": "tool", "content": "a", "tool_name": "fs_read", "tool_call_id": "c"},
        {"role": "tool", "content": "b", "tool_name": "fs_read", "tool_call_id": "d"},
        {"role": "tool", "content": "(images follow)", "tool_name": "fs_read", "tool_call_id": "e"},
        {"role": "user", "content": "Images from the result of fs_read (c):", "images": ["cA=="]},
        {"role": "user", "content": "Images from the result of fs_read (e):", "images": ["cA=="]}]);
    assert_eq!(encode(&message.unwrap()), expected);
    let picture = Content::Image(Image::from_bytes("image/png", b"p"));
    let shown = Message::user(vec![Content::from_text("what?"), picture]).unwrap();
    let expected = json!([{"role": "user", "content": "what?", "images": ["cA=="]}]);
    assert_eq!(encode(&shown), expected);
}

fn request() -> ModelRequest {
    ModelRequest {
        model: "qwen3:4b".into(),
        system: "".into(),
        messages: vec![Arc::new(Message::user_text("hi"))],
        tools: Arc::new([]),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        context_window: None,
        format: None,
        thinking: None,
    }
}

fn body(request: &ModelRequest) -> Value {
    let profile = Profile::new("ollama", Protocol::Ollama, "http://x");
    serde_json::from_slice(&crate::internals::encode_request(profile, request)).unwrap()
}

#[test]
fn ollama_request_omits_unset_options() {
    let hi = json!({"role": "user", "content": "hi"});
    let expected = json!({"model": "qwen3:4b", "stream": true, "messages": [hi]});
    assert_eq!(body(&request()), expected);
    let mut full = request();
    full.system = "Be brief.".into();
    full.tools = tools().into();
    full.context_window = Some(32768);
    full.max_output_tokens = Some(9);
    full.effort = Some(Effort::Low);
    let sent = body(&full);
    assert_eq!(sent["options"], json!({"num_ctx": 32768, "num_predict": 9}));
    assert_eq!(sent["think"], true);
    assert_eq!(sent["messages"], json!([{"role": "system", "content": "Be brief."}, hi]));
    let tool = json!({"type": "function", "function":
        {"name": "fs_read", "description": "reads", "parameters": {"type": "object"}}});
    assert_eq!(sent["tools"], json!([tool]));
    full.tool_choice = ToolChoice::None;
    assert_eq!(body(&full).get("tools"), None);
    full.model = "gpt-oss:20b".into();
    assert_eq!(body(&full)["think"], "low");
}

#[test]
fn ollama_model_list_is_read_from_api_tags() {
    let body = br#"{"models":[{"name":"qwen3:4b","model":"qwen3:4b","size":1}]}"#;
    assert_eq!(dialect().parse_models(body)[0].id, "qwen3:4b");
    assert_eq!(dialect().models_path(), "/api/tags");
    assert!(dialect().request_headers().is_empty());
}
