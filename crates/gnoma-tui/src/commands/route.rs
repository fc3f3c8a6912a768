//! `/route`: how the last turn came to its model, with every candidate.

use gnoma_core::session::Routing;

use super::slash::SlashCommandSpec;
use crate::{
    app::State,
    status::fact_line,
    text::{Line, Style, TextRole},
};

/// Candidates that are shown.
const MAX_CANDIDATES: usize = 40;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "route",
    aliases: &["routing"],
    arguments: "",
    about: "show how the last turn's model was chosen",
    run,
};

fn run(state: &mut State, _argument: &str) {
    match &state.routes.last {
        Some(routing) => {
            let lines = render_routing(routing);
            state.show_lines(lines);
        }
        None if state.counts.turns > 0 => {
            let model = state.facts.model.clone().unwrap_or_else(|| "the only model".to_owned());
            state.append_note(&format!(
                "Nothing to choose: all turns go to {model}. /why says more"
            ));
        }
        None => state.show_hint("No turn has been routed yet"),
    }
}

/// All that is known about it, one thing a line.
pub(super) fn render_routing(routing: &Routing) -> Vec<Line> {
    let Routing { kind, complexity, strategy, arms, why, candidates, decided_by: _, seed: _ } =
        routing;
    let arms: Vec<String> = arms.iter().map(ToString::to_string).collect();
    let mut lines = vec![
        fact_line(
            "task",
            format!("{kind}, difficulty {complexity} of 100, judged by {}", routing.judge()),
        ),
        fact_line("strategy", format!("{strategy}: {}", arms.join(", "))),
        fact_line("because", why.clone()),
    ];
    let shown = candidates.iter().take(MAX_CANDIDATES);
    lines.extend(shown.map(|candidate| Line::new(format!("    {candidate}"), dim_style())));
    let more = candidates.len().saturating_sub(MAX_CANDIDATES);
    if more > 0 {
        lines.push(Line::new(format!("    … {more} more candidates"), dim_style()));
    }
    lines
}

fn dim_style() -> Style {
    Style::with_ink(TextRole::Dim)
}
