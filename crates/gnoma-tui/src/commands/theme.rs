//! `/theme`: the colours.

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, State},
    picker::Row,
    theme,
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "theme",
    aliases: &[],
    arguments: "[name]",
    about: "choose a colour theme",
    run,
};

fn run(state: &mut State, argument: &str) {
    if theme::theme_names().any(|name| name == argument) {
        return state.apply_choice(LayerChoice::Theme(argument.to_owned()));
    }
    if !argument.is_empty() {
        let known: Vec<&str> = theme::theme_names().collect();
        return state
            .show_hint(format!("Unknown theme `{argument}`. Themes: {}", known.join(", ")));
    }
    let row = |name: &str| {
        let row = Row::new(name, "").with_current(name == state.theme);
        (row, LayerChoice::Theme(name.to_owned()))
    };
    let rows = theme::theme_names().map(row).collect();
    state.open_picker("Theme", rows, "");
}
