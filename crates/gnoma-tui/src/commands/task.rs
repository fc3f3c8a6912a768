//! `/task`: runs, resumes, lists, shows and saves tasks.

use gnoma_core::{
    info::Choice,
    protocol::{Request, TaskRequest, TaskResumeChoice},
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
        "" | "list" => state.look_up(LookUpTarget::Tasks, Request::Task(TaskRequest::List), ""),
        "show" => request_explanation(state, TaskRequest::Show { name: name() }),
        "history" => request_explanation(state, TaskRequest::History { name: name() }),
        "resume" => resume_task(state, rest),
        "schedules" if rest.is_empty() => request_explanation(state, TaskRequest::Schedules),
        "never" if rest.is_empty() => request_explanation(state, TaskRequest::DeclineOffer),
        "repair" if !rest.is_empty() => {
            let request = Request::Task(TaskRequest::Repair { name: name() });
            state.look_up(LookUpTarget::TaskDraft, request, rest);
        }
        "edit" | "new" | "check" | "delete" | "import" | "schedule" | "suggestions" => {
            state.show_hint(format!("`gnoma task {argument}` does that, in a shell"));
        }
        "save" if rest.is_empty() => {
            state.show_hint("Type a name for the task, as in `/task save release`");
        }
        "save" => {
            let request = Request::Task(TaskRequest::Draft { name: name() });
            state.look_up(LookUpTarget::TaskDraft, request, rest);
        }
        _ => start_task(state, TaskRequest::Run { line: argument.to_owned() }),
    }
}

fn request_explanation(state: &mut State, request: TaskRequest) {
    state.look_up(LookUpTarget::Explanation, Request::Task(request), "");
}

fn resume_task(state: &mut State, words: &str) {
    let (name, choice) = words.rsplit_once(char::is_whitespace).unwrap_or(("", words));
    let (name, choice) = match choice {
        "again" => (name, Some(TaskResumeChoice::Again)),
        "stronger" => (name, Some(TaskResumeChoice::Stronger)),
        "skip" => (name, Some(TaskResumeChoice::Skip)),
        _ => (words, None),
    };
    let name = name.trim();
    if name.contains(char::is_whitespace) {
        return state.show_hint(
            "Type `/task resume`, perhaps a task, and then perhaps `again`, `stronger` or `skip`",
        );
    }
    start_task(state, TaskRequest::Resume { run: name.to_owned(), choice });
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

/// Offers the tasks in a list.
pub(super) fn offer_tasks(state: &mut State, tasks: Vec<Choice>) {
    if tasks.is_empty() {
        return state
            .show_note("No tasks. `/task save NAME` makes one of this session, `gnoma task new NAME` an example");
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
