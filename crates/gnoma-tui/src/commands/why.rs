//! `/why`: the last decisions about permissions and models, and how models are chosen.

use gnoma_core::protocol::{Request, Topic};

use super::{route, slash::SlashCommandSpec};
use crate::{
    app::{LookUpTarget, State},
    text::{Line, Style, TextRole},
};

/// Decisions that are shown.
const MAX_SHOWN: usize = 15;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "why",
    aliases: &[],
    arguments: "[number]",
    about: "explain the last decisions",
    run,
};

fn run(state: &mut State, argument: &str) {
    let wanted = match argument {
        "" => MAX_SHOWN,
        number => match number.parse() {
            Ok(count) => count,
            Err(_) => return state.show_hint("Write how many decisions to show, as in /why 5"),
        },
    };
    let skipped = state.routes.decisions.len().saturating_sub(wanted);
    let shown = state.routes.decisions.iter().skip(skipped);
    let lines: Vec<Line> = shown
        .map(|decision| Line::new(format!("  {decision}"), Style::with_ink(TextRole::Dim)))
        .collect();
    if lines.is_empty() {
        state.append_note("No decisions yet");
    }
    state.say_titled("Decisions", lines);
    if let Some(routing) = &state.routes.last {
        let lines = route::render_routing(routing);
        return state.say_titled("Model", lines);
    }
    state.look_up(LookUpTarget::Explanation, Request::Explain(Topic::Routing), "");
}
