use bytes::Bytes;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::wire::Script;

/// What the vendor's model has thought, and the token it has made for it.
const THOUGHT: &str = "pondering";
const TOKEN: &str = "b3BhcXVl";

fn issued() -> IssuedTokens {
    let mut issued = IssuedTokens::default();
    issued.record_answer(&Script::text(["It is."]).with_thinking(THOUGHT, TOKEN));
    issued
}

fn request(wire: Wire, body: &Value) -> Request {
    let target = match wire {
        Wire::Google => "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse".to_owned(),
        Wire::Ollama => "/api/chat".to_owned(),
        other => other.path_ending().to_owned(),
    };
    let headers = [("content-type", "application/json"), ("anthropic-version", "2023-06-01")];
    Request {
        method: "POST".to_owned(),
        target,
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: Bytes::from(body.to_string()),
        at: Instant::now(),
    }
}

fn violations(wire: Wire, body: &Value) -> Vec<String> {
    wire.violations(&request(wire, body), &issued())
}

fn schema() -> Value {
    json!({"type": "object", "properties": {"path": {"type": "string"}}})
}

/// A question, thinking with words and a call, and its result; with everything that may go back.
fn legal(wire: Wire) -> Value {
    match wire {
        Wire::Mistral => {
            let thinking =
                json!({"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]});
            let content = json!([thinking, {"type": "text", "text": "I look."}]);
            chat(json!({"role": "assistant", "content": content}), true)
        }
        Wire::OpenAi => chat(json!({"role": "assistant", "content": "I look."}), false),
        Wire::Compatible => chat(
            json!({"role": "assistant", "content": "I look.", "reasoning_content": THOUGHT}),
            false,
        ),
        Wire::Anthropic => json!({
            "model": "m", "max_tokens": 9000, "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 2048},
            "system": [{"type": "text", "text": "Be brief."}],
            "tools": [{"name": "fs_read", "description": "Reads.", "input_schema": schema()}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Read it."}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": THOUGHT, "signature": TOKEN},
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "toolu_1", "name": "fs_read", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": "one"}]}]},
            ],
        }),
        Wire::Responses => json!({
            "model": "m", "stream": true, "store": false, "instructions": "Be brief.",
            "tools": [{"type": "function", "name": "fs_read", "description": "Reads.",
                "parameters": schema(), "strict": false}],
            "input": [
                {"type": "message", "role": "user",
                    "content": [{"type": "input_text", "text": "Read it."}]},
                {"type": "reasoning", "id": "rs_1", "encrypted_content": TOKEN,
                    "summary": [{"type": "summary_text", "text": THOUGHT}]},
                {"type": "function_call", "call_id": "call_1", "name": "fs_read",
                    "arguments": "{}"},
                {"type": "function_call_output", "call_id": "call_1", "output": "one"},
            ],
        }),
        Wire::Google => json!({
            "systemInstruction": {"parts": [{"text": "Be brief."}]},
            "tools": [{"functionDeclarations": [{"name": "fs_read", "description": "Reads.",
                "parametersJsonSchema": schema()}]}],
            "contents": [
                {"role": "user", "parts": [{"text": "Read it."}]},
                {"role": "model", "parts": [
                    {"text": THOUGHT, "thought": true},
                    {"functionCall": {"name": "fs_read", "args": {}}, "thoughtSignature": TOKEN}]},
                {"role": "user", "parts": [
                    {"functionResponse": {"name": "fs_read", "response": {"output": "one"}}}]},
            ],
        }),
        Wire::Ollama => {
            let function = json!({"name": "fs_read", "arguments": {}});
            let answer = json!({"role": "assistant", "content": "I look.", "thinking": THOUGHT,
                "tool_calls": [{"id": "call_1", "function": function}]});
            let result = json!({"role": "tool", "content": "one", "tool_name": "fs_read",
                "tool_call_id": "call_1"});
            json!({"model": "m", "stream": true, "tools": offered(), "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Read it."}, answer, result]})
        }
    }
}

