//! `/clear`: a new conversation. A long one is not dropped without a question.

use gnoma_core::protocol::{Request, Switch};

use super::slash::SlashCommandSpec;
use crate::app::{LayerChoice, State};

/// Conversations with more turns are worth a question.
const TURNS_WORTH_A_QUESTION: u32 = 5;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "clear",
    aliases: &["new"],
    arguments: "",
    about: "start a new conversation",
    run,
};

fn run(state: &mut State, _argument: &str) {
    let turns = state.counts.turns;
    let begin = Request::Switch(Switch::New);
    if turns > TURNS_WORTH_A_QUESTION {
        let question = format!("Start a new conversation? This one has {turns} turns");
        return state.ask_confirmation(&question, LayerChoice::Switch(begin));
    }
    state.switch_session(begin);
}
