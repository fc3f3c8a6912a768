//! The calls of one answer, on their way to results.
//!
//! Calls that only read run side by side; any other call waits for all before it and delays all after it. Results
//! are returned in the order of the calls, whatever the order in which they end.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ToolCall, ToolOutcome, ToolResult, ToolSpec,
    message::CallId,
    tool::{Access, INTERRUPTED, NOT_RUN, ToolKind},
};
use gnoma_shell::{StartContext, analyse_command};
use serde_json::Value;

use super::{
    fits,
    protocol::{SideCall, SpawningTools},
};

#[derive(Debug)]
enum EntryState {
    Waiting,
    Judging,
    Asked,
    Running,
    /// The call has run with this outcome, for so long, unless a person lets it run again outside the sandbox.
    Settling(ToolOutcome, u64),
    Done(ToolResult),
}

/// A question to a person about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenQuestion {
    /// The question whether the call may run.
    Run,
    /// The question whether the call may run again outside the sandbox.
    RunOutside,
}

/// Stands below the output of a command that was stopped.
const STOPPED: &str = "[stopped before it ended]";
/// Longer commands count as changing something.
const MAX_COMMAND_BYTES: usize = 64 << 10;

#[derive(Debug)]
struct BatchEntry {
    call: ToolCall,
    access: Access,
    /// True if the call runs a shell command.
    is_command: bool,
    state: EntryState,
}

impl BatchEntry {
    /// Reports whether the call is a command that is not proved to only read.
    fn changes_something(&self) -> bool {
        if !self.is_command {
            return false;
        }
        let arguments: Value = self.call.arguments.read().unwrap_or_default();
        let command = arguments.get("command").and_then(Value::as_str).unwrap_or_default();
        // Where it runs does not matter for that.
        let start = StartContext { cwd: "/".into(), home: Some("/".into()) };
        command.len() > MAX_COMMAND_BYTES || !analyse_command(command, &start).is_read_only()
    }
}

/// The texts around the result of a step in the history.
#[derive(Debug)]
struct StepFrame {
    head: String,
    tail: &'static str,
}

/// The calls of one answer, one of the project's checks, or steps of a task that run side by side.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// True if the batch is a check by gnoma itself: no model made the call or reads its result.
    pub(super) is_check: bool,
    /// The text above the output in the history, if the batch is the command of a task's step that a person
    /// stopped.
    pub(super) stopped_step: Option<String>,
    /// The texts around the results, if the calls are steps that run side by side.
    frames: Vec<StepFrame>,
    /// Steps at the front whose results were taken for the history.
    told: usize,
    entries: Vec<BatchEntry>,
    index: HashMap<CallId, usize>,
    /// First entry that has not been started.
    next: usize,
    /// Entries started and not done.
    started: usize,
    /// Of these, those that do more than read.
    writing: usize,
    /// Entries without a result.
    owed: usize,
    /// The first entry that changes something and failed.
    failed: Option<usize>,
}

impl Batch {
    pub(super) fn new(
        calls: Vec<ToolCall>,
        specs: &HashMap<String, Arc<ToolSpec>>,
        may_start: &SpawningTools,
    ) -> Self {
        let index = calls.iter().enumerate().map(|(at, call)| (call.id.clone(), at)).collect();
        let owed = calls.len();
        let entry = |call: ToolCall| BatchEntry {
            access: match specs.get(&call.name) {
                Some(spec) if !may_start.starts_session(&call) => spec.access,
                Some(_) | None => Access::Execute,
            },
            is_command: specs.get(&call.name).is_some_and(|spec| spec.kind == ToolKind::Shell),
            call,
            state: EntryState::Waiting,
        };
        let entries = calls.into_iter().map(entry).collect();
        Self { entries, index, owed, ..Self::default() }
    }

    /// One of the project's checks.
    pub(super) fn of_check(call: ToolCall) -> Self {
        Self { is_check: true, ..Self::new(vec![call], &HashMap::new(), &SpawningTools::default()) }
    }

