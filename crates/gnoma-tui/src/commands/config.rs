//! `/config`: all settings with where they come from; one that is chosen can be changed.

use gnoma_core::protocol::{Request, Setting};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, LookUpTarget, State},
    picker::Row,
};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "config",
    aliases: &["settings"],
    arguments: "[set key value]",
    about: "view and change settings",
    run,
};

fn run(state: &mut State, argument: &str) {
    if let Some((key, value)) = parse_assignment(argument) {
        return state.change_setting(key, value);
    }
    if argument == "set" || argument.starts_with("set ") {
        return state.show_hint("Write the key and the value: /config set KEY VALUE");
    }
    // `get` of the shell's command.
    let name = argument.strip_prefix("get ").unwrap_or(argument).trim();
    state.look_up(LookUpTarget::Settings, Request::Settings, name);
}

/// Offers the settings in a list.
pub(super) fn offer_settings(state: &mut State, settings: Vec<Setting>, argument: &str) {
    let themes = state.themes();
    let row = |mut setting: Setting| {
        if setting.key == "tui.theme" {
            setting.choices = themes.names().map(str::to_owned).collect();
        }
        let detail = format!("{}  ({})", setting.value, setting.origin);
        (Row::new(setting.key.clone(), detail), LayerChoice::Edit(setting))
    };
    let rows: Vec<_> = settings.into_iter().map(row).collect();
    state.pick_or_say("Settings", "setting", rows, argument);
}

/// Key and value of `set key value`.
fn parse_assignment(argument: &str) -> Option<(&str, &str)> {
    let (key, value) = argument.strip_prefix("set ")?.trim().split_once(char::is_whitespace)?;
    Some((key, value.trim()))
}
