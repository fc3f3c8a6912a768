//! `gnoma sessions show`: a conversation to read, with the numbers that `fork --at` takes.

use anyhow::Result;
use gnoma_core::{
    Content, Message, ResultPart, Role,
    json_value::json,
    store::{Entry, Record, SessionFacts},
};
use gnoma_host::{Project, clock, project_history::ProjectHistory};

use super::tree;
use crate::{
    commands::common::{print_json, print_stored_text},
    front::call_headline,
    report::Exit,
    screen, table,
};

/// Lines of a tool's result that are shown unless everything is asked for.
const MAX_RESULT_LINES: usize = 4;
/// Columns of a line of them.
const MAX_RESULT_COLUMNS: usize = 76;

pub(super) async fn run(
    project: &Project,
    id: Option<&str>,
    full: bool,
    json: bool,
) -> Result<Exit> {
    let past = ProjectHistory::open(project)?;
    let facts = past.find_session(id).await?;
    let entries = past.load_path(&facts.id, None).await?;
    let elfs = tree::find_descendants(&past, &facts.id).await?;
    if json {
        return print_json(&json!({"facts": facts, "elfs": elfs, "entries": entries}));
    }
    let mut text = render_heading(&facts);
    text.push_str(&tree::render_tree(&elfs));
    entries.iter().for_each(|entry| push_entry(&mut text, entry, full));
    print_stored_text(&text)
}

fn render_heading(facts: &SessionFacts) -> String {
    let SessionFacts { id, title, project, messages, bytes, usage, .. } = facts;
    let changed = clock::describe_age(facts.changed_ms, clock::now_ms());
    let mut text = format!(
        "{title}\nsession {id} of {project}\n{messages} messages, {} tokens, {}, changed {changed}\n",
        usage.total_tokens(),
        table::format_size(*bytes),
    );
    if let Some((source, at)) = &facts.forked_from {
        text.push_str(&format!("forked from {source} at #{at}\n"));
    }
    if let Some(child) = &facts.child {
        text.push_str(&format!("elf `{}` of {}\n", child.name, child.parent));
    }
    if let Some(holder) = &facts.held_by {
        text.push_str(&format!("open in {holder}\n"));
    }
    text
}

fn push_entry(text: &mut String, entry: &Entry, full: bool) {
    let note = match &entry.record {
        Record::Message(message) => return push_message(text, entry, message, full),
        Record::Summary { text, .. } if text.is_empty() => Some("compaction undone".to_owned()),
        Record::Summary { text, up_to } => {
            Some(format!("summary of everything up to #{up_to}:\n{text}"))
        }
        Record::Rewound { .. } => Some("rewound to here".to_owned()),
        Record::Interrupted { calls } => {
            Some(format!("gnoma ended while {} calls were running", calls.len()))
        }
        Record::Judged { allowed: false, reason, .. } => Some(format!("denied: {reason}")),
        Record::Checkpoint { id } => Some(format!("checkpoint {id}")),
        Record::Checked { arm, by, passed: false, evidence } => {
            Some(format!("{by} found problems in the work of {arm}: {evidence}"))
        }
        Record::Checked { arm, by, .. } if full => {
            Some(format!("{by} checked the work of {arm}: passed"))
        }
        Record::Paid { arm, micro_usd } if full => {
            Some(format!("{arm}: ${:.4}", *micro_usd as f64 / 1e6))
        }
        Record::Routed { arm, why } if full => Some(format!("{arm}: {why}")),
        Record::Judged { reason, .. } if full => Some(format!("allowed: {reason}")),
        Record::Title { text } if full => Some(format!("title: {text}")),
        Record::Used(usage) if full => {
            Some(format!("{} tokens read, {} written", usage.prompt_tokens(), usage.output))
        }
        Record::Asked { .. }
        | Record::Routed { .. }
        | Record::Judged { .. }
        | Record::ToolEnded(_)
        | Record::Title { .. }
        | Record::Used(_)
        | Record::Paid { .. }
        | Record::Checked { .. }
        | Record::Tombstone { .. } => None,
    };
    if let Some(note) = note {
        text.push_str(&format!("  ({note})\n"));
    }
}

fn push_message(text: &mut String, entry: &Entry, message: &Message, full: bool) {
    let who = match (message.role(), message.origin()) {
        (Role::User, _) => "you".to_owned(),
        (Role::Assistant, Some(model)) => model.to_string(),
        (Role::Assistant, None) => "assistant".to_owned(),
        (Role::Tool, _) => "tools".to_owned(),
    };
    text.push_str(&format!("\n#{} {who}\n", entry.id));
    for content in message.content() {
        push_content(text, content, full);
    }
}

fn push_content(text: &mut String, content: &Content, full: bool) {
    match content {
        Content::Text(said) => {
            text.push_str(&said.text);
            text.push('\n');
        }
        Content::Thinking(thought) if full && !thought.text.is_empty() => {
            text.push_str(&indent_lines(&thought.text));
        }
        Content::ToolCall(call) if full => {
            text.push_str(&format!("→ {} {}\n", call.name, call.arguments));
        }
        Content::ToolCall(call) => text.push_str(&format!("→ {}\n", call_headline(call))),
        Content::ToolResult(result) => {
            let mark = if result.is_error { '✗' } else { '✓' };
            text.push_str(&format!("{mark} {}\n", result.name));
            for part in &result.parts {
                match part {
                    ResultPart::Text { text: output } if full => {
                        text.push_str(&indent_lines(output));
                    }
                    ResultPart::Text { text: output } => text.push_str(&first_lines(output)),
                    ResultPart::Image(image) => text.push_str(&format!("  ({})\n", image.mime)),
                }
            }
        }
        Content::Image(image) => text.push_str(&format!("({})\n", image.mime)),
        Content::Thinking(_) | Content::RedactedThinking(_) => (),
    }
}

fn indent_lines(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// The first lines, and how many more there are.
fn first_lines(text: &str) -> String {
    let shown = text.lines().take(MAX_RESULT_LINES);
    let line = |line: &str| format!("  {}\n", screen::fit_line(line, MAX_RESULT_COLUMNS));
    let mut short: String = shown.map(line).collect();
    let more = text.lines().count().saturating_sub(MAX_RESULT_LINES);
    if more > 0 {
        short.push_str(&format!("  … {more} more lines\n"));
    }
    short
}
