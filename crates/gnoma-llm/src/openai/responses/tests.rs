use gnoma_core::{
    CallId, Content, Effort, ErrorKind, Image, ModelRef, ProviderError, Response, ResultPart,
    StopReason, Text, Thinking, ToolCall, ToolChoice, ToolResult, Usage,
};
use serde_json::{Value, json};

use super::*;
use crate::{
    Protocol,
    testing::{answer, items, names, tools},
};

fn dialect() -> Responses {
    let profile = Profile::new("openai", Protocol::Responses, "http://x");
    Responses::new(Arc::new(profile))
}

fn decode(records: &[&str], whole: bool) -> Result<Response, ProviderError> {
    answer(&mut *dialect().new_decoder(names()), records, whole)
}

fn stream(records: &[&str]) -> Response {
    decode(records, false).unwrap()
}

fn text(text: &str) -> Content {
    Content::from_text(text)
}

fn thinking(text: &str, signature: Option<&str>, item: &str) -> Content {
    Content::Thinking(Thinking {
        text: text.into(),
        signature: signature.map(str::to_owned),
        item: Some(item.into()),
    })
}

const COMPLETED: &str =
    r#"{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#;

#[test]
fn responses_stream_decodes_reasoning_text_and_calls_in_order() {
    let response = stream(&[
        r#"{"type":"response.created","response":{"id":"r","model":"m","status":"in_progress","output":[]}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"one"}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"two"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","encrypted_content":"E=","summary":[{"text":"one"},{"text":"two"}]}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","content":[]}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"a\n"}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"b"}"#,
        r#"{"type":"response.output_text.done","output_index":1,"content_index":0,"text":"a\nb"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","content":[{"type":"output_text","text":"a\nb"}]}}"#,
        r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc","call_id":"c","name":"fs_read","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"{\"path\":"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"1}"}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":2,"arguments":"{\"path\":1}"}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc","call_id":"c","name":"fs_read","arguments":"{\"path\":1}"}}"#,
        COMPLETED,
        "[DONE]",
    ]);
    let mut call =
        ToolCall::new(CallId::new("c"), "fs.read", RawJson::parse(r#"{"path":1}"#).unwrap());
    call.item = Some("fc".into());
    let expected = [
        thinking("one", None, "rs"),
        thinking("two", Some("E="), "rs"),
        text("a\nb"),
        Content::ToolCall(call),
    ];
    assert_eq!(response.content, expected);
    assert_eq!(response.stop, Some(StopReason::ToolUse));
    assert_eq!((response.model.as_deref(), response.id.as_deref()), (Some("m"), Some("r")));
}

#[test]
fn responses_content_without_deltas_is_taken_from_the_done_record() {
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"type":"output_text","text":"hello"}]}}"#;
    assert_eq!(stream(&[done, COMPLETED]).content, [text("hello")]);
    let only_the_end = r#"{"type":"response.completed","response":{"output":[
        {"type":"web_search_call","id":"ws","content":{"strange":1}},
        {"type":"reasoning","id":"rs","summary":[],"encrypted_content":"E"},
        {"type":"message","content":[{"type":"output_text","text":"hi"}]}]}}"#;
    assert_eq!(stream(&[only_the_end]).content, [thinking("", Some("E"), "rs"), text("hi")]);
    let lost = [
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"he"}"#,
        r#"{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"hello"}"#,
        COMPLETED,
    ];
    assert_eq!(stream(&lost).content, [text("hello")]);
}

#[test]
fn responses_tool_arguments_of_deltas_win_over_a_reformatted_done_record() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"fs_read","arguments":""}}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"fs_read","arguments":"{\"path\": \"a\", \"last\": 1}"}}"#;
    let pieces = [
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"path\":\"a\","}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":0,"delta":"\"last\":1}"}"#,
    ];
    let answers = [
        (stream(&[added, pieces[0], pieces[1], done, COMPLETED]), r#"{"path":"a","last":1}"#),
        (stream(&[added, done, COMPLETED]), r#"{"path": "a", "last": 1}"#),
    ];
    for (response, arguments) in answers {
        let calls: Vec<_> = response.tool_calls().map(|call| call.arguments.get()).collect();
        assert_eq!(calls, [arguments]);
    }
}

#[test]
fn responses_item_ids_may_change_and_the_last_record_wins() {
    let response = stream(&[
        r#"{"type":"response.created","response":{"id":"r1","model":"m"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"a"}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"b","encrypted_content":"1"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"c"}}"#,
        r#"{"type":"response.output_text.delta","item_id":"d","output_index":1,"delta":"x"}"#,
        r#"{"type":"response.completed","response":{"id":"r2","output":[
            {"type":"reasoning","id":"e","encrypted_content":"2"},
            {"type":"message","id":"f","content":[{"type":"output_text","text":"x"}]}]}}"#,
    ]);
    assert_eq!(response.content, [thinking("", Some("2"), "e"), text("x")]);
    assert_eq!(response.id.as_deref(), Some("r2"));
}

