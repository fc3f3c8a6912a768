//! Markdown: what is quoted cannot end its own quotation.

use gnoma_core::store::SessionFacts;
use jiff::tz::TimeZone;

use super::block::Block;
use crate::{text, time};

/// Longest title in a heading.
const TITLE_CHARS: usize = 200;

/// Renders the heading of a session.
pub(super) fn render_head(facts: &SessionFacts, zone: TimeZone) -> String {
    format!(
        "# {}\n\nSession `{}`, {}, {} messages, {} tokens\n\n",
        text::one_line(&facts.title, TITLE_CHARS),
        facts.id,
        time::minute_in(zone, facts.created_ms),
        facts.messages,
        facts.usage.total_tokens(),
    )
}

/// Renders one block as Markdown.
pub(super) fn render_block(block: &Block<'_>) -> String {
    match block {
        Block::Speech { who, text } => format!("## {who}\n\n{text}\n\n"),
        Block::Verbatim { label, text } => {
            let fence = code_fence(text);
            let label = text::one_line(label, TITLE_CHARS);
            format!("**{label}**\n\n{fence}\n{text}\n{fence}\n\n")
        }
        Block::Picture { mime, .. } => {
            format!("*picture ({})*\n\n", text::one_line(mime, TITLE_CHARS))
        }
        Block::Note(note) => format!("*{}*\n\n", text::one_line(note, TITLE_CHARS)),
    }
}

/// A fence longer than every row of backticks in `text`.
fn code_fence(text: &str) -> String {
    let (longest, last) = text.chars().fold((0, 0), |(longest, run), c| match c {
        '`' => (longest, run + 1),
        _ => (longest.max(run), 0),
    });
    "`".repeat(longest.max(last).max(2) + 1)
}
