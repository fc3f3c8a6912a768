//! `/rewind`: files and conversation as they were before a turn.

use gnoma_core::protocol::{Request, RewindPoint};

use super::slash::Slash;
use crate::{
    app::{LayerChoice, Sought, State},
    picker::Row,
};

pub(super) const COMMAND: Slash = Slash {
    name: "rewind",
    aliases: &["undo"],
    arguments: "[turns]",
    about: "go back to before an earlier turn",
    run,
};

fn run(state: &mut State, argument: &str) {
    state.look_up(Sought::Points, Request::Points, argument);
}

/// Takes the place that was meant, or offers all.
pub(super) fn show(state: &mut State, points: Vec<RewindPoint>, argument: &str) {
    if let Ok(turns) = argument.parse::<usize>() {
        if points.iter().any(|point| point.turns == turns) {
            return state.perform(LayerChoice::Rewind { turns });
        }
        return state.hint(format!("There are not {turns} turns to undo"));
    }
    if points.is_empty() {
        return state.hint("Nothing to rewind to yet");
    }
    let row = |point: RewindPoint| {
        let when = state.ago(point.at_ms);
        let detail = format!("{when} · {} files changed since", point.files);
        (Row::new(point.prompt, detail), LayerChoice::Rewind { turns: point.turns })
    };
    let rows = points.into_iter().map(row).collect();
    state.pick("Go back to before", rows, argument);
}
