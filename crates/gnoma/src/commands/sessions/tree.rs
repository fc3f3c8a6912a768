//! The elfs of a stored session, and theirs, as a tree.

use anyhow::Result;
use gnoma_core::store::{SessionFacts, SessionId, SessionStore as _};
use gnoma_host::project_history::ProjectHistory;
use serde::Serialize;

use crate::screen;

/// Most elfs that are shown.
const MAX_ELFS: usize = 500;
/// Columns of what one was to do.
const MAX_TASK_COLUMNS: usize = 50;

/// An elf of a tree.
#[derive(Serialize)]
pub(super) struct Elf {
    /// 0 for those that the session itself started.
    level: usize,
    facts: SessionFacts,
}

/// All below a session, each before those that it started.
pub(super) async fn find_descendants(
    past: &ProjectHistory,
    session: &SessionId,
) -> Result<Vec<Elf>> {
    let mut elfs = Vec::new();
    let mut next = find_children(past, session, 0).await?;
    while let Some(elf) = next.pop()
        && elfs.len() < MAX_ELFS
    {
        next.extend(find_children(past, &elf.facts.id, elf.level + 1).await?);
        elfs.push(elf);
    }
    Ok(elfs)
}

/// Those that one started, the first of them last.
async fn find_children(
    past: &ProjectHistory,
    session: &SessionId,
    level: usize,
) -> Result<Vec<Elf>> {
    let started = past.store.children(session.clone()).await?;
    Ok(started.into_iter().rev().map(|facts| Elf { level, facts }).collect())
}

/// A line on each.
pub(super) fn render_tree(elfs: &[Elf]) -> String {
    if elfs.is_empty() {
        return String::new();
    }
    let line = |Elf { level, facts }: &Elf| {
        let SessionFacts { id, title, messages, usage, held_by, child, .. } = facts;
        let (name, is_open) =
            child.as_ref().map_or(("", false), |child| (child.name.as_str(), child.is_open));
        let state = match (is_open, held_by.is_some()) {
            (false, _) => "ended",
            (true, true) => "at work",
            (true, false) => "cut off",
        };
        let (indent, tokens) = ("  ".repeat(level + 1), usage.total_tokens());
        let task = screen::fit_line(title, MAX_TASK_COLUMNS);
        format!(
            "{indent}`{name}` · {state} · {messages} messages · {tokens} tokens · {id} · {task}\n"
        )
    };
    let lines: String = elfs.iter().map(line).collect();
    format!("elfs:\n{lines}")
}
