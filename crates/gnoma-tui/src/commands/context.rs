//! `/context`: what fills the context window.

use gnoma_core::protocol::{Request, Topic, WindowUse};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LookUpTarget, State},
    status,
    text::{Line, Style, TextRole},
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "context",
    aliases: &[],
    arguments: "",
    about: "show what uses the context window",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.look_up(LookUpTarget::Window, Request::Explain(Topic::Context), "");
}

pub(super) fn show_window_use(state: &mut State, used: WindowUse, sources: &str) {
    let bar = !state.is_accessible();
    let mut lines = status::render_window_use(&state.facts, &state.counts, used, bar);
    lines.extend(
        sources.lines().map(|line| Line::new(line.to_owned(), Style::with_ink(TextRole::Dim))),
    );
    state.say_titled("Context window", lines);
}
