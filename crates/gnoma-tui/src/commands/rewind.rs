//! `/rewind`: files and conversation as they were before a turn.

use super::slash::Slash;
use crate::{
    app::{Choice, State},
    desk::PointRow,
    picker::Row,
};

pub(super) const COMMAND: Slash = Slash {
    name: "rewind",
    aliases: &["undo"],
    arguments: "[turns]",
    about: "go back to before a turn",
    run,
};

fn run(state: &mut State, argument: &str) {
    let points = state.desk.points();
    if let Ok(turns) = argument.parse::<usize>() {
        if points.iter().any(|point| point.turns == turns) {
            return state.perform(Choice::Rewind { turns });
        }
        return state.hint(format!("there are not {turns} turns to take back"));
    }
    if points.is_empty() {
        return state.hint("there is nothing to go back to yet");
    }
    let row = |point: PointRow| {
        let detail = format!("{} · {} files changed since", point.when, point.files);
        (Row::new(point.prompt, detail), Choice::Rewind { turns: point.turns })
    };
    let rows = points.into_iter().map(row).collect();
    state.pick("Go back to before", rows, argument);
}
