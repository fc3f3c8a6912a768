//! The calls of a session as the client knows them: each is announced once, under an id that no other call
//! of the session has, and ends once, whatever is missed in between.

use gnoma_core::{CallId, ResultPart, ToolCall, ToolResult, json_value::json, protocol::TextTail};
use serde_json::Value;

use crate::{
    changes,
    tools::{
        self, call_locations, call_path, call_title, fence_text, input_within_limit, tool_kind,
    },
};

/// Bytes of the output of a running call that are shown.
const MAX_TAIL_BYTES: usize = 8 << 10;

/// The calls that have begun and not ended, and how many there were.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: Vec<OpenCall>,
    count: u64,
}

#[derive(Debug)]
struct OpenCall {
    call: CallId,
    /// The id that the client knows it by.
    id: String,
    /// `true` once the arguments are known, because a message contains the call.
    is_written: bool,
    runs: bool,
    output: TextTail,
    /// There is output that was not shown.
    has_more: bool,
    path: Option<String>,
    /// The changes that the call's arguments announce.
    changes: Vec<Value>,
    /// `true` for a call that is only asked about here; if it runs at all, it runs elsewhere.
    is_question: bool,
}

impl Calls {
    /// The id that the client knows an open call by.
    pub(crate) fn client_id(&self, call: &CallId) -> Option<&str> {
        self.open.iter().rev().find(|open| open.call == *call).map(|open| open.id.as_str())
    }

    fn open(&mut self, call: &CallId) -> Option<&mut OpenCall> {
        self.open.iter_mut().rev().find(|open| open.call == *call)
    }

    fn new_open_call(&mut self, call: &CallId) -> OpenCall {
        self.count += 1;
        OpenCall {
            call: call.clone(),
            id: format!("{}-{call}", self.count),
            is_written: false,
            runs: false,
            output: TextTail::default(),
            has_more: false,
            path: None,
            changes: Vec::new(),
            is_question: false,
        }
    }

    /// The model has begun to write a call.
    pub(crate) fn show_draft(&mut self, call: &CallId, tool: &str, out: &mut Vec<Value>) {
        let open = self.new_open_call(call);
        out.push(json!({
            "sessionUpdate": "tool_call",
            "toolCallId": open.id,
            "title": tool,
            "name": tool,
            "kind": tool_kind(tool),
            "status": "pending",
        }));
        self.open.push(open);
    }

    /// The call is known with its arguments.
    pub(crate) fn show_call(&mut self, call: &ToolCall, cwd: &str, out: &mut Vec<Value>) {
        if self.open(&call.id).is_some_and(|open| open.is_written) {
            return;
        }
        let known = self.open.iter().rposition(|open| open.call == call.id);
        let known = known.map(|at| self.open.remove(at));
        let is_known = known.is_some();
        let mut open = known.unwrap_or_else(|| self.new_open_call(&call.id));
        open.is_written = true;
        open.path = call_path(call, cwd);
        open.changes = tools::preview_changes(call, cwd);
        let mut update = json!({
            "sessionUpdate": if is_known { "tool_call_update" } else { "tool_call" },
            "toolCallId": open.id,
            "title": call_title(call),
            "name": call.name,
            "kind": tool_kind(&call.name),
            "status": "pending",
            "locations": call_locations(call, cwd),
        });
        if let Some(input) = input_within_limit(call) {
            update["rawInput"] = input;
        }
        if !open.changes.is_empty() {
            update["content"] = Value::Array(open.changes.clone());
        }
        out.push(update);
        self.open.push(open);
    }

    /// An answer is a message now: what was drafted and is not in it will never be.
    pub(crate) fn drop_drafts(&mut self, out: &mut Vec<Value>) {
        self.end_where(|open| !open.is_written, out);
    }

    /// Ends all calls, because no call runs any more.
    pub(crate) fn end_all(&mut self, out: &mut Vec<Value>) {
        self.end_where(|_| true, out);
    }

    fn end_where(&mut self, ends: impl Fn(&OpenCall) -> bool, out: &mut Vec<Value>) {
        self.open.retain(|open| {
            if ends(open) {
                out.push(json!({
                    "sessionUpdate": "tool_call_update", "toolCallId": open.id, "status": "failed",
                }));
            }
            !ends(open)
        });
    }

    /// Shows a call of another session that is asked about in this one.
    pub(crate) fn show_question(&mut self, call: &ToolCall, cwd: &str, out: &mut Vec<Value>) {
        self.show_call(call, cwd, out);
        if let Some(open) = self.open(&call.id) {
            open.is_question = true;
        }
    }

    /// A question is decided: a call that was nothing else ends with that.
    pub(crate) fn close_question(&mut self, call: &CallId, allowed: bool, out: &mut Vec<Value>) {
        let is_it = |open: &OpenCall| open.is_question && open.call == *call;
        let Some(at) = self.open.iter().position(is_it) else { return };
        let open = self.open.remove(at);
        let status = if allowed { "completed" } else { "failed" };
        out.push(json!({
            "sessionUpdate": "tool_call_update", "toolCallId": open.id, "status": status,
        }));
    }

    /// The call has begun to run.
    pub(crate) fn mark_running(&mut self, call: &ToolCall, cwd: &str, out: &mut Vec<Value>) {
        self.show_call(call, cwd, out);
        if let Some(open) = self.open(&call.id).filter(|open| !open.runs) {
            open.runs = true;
            out.push(json!({
                "sessionUpdate": "tool_call_update", "toolCallId": open.id, "status": "in_progress",
            }));
        }
    }

