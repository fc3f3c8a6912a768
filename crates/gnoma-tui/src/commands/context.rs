//! `/context`: what fills the context window.

use gnoma_core::protocol::{Request, Topic, WindowUse};

use super::slash::Slash;
use crate::{
    app::{Sought, State},
    status,
    text::{Ink, Line, Style},
};

pub(super) const COMMAND: Slash = Slash {
    name: "context",
    aliases: &[],
    arguments: "",
    about: "show what uses the context window",
    run,
};

fn run(state: &mut State, _argument: &str) {
    state.look_up(Sought::Window, Request::Explain(Topic::Context), "");
}

pub(super) fn show_window_use(state: &mut State, used: WindowUse, sources: &str) {
    let bar = !state.is_accessible();
    let mut lines = status::render_window_use(&state.facts, &state.counts, used, bar);
    lines.extend(sources.lines().map(|line| Line::new(line.to_owned(), Style::with_ink(Ink::Dim))));
    state.say_titled("Context window", lines);
}
