//! Codex: lines of `{timestamp, type, payload}`. `response_item` lines are what the model saw and
//! are read; `event_msg` lines mirror them for the screen and only their token counts are. Older
//! files have the items without the envelope.

use std::{borrow::Cow, path::Path};

use gnoma_core::{
    CallId, Content, ModelRef, ResultPart, Thinking, ToolResult, Usage,
    store::{EntryId, Record},
};
use serde_json::Value;

use super::{
    bounded::{BoundedLine, each_line},
    builder::Builder,
    imported::ImportedTranscript,
    wire::{self, count_field, items_field, string_field, text_field},
};
use crate::{error::Result, time};

/// The beginnings of what Codex says to the model in the person's name.
const SCAFFOLDING: [&str; 5] = [
    "<environment_context>",
    "<user_instructions>",
    "<permissions",
    "<turn_aborted>",
    "# AGENTS.md instructions",
];

/// The beginnings of the line that tells the exit code of a command.
const EXIT_LINES: [&str; 2] = ["Exit code: ", "Process exited with code "];
/// Lines of an output in which that line stands.
const HEAD_LINES: usize = 4;

/// Reads a rollout of Codex.
pub(super) fn read_rollout(path: &Path) -> Result<ImportedTranscript> {
    let mut reader = CodexReader { builder: Builder::default(), model: None };
    each_line(path, |line| {
        let BoundedLine::Text(line) = line else {
            reader.builder.count_skipped("lines that are too long");
            return Ok(());
        };
        match gnoma_core::json::from_bytes::<Value>(&line) {
            Ok(value) => reader.import_line(&value),
            Err(_) => {
                reader.builder.count_skipped("unreadable lines");
                Ok(())
            }
        }
    })?;
    reader.builder.finish()
}

struct CodexReader {
    builder: Builder,
    model: Option<ModelRef>,
}

impl CodexReader {
    fn import_line(&mut self, line: &Value) -> Result<()> {
        self.builder.set_time(text_field(line, "timestamp").and_then(time::parse_time));
        let Some(payload) = line.get("payload") else { return self.import_item(line) };
        match text_field(line, "type") {
            Some("response_item") => self.import_item(payload),
            Some("session_meta") => {
                self.builder.set_project_once(string_field(payload, "cwd"));
                self.builder.set_origin_once(string_field(payload, "id"));
                Ok(())
            }
            Some("turn_context") => {
                self.model =
                    wire::model_ref("openai", text_field(payload, "model")).or(self.model.take());
                Ok(())
            }
            Some("event_msg") => self.import_event(payload),
            // It stands for all that came before it; here that is still there.
            Some("compacted") => {
                let text = string_field(payload, "message").unwrap_or_default();
                self.builder.add_record(Record::Summary { text, up_to: EntryId(0) })
            }
            other => {
                self.builder.count_skipped(other.unwrap_or("lines without a type"));
                Ok(())
            }
        }
    }

    fn import_event(&mut self, payload: &Value) -> Result<()> {
        let last = payload.get("info").and_then(|info| info.get("last_token_usage"));
        match (text_field(payload, "type"), last) {
            (Some("token_count"), Some(usage)) => {
                let cached = count_field(usage, "cached_input_tokens");
                self.builder.set_usage(Usage {
                    input: count_field(usage, "input_tokens").saturating_sub(cached),
                    output: count_field(usage, "output_tokens"),
                    cache_read: cached,
                    cache_write: 0,
                    reasoning: count_field(usage, "reasoning_output_tokens"),
                })
            }
            // All others say again what the items say.
            _ => Ok(()),
        }
    }

    fn import_item(&mut self, item: &Value) -> Result<()> {
        let id = text_field(item, "call_id").or_else(|| text_field(item, "id")).unwrap_or_default();
        let name = text_field(item, "name").unwrap_or("unknown");
        match text_field(item, "type") {
            Some("message") => self.import_message(item),
            Some("reasoning") => self.import_reasoning(item),
            Some("function_call") => {
                let arguments = text_field(item, "arguments").unwrap_or("{}");
                self.import_call(wire::call_of_text(id, name, arguments))
            }
            Some("custom_tool_call") => {
                self.import_call(wire::call_of_value(id, name, item.get("input")))
            }
            Some("local_shell_call") => {
                self.import_call(wire::call_of_value(id, "local_shell", item.get("action")))
            }
            Some("function_call_output" | "custom_tool_call_output") => {
                self.builder.add_result(parse_output(id, item.get("output")));
                Ok(())
            }
            other => {
                self.builder.count_skipped(other.unwrap_or("lines without a type"));
                Ok(())
            }
        }
    }

    fn import_call(&mut self, call: gnoma_core::ToolCall) -> Result<()> {
        self.builder.add_model_block(None, self.model.as_ref(), Content::ToolCall(call))
    }

