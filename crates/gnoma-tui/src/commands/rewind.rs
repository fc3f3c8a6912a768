//! `/rewind`: files and conversation as they were before a turn.

use gnoma_core::protocol::{Request, RewindPoint};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, LookUpTarget, State},
    picker::Row,
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "rewind",
    aliases: &["undo"],
    arguments: "[turns] | elf NAME",
    about: "go back to before an earlier turn; or undo what one elf merged",
    run,
};

fn run(state: &mut State, argument: &str) {
    let elf = argument.trim().strip_prefix("elf ").map(str::trim);
    match elf.filter(|name| !name.is_empty()) {
        Some(name) => state.switch_session(Request::RewindElf { name: name.to_owned() }),
        None => state.look_up(LookUpTarget::Points, Request::Points, argument),
    }
}

/// Takes the place that was meant, or offers all.
pub(super) fn offer_rewind_points(state: &mut State, points: Vec<RewindPoint>, argument: &str) {
    if points.is_empty() {
        return state.show_hint("Nothing to rewind to yet");
    }
    if !argument.is_empty() {
        let Ok(wanted) = argument.parse::<usize>() else {
            return state
                .show_hint("Write how many turns to undo, as in /rewind 2. /rewind lists them");
        };
        let meant = points.into_iter().find(|point| point.turns == wanted);
        return match meant {
            Some(RewindPoint { turns, prompt, .. }) => {
                state.apply_choice(LayerChoice::Rewind { turns, prompt });
            }
            None => {
                state.show_hint(format!("Cannot undo {wanted} turns. /rewind lists them"));
            }
        };
    }
    let row = |point: RewindPoint| {
        let when = state.describe_age(point.at_ms);
        let files = match point.files {
            None => "changed files unknown".to_owned(),
            Some(0) => "no files changed since".to_owned(),
            Some(1) => "1 file changed since".to_owned(),
            Some(files) => format!("{files} files changed since"),
        };
        let choice = LayerChoice::Rewind { turns: point.turns, prompt: point.prompt.clone() };
        let prompt = point.prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        (Row::new(prompt, format!("{files} · {when}")), choice)
    };
    let rows = points.into_iter().map(row).collect();
    state.open_picker("Go back to before", rows, "");
}
