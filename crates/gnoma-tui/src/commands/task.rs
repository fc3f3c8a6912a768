//! `/task`: runs, resumes, lists, shows and saves tasks.

use gnoma_core::{
    info::Choice,
    protocol::{Request, TaskRequest},
};

use super::slash::SlashCommandSpec;
use crate::{
    app::{LayerChoice, LookUpTarget, State},
    ask::Purpose,
    diff,
    picker::Row,
};

/// Lines of a new task that are shown.
const MAX_LINES: usize = 400;

pub(super) const COMMAND: SlashCommandSpec = SlashCommandSpec {
    name: "task",
    aliases: &["tasks"],
    arguments: "[name …]",
    about: "run a task, or list, resume and save them",
    run,
};

fn run(state: &mut State, argument: &str) {
    let (word, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
    let rest = rest.trim();
    let name = || rest.to_owned();
    match word {
        "repair" if !rest.is_empty() => {
            let request = Request::Task(TaskRequest::Repair { name: name() });
            return state.look_up(LookUpTarget::TaskDraft, request, rest);
        }
        "save" if rest.is_empty() => {
            return state.show_hint("Type a name for the task, as in `/task save release`");
        }
        "save" => {
            let request = Request::Task(TaskRequest::Draft { name: name() });
            return state.look_up(LookUpTarget::TaskDraft, request, rest);
        }
        _ => (),
    }
    match TaskRequest::parse(argument) {
        Some(TaskRequest::List) => {
            state.look_up(LookUpTarget::Tasks, Request::Task(TaskRequest::List), "");
        }
        Some(request @ (TaskRequest::Run { .. } | TaskRequest::Resume { .. })) => {
            start_task(state, request);
        }
        Some(request) => state.look_up(LookUpTarget::Explanation, Request::Task(request), ""),
        None if word == "resume" => state.show_hint(
            "Type `/task resume`, perhaps a task, and then perhaps `again`, `stronger` or `skip`",
        ),
        None => state.show_hint(format!("`gnoma task {argument}` does that, in a shell")),
    }
}

fn start_task(state: &mut State, request: TaskRequest) {
    if !state.is_idle() {
        return state.show_hint("Turn running. Press Esc to stop it first");
    }
    // The session tells of each step and of the end.
    state.send_request(Request::Task(request), Purpose::Order);
}

/// Runs a task that was chosen by its line of usage; one that needs arguments is written into the editor.
pub(crate) fn run_listed_task(state: &mut State, usage: &str) {
    let mut words = usage.split_whitespace();
    let name = words.next().unwrap_or_default();
    if words.any(|word| !word.starts_with('[')) {
        return state.write_input(&format!("/task {name} "));
    }
    start_task(state, TaskRequest::Run { line: name.to_owned() });
}

/// Asks for the words that can follow in the line, if it runs a task. Returns whether it does.
pub(crate) fn complete_task(state: &mut State) -> bool {
    let line = state.composer.first_line().to_owned();
    let words = COMMAND.aliases.iter().chain([&COMMAND.name]).find_map(|name| {
        line.strip_prefix('/')?.strip_prefix(name)?.strip_prefix(char::is_whitespace)
    });
    let Some(words) = words else { return false };
    let (whole, _) = words.split_at(begun_word(words));
    let request = TaskRequest::Complete { words: whole.trim().to_owned() };
    state.look_up(LookUpTarget::TaskWords, Request::Task(request), &line);
    true
}

/// The place in a line where the word begins that is being written.
fn begun_word(line: &str) -> usize {
    line.trim_end_matches(|c: char| !c.is_whitespace()).len()
}

/// Offers the words that can follow in `line`, or writes the only one.
pub(super) fn offer_words(state: &mut State, words: Vec<Choice>, line: &str) {
    // The person has written on.
    if state.composer.first_line() != line {
        return;
    }
    let (whole, begun) = line.split_at(begun_word(line));
    let fits = words.into_iter().map(|word| word.name).filter(|name| name.starts_with(begun));
    let quoted = |name: &str| {
        if name.contains(char::is_whitespace) { format!("\"{name}\"") } else { name.to_owned() }
    };
    let row = |name: String| {
        let text = format!("{whole}{} ", quoted(&name));
        (Row::new(name, String::new()), LayerChoice::Write(text))
    };
    let mut rows: Vec<_> = fits.map(row).collect();
    match (rows.len(), rows.pop()) {
        (1, Some((_, LayerChoice::Write(text)))) => state.rewrite_input(&text),
        (_, Some(last)) => {
            rows.push(last);
            state.pick_or_say("Task", "word", rows, "");
        }
        (_, None) => state.show_hint("There is nothing to complete here"),
    }
}

/// Offers the tasks in a list.
pub(super) fn offer_tasks(state: &mut State, tasks: Vec<Choice>) {
    if tasks.is_empty() {
        return state
            .append_note("No tasks. `/task save NAME` makes one of this session, `gnoma task new NAME` an example");
    }
    let row =
        |task: Choice| (Row::new(task.name.clone(), task.about), LayerChoice::Task(task.name));
    let rows = tasks.into_iter().map(row).collect();
    state.pick_or_say("Task", "task", rows, "");
}

/// Shows a task that was drafted, and asks whether to save it.
pub(super) fn show_draft(state: &mut State, text: &str, name: &str) {
    let lines = diff::render_diff_with_names(text, state.size.width, MAX_LINES);
    state.show_lines(lines);
    let request = Request::Task(TaskRequest::Save { name: name.to_owned() });
    state.ask_confirmation(&format!("Save the task {name}?"), LayerChoice::Report(request));
}
