//! `/doctor`, `/trust`: commands of the shell, which have the terminal until they end.

use super::slash::Slash;
use crate::{app::State, effect::Effect};

pub(super) const DOCTOR: Slash = Slash {
    name: "doctor",
    aliases: &[],
    arguments: "",
    about: "check this machine, its providers and its models",
    run: |state, _| hand_over(state, "gnoma doctor"),
};

pub(super) const TRUST: Slash = Slash {
    name: "trust",
    aliases: &[],
    arguments: "",
    about: "show what this project could configure, and trust it",
    run: |state, _| hand_over(state, "gnoma trust"),
};

fn hand_over(state: &mut State, line: &str) {
    state.emit(Effect::HandOver(Some(line.to_owned())));
}