fn offered() -> Value {
    let function = json!({"name": "fs_read", "description": "Reads.", "parameters": schema()});
    json!([{"type": "function", "function": function}])
}

/// Chat completions around an answer, to which a call is added.
fn chat(mut answer: Value, named: bool) -> Value {
    let function = json!({"name": "fs_read", "arguments": "{}"});
    answer["tool_calls"] = json!([{"id": "aB3dE6gH9", "type": "function", "function": function}]);
    let mut result = json!({"role": "tool", "tool_call_id": "aB3dE6gH9", "content": "one"});
    if named {
        result["name"] = json!("fs_read");
    }
    json!({"model": "m", "stream": true, "tools": offered(), "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Read it."}, answer, result]})
}

#[test]
fn strict_wire_check_accepts_valid_requests() {
    for wire in Wire::ALL {
        assert_eq!(violations(wire, &legal(wire)), [""; 0], "{wire:?}");
    }
}

/// A change to a legal request: what is put where, and a word of the reason it must be refused for.
type Planted = (Wire, &'static str, Value, &'static str);

/// Each finds its fault, and nobody passes it over.
#[test]
fn planted_faults_are_refused() {
    use Wire::{Anthropic, Compatible, Google, Mistral, Ollama, OpenAi, Responses};
    let user = json!({"role": "user", "content": "And?"});
    let thought = json!({"type": "redacted_thinking", "data": TOKEN});
    let words = json!({"type": "text", "text": "So."});
    let gone = Value::Null;
    let faults: Vec<Planted> = vec![
        (Mistral, "/stream_options", json!({"include_usage": true}), "unknown field"),
        (Mistral, "/messages/2/tool_calls/0/id", json!("call_1"), "not legal"),
        (Mistral, "/messages/3/tool_call_id", json!("aB3dE6gH8"), "no call right before"),
        (Mistral, "/messages/3", user.clone(), "no result right after"),
        (Mistral, "/messages/4", user, "`user` may not follow `tool`"),
        (Mistral, "/messages/2/content/0/thinking/0/text", json!("else"), "not thought"),
        (Mistral, "/messages/2/reasoning_content", json!("hm"), "unknown field"),
        (OpenAi, "/messages/2/reasoning_content", json!("hm"), "unknown field"),
        (OpenAi, "/messages/2/tool_calls/0/id", json!("x".repeat(41)), "not legal"),
        (OpenAi, "/messages/2/tool_calls/0/function/arguments", json!("{"), "a JSON object"),
        (OpenAi, "/messages/1/content", json!(""), "is empty"),
        (OpenAi, "/messages/4", json!({"role": "system", "content": "x"}), "may not follow"),
        (OpenAi, "/messages/4", json!({"role": "assistant", "content": ""}), "has neither"),
        (OpenAi, "/tools", json!([]), "a list that is not empty"),
        (OpenAi, "/tools/0/function/name", json!("fs.read"), "no legal name"),
        (OpenAi, "/tool_choice", json!("any"), "known word"),
        (Compatible, "/messages/2/reasoning_content", json!("else"), "not thought"),
        (Compatible, "/messages/4", json!({"role": "assistant", "content": "x"}), "last one"),
        (Anthropic, "/max_tokens", gone.clone(), "is required"),
        (Anthropic, "/tools", gone.clone(), "needs its tools"),
        (Anthropic, "/system/0/text", json!(" \n"), "more than white space"),
        (Anthropic, "/messages/0", json!({"role": "system", "content": "x"}), "no such role"),
        (Anthropic, "/messages/0/content", json!([]), "a list that is not empty"),
        (Anthropic, "/messages/1/content/0/signature", json!("Zm9y"), "has not made"),
        (Anthropic, "/messages/1/content/0", json!({"type": "text", "text": "a"}), "not open with"),
        (Anthropic, "/messages/1/content/3", thought, "end with thinking"),
        (Anthropic, "/messages/1/content/3", words, "the last blocks"),
        (Anthropic, "/messages/1/content/2/id", json!("call 1"), "not legal"),
        (Anthropic, "/messages/2/content/0/tool_use_id", json!("x"), "no call right before"),
        (Anthropic, "/messages/2/content/0", json!({"type": "text", "text": "a"}), "no result"),
        (Anthropic, "/messages/3", json!({"role": "assistant", "content": "a"}), "last one"),
        (Anthropic, "/temperature", json!(0.5), "a temperature"),
        (Anthropic, "/stream_options", json!({}), "unknown field"),
        (Responses, "/store", gone.clone(), "must be false"),
        (Responses, "/max_output_tokens", json!(8), "16 or more"),
        (Responses, "/messages", json!([]), "unknown field"),
        (Responses, "/input/1/encrypted_content", json!("Zm9y"), "not encrypted"),
        (Responses, "/input/2", json!({"role": "user", "content": "x"}), "item that follows"),
        (Responses, "/input/3/call_id", json!("call_2"), "no call right before"),
        (Responses, "/input/2/call_id", json!("x".repeat(65)), "longer than 64"),
        (Responses, "/input/2/arguments", json!({}), "must be a text"),
        (Google, "/contents/0/role", json!("assistant"), "`user` or `model`"),
        (Google, "/contents/0/parts", json!([]), "a list that is not empty"),
        (Google, "/contents/0/parts/0/text", json!(""), "a text is empty"),
        (Google, "/contents/1/parts/0/text", json!("else"), "has not had"),
        (Google, "/contents/1/parts/1/thoughtSignature", json!("Zm9y"), "has not made"),
        (Google, "/contents/1/parts/1/thoughtSignature", json!("a-b"), "no base64"),
        (Google, "/contents/1/parts/1/thoughtSignature", gone, "missing its thought signature"),
        (Google, "/contents/2/parts/0/functionResponse/name", json!("x"), "not those to the calls"),
        (Google, "/max_tokens", json!(5), "unknown field"),
        (Ollama, "/messages/2/thinking", json!("else"), "not thought"),
        (Ollama, "/messages/2/tool_calls/0/function/arguments", json!("{}"), "an object"),
        (Ollama, "/messages/3/tool_call_id", json!("call_2"), "no call right before"),
        (Ollama, "/messages/3/content", json!([]), "must be a text"),
        (Ollama, "/max_tokens", json!(5), "unknown field"),
    ];
    for (wire, place, value, reason) in faults {
        let mut body = legal(wire);
        plant(&mut body, place, value);
        let found = violations(wire, &body).join("; ");
        assert!(found.contains(reason), "{wire:?} {place}: `{reason}` is not in `{found}`");
    }
}

/// Puts `value` at a pointer whose last step may be new; `null` takes away what is there.
fn plant(body: &mut Value, place: &str, value: Value) {
    let (parent, last) = place.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap();
    match parent {
        Value::Array(items) if last == items.len().to_string() => items.push(value),
        Value::Array(items) => items[last.parse::<usize>().unwrap()] = value,
        Value::Object(fields) if value.is_null() => drop(fields.remove(last)),
        Value::Object(fields) => drop(fields.insert(last.to_owned(), value)),
        other => panic!("{other} holds nothing"),
    }
}

#[test]
fn strict_wire_check_also_covers_method_path_and_headers() {
    for wire in Wire::ALL {
        let mut request = request(wire, &legal(wire));
        request.method = "PUT".to_owned();
        request.target = "/v2/chat".to_owned();
        request.headers.clear();
        let found = wire.violations(&request, &issued()).join("; ");
        for part in ["method", "path", "content-type"] {
            assert!(found.contains(part), "{wire:?}: {found}");
        }
        assert_eq!(found.contains("anthropic-version"), wire == Wire::Anthropic);
    }
}
