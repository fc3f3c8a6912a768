//! `gnoma usage --by tool`: how tools were used in the project's saved sessions.

use anyhow::Result;
use gnoma_core::{duration, json_value::json};
use gnoma_host::{
    Project,
    usage::{ToolUse, UsageStart, read_tool_uses},
};
use serde_json::Value;

use crate::{
    commands::common::{print_json, print_stored_text},
    report::Exit,
    table,
};

pub(super) async fn run(project: &Project, since: UsageStart, is_json: bool) -> Result<Exit> {
    let uses = read_tool_uses(project, since).await?;
    if is_json {
        let tools = uses.iter().map(describe);
        return print_json(&json!({ "tools": Value::Array(tools.collect()) }));
    }
    if uses.is_empty() {
        return print_stored_text("no tool calls in the saved sessions of this project\n");
    }
    let heads = ["calls", "failed", "asked", "approved", "denied", "tried", "kept", "time", "tool"];
    print_stored_text(&table::render_table(heads, uses.iter().map(tool_row)))
}

fn describe(tool: &ToolUse) -> Value {
    json!({
        "tool": tool.name, "calls": tool.calls, "failed": tool.failed, "asked": tool.asked,
        "approved": tool.approved, "denied": tool.denied, "tried": tool.tried, "kept": tool.kept,
        "mean_ms": tool.mean_ms(), "total_ms": tool.total_ms,
    })
}

fn tool_row(tool: &ToolUse) -> [String; 9] {
    let ToolUse { calls, failed, asked, approved, denied, tried, kept, .. } = tool;
    let [calls, failed, asked, approved, denied, tried, kept] =
        [calls, failed, asked, approved, denied, tried, kept].map(ToString::to_string);
    let time = match tool.mean_ms() {
        None => "-".to_owned(),
        Some(ms @ 0..=999) => format!("{ms}ms"),
        Some(ms) => duration::format_duration(std::time::Duration::from_millis(ms)),
    };
    [calls, failed, asked, approved, denied, tried, kept, time, tool.name.clone()]
}
