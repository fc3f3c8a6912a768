//! Reports of a merge, for the parent's model and for people. Pure.

use std::path::PathBuf;

use gnoma_core::{text_truncation, tool::ChildMerge};
use gnoma_store::checkpoint::{Merge, MergeConflict};

/// Paths that are named of each kind.
const MAX_NAMED: usize = 20;
/// Bytes of the sides of all conflicts together.
const MAX_SIDES_BYTES: usize = 64 << 10;
/// Bytes of the diff of what was not merged.
const MAX_DIFF_BYTES: usize = 256 << 10;

/// Describes the result of merging an elf's changes.
pub(super) fn describe_merge(merge: Merge) -> ChildMerge {
    match merge {
        Merge::Nothing { ignored } => {
            let told = format!("nothing to merge{}", left_out(&ignored));
            ChildMerge { landed: true, told, report: String::new() }
        }
        Merge::Landed { paths, ignored, .. } => {
            let told = format!("merged: {}{}", join_paths(&paths), left_out(&ignored));
            ChildMerge { landed: true, told, report: String::new() }
        }
        Merge::Moved { diff } => {
            describe_unmerged("the project changed between its checks and the merge", &diff)
        }
        Merge::Conflict { conflicts, diff } => {
            let paths: Vec<_> = conflicts.iter().map(|conflict| conflict.path.clone()).collect();
            let told =
                format!("not merged, nothing was changed; conflicts: {}", join_paths(&paths));
            let report = format!("{}{}", render_conflicts(&conflicts), render_diff(&diff));
            ChildMerge { landed: false, told, report }
        }
    }
}

/// Describes changes that were not merged for another reason than conflicts: the reason in a line, and below that
/// what shows it.
pub(super) fn describe_unmerged(why: &str, diff: &str) -> ChildMerge {
    let (why, shown) = why.split_once('\n').unwrap_or((why, ""));
    let told = format!("not merged, nothing was changed: {why}");
    ChildMerge { landed: false, told, report: format!("{shown}{}", render_diff(diff)) }
}

fn left_out(ignored: &[PathBuf]) -> String {
    match ignored {
        [] => String::new(),
        ignored => {
            format!("; left out because version control ignores them: {}", join_paths(ignored))
        }
    }
}

fn join_paths(paths: &[PathBuf]) -> String {
    let names: Vec<_> =
        paths.iter().take(MAX_NAMED).map(|path| path.display().to_string()).collect();
    let more = paths.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn render_conflicts(conflicts: &[MergeConflict]) -> String {
    let mut text = String::new();
    for MergeConflict { path, why, text: sides } in conflicts {
        text.push_str(&format!("{}: {why}\n{sides}", path.display()));
        if text.len() > MAX_SIDES_BYTES {
            text.truncate(text_truncation::word_prefix(&text, MAX_SIDES_BYTES).len());
            text.push_str("\n[the rest is left out]\n");
            break;
        }
    }
    text
}

/// All that the elf changed: nothing of it is anywhere else.
fn render_diff(diff: &str) -> String {
    let head = text_truncation::word_prefix(diff, MAX_DIFF_BYTES);
    match (head.is_empty(), diff.len() - head.len()) {
        (true, _) => String::new(),
        (false, 0) => format!("\nWhat it changed in its copy:\n{head}"),
        (false, left) => {
            format!("\nWhat it changed in its copy:\n{head}\n[{left} bytes more are left out]\n")
        }
    }
}
