//! Interpreters and tools that run what is in files: they run code, unless they only say their version.

use super::super::Walker;
use super::super::call::ProgramCall;
use super::super::command_facts::CommandFacts;
use super::super::input::{Input, InputSource};
use crate::expand::Field;
use crate::facts::{Effect, Risk};
use crate::programs::Role;

/// Options before a text that is run.
const TEXT_OPTIONS: [&str; 14] = [
    "-c", "-e", "-E", "-r", "-R", "-p", "-pe", "-ne", "-n", "-lne", "-nle", "--eval", "--print",
    "eval",
];

/// Pieces of code that delete, run or connect.
const WEIGHTY: [&str; 26] = [
    "rmtree",
    "unlink",
    "os.remove",
    "rmSync",
    "rmdir",
    "removedirs",
    "system(",
    "subprocess",
    "popen",
    "execSync",
    "spawn",
    "exec(",
    "eval(",
    "child_process",
    "socket",
    "urllib",
    "requests.",
    "http",
    "fetch(",
    "b64decode",
    "atob(",
    "unpack(",
    "rm -rf",
    "`",
    "__import__",
    "os.exec",
];

pub(super) fn analyse_interpreter(walker: &mut Walker<'_>, call: &ProgramCall<'_>) -> CommandFacts {
    if let Some(file) = printed_as_json(call) {
        let mut facts = CommandFacts::default();
        if let Some(file) = file {
            walker.apply_role(call, Role::Read, file, &mut facts);
        }
        return facts;
    }
    let mut facts = CommandFacts::default();
    let first = call.words.first();
    let code = call
        .words
        .iter()
        .position(|word| word.known_text().is_some_and(|text| TEXT_OPTIONS.contains(&text)))
        .and_then(|at| call.words.get(at + 1));
    match (first, code) {
        (None, _) => run_input(walker, call, &mut facts),
        (Some(word), None) if word.known_text() == Some("-") => run_input(walker, call, &mut facts),
        // What a language can do from within a text is not told by its letters.
        (Some(_), Some(code)) => {
            facts.add(Effect::Runs(format!("{} code in the command", call.title)));
            let weighty = code
                .known_text()
                .is_none_or(|code| WEIGHTY.iter().any(|piece| code.contains(piece)));
            facts.at_least(if weighty { Risk::High } else { Risk::Medium });
            let risk = walker.feed_risk(call.from);
            facts.at_least(risk);
        }
        (Some(_), None) => {
            let script = call.words.iter().find(|word| !word.known_start().starts_with('-'));
            let named = script.map_or_else(|| call.title.to_owned(), Field::to_string);
            facts.add(Effect::Runs(named));
            let risk = walker.feed_risk(call.from);
            facts.at_least(risk);
            if script.is_none() {
                run_input(walker, call, &mut facts);
            }
        }
    }
    facts
}

/// `python3 -I -m json.tool FILE`, and the file. Without `-I` a `json.py` of the working folder would run.
fn printed_as_json<'c>(call: &ProgramCall<'c>) -> Option<Option<&'c Field>> {
    let [isolated, module, tool, rest @ ..] = call.words else { return None };
    let is_tool = isolated.known_text() == Some("-I")
        && module.known_text() == Some("-m")
        && tool.known_text() == Some("json.tool")
        && call.title.starts_with("python");
    let is_flag = |word: &&Field| {
        let flags = ["--sort-keys", "--no-ensure-ascii", "--compact", "--tab", "--no-indent"];
        word.known_text().is_some_and(|text| flags.contains(&text))
    };
    let mut files = rest.iter().filter(|word| !is_flag(word));
    let file = files.next();
    let is_file = |word: &Field| word.known_text().is_some_and(|text| !text.starts_with('-'));
    (is_tool && files.next().is_none() && file.is_none_or(is_file)).then_some(file)
}

/// Runs what it reads.
fn run_input(walker: &mut Walker<'_>, call: &ProgramCall<'_>, facts: &mut CommandFacts) {
    facts.add(Effect::Runs(format!("{}: what it reads", call.title)));
    let feed = match &walker.input {
        Input::Pipe(feed) => *feed,
        Input::Inherited | Input::File(_) | Input::Text(_) | Input::Listing(_) => {
            InputSource::Plain
        }
    };
    walker.note_feed(call.title, feed);
    if feed != InputSource::Plain {
        facts.at_least(Risk::Critical);
    }
}