    fn import_message(&mut self, item: &Value) -> Result<()> {
        let mut said = Vec::new();
        for block in items_field(item, "content") {
            let picture = text_field(block, "image_url").and_then(wire::data_url);
            match picture {
                Some(image) => said.push(Content::Image(image)),
                None => said.extend(wire::text_content(text_field(block, "text"))),
            }
        }
        match text_field(item, "role") {
            Some("user") if said.iter().all(is_scaffolding) => {
                self.builder.count_skipped("messages of the program");
                Ok(())
            }
            Some("user") => self.builder.add_user_message(said),
            Some("assistant") => {
                said.into_iter().filter(|block| matches!(block, Content::Text(_))).try_for_each(
                    |block| self.builder.add_model_block(None, self.model.as_ref(), block),
                )
            }
            _ => {
                self.builder.count_skipped("instructions");
                Ok(())
            }
        }
    }

    /// The summary is kept; the encrypted rest is of use to one account only.
    fn import_reasoning(&mut self, item: &Value) -> Result<()> {
        if item.get("encrypted_content").is_some_and(|value| !value.is_null()) {
            self.builder.count_skipped("encrypted reasoning");
        }
        let pieces: Vec<_> = items_field(item, "summary")
            .iter()
            .filter_map(|piece| text_field(piece, "text"))
            .collect();
        if pieces.is_empty() {
            return Ok(());
        }
        let thinking = Thinking { text: pieces.join("\n"), ..Thinking::default() };
        self.builder.add_model_block(None, self.model.as_ref(), Content::Thinking(thinking))
    }
}

fn is_scaffolding(block: &Content) -> bool {
    let Content::Text(said) = block else { return false };
    SCAFFOLDING.iter().any(|start| said.text.trim_start().starts_with(start))
}

/// The output is a text, an object with a text, or a list of blocks.
fn parse_output(id: &str, output: Option<&Value>) -> ToolResult {
    let success = output.and_then(|value| value.get("success")).and_then(Value::as_bool);
    let content = output.map(|value| value.get("content").unwrap_or(value));
    let mut has_failed = success == Some(false);
    let mut parts = match content {
        Some(Value::String(said)) => {
            let (said, exit_code) = split_command_output(said);
            has_failed |= exit_code.is_some_and(|code| code != 0);
            wire::result_parts(&said)
        }
        Some(Value::Array(blocks)) => blocks.iter().flat_map(output_part).collect(),
        _ => Vec::new(),
    };
    if parts.is_empty() {
        parts = wire::result_parts("");
    }
    ToolResult { call_id: CallId::new(id), name: String::new(), parts, is_error: has_failed }
}

/// Returns what a command printed, and its exit code if the output tells it: as JSON, as older versions write it, or in
/// one of the first lines.
fn split_command_output(output: &str) -> (Cow<'_, str>, Option<i64>) {
    let json = || gnoma_core::json::from_bytes::<Value>(output.as_bytes()).ok();
    if let Some(value) = Some(output).filter(|text| text.starts_with('{')).and_then(|_| json())
        && let (Some(printed), Some(about)) =
            (string_field(&value, "output"), value.get("metadata"))
    {
        return (Cow::Owned(printed), about.get("exit_code").and_then(Value::as_i64));
    }
    let code = |line: &str| {
        let number = EXIT_LINES.iter().find_map(|beginning| line.strip_prefix(beginning))?;
        number.trim().parse().ok()
    };
    (Cow::Borrowed(output), output.lines().take(HEAD_LINES).find_map(code))
}

fn output_part(block: &Value) -> Vec<ResultPart> {
    match text_field(block, "image_url").and_then(wire::data_url) {
        Some(image) => vec![ResultPart::Image(image)],
        None => text_field(block, "text").map(wire::result_parts).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_code_of_a_command_is_read_from_its_output() {
        for (output, printed, code) in [
            (
                r#"{"output":"a\n","metadata":{"exit_code":1,"duration_seconds":0.1}}"#,
                "a\n",
                Some(1),
            ),
            (r#"{"output":"a"}"#, r#"{"output":"a"}"#, None),
            ("Exit code: 0\nWall time: 1 seconds\nOutput:\nx", "Exit code: 0", Some(0)),
            (
                "Chunk ID: a\nWall time: 1\nProcess exited with code 127\nOutput:",
                "Chunk",
                Some(127),
            ),
            ("a\nb\nc\nd\nExit code: 1", "a\nb", None),
            ("{broken", "{broken", None),
        ] {
            let (text, exit_code) = split_command_output(output);
            assert!(
                text.starts_with(printed) && exit_code == code,
                "{output}: {text} {exit_code:?}"
            );
        }
    }
}
