//! Folds the events of a turn in which steps run side by side into the end of each step.

use std::sync::atomic::{AtomicU32, Ordering};

use gnoma_core::{
    CallId, Event, Message, ModelRef, ToolResult,
    protocol::TaskStepState,
    session::{SessionState, SideStep, SideWork, StepTurn},
    tool::{ChildEnd, unkept_trial_changes},
};
use gnoma_extend::tasks::StepResult;

use super::{
    step_children::{StepChild, StepChildren},
    step_fold::{StepCommandError, begins_step, is_step_message},
};

/// With this begin the results of calls that the engine left out.
const NOT_RUN_PREFIX: &str = "[not run";

/// The number of calls of steps in this process: no two steps have the same.
static CALLS: AtomicU32 = AtomicU32::new(1);

/// Returns the id for the call of a step that runs side by side with others.
pub(super) fn new_step_call() -> CallId {
    let number = CALLS.fetch_add(1, Ordering::Relaxed);
    CallId::new(format!("gnoma-task-step-{number}"))
}

/// A step, as far as its turn has told of it.
struct SideMember {
    call: CallId,
    is_command: bool,
    has_started: bool,
    /// The reason why it did not run.
    denial: Option<String>,
    /// Its state, the reason for it and its duration in milliseconds, once its call has ended.
    end: Option<(TaskStepState, String, u64)>,
}

/// Folds the events of a turn in which steps run side by side.
pub(super) struct SideFold {
    /// The text of the notice with which the turn begins.
    announcement: String,
    has_begun: bool,
    is_cancelled: bool,
    members: Vec<SideMember>,
    /// Steps whose results have been added to the conversation: those at the front.
    told: usize,
    children: StepChildren,
}

impl SideFold {
    /// Waits for a turn of steps.
    pub(super) fn new(turn: &StepTurn, children: &StepChildren) -> Self {
        let member = |step: &SideStep| {
            let is_command = matches!(step.work, SideWork::Command { .. });
            if !is_command {
                children.watch(step.call.clone());
            }
            let call = step.call.clone();
            SideMember { call, is_command, has_started: false, denial: None, end: None }
        };
        Self {
            announcement: turn.announcement.clone(),
            has_begun: false,
            is_cancelled: false,
            members: turn.side_steps.iter().map(member).collect(),
            told: 0,
            children: children.clone(),
        }
    }

    /// Returns whether the turn has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    pub(super) fn step_count(&self) -> usize {
        self.members.len()
    }

    /// Takes in what happened. Returns the place and the end of a step once its result is in the conversation; a step
    /// that never began has no end.
    pub(super) fn apply_event(&mut self, event: &Event) -> Option<(usize, StepResult)> {
        if !self.has_begun {
            self.has_begun = begins_step(event, &self.announcement);
            return None;
        }
        match event {
            Event::State(SessionState::Cancelling) => self.is_cancelled = true,
            Event::ToolStarted { call } => {
                if let Some(member) = self.member(&call.id) {
                    member.has_started = true;
                }
            }
            Event::PermissionDecided { call, allowed: false, reason } if !self.is_cancelled => {
                // Of one that has started, only a second run outside the sandbox is denied.
                if let Some(member) = self.member(call).filter(|member| !member.has_started) {
                    member.denial = Some(reason.clone());
                }
            }
            Event::ToolEnded { call, result, duration_ms, .. } => {
                self.end_member(&call.id, result, *duration_ms);
            }
            Event::Appended(message) if is_step_message(message) => return self.tell_next(message),
            _ => (),
        }
        None
    }

    fn member(&mut self, call: &CallId) -> Option<&mut SideMember> {
        self.members.iter_mut().find(|member| member.call == *call)
    }

    fn end_member(&mut self, call: &CallId, result: &ToolResult, duration_ms: u64) {
        let (is_cancelled, children) = (self.is_cancelled, self.children.clone());
        let Some(member) = self.member(call) else { return };
        let (state, why) = match &member.denial {
            Some(reason) if member.is_command => {
                (TaskStepState::Failed, format!("the command was denied: {reason}"))
            }
            Some(reason) => (TaskStepState::Failed, format!("the elf was denied: {reason}")),
            None if !member.has_started && is_left_out(is_cancelled, result) => return,
            // It could not even be asked about.
            None if !member.has_started => (TaskStepState::Failed, first_line(result)),
            None if is_cancelled && result.is_error => {
                (TaskStepState::Stopped, "you stopped the turn".to_owned())
            }
            None if member.is_command => command_end(result),
            None => children.read(call, |child| elf_end(child, result, is_cancelled)),
        };
        member.end = Some((state, why, duration_ms));
    }

    /// The result of the next step is in the conversation.
    fn tell_next(&mut self, message: &Message) -> Option<(usize, StepResult)> {
        let place = self.told;
        self.told += 1;
        let member = self.members.get_mut(place)?;
        let (state, why, duration_ms) = member.end.take()?;
        let StepChild { status, .. } = self.children.take(&member.call);
        let model = status.model.as_deref().and_then(|name| name.split_once('/'));
        let model = model.map(|(provider, model)| ModelRef {
            provider: provider.to_owned(),
            model: model.to_owned(),
        });
        let result = StepResult {
            state,
            why,
            micro_usd: status.micro_usd.saturating_add(status.below_micro_usd),
            answer: None,
            message: Some(message.text_content()),
            models: model.into_iter().collect(),
            took_ms: Some(duration_ms),
        };
        Some((place, result))
    }
}

