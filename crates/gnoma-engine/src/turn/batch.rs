//! The calls of one answer, on their way to results.
//!
//! Calls that only read run side by side; any other call waits for all before it and delays all after it. Results
//! are returned in the order of the calls, whatever the order in which they end.

use std::{collections::HashMap, fmt, sync::Arc};

use gnoma_core::{
    Tool, ToolCall, ToolOutcome, ToolResult, ToolSpec,
    message::CallId,
    tool::{Access, NOT_RUN},
};

use super::fits;

/// Tools that only read, but may have a call that starts a session, which does whatever that one does.
#[derive(Clone, Default)]
pub(crate) struct MayStart(pub(crate) Vec<Arc<dyn Tool>>);

impl fmt::Debug for MayStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MayStart").field(&self.0.len()).finish()
    }
}

impl MayStart {
    fn starts(&self, call: &ToolCall) -> bool {
        let tool = self.0.iter().find(|tool| tool.spec().name == call.name);
        tool.is_some_and(|tool| tool.starts(call).is_some())
    }
}

#[derive(Debug)]
enum EntryState {
    Waiting,
    Judging,
    Asked,
    Running,
    /// It has run like this, for so long, unless a person lets it run again outside the sandbox.
    Settling(ToolOutcome, u64),
    Done(ToolResult),
}

/// What a person was asked about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenQuestion {
    /// Whether it may run.
    Run,
    /// Whether it may run again outside the sandbox.
    RunOutside,
}

#[derive(Debug)]
struct BatchEntry {
    call: ToolCall,
    access: Access,
    state: EntryState,
}

/// The calls of one answer, or one of the project's checks.
#[derive(Debug)]
pub(super) struct Batch {
    /// It is gnoma's own check: no model made it or reads its result.
    pub(super) is_check: bool,
    /// It is the command of a task's step that a person stopped: the text above its output in the history.
    pub(super) stopped_step: Option<String>,
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
}

impl Batch {
    pub(super) fn new(
        calls: Vec<ToolCall>,
        specs: &HashMap<String, Arc<ToolSpec>>,
        may_start: &MayStart,
    ) -> Self {
        let index = calls.iter().enumerate().map(|(at, call)| (call.id.clone(), at)).collect();
        let owed = calls.len();
        let entry = |call: ToolCall| BatchEntry {
            access: match specs.get(&call.name) {
                Some(spec) if !may_start.starts(&call) => spec.access,
                Some(_) | None => Access::Execute,
            },
            call,
            state: EntryState::Waiting,
        };
        let entries = calls.into_iter().map(entry).collect();
        Self {
            is_check: false,
            stopped_step: None,
            entries,
            index,
            next: 0,
            started: 0,
            writing: 0,
            owed,
        }
    }

    /// One of the project's checks.
    pub(super) fn of_check(call: ToolCall) -> Self {
        Self { is_check: true, ..Self::new(vec![call], &HashMap::new(), &MayStart::default()) }
    }