    /// Steps of a task that run side by side. Only commands that change something run alone.
    pub(super) fn of_steps(steps: Vec<SideCall>, specs: &HashMap<String, Arc<ToolSpec>>) -> Self {
        let part = |SideCall { call, head, tail }| (StepFrame { head, tail }, call);
        let (frames, calls): (Vec<_>, Vec<_>) = steps.into_iter().map(part).unzip();
        let mut batch = Self::new(calls, specs, &SpawningTools::default());
        for entry in &mut batch.entries {
            let runs_alone = entry.changes_something();
            entry.access = if runs_alone { Access::Execute } else { Access::Read };
        }
        Self { is_check: true, frames, ..batch }
    }

    /// Reports whether the calls are steps that run side by side.
    pub(super) fn has_steps(&self) -> bool {
        !self.frames.is_empty()
    }

    /// Takes what is new of the steps' results for the history. They come in the order of the steps, so a step waits for
    /// those before it.
    pub(super) fn take_step_results(&mut self) -> Vec<String> {
        let mut texts = Vec::new();
        while let (Some(frame), Some(entry)) =
            (self.frames.get(self.told), self.entries.get(self.told))
            && let EntryState::Done(result) = &entry.state
        {
            let output = describe_step_output(std::slice::from_ref(result));
            texts.push(format!("{}{output}{}", frame.head, frame.tail));
            self.told += 1;
        }
        texts
    }

    /// The calls that cannot be run at all, with the reason for the model.
    pub(super) fn unrunnable_calls(
        &self,
        specs: &HashMap<String, Arc<ToolSpec>>,
        limit: usize,
    ) -> Vec<(ToolCall, String)> {
        let known = || {
            let mut names: Vec<_> = specs.keys().map(String::as_str).collect();
            gnoma_core::sort::sort_items(&mut names);
            names.join(", ")
        };
        let why = |(at, entry): (usize, &BatchEntry)| {
            let call = &entry.call;
            if at >= limit {
                let all = self.entries.len();
                return Some(format!(
                    "not run: the answer has {all} calls, and at most {limit} of them run"
                ));
            }
            let Some(spec) = specs.get(&call.name) else {
                return Some(format!("unknown tool: {}; the tools are {}", call.name, known()));
            };
            if call.broken {
                let name = &call.name;
                return Some(format!(
                    "the arguments of `{name}` are not a JSON object, or have a field twice or a number \
                     that is too large; nothing was done"
                ));
            }
            fits::find_argument_error(spec, call)
        };
        let refused =
            |(at, entry): (usize, &BatchEntry)| Some((entry.call.clone(), why((at, entry))?));
        self.entries.iter().enumerate().filter_map(refused).collect()
    }

    /// The calls whose turn it is; from now on they count as being judged.
    pub(super) fn take_startable(&mut self) -> Vec<ToolCall> {
        let mut ready = Vec::new();
        while let Some(entry) = self.entries.get_mut(self.next) {
            if matches!(entry.state, EntryState::Waiting) {
                let reads = entry.access == Access::Read;
                if self.writing > 0 || (!reads && self.started > 0) {
                    break;
                }
                entry.state = EntryState::Judging;
                self.started += 1;
                self.writing += usize::from(!reads);
                ready.push(entry.call.clone());
            }
            self.next += 1;
        }
        ready
    }

    /// A call was allowed: gives it, to be run.
    pub(super) fn mark_allowed(&mut self, id: &CallId) -> Option<ToolCall> {
        self.change_state(id, |state| matches!(state, EntryState::Judging), EntryState::Running)
    }

    /// A person must decide: gives the call, to be shown.
    pub(super) fn mark_asked(&mut self, id: &CallId) -> Option<ToolCall> {
        self.change_state(id, |state| matches!(state, EntryState::Judging), EntryState::Asked)
    }