impl Drop for SideFold {
    fn drop(&mut self) {
        for member in &self.members {
            drop(self.children.take(&member.call));
        }
    }
}

/// Returns whether a step that did not start was left out: after a step that failed, or because its turn was stopped.
fn is_left_out(is_cancelled: bool, result: &ToolResult) -> bool {
    is_cancelled || result.joined_text().starts_with(NOT_RUN_PREFIX)
}

fn command_end(result: &ToolResult) -> (TaskStepState, String) {
    if result.is_error {
        return (TaskStepState::Failed, StepCommandError::from_result(result).to_string());
    }
    (TaskStepState::Done, unkept_trial_changes(&result.joined_text()).unwrap_or_default())
}

/// The end of a step that an elf did. Its report says why it did not complete it.
fn elf_end(
    child: Option<&StepChild>,
    result: &ToolResult,
    is_cancelled: bool,
) -> (TaskStepState, String) {
    let report = || first_line(result);
    let denial = child.and_then(|child| child.status.unattended_denial.as_ref());
    match (child.and_then(|child| child.end.as_ref()), denial) {
        (Some(ChildEnd::Failed(why)), _) => (TaskStepState::Failed, why.clone()),
        (Some(ChildEnd::Cancelled), _) if is_cancelled => (TaskStepState::Stopped, report()),
        // It alone was stopped, or took too long.
        (Some(ChildEnd::Cancelled), _) => (TaskStepState::Failed, report()),
        (None, _) if result.is_error => (TaskStepState::Failed, report()),
        (_, Some(why)) => (TaskStepState::Failed, format!("a call was denied: {why}")),
        (Some(ChildEnd::Completed) | None, None) => (TaskStepState::Done, String::new()),
    }
}

