//! `gnoma usage --by tool`: how tools were used in the project's saved sessions, and which rules would answer questions.

use anyhow::Result;
use gnoma_core::{duration, json_value::json};
use gnoma_host::{
    Project,
    usage::{CheckedWork, RuleOffer, ToolUsage, ToolUse, UsageStart, read_tool_usage},
};
use serde_json::Value;

use crate::{
    commands::common::{print_json, print_stored_text},
    report::Exit,
    table,
};

/// The text above rules that would answer questions.
const OFFERS: &str = "\nQuestions that you approved each time, and the rules that would answer them. To use one, write \
                      `rule = \"…\"` and `action = \"allow\"` under a header `[[permission.rules]]`, one header for \
                      each rule:\n\n";

pub(super) async fn run(project: &Project, since: UsageStart, is_json: bool) -> Result<Exit> {
    let ToolUsage { tools, offers, work } = read_tool_usage(project, since).await?;
    if is_json {
        let rules = offers
            .iter()
            .map(|RuleOffer { rule, approved }| json!({ "rule": rule, "approved": approved }));
        let rules = Value::Array(rules.collect());
        let tools = Value::Array(tools.iter().map(describe).collect());
        let models = work.iter().map(|(model, work)| describe_work(model, *work));
        let models = Value::Array(models.collect());
        return print_json(&json!({ "tools": tools, "rules": rules, "models": models }));
    }
    if tools.is_empty() {
        return print_stored_text("no tool calls in the saved sessions of this project\n");
    }
    let heads = ["calls", "failed", "asked", "approved", "denied", "tried", "kept", "time", "tool"];
    let mut text = table::render_table(heads, tools.iter().map(tool_row));
    if !work.is_empty() {
        let rows = work.iter().map(|(model, work)| work_row(model, *work));
        let heads = ["checked", "passed", "escalated", "model"];
        text.push_str(&format!("\n{}", table::render_table(heads, rows)));
    }
    if !offers.is_empty() {
        text.push_str(OFFERS);
        let row = |offer: &RuleOffer| [offer.approved.to_string(), offer.rule.clone()];
        text.push_str(&table::render_table(["approved", "rule"], offers.iter().map(row)));
    }
    print_stored_text(&text)
}

fn describe(tool: &ToolUse) -> Value {
    json!({
        "tool": tool.name, "calls": tool.calls, "failed": tool.failed, "asked": tool.asked,
        "approved": tool.approved, "denied": tool.denied, "tried": tool.tried, "kept": tool.kept,
        "mean_ms": tool.mean_ms(), "total_ms": tool.total_ms,
    })
}

fn describe_work(model: &str, work: CheckedWork) -> Value {
    let CheckedWork { checked, passed, escalated } = work;
    json!({ "model": model, "checked": checked, "passed": passed, "escalated": escalated })
}

fn work_row(model: &str, work: CheckedWork) -> [String; 4] {
    let CheckedWork { checked, passed, escalated } = work;
    let [checked, passed, escalated] = [checked, passed, escalated].map(|count| count.to_string());
    [checked, passed, escalated, model.to_owned()]
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