    /// A person allowed the call: gives it, to be run.
    pub(super) fn mark_granted(&mut self, id: &CallId) -> Option<ToolCall> {
        self.change_state(
            id,
            |state| matches!(state, EntryState::Asked | EntryState::Settling(..)),
            EntryState::Running,
        )
    }

    /// A call has run, but a person is asked whether it runs again: gives the call, to be shown.
    pub(super) fn hold_outcome(
        &mut self,
        id: &CallId,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) -> Option<ToolCall> {
        let held = EntryState::Settling(outcome, duration_ms);
        self.change_state(id, |state| matches!(state, EntryState::Running), held)
    }

    /// The outcome of a call that will not run any more, and how long it ran: its result if it was being kept, that it
    /// did not run if it had not begun, else an interruption.
    pub(super) fn given_up(&mut self, id: &CallId) -> (ToolOutcome, u64) {
        let never_ran = !self.is_check || self.stopped_step.is_some() || self.has_steps();
        let entry = self.index.get(id).and_then(|at| self.entries.get_mut(*at));
        match entry.map(|entry| &mut entry.state) {
            Some(EntryState::Settling(outcome, duration_ms)) => {
                let nothing = ToolOutcome::Interrupted(String::new());
                (std::mem::replace(outcome, nothing), *duration_ms)
            }
            Some(EntryState::Waiting | EntryState::Judging | EntryState::Asked) if never_ran => {
                (ToolOutcome::failure_text(NOT_RUN), 0)
            }
            Some(
                EntryState::Waiting
                | EntryState::Judging
                | EntryState::Asked
                | EntryState::Running
                | EntryState::Done(_),
            )
            | None => (ToolOutcome::Interrupted(String::new()), 0),
        }
    }

    fn change_state(
        &mut self,
        id: &CallId,
        from: fn(&EntryState) -> bool,
        to: EntryState,
    ) -> Option<ToolCall> {
        let entry = self.entries.get_mut(*self.index.get(id)?)?;
        from(&entry.state).then(|| {
            entry.state = to;
            entry.call.clone()
        })
    }

    /// A call that is being judged runs with other arguments.
    pub(super) fn amend_call(&mut self, call: ToolCall) {
        let entry = self.index.get(&call.id).and_then(|at| self.entries.get_mut(*at));
        if let Some(entry) = entry.filter(|entry| matches!(entry.state, EntryState::Judging)) {
            entry.call = call;
        }
    }

    /// Reports whether the call is being judged.
    pub(super) fn is_judged(&self, id: &CallId) -> bool {
        matches!(self.entry_state(id), Some(EntryState::Judging))
    }

    /// Returns the question about the call that a person was asked and has not answered.
    pub(super) fn open_question(&self, id: &CallId) -> Option<OpenQuestion> {
        match self.entry_state(id)? {
            EntryState::Asked => Some(OpenQuestion::Run),
            EntryState::Settling(..) => Some(OpenQuestion::RunOutside),
            EntryState::Waiting
            | EntryState::Judging
            | EntryState::Running
            | EntryState::Done(_) => None,
        }
    }

    /// Reports whether the call is running.
    pub(super) fn is_running(&self, id: &CallId) -> bool {
        matches!(self.entry_state(id), Some(EntryState::Running))
    }

    fn entry_state(&self, id: &CallId) -> Option<&EntryState> {
        self.entries.get(*self.index.get(id)?).map(|entry| &entry.state)
    }

    /// The call, if it still owes a result.
    pub(super) fn open_call(&self, id: &CallId) -> Option<&ToolCall> {
        let entry = self.entries.get(*self.index.get(id)?)?;
        (!matches!(entry.state, EntryState::Done(_))).then_some(&entry.call)
    }

    /// Notes a result. The first one holds.
    pub(super) fn record_result(&mut self, id: &CallId, result: ToolResult) {
        let Some(entry) = self.index.get(id).and_then(|at| self.entries.get_mut(*at)) else {
            return;
        };
        match entry.state {
            EntryState::Done(_) => return,
            EntryState::Waiting => (),
            EntryState::Judging
            | EntryState::Asked
            | EntryState::Running
            | EntryState::Settling(..) => {
                self.started -= 1;
                self.writing -= usize::from(entry.access != Access::Read);
            }
        }
        entry.state = EntryState::Done(result);
        self.owed -= 1;
    }

