//! `/theme`: the colours.

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, State},
    picker::Row,
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "theme",
    aliases: &[],
    arguments: "[name]",
    about: "choose a colour theme",
    run,
};

fn run(state: &mut State, argument: &str) {
    let themes = state.themes();
    if themes.names().any(|name| name == argument) {
        return state.apply_choice(LayerChoice::Theme(argument.to_owned()));
    }
    if !argument.is_empty() {
        return state.reject_theme(argument);
    }
    let row = |(name, note): (&str, String)| {
        let row = Row::new(name, note).with_current(name == state.theme);
        (row, LayerChoice::Theme(name.to_owned()))
    };
    let rows = themes.describe_all().map(row).collect();
    state.open_picker("Theme", rows, "");
}