    /// The calls that cannot be run at all, with the reason for the model.
    pub(super) fn refuse(
        &self,
        specs: &HashMap<String, Arc<ToolSpec>>,
        limit: usize,
    ) -> Vec<(ToolCall, String)> {
        let known = || {
            let mut names: Vec<_> = specs.keys().map(String::as_str).collect();
            gnoma_core::sort::sort(&mut names);
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
                    "the arguments of `{name}` are not a JSON object, or have a field twice; nothing was \
                     done"
                ));
            }
            fits::misfit(spec, call)
        };
        let refused =
            |(at, entry): (usize, &BatchEntry)| Some((entry.call.clone(), why((at, entry))?));
        self.entries.iter().enumerate().filter_map(refused).collect()
    }

    /// The calls whose turn it is; from now on they count as being judged.
    pub(super) fn startable(&mut self) -> Vec<ToolCall> {
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
    pub(super) fn allow(&mut self, id: &CallId) -> Option<ToolCall> {
        self.step(id, |state| matches!(state, EntryState::Judging), EntryState::Running)
    }

    /// A person must decide: gives the call, to be shown.
    pub(super) fn ask(&mut self, id: &CallId) -> Option<ToolCall> {
        self.step(id, |state| matches!(state, EntryState::Judging), EntryState::Asked)
    }

    /// A person allowed the call: gives it, to be run.
    pub(super) fn grant(&mut self, id: &CallId) -> Option<ToolCall> {
        self.step(
            id,
            |state| matches!(state, EntryState::Asked | EntryState::Settling(..)),
            EntryState::Running,
        )
    }

    /// A call has run, but a person is asked whether it runs again: gives the call, to be shown.
    pub(super) fn hold(
        &mut self,
        id: &CallId,
        outcome: ToolOutcome,
        duration_ms: u64,
    ) -> Option<ToolCall> {
        let held = EntryState::Settling(outcome, duration_ms);
        self.step(id, |state| matches!(state, EntryState::Running), held)
    }

    /// The outcome of a call that will not run any more, and how long it ran: its result if it was being kept, that it
    /// did not run if it had not begun, else an interruption.
    pub(super) fn given_up(&mut self, id: &CallId) -> (ToolOutcome, u64) {
        let entry = self.index.get(id).and_then(|at| self.entries.get_mut(*at));
        match entry.map(|entry| &mut entry.state) {
            Some(EntryState::Settling(outcome, duration_ms)) => {
                let nothing = ToolOutcome::Interrupted(String::new());
                (std::mem::replace(outcome, nothing), *duration_ms)
            }
            Some(EntryState::Waiting | EntryState::Judging | EntryState::Asked)
                if !self.is_check || self.stopped_step.is_some() =>
            {
                (ToolOutcome::failed(NOT_RUN), 0)
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

    fn step(
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
    pub(super) fn amend(&mut self, call: ToolCall) {
        let entry = self.index.get(&call.id).and_then(|at| self.entries.get_mut(*at));
        if let Some(entry) = entry.filter(|entry| matches!(entry.state, EntryState::Judging)) {
            entry.call = call;
        }
    }

    /// Whether the call is being judged.
    pub(super) fn is_judged(&self, id: &CallId) -> bool {
        matches!(self.state(id), Some(EntryState::Judging))
    }

    /// What a person was asked about the call and has not answered.
    pub(super) fn question(&self, id: &CallId) -> Option<OpenQuestion> {
        match self.state(id)? {
            EntryState::Asked => Some(OpenQuestion::Run),
            EntryState::Settling(..) => Some(OpenQuestion::RunOutside),
            EntryState::Waiting
            | EntryState::Judging
            | EntryState::Running
            | EntryState::Done(_) => None,
        }
    }

    /// Whether the call runs.
    pub(super) fn is_running(&self, id: &CallId) -> bool {
        matches!(self.state(id), Some(EntryState::Running))
    }

    fn state(&self, id: &CallId) -> Option<&EntryState> {
        self.entries.get(*self.index.get(id)?).map(|entry| &entry.state)
    }

    /// The call, if it still owes a result.
    pub(super) fn open_call(&self, id: &CallId) -> Option<&ToolCall> {
        let entry = self.entries.get(*self.index.get(id)?)?;
        (!matches!(entry.state, EntryState::Done(_))).then_some(&entry.call)
    }

    /// Notes a result. The first one holds.
    pub(super) fn close(&mut self, id: &CallId, result: ToolResult) {
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

    /// Whether every call has its result.
    pub(super) fn is_over(&self) -> bool {
        self.owed == 0
    }

    /// The calls that owe a result.
    pub(super) fn unfinished(&self) -> Vec<ToolCall> {
        self.those(|state| !matches!(state, EntryState::Done(_)))
    }

    /// The calls that owe a result and do not run.
    pub(super) fn not_running(&self) -> Vec<ToolCall> {
        self.those(|state| !matches!(state, EntryState::Running | EntryState::Done(_)))
    }

    fn those(&self, wanted: fn(&EntryState) -> bool) -> Vec<ToolCall> {
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
            | EntryState::Settling(..) => ToolResult::text(&entry.call, "[not run]", true),
        };
        self.entries.into_iter().map(result).collect()
    }
}
