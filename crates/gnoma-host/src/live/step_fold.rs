//! Folds the events of a turn into the end of a step. Pure.

use gnoma_core::{
    Event, Message, ModelRef, Role, StopReason, ToolResult,
    protocol::TaskStepState,
    session::{NoticeLevel, Outcome},
    text_truncation,
    tool::unkept_trial_changes,
};
use gnoma_engine::gate::NOBODY_TO_ASK;
use gnoma_extend::tasks::StepResult;

/// Bytes at the end of a failed command's output that say why it failed.
const MAX_WHY_BYTES: usize = 400;

/// Folds the events of a step's turn.
#[derive(Debug, Default)]
pub(super) struct StepFold {
    is_command: bool,
    /// The text of the notice with which the step's turn begins.
    announcement: String,
    /// The step's turn has begun.
    has_begun: bool,
    /// The message of the step.
    message: Option<String>,
    /// The result of the command, once it has run or was denied.
    command: Option<Result<(), StepCommandError>>,
    /// A model has said something, or a call has succeeded.
    has_result: bool,
    /// The reason why a call was denied that needed approval, in a session without a user.
    unasked: Option<String>,
    outcome: Option<Outcome>,
    micro_usd: u64,
    /// The models that were called.
    models: Vec<ModelRef>,
    /// What commands changed on trial and was not kept, as it was told last.
    discarded: String,
}

impl StepFold {
    /// Waits for the turn of a step, which begins with the notice `announcement`. `is_command`: it runs a command, and
    /// no model answers.
    pub(super) fn new(is_command: bool, announcement: String) -> Self {
        Self { is_command, announcement, ..Self::default() }
    }

    /// Returns whether the turn of the step has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Applies an event of the session. Events before the turn of the step belong to another turn.
    pub(super) fn apply_event(&mut self, event: &Event) {
        if !self.has_begun {
            self.has_begun = begins_step(event, &self.announcement);
            return;
        }
        match event {
            Event::Appended(message) => {
                if is_step_message(message) && self.message.is_none() {
                    self.message = Some(message.text_content());
                }
                self.has_result |=
                    message.role() == Role::Assistant && !message.text_content().trim().is_empty();
            }
            Event::ToolEnded { result, .. } => self.apply_result(result),
            Event::PermissionDecided { allowed: false, reason, .. } => {
                if reason.contains(NOBODY_TO_ASK) {
                    self.unasked.get_or_insert_with(|| reason.clone());
                }
                if self.is_command {
                    self.command = Some(Err(StepCommandError::Denied { reason: reason.clone() }));
                }
            }
            Event::Cost { call_micro_usd, .. } => {
                self.micro_usd = self.micro_usd.saturating_add(call_micro_usd.unwrap_or_default());
            }
            Event::RoundStarted { arm, .. } if !self.models.contains(arm) => {
                self.models.push(arm.clone());
            }
            Event::TurnEnded { outcome, .. } => self.outcome = Some(outcome.clone()),
            _ => (),
        }
    }

    fn apply_result(&mut self, result: &ToolResult) {
        self.has_result |= !result.is_error;
        if let Some(unkept) = unkept_trial_changes(&result.joined_text()) {
            self.discarded = unkept;
        }
        if self.is_command && self.command.is_none() {
            let failed = || Err(StepCommandError::from_result(result));
            self.command = Some(if result.is_error { failed() } else { Ok(()) });
        }
    }

    /// Returns how the step ended, once the session is idle.
    pub(super) fn finish(mut self) -> StepResult {
        let (micro_usd, message) = (self.micro_usd, self.message.take());
        let models = std::mem::take(&mut self.models);
        let (state, why) = self.final_state();
        let took_ms = None;
        StepResult { state, why, micro_usd, answer: None, message, models, took_ms }
    }

    fn final_state(self) -> (TaskStepState, String) {
        let failed = |why: &str| (TaskStepState::Failed, why.to_owned());
        match self.outcome {
            Some(Outcome::Cancelled) | None => {
                (TaskStepState::Stopped, "you stopped the turn".to_owned())
            }
            Some(Outcome::Complete { stop }) => match (stop, self.command, self.unasked) {
                (_, Some(Ok(())), _) if self.is_command => (TaskStepState::Done, self.discarded),
                (_, Some(Err(why)), _) if self.is_command => failed(&why.to_string()),
                (_, _, _) if self.is_command => failed("this session cannot run commands"),
                (StopReason::Refusal | StopReason::ContentFilter, ..) => {
                    failed("the model refused")
                }
                (_, _, Some(why)) => (TaskStepState::Failed, format!("a call was denied: {why}")),
                _ if self.has_result => (TaskStepState::Done, self.discarded),
                _ => failed("the model gave an empty answer"),
            },
            Some(Outcome::RoundLimit { rounds }) => {
                (TaskStepState::Failed, format!("it reached the limit of {rounds} model calls"))
            }
            Some(Outcome::Unfit { why, .. }) => (TaskStepState::Failed, why),
            Some(Outcome::Stuck { what }) => (TaskStepState::Failed, what),
            Some(Outcome::Failed { error, .. }) => (TaskStepState::Failed, error.to_string()),
        }
    }
}

