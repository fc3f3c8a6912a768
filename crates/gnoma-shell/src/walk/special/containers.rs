//! Commands run in containers: they run elsewhere, with what is mounted from here.

use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use crate::expand::Field;
use crate::facts::{Effect, Risk};

/// Options of `docker run` and `docker exec` that hand over the machine.
const DANGEROUS: [&str; 9] = [
    "--privileged",
    "--pid=host",
    "--net=host",
    "--network=host",
    "--userns=host",
    "--ipc=host",
    "--cap-add",
    "--device",
    "docker.sock",
];

pub(super) fn analyse_run(call: &ProgramCall<'_>) -> CommandFacts {
    let mut facts = CommandFacts::from_effect(Effect::Runs(format!(
        "{}: a command in a container",
        call.title
    )));
    facts.add(Effect::System(call.title.to_owned()));
    let dangerous = |word: &Field| {
        let text = word.to_string();
        DANGEROUS.iter().any(|mark| text.contains(mark))
            || text.starts_with("/:")
            || text.contains("=/:")
    };
    if call.words.iter().any(dangerous) {
        facts.at_least(Risk::High);
    }
    facts
}
