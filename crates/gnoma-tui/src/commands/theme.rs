//! `/theme`: the colours.

use super::slash::Slash;
use crate::{
    app::{LayerChoice, State},
    picker::Row,
    theme,
};

pub(super) const COMMAND: Slash =
    Slash { name: "theme", aliases: &[], arguments: "[name]", about: "choose a colour theme", run };

fn run(state: &mut State, argument: &str) {
    if theme::names().any(|name| name == argument) {
        return state.perform(LayerChoice::Theme(argument.to_owned()));
    }
    if !argument.is_empty() {
        let known: Vec<&str> = theme::names().collect();
        return state.hint(format!("Unknown theme `{argument}`. Themes: {}", known.join(", ")));
    }
    let row = |name: &str| {
        let row = Row::new(name, "").current(name == state.theme);
        (row, LayerChoice::Theme(name.to_owned()))
    };
    let rows = theme::names().map(row).collect();
    state.pick("Theme", rows, "");
}
