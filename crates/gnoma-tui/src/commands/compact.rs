//! `/compact`: lets the session compact the conversation; shows, edits and undoes the summary.

use gnoma_core::protocol::{Request, Topic};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LookUpTarget, State},
    ask::Purpose,
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "compact",
    aliases: &[],
    arguments: "[show|edit|undo]",
    about: "compact the conversation to free up context",
    run,
};

/// The text before a summary that is being edited.
pub(super) const EDIT: &str = "/compact edit\n";
const NO_SUMMARY: &str = "The conversation is not compacted, so there is no summary";

fn run(state: &mut State, argument: &str) {
    let (word, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    match (word, rest.trim()) {
        ("show", "") => state.look_up(LookUpTarget::Summary, Request::Explain(Topic::Summary), ""),
        ("edit", "") => {
            state.look_up(LookUpTarget::Summary, Request::Explain(Topic::Summary), "edit");
        }
        ("undo" | "edit", _) if !state.is_idle() => {
            state.show_hint("Turn running. Press Esc to stop it first");
        }
        ("undo", "") => state.send_request(Request::UndoCompaction, Purpose::Order),
        ("edit", summary) => {
            let summary = summary.to_owned();
            state.send_request(Request::EditSummary { summary }, Purpose::Order);
        }
        _ => state.compact_conversation(Request::Compact { focus: argument.to_owned() }),
    }
}

/// Shows a summary, or puts it into the editor.
pub(super) fn show_summary(state: &mut State, summary: &str, argument: &str) {
    match (summary, argument) {
        ("", _) => state.show_multiline(NO_SUMMARY),
        (_, "edit") => {
            state.write_instead(format!("{EDIT}{summary}").as_str().into());
            state.show_hint("Edit the summary and press Enter to use it");
        }
        _ => state.show_multiline(summary),
    }
}
