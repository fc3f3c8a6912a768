//! `/plan`: the steps of the work, as the model keeps them.

use gnoma_core::plan::StepStatus;

use super::slash::Slash;
use crate::{
    app::State,
    text::{Ink, Line, Style},
};

pub(super) const COMMAND: Slash = Slash {
    name: "plan",
    aliases: &["todo"],
    arguments: "",
    about: "show the model's plan, and where it stands",
    run,
};

fn run(state: &mut State, _argument: &str) {
    if state.session.view.plan.is_empty() {
        return state.hint("The model has not made a plan");
    }
    let line = |step: &gnoma_core::plan::PlanStep| {
        let (mark, style) = match step.status {
            StepStatus::Done => ("[x]", Style::of(Ink::Dim)),
            StepStatus::Active => ("[>]", Style::default()),
            StepStatus::Pending => ("[ ]", Style::default()),
        };
        Line::new(format!("{mark} {}", step.text), style)
    };
    let lines = state.session.view.plan.iter().map(line).collect();
    state.say_titled("Plan", lines);
}