fn first_line(result: &ToolResult) -> String {
    result.joined_text().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{RawJson, ToolCall, session::NoticeLevel, tool::ChildStatus};

    use super::*;

    fn turn() -> StepTurn {
        let step = |id: &str, work| SideStep {
            call: CallId::new(id),
            text: String::new(),
            title: id.to_owned(),
            work,
        };
        let prompt = SideWork::Prompt { text: "look".to_owned(), model: None, role: None };
        let command = SideWork::Command { command: "ls".to_owned(), timeout_s: 1 };
        let side_steps = vec![step("elf", prompt), step("ls", command)];
        StepTurn { announcement: "steps".to_owned(), side_steps, ..StepTurn::default() }
    }

    fn begun(children: &StepChildren) -> SideFold {
        let mut fold = SideFold::new(&turn(), children);
        let (level, text) = (NoticeLevel::Info, "steps".to_owned());
        assert!(fold.apply_event(&Event::Notice { level, text }).is_none() && fold.has_begun());
        fold
    }

    fn call(id: &str) -> ToolCall {
        ToolCall::new(CallId::new(id), "x", RawJson::empty_object())
    }

    fn started(id: &str) -> Event {
        Event::ToolStarted { call: call(id) }
    }

    fn ended(id: &str, text: &str, is_error: bool) -> Event {
        let (call, diff, command) = (call(id), None, None);
        let result = ToolResult::from_text(&call, text, is_error);
        Event::ToolEnded { call, result, diff, duration_ms: 5, command }
    }

    fn told() -> Event {
        Event::Appended(Arc::new(Message::user_text("result")))
    }

    /// The place, the state and the reason of each step that these events end.
    fn ends(fold: &mut SideFold, events: &[Event]) -> Vec<(usize, TaskStepState, String)> {
        let end = |(at, result): (usize, StepResult)| (at, result.state, result.why);
        events.iter().filter_map(|event| fold.apply_event(event)).map(end).collect()
    }

    #[test]
    fn parallel_step_ends_when_its_result_is_in_the_conversation() {
        let children = StepChildren::default();
        let mut fold = begun(&children);
        let both = [started("elf"), started("ls"), ended("ls", "nothing", true)];
        assert!(ends(&mut fold, &both).is_empty());
        let model = Some("p/m".to_owned());
        let status =
            ChildStatus { model, micro_usd: 3, below_micro_usd: 4, ..ChildStatus::default() };
        children.note(&CallId::new("elf"), &status, Some(ChildEnd::Completed));
        children.note(&CallId::new("elf"), &status, None);
        assert!(ends(&mut fold, &[ended("elf", "found", false)]).is_empty());
        let (at, result) = fold.apply_event(&told()).unwrap();
        assert_eq!((at, result.state, result.micro_usd), (0, TaskStepState::Done, 7));
        assert_eq!((result.models[0].to_string().as_str(), result.took_ms), ("p/m", Some(5)));
        let why = "the command failed: nothing".to_owned();
        assert_eq!(ends(&mut fold, &[told()]), [(1, TaskStepState::Failed, why)]);
    }

    #[test]
    fn step_of_a_failed_or_stopped_elf_is_not_done() {
        use TaskStepState::{Failed, Stopped};
        let cancelling = || Some(Event::State(SessionState::Cancelling));
        for (end, cancelling, state) in [
            (ChildEnd::Failed("no model".to_owned()), None, Failed),
            // It alone was stopped, or its time was over.
            (ChildEnd::Cancelled, None, Failed),
            (ChildEnd::Cancelled, cancelling(), Stopped),
        ] {
            let children = StepChildren::default();
            let mut fold = begun(&children);
            children.note(&CallId::new("elf"), &ChildStatus::default(), Some(end));
            let events = [Some(started("elf")), cancelling, Some(ended("elf", "half", false))];
            let events: Vec<_> = events.into_iter().flatten().chain([told()]).collect();
            assert_eq!(ends(&mut fold, &events)[0].1, state);
        }
        let children = StepChildren::default();
        let mut fold = begun(&children);
        let unattended_denial = Some("nobody".to_owned());
        let status = ChildStatus { unattended_denial, ..ChildStatus::default() };
        children.note(&CallId::new("elf"), &status, Some(ChildEnd::Completed));
        let events = [started("elf"), ended("elf", "half", false), told()];
        let why = "a call was denied: nobody".to_owned();
        assert_eq!(ends(&mut fold, &events), [(0, Failed, why)]);
        let mut fold = begun(&StepChildren::default());
        let (call, reason) = (CallId::new("elf"), "a rule".to_owned());
        let denied = Event::PermissionDecided { call, allowed: false, reason };
        let events = [denied, ended("elf", "permission denied: a rule", true), told()];
        let why = "the elf was denied: a rule".to_owned();
        assert_eq!(ends(&mut fold, &events), [(0, Failed, why)]);
    }

    #[test]
    fn command_denied_outside_the_sandbox_fails_only_its_step() {
        let mut fold = begun(&StepChildren::default());
        let (call, reason) = (CallId::new("ls"), "denied by the user".to_owned());
        let denied = Event::PermissionDecided { call, allowed: false, reason };
        let events = [started("elf"), ended("elf", "found", false), told(), started("ls"), denied];
        assert_eq!(ends(&mut fold, &events).len(), 1);
        let why = "the command failed: read-only".to_owned();
        let events = [ended("ls", "read-only", true), told()];
        assert_eq!(ends(&mut fold, &events), [(1, TaskStepState::Failed, why)]);
    }

    #[test]
    fn step_failing_before_its_start_ends_and_a_skipped_step_does_not() {
        let mut fold = begun(&StepChildren::default());
        let left_out = "[not run: a step before it failed]";
        let events = [ended("elf", "no such agent", true), ended("ls", left_out, true)];
        assert!(ends(&mut fold, &events).is_empty());
        let why = "no such agent".to_owned();
        assert_eq!(ends(&mut fold, &[told(), told()]), [(0, TaskStepState::Failed, why)]);
    }

    #[test]
    fn cancelled_step_that_never_started_has_no_end() {
        let mut fold = begun(&StepChildren::default());
        let events = [
            started("elf"),
            Event::State(SessionState::Cancelling),
            ended("ls", "[not run]", true),
            ended("elf", "", true),
            told(),
            told(),
        ];
        let why = "you stopped the turn".to_owned();
        assert_eq!(ends(&mut fold, &events), [(0, TaskStepState::Stopped, why)]);
    }
}
