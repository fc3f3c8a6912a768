//! Short descriptions of tool calls, for lines beside an answer.

use gnoma_core::{ToolCall, shell_line::skip_assignments, tool::tool_label};
use serde_json::Value;

use crate::screen;

/// Longest line about a call, in characters.
const MAX_LINE_CHARS: usize = 100;

/// Returns a call in one line: the tool and the argument that says most.
pub fn call_headline(call: &ToolCall) -> String {
    let arguments: Value = call.arguments.read().unwrap_or_default();
    let telling = ["command", "path", "pattern", "action"];
    let detail = telling.iter().find_map(|name| arguments.get(name)?.as_str());
    let detail = detail.map(skip_assignments);
    let label = tool_label(&call.name);
    detail.map_or_else(|| label.to_string(), |detail| shorten_line(&format!("{label} {detail}")))
}

/// The last line that says something; a carriage return begins a new one, as in progress bars.
pub(super) fn last_line(text: &str) -> Option<&str> {
    text.rsplit(['\n', '\r']).map(str::trim).find(|line| !line.is_empty())
}

/// The first line, without control characters, cut at a readable length.
pub(super) fn shorten_line(text: &str) -> String {
    shorten_to(MAX_LINE_CHARS, text)
}

pub(super) fn shorten_to(max_chars: usize, text: &str) -> String {
    let mut lines = text.lines();
    let line = lines.next().unwrap_or_default();
    let mut short: String = screen::strip_unsafe_chars(line).chars().take(max_chars).collect();
    if lines.next().is_some() || line.chars().count() > max_chars {
        short.push('…');
    }
    short
}
