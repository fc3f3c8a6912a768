//! Tokens of a request body of OpenAI's chat: its system prompt, its tools, the rest.
//!
//! Counted with the o200k vocabulary, which is an estimate for models with another one.

use std::io::Read as _;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

#[expect(clippy::print_stdout, reason = "printing figures is what the programs are for")]
pub(crate) fn run() -> Result<()> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    let body: Value = serde_json::from_str(&text).context("the body is no JSON")?;
    let (mut system, mut rest) = (String::new(), String::new());
    for message in body["messages"].as_array().into_iter().flatten() {
        let is_system = matches!(message["role"].as_str(), Some("system" | "developer"));
        let part = if is_system { &mut system } else { &mut rest };
        collect_text(&message["content"], part);
    }
    let tools = body.get("tools").map(Value::to_string).unwrap_or_default();
    let encoding = tiktoken::encoding::o200k_base();
    let tokens = |text: &str| encoding.encode_with_special_tokens(text).len();
    println!(
        "{}",
        json!({
            "system": tokens(&system),
            "tools": tokens(&tools),
            "rest": tokens(&rest),
            "tool_count": body["tools"].as_array().map_or(0, Vec::len),
            "bytes": text.len(),
        })
    );
    Ok(())
}

/// All text in a content, which is a string or a list of parts.
fn collect_text(content: &Value, out: &mut String) {
    match content {
        Value::String(text) => out.push_str(text),
        Value::Array(parts) => parts.iter().for_each(|part| collect_text(&part["text"], out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => (),
    }
}