#[test]
fn responses_records_without_index_or_name_are_decoded() {
    let response = stream(&[
        r#"{"type":"response.output_item.added","item":{"type":"message"}}"#,
        r#"{"type":"response.output_text.delta","delta":"x"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"c","name":null}}"#,
        r#"{"type":"response.function_call_arguments.delta","delta":"{}"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"c","name":"bash","arguments":{"a":1}}}"#,
        r#"{"type":"response.new_thing","output_index":{"not":"a number"},"delta":[1]}"#,
        r#"{"type":"response.done","response":{"status":"completed"}}"#,
    ]);
    let call = response.tool_calls().next().unwrap();
    assert_eq!((call.name.as_str(), call.arguments.get()), ("bash", r#"{"a":1}"#));
    assert_eq!(response.content[0], text("x"));
}

#[test]
fn responses_status_and_incomplete_details_are_mapped_to_stop_reasons() {
    let end = |status: &str, reason: &str, output: Value| {
        let details = json!({ "reason": reason });
        let body =
            json!({"id": "r", "status": status, "incomplete_details": details, "output": output});
        decode(&[&body.to_string()], true).unwrap().stop
    };
    let said = json!([{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]);
    let refused = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]);
    let called =
        json!([{"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{"}]);
    for (status, reason, output, stop) in [
        ("completed", "", &said, StopReason::EndTurn),
        ("completed", "", &refused, StopReason::Refusal),
        ("completed", "", &called, StopReason::ToolUse),
        ("incomplete", "max_output_tokens", &called, StopReason::MaxTokens),
        ("incomplete", "content_filter", &said, StopReason::ContentFilter),
        ("incomplete", "else", &said, StopReason::Other),
        ("queued", "", &json!([]), StopReason::Other),
        ("in_progress", "", &json!([]), StopReason::Other),
    ] {
        assert_eq!(end(status, reason, output.clone()), Some(stop), "{status} {reason}");
    }
    let broken = |status: &str, reason: &str| {
        let details = json!({ "reason": reason });
        let body = json!({"status": status, "incomplete_details": details, "output": said});
        decode(&[&body.to_string()], true).unwrap_err().kind
    };
    assert_eq!(broken("cancelled", ""), ErrorKind::ServerError);
    assert_eq!(broken("incomplete", "server_error"), ErrorKind::ServerError);
    assert_eq!(broken("incomplete", "context_limit"), ErrorKind::ContextTooLong);
}

#[test]
fn responses_errors_of_every_shape_are_reported() {
    let limit = r#"{"code":"rate_limit_exceeded","message":"slow down"}"#;
    for record in [
        format!(r#"{{"type":"error","error":{limit}}}"#),
        r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down"}"#.to_owned(),
        format!(r#"{{"type":"response.failed","response":{{"status":"failed","error":{limit}}}}}"#),
        format!(r#"{{"error":{limit}}}"#),
    ] {
        let error = decode(&[&record], false).unwrap_err();
        assert_eq!(
            (error.kind, error.message.as_str()),
            (ErrorKind::RateLimited, "slow down"),
            "{record}"
        );
    }
    let silent = r#"{"type":"response.failed","response":{"status":"failed","error":null}}"#;
    assert_eq!(decode(&[silent], false).unwrap_err().kind, ErrorKind::ServerError);
    let cut = r#"{"type":"response.output_text.delta","output_index":0,"delta":"x"}"#;
    assert_eq!(decode(&[cut], false).unwrap_err().kind, ErrorKind::Network);
    let other = r#"{"object":"chat.completion","choices":[]}"#;
    assert_eq!(decode(&[other], true).unwrap_err().kind, ErrorKind::WrongServer);
    assert_eq!(decode(&["{oops"], false).unwrap_err().kind, ErrorKind::Garbled);
    assert!(decode(&[cut, "[DONE]"], false).is_ok());
}

#[test]
fn responses_usage_counts_cached_and_reasoning_tokens_once() {
    let usage = |usage: Value| {
        let body = json!({"status": "completed", "output": [], "usage": usage});
        decode(&[&body.to_string()], true).unwrap().usage
    };
    let openai = json!({"input_tokens": 100, "output_tokens": 50, "total_tokens": 150,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens_details": {"reasoning_tokens": 20}});
    let expected = Usage { input: 10, output: 50, cache_read: 60, cache_write: 30, reasoning: 20 };
    assert_eq!(usage(openai), Some(expected));
    let beside = json!({"input_tokens": 1, "output_tokens": 2, "total_tokens": 6,
        "input_tokens_details": null, "output_tokens_details": {"reasoning_tokens": 3}});
    let expected = Usage { input: 1, output: 5, reasoning: 3, ..Usage::default() };
    assert_eq!(usage(beside), Some(expected));
    assert_eq!(usage(Value::Null), None);
}

fn origin(model: &str) -> Option<ModelRef> {
    Some(ModelRef { provider: "openai".into(), model: model.into() })
}

fn encode(message: &Message) -> Value {
    items(&dialect(), message)
}

fn assistant(content: Vec<Content>, model: &str) -> Message {
    Message::assistant(content, origin(model), Some(StopReason::ToolUse)).unwrap()
}

#[test]
fn responses_reasoning_items_are_sent_back_to_their_own_model() {
    let call = ToolCall::new(CallId::new("c"), "fs.read", RawJson::parse("{\"a\" : 1}").unwrap());
    let content = vec![
        thinking("one", None, "rs"),
        thinking("two", Some("E"), "rs"),
        thinking("deep", None, &reasoning::kept_id("rt", true)),
        thinking("a summary that nobody encrypted", None, "rx"),
        text("so"),
        Content::ToolCall(call),
        thinking("nothing follows", Some("F"), "rl"),
    ];
    let said = json!({"type": "message", "role": "assistant", "content": "so"});
    let called = json!({"type": "function_call", "call_id": "c", "name": "fs_read", "arguments": "{\"a\" : 1}"});
    let own = json!([
        {"type": "reasoning", "id": "rs", "encrypted_content": "E",
         "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]},
        {"type": "reasoning", "id": "rt", "summary": [], "content": [{"type": "reasoning_text", "text": "deep"}]},
        said, called]);
    assert_eq!(encode(&assistant(content.clone(), "m")), own);
    assert_eq!(encode(&assistant(content, "other")), json!([said, called]));
    let only_thoughts = assistant(vec![thinking("x", Some("E"), "rs")], "m");
    assert_eq!(encode(&only_thoughts), json!([]));
}

#[test]
fn responses_output_items_round_trip_to_input_items() {
    let raw = r#"{"id":"rt","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"why"}]}"#;
    let seen = r#"{"id":"rs","type":"reasoning","summary":[{"type":"summary_text","text":"how"}],"encrypted_content":"E"}"#;
    let call =
        r#"{"type":"function_call","call_id":"c","name":"fs_read","arguments":"{\"path\":\"x\"}"}"#;
    let body = format!(r#"{{"status":"completed","output":[{raw},{seen},{call}]}}"#);
    let response = decode(&[&body], true).unwrap();
    let message = response.into_message(origin("m")).unwrap();
    let expected: Value = serde_json::from_str(&format!("[{raw},{seen},{call}]")).unwrap();
    assert_eq!(encode(&message), expected);
}

/// The models that tell remarks from answers want to be told in turn.
#[test]
fn responses_message_phase_is_sent_back_to_its_model() {
    let remark = r#"{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"I look."}]}"#;
    let answer = r#"{"type":"message","phase":"final_answer","content":[{"type":"output_text","text":"Done."}]}"#;
    let plain =
        r#"{"type":"message","phase":null,"content":[{"type":"output_text","text":"So."}]}"#;
    let body = format!(r#"{{"status":"completed","output":[{remark},{answer},{plain}]}}"#);
    let whole = decode(&[&body], true).unwrap();
    let done = |at: u8, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{at},"item":{item}}}"#)
    };
    let delta = r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"I look."}"#;
    let records = [done(0, remark), done(1, answer), done(2, plain)];
    let streamed = stream(&[delta, &records[0], &records[1], &records[2], COMPLETED]);
    assert_eq!(whole.content, streamed.content);
    let message = |model| Message::assistant(whole.content.clone(), origin(model), None).unwrap();
    let mut expected = json!([
        {"type": "message", "role": "assistant", "phase": "commentary", "content": "I look."},
        {"type": "message", "role": "assistant", "phase": "final_answer", "content": "Done."},
        {"type": "message", "role": "assistant", "content": "So."}]);
    assert_eq!(encode(&message("m")), expected);
    for item in expected.as_array_mut().unwrap() {
        item.as_object_mut().unwrap().remove("phase");
    }
    assert_eq!(encode(&message("other")), expected);
}

#[test]
fn responses_overlong_call_ids_and_broken_arguments_are_made_valid() {
    let mut call = ToolCall::new(
        CallId::new("ä".repeat(40)),
        "gone.tool",
        RawJson::from_value(&"{\"cut").unwrap(),
    );
    call.broken = true;
    let result = ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        parts: vec![
            ResultPart::Text { text: "see".into() },
            ResultPart::Image(Image::from_bytes("image/png", b"p")),
        ],
        is_error: true,
    };
    let called = encode(&assistant(vec![Content::ToolCall(call)], "m"));
    let answered = encode(&Message::results(vec![result]).unwrap());
    assert_eq!(called[0]["arguments"], "{\"cut");
    assert_eq!(called[0]["name"], "gone_tool");
    assert_eq!(called[0]["call_id"], answered[0]["call_id"]);
    assert!(called[0]["call_id"].as_str().unwrap().len() <= 64);
    let output = json!([{"type": "input_text", "text": "see"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,cA=="}]);
    assert_eq!(answered[0]["output"], output);
}

#[test]
fn responses_user_message_encodes_text_and_images() {
    let words = Content::Text(Text { text: "what?".into(), signature: None });
    let image = Content::Image(Image::from_bytes("image/png", b"p"));
    let message = Message::user(vec![words, image]).unwrap();
    let expected = json!([{"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "what?"},
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,cA=="}]}]);
    assert_eq!(encode(&message), expected);
}

fn body(request: &ModelRequest) -> Value {
    let profile = Profile::new("openai", Protocol::Responses, "http://x");
    serde_json::from_slice(&crate::internals::encode_request(profile, request)).unwrap()
}

fn request(model: &str) -> ModelRequest {
    ModelRequest {
        model: model.into(),
        system: "Be brief.".into(),
        messages: vec![Arc::new(Message::user_text("hi"))],
        tools: tools().into(),
        tool_choice: ToolChoice::Auto,
        max_output_tokens: None,
        temperature: None,
        effort: None,
        context_window: None,
        format: None,
        thinking: None,
    }
}

#[test]
fn responses_request_sets_store_false_and_omits_unset_options() {
    let plain = body(&request("gpt-5.5"));
    let expected = json!({"model": "gpt-5.5", "instructions": "Be brief.", "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "fs_read", "description": "reads",
                   "parameters": {"type": "object"}, "strict": false}],
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}]});
    assert_eq!(plain, expected);
    for model in ["gpt-4o-mini", "openai/gpt-4.1"] {
        assert_eq!(body(&request(model)).get("include"), None);
    }
    let mut full = request("gpt-5.5");
    full.tool_choice = ToolChoice::Tool("fs.read".into());
    full.max_output_tokens = Some(9);
    full.temperature = Some(0.2);
    full.effort = Some(Effort::High);
    let full = body(&full);
    assert_eq!(full["tool_choice"], json!({"type": "function", "name": "fs_read"}));
    assert_eq!(full["max_output_tokens"], 9);
    assert_eq!(full.get("temperature"), None);
    assert_eq!(full["reasoning"], json!({"effort": "high", "summary": "auto"}));
    let mut plain = request("gpt-4.1");
    plain.temperature = Some(0.2);
    plain.effort = Some(Effort::High);
    assert_eq!(body(&plain)["temperature"], 0.2);
    assert_eq!(body(&plain).get("reasoning"), None);
    for (model, word) in [("gpt-5.5", "none"), ("gpt-5-mini", "minimal"), ("o3", "low")] {
        let mut least = request(model);
        least.effort = Some(Effort::None);
        assert_eq!(body(&least)["reasoning"], json!({ "effort": word }));
    }
}
