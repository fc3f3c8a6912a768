//! `/why`: the last decisions about permissions and models, and how models are chosen.

use gnoma_core::protocol::{Request, Topic};

use super::{route, slash::Slash};
use crate::{
    app::{Sought, State},
    text::{Ink, Line, Style},
};

/// Decisions that are shown.
const MAX_SHOWN: usize = 15;

pub(super) const COMMAND: Slash =
    Slash { name: "why", aliases: &[], arguments: "", about: "explain the last decisions", run };

fn run(state: &mut State, _argument: &str) {
    let skipped = state.routes.decisions.len().saturating_sub(MAX_SHOWN);
    let shown = state.routes.decisions.iter().skip(skipped);
    let lines: Vec<Line> =
        shown.map(|decision| Line::new(format!("  {decision}"), Style::of(Ink::Dim))).collect();
    if lines.is_empty() {
        state.note("No decisions yet");
    }
    state.say(lines);
    if let Some(routing) = &state.routes.last {
        let lines = route::lines(routing);
        return state.say(lines);
    }
    state.look_up(Sought::Explanation, Request::Explain(Topic::Routing), "");
}