    /// Notes that a call failed or was denied.
    pub(super) fn note_failure(&mut self, id: &CallId) {
        let Some(at) = self.index.get(id).copied().filter(|_| self.entries.len() > 1) else {
            return;
        };
        let changes = self.entries.get(at).is_some_and(|entry| match entry.access {
            Access::Edit => true,
            Access::Read | Access::Execute => entry.changes_something(),
        });
        // A task stops at a step that failed, whatever the step does.
        if changes || self.has_steps() {
            self.failed = Some(self.failed.map_or(at, |failed| failed.min(at)));
        }
    }

    /// The commands that have not begun and would change something after a change that failed, such as a push after a
    /// commit, with the reason for the model why they do not begin.
    pub(super) fn pointless_calls(&self) -> Vec<(ToolCall, String)> {
        let Some(failed) = self.failed.and_then(|at| Some((at, self.entries.get(at)?))) else {
            return Vec::new();
        };
        let (at, name) = (failed.0, &failed.1.call.name);
        let is_pointless = |entry: &&BatchEntry| {
            matches!(entry.state, EntryState::Waiting) && entry.changes_something()
        };
        let why = if self.has_steps() {
            "[not run: a step before it failed]".to_owned()
        } else {
            format!(
                "not run: the call of `{name}` before it in the same answer failed or was denied. Call it again if it does not depend on that"
            )
        };
        let behind = self.entries.iter().skip(at + 1).filter(is_pointless);
        behind.map(|entry| (entry.call.clone(), why.clone())).collect()
    }

    /// Reports whether every call has its result.
    pub(super) fn is_over(&self) -> bool {
        self.owed == 0
    }

    /// The calls that owe a result.
    pub(super) fn unfinished_calls(&self) -> Vec<ToolCall> {
        self.calls_in_state(|state| !matches!(state, EntryState::Done(_)))
    }

    /// The calls that owe a result and do not run.
    pub(super) fn not_running(&self) -> Vec<ToolCall> {
        self.calls_in_state(|state| !matches!(state, EntryState::Running | EntryState::Done(_)))
    }

    fn calls_in_state(&self, wanted: fn(&EntryState) -> bool) -> Vec<ToolCall> {
        let fitting = self.entries.iter().filter(|entry| wanted(&entry.state));
        fitting.map(|entry| entry.call.clone()).collect()
    }

    /// The results in the order of the calls.
    pub(super) fn into_results(self) -> Vec<ToolResult> {
        let result = |entry: BatchEntry| match entry.state {
            EntryState::Done(result) => result,
            EntryState::Waiting
            | EntryState::Judging
            | EntryState::Asked
            | EntryState::Running
            | EntryState::Settling(..) => ToolResult::from_text(&entry.call, "[not run]", true),
        };
        self.entries.into_iter().map(result).collect()
    }
}

/// Returns the output of a step's calls as it is added to the history.
pub(super) fn describe_step_output(results: &[ToolResult]) -> String {
    let output: Vec<String> = results.iter().map(describe_step_result).collect();
    output.join("\n").trim_end().to_owned()
}

