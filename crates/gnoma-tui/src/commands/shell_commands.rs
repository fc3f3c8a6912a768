//! `/doctor`, `/trust`: commands of the shell, which have the terminal until they end.

use super::slash::SlashCommandSpec;
use crate::effect::Effect;

pub(super) const DOCTOR: SlashCommandSpec = SlashCommandSpec {
    name: "doctor",
    aliases: &[],
    arguments: "",
    about: "check this machine, its providers and its models",
    run: |state, _| state.emit(Effect::RunGnoma("doctor")),
};

pub(super) const TRUST: SlashCommandSpec = SlashCommandSpec {
    name: "trust",
    aliases: &[],
    arguments: "",
    about: "show what this project could configure, and trust it",
    run: |state, _| state.emit(Effect::RunGnoma("trust")),
};