/// Returns whether an event is the notice with which the turn of a step begins.
pub(super) fn begins_step(event: &Event, announcement: &str) -> bool {
    matches!(
        event,
        Event::Notice { level: NoticeLevel::Info, text } if *text == announcement
    )
}

/// Returns whether a message of the turn is the step's own.
pub(super) fn is_step_message(message: &Message) -> bool {
    message.role() == Role::User && !message.is_system_note()
}

/// The failure of the command that a step runs.
#[derive(thiserror::Error)]
pub(super) enum StepCommandError {
    #[error("the command failed: {output_end}")]
    Failed { output_end: String },
    #[error("the command was denied: {reason}")]
    Denied { reason: String },
}

gnoma_core::debug_as_display!(StepCommandError);

impl StepCommandError {
    pub(super) fn from_result(result: &ToolResult) -> Self {
        let text = result.joined_text();
        let end = text_truncation::word_suffix(text.trim_end(), MAX_WHY_BYTES).trim();
        Self::Failed { output_end: end.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{CallId, RawJson, ToolCall, Usage};

    use super::*;

    fn ended(is_error: bool, text: &str) -> Event {
        let call = ToolCall::new(CallId::new("c"), "bash", RawJson::empty_object());
        let result = ToolResult::from_text(&call, text, is_error);
        Event::ToolEnded { call, result, diff: None, duration_ms: 1, command: None }
    }

    fn over(outcome: Outcome) -> Event {
        let (undelivered, answer) = (Vec::new(), None);
        Event::TurnEnded { outcome, rounds: 1, usage: Usage::default(), undelivered, answer }
    }

    fn denied(reason: &str) -> Event {
        Event::PermissionDecided {
            call: CallId::new("c"),
            allowed: false,
            reason: reason.to_owned(),
        }
    }

    fn result(is_command: bool, events: &[Event]) -> (TaskStepState, String) {
        let mut fold = StepFold::new(is_command, "step 1".to_owned());
        // Of the turn before it.
        fold.apply_event(&ended(!is_command, "other"));
        fold.apply_event(&over(Outcome::Cancelled));
        assert!(!fold.has_begun());
        fold.apply_event(&Event::Notice { level: NoticeLevel::Info, text: "step 1".to_owned() });
        events.iter().for_each(|event| fold.apply_event(event));
        let StepResult { state, why, .. } = fold.finish();
        (state, why)
    }

    #[test]
    fn task_step_state_follows_its_turn_and_command() {
        use TaskStepState::{Done, Failed, Stopped};
        let complete = || over(Outcome::Complete { stop: StopReason::EndTurn });
        let said = || Event::Appended(Arc::new(Message::user_text("x")));
        let cases: Vec<(bool, Vec<Event>, TaskStepState, &str)> = vec![
            (true, vec![ended(false, "ok"), complete()], Done, ""),
            (
                true,
                vec![ended(false, "ok\n[ran on trial; discarded (out.txt)]"), complete()],
                Done,
                "on trial; out.txt was not kept",
            ),
            (true, vec![ended(true, "boom"), complete()], Failed, "the command failed: boom"),
            (true, vec![denied("no rule"), complete()], Failed, "denied: no rule"),
            (true, vec![complete()], Failed, "cannot run commands"),
            (true, vec![ended(false, ""), over(Outcome::Cancelled)], Stopped, "you stopped"),
            (false, vec![ended(true, "x"), ended(false, "y"), complete()], Done, ""),
            (false, vec![said(), complete()], Failed, "empty answer"),
            (false, vec![denied(NOBODY_TO_ASK), ended(false, ""), complete()], Failed, "denied"),
            (false, vec![denied("by a rule"), ended(false, ""), complete()], Done, ""),
            (false, vec![over(Outcome::RoundLimit { rounds: 3 })], Failed, "limit of 3"),
            (false, vec![over(Outcome::Complete { stop: StopReason::Refusal })], Failed, "refused"),
            (false, vec![over(Outcome::Stuck { what: "w".into() })], Failed, "w"),
            (false, vec![], Stopped, ""),
        ];
        for (is_command, events, state, part) in cases {
            let (found, why) = result(is_command, &events);
            assert!(found == state && why.contains(part), "{events:?}: {found:?} {why}");
        }
    }
}
