//! `/thinking`: how much models think before they answer.

use gnoma_core::ThinkingMode;

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, State},
    picker::Row,
};

/// The budget that the list offers.
const OFFERED_TOKENS: u32 = 8_000;
/// The word for what the settings say.
const DEFAULT: &str = "default";

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "thinking",
    aliases: &["think", "effort"],
    arguments: "[off|adaptive|N]",
    about: "choose how much the model thinks",
    run,
};

fn run(state: &mut State, argument: &str) {
    if argument.is_empty() {
        let now = state.session.view.thinking;
        let row = |name: &str, about: &str, thinking: Option<ThinkingMode>| {
            (Row::new(name, about).with_current(thinking == now), LayerChoice::Thinking(thinking))
        };
        let tokens = OFFERED_TOKENS.to_string();
        let rows = [
            row(DEFAULT, "as your settings say", None),
            row("off", "answers at once", Some(ThinkingMode::Off)),
            row("adaptive", "thinks as much as the task needs", Some(ThinkingMode::Adaptive)),
            row(&tokens, "a budget in tokens", Some(ThinkingMode::Tokens(OFFERED_TOKENS))),
        ];
        return state.open_picker("Thinking", rows.into(), "");
    }
    match argument.parse() {
        _ if argument == DEFAULT => state.set_thinking(None),
        Ok(thinking) => state.set_thinking(Some(thinking)),
        Err(_) => state.show_hint(format!(
            "/thinking takes off, adaptive or a number of tokens (1 to {}); low, medium and high are set with `/config \
             set provider.effort high`",
            u32::MAX
        )),
    }
}