fn describe_step_result(result: &ToolResult) -> String {
    let text = result.joined_text();
    // A file that a command shows may say the same.
    match text.strip_suffix(INTERRUPTED).filter(|_| result.is_error) {
        Some(before) => format!("{before}{STOPPED}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{RawJson, tool::Tier};

    use super::*;

    fn specs() -> HashMap<String, Arc<ToolSpec>> {
        let spec = |name: &str, access, kind| {
            let spec = ToolSpec {
                name: name.to_owned(),
                description: String::new(),
                parameters: RawJson::empty_object(),
                access,
                touches: [].into(),
                kind,
                tier: Tier::Lean,
            };
            (name.to_owned(), Arc::new(spec))
        };
        HashMap::from([
            spec("edit", Access::Edit, ToolKind::WritesFiles),
            spec("read", Access::Read, ToolKind::Other),
            spec("bash", Access::Execute, ToolKind::Shell),
        ])
    }

    /// Calls of an edit (`e`), reads (`r`) and commands, each named by its place.
    fn calls(calls: &[&str]) -> Vec<ToolCall> {
        let call = |(at, what): (usize, &&str)| {
            let (name, arguments) = match *what {
                "e" => ("edit", "{}".to_owned()),
                "r" => ("read", "{}".to_owned()),
                command => ("bash", serde_json::json!({ "command": command }).to_string()),
            };
            ToolCall::new(CallId::new(at.to_string()), name, RawJson::parse(arguments).unwrap())
        };
        calls.iter().enumerate().map(call).collect()
    }

    fn batch(all: &[&str]) -> Batch {
        Batch::new(calls(all), &specs(), &SpawningTools::default())
    }

    /// Those that do not begin after this one has failed.
    fn pointless_after(calls: &[&str], failed: &str) -> Vec<String> {
        let mut batch = batch(calls);
        batch.note_failure(&CallId::new(failed));
        batch.pointless_calls().into_iter().map(|(call, _)| call.id.to_string()).collect()
    }

    #[test]
    fn commands_after_a_failed_dependent_call_are_not_run() {
        let release = ["git add .", "git commit -m x", "git push", "r", "git status", "e"];
        assert_eq!(pointless_after(&release, "1"), ["2"]);
        assert_eq!(pointless_after(&release, "0"), ["1", "2"]);
        assert_eq!(pointless_after(&["e", "git commit -am x"], "0"), ["1"]);
        let told = {
            let mut batch = batch(&release);
            batch.note_failure(&CallId::new("1"));
            batch.pointless_calls().remove(0).1
        };
        assert!(told.starts_with("not run: the call of `bash` before it"), "{told}");
    }

    #[test]
    fn step_output_marks_only_interrupted_commands_as_stopped() {
        let shown =
            |outcome: ToolOutcome| describe_step_output(&[outcome.into_result(&calls(&["r"])[0])]);
        let text = format!("{INTERRUPTED} is the text");
        assert_eq!(shown(ToolOutcome::success_text(text.clone())), text);
        assert_eq!(shown(ToolOutcome::success_text(INTERRUPTED)), INTERRUPTED);
        let stopped = ToolOutcome::Interrupted("half".to_owned());
        assert_eq!(shown(stopped), format!("half\n{STOPPED}"));
    }

    #[test]
    fn writing_steps_run_alone_and_are_skipped_after_a_failure() {
        let steps = calls(&["ls", "r", "touch x", "git status"]);
        let step = |call| SideCall { call, head: String::new(), tail: "" };
        let mut batch = Batch::of_steps(steps.into_iter().map(step).collect(), &specs());
        let ids = |calls: Vec<ToolCall>| -> Vec<String> {
            calls.into_iter().map(|call| call.id.to_string()).collect()
        };
        assert_eq!(ids(batch.take_startable()), ["0", "1"]);
        let id = CallId::new("0");
        batch.note_failure(&id);
        let waiting: Vec<ToolCall> =
            batch.pointless_calls().into_iter().map(|(call, _)| call).collect();
        assert_eq!(ids(waiting), ["2"], "the last one only reads");
    }

    #[test]
    fn calls_independent_of_the_failed_call_still_run() {
        assert!(pointless_after(&["grep x y", "git push"], "0").is_empty(), "it only reads");
        assert!(pointless_after(&["r", "git push"], "0").is_empty());
        assert!(pointless_after(&["git add .", "r", "e", "ls"], "0").is_empty());
        assert!(pointless_after(&["git push", "rm x"], "1").is_empty(), "what was before it");
        assert!(pointless_after(&["git push"], "0").is_empty());
    }
}
