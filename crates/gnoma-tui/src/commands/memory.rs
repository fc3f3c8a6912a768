//! `/memory`: lists the instructions of models, and changes what is remembered for later sessions.

use gnoma_core::protocol::{MemoryRequest, Request};

use super::slash::SlashCommandSpec;
use crate::app::{LayerChoice, LookUpTarget, State};

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "memory",
    aliases: &["instructions"],
    arguments: "[add|edit|delete]",
    about: "list the instructions that models are sent, and change yours",
    run,
};

fn run(state: &mut State, argument: &str) {
    let (word, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let rest = rest.trim();
    match word {
        "" | "show" if rest.is_empty() => send_memory_request(state, MemoryRequest::Show),
        "add" if !rest.is_empty() => {
            send_memory_request(state, MemoryRequest::Add { text: rest.to_owned() });
        }
        "edit" => match split_number(rest) {
            Some((line, text)) if !text.is_empty() => {
                send_memory_request(state, MemoryRequest::Edit { line, text: text.to_owned() });
            }
            _ => state.show_hint(
                "Type the number of a line and its text, as in `/memory edit 2 Use tabs`",
            ),
        },
        "delete" if rest == "all" => {
            let request = Request::Memory(MemoryRequest::Delete { line: None });
            state.ask_confirmation("Delete all lines of the memory?", LayerChoice::Report(request));
        }
        "delete" => match split_number(rest) {
            Some((line, "")) => {
                send_memory_request(state, MemoryRequest::Delete { line: Some(line) });
            }
            _ => state.show_hint(
                "Type the number of a line, as in `/memory delete 2`, or `/memory delete all`",
            ),
        },
        _ => {
            state.show_hint("Type `/memory`, or behind it `add TEXT`, `edit N TEXT` or `delete N`");
        }
    }
}

/// Splits the number of a line from the text behind it.
fn split_number(rest: &str) -> Option<(usize, &str)> {
    let (number, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    Some((number.parse().ok()?, text.trim()))
}

fn send_memory_request(state: &mut State, request: MemoryRequest) {
    state.look_up(LookUpTarget::Explanation, Request::Memory(request), "");
}