    /// The call has said something; shown by [`show_output`](Self::show_output).
    pub(crate) fn append_output(&mut self, call: &CallId, text: &str) {
        if let Some(open) = self.open(call) {
            open.output.push(text, MAX_TAIL_BYTES);
            open.has_more = true;
        }
    }

    /// Reports whether there is output that was not shown.
    pub(crate) fn has_output(&self) -> bool {
        self.open.iter().any(|open| open.has_more)
    }

    /// Shows the ends of the outputs that have grown.
    pub(crate) fn show_output(&mut self, out: &mut Vec<Value>) {
        for open in self.open.iter_mut().filter(|open| open.has_more) {
            open.has_more = false;
            let mut content = open.changes.clone();
            content.push(text_block(&fence_text(&open.output.text)));
            out.push(json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": open.id,
                "content": content,
            }));
        }
    }

    /// Returns the changes that the call would make, to be shown with the question whether to approve it.
    pub(crate) fn render_preview(&self, call: &CallId, diff: &str, cwd: &str) -> Vec<Value> {
        let open = self.open.iter().rev().find(|open| open.call == *call);
        let shown = changes::of_diff(diff, open.and_then(|open| open.path.as_deref()), cwd);
        if shown.is_empty() { vec![text_block(&fence_text(diff))] } else { shown }
    }

    /// The call has ended, unless it had before.
    pub(crate) fn close_call(
        &mut self,
        call: &CallId,
        result: &ToolResult,
        diff: Option<&str>,
        cwd: &str,
        out: &mut Vec<Value>,
    ) {
        let Some(at) = self.open.iter().rposition(|open| open.call == *call) else { return };
        let open = self.open.remove(at);
        let mut content = match diff {
            Some(diff) => changes::of_diff(diff, open.path.as_deref(), cwd),
            None if result.is_error => Vec::new(),
            None => open.changes,
        };
        let is_shown_by_changes = !content.is_empty() && open.path.is_some() && !result.is_error;
        for part in result.parts.iter().filter(|_| !is_shown_by_changes) {
            content.push(match part {
                ResultPart::Text { text } => text_block(&fence_text(text)),
                ResultPart::Image(image) => json!({
                    "type": "content",
                    "content": { "type": "image", "mimeType": image.mime, "data": &*image.base64 },
                }),
            });
        }
        out.push(json!({
            "sessionUpdate": "tool_call_update",
            "toolCallId": open.id,
            "status": if result.is_error { "failed" } else { "completed" },
            "content": content,
        }));
    }
}

fn text_block(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

#[cfg(test)]
mod tests {
    use gnoma_core::RawJson;

    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
        ToolCall::new(CallId::new(id), name, RawJson::parse(arguments).unwrap())
    }

    fn told(out: &[Value]) -> Vec<String> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let line = |update: &Value| {
            format!("{} {}", word(&update["toolCallId"]), word(&update["status"])).trim().to_owned()
        };
        out.iter().map(line).collect()
    }

    #[test]
    fn tool_call_ids_reused_by_a_provider_are_distinguished() {
        let (mut calls, mut out) = (Calls::default(), Vec::new());
        let read = call("call_0", "fs.read", r#"{"path":"a"}"#);
        for _ in 0..2 {
            calls.show_draft(&read.id, "fs.read", &mut out);
            calls.show_call(&read, "/p", &mut out);
            calls.mark_running(&read, "/p", &mut out);
            calls.close_call(
                &read.id,
                &ToolResult::from_text(&read, "x", false),
                None,
                "/p",
                &mut out,
            );
            // The results come again as a message.
            calls.close_call(
                &read.id,
                &ToolResult::from_text(&read, "x", false),
                None,
                "/p",
                &mut out,
            );
        }
        let of = |id: &str| {
            ["pending", "pending", "in_progress", "completed"].map(|word| format!("{id} {word}"))
        };
        assert_eq!(told(&out), [of("1-call_0"), of("2-call_0")].concat());
    }

    #[test]
    fn dropped_tool_call_drafts_and_unfinished_calls_end_as_failed() {
        let (mut calls, mut out) = (Calls::default(), Vec::new());
        calls.show_draft(&CallId::new("a"), "bash", &mut out);
        calls.mark_running(&call("b", "bash", r#"{"command":"ls"}"#), "/p", &mut out);
        calls.drop_drafts(&mut out);
        calls.end_all(&mut out);
        calls.end_all(&mut out);
        assert_eq!(
            told(&out),
            ["1-a pending", "2-b pending", "2-b in_progress", "1-a failed", "2-b failed"]
        );
    }

    #[test]
    fn tool_output_is_shown_as_text_and_edits_as_diffs() {
        let (mut calls, mut out) = (Calls::default(), Vec::new());
        let edit = call("e", "fs.edit", r#"{"path":"f.txt"}"#);
        calls.mark_running(&edit, "/p", &mut out);
        calls.append_output(&edit.id, "a ``` b");
        assert!(calls.has_output());
        out.clear();
        calls.show_output(&mut out);
        assert_eq!(out[0]["content"][0]["content"]["text"], "````\na ``` b\n````");
        assert!(!calls.has_output());
        let diff = "--- a/f.txt\n+++ b/f.txt\n@@ -1 +1 @@\n-a\n+b\n";
        calls.close_call(
            &edit.id,
            &ToolResult::from_text(&edit, "ok", false),
            Some(diff),
            "/p",
            &mut out,
        );
        assert_eq!(out[1]["content"][0]["type"], "diff");
        assert_eq!(out[1]["content"].as_array().unwrap().len(), 1);
    }
}
