//! `/plan`: the steps of the work, as the model keeps them.

use super::slash::SlashCommandSpec;
use crate::{app::State, plan};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "plan",
    aliases: &["todo"],
    arguments: "",
    about: "show the model's plan and how far it is",
    run,
};

fn run(state: &mut State, _argument: &str) {
    if state.session.view.plan.is_empty() {
        return state.show_hint("The model has not made a plan");
    }
    let lines = plan::render_steps(&state.session.view.plan, state.is_accessible());
    state.say_titled("Plan", lines);
}
