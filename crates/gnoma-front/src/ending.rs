//! How a turn ended, for programs: `subtype`, `stop_reason` and exit code.

use gnoma_core::{StopReason, session::Outcome};

use crate::report::Exit;

/// The fields of a turn's result object that say how the turn ended.
pub struct Ending {
    /// The kind of ending, such as `success` or `error_max_turns`.
    pub subtype: &'static str,
    /// The cause of a failure.
    pub error: Option<String>,
    /// The reason why the model stopped, if it completed its answer.
    pub stop: Option<StopReason>,
    /// The answer broke off, and the part that had arrived is in the history.
    pub kept_partial: bool,
}

impl Ending {
    /// Returns the ending of a turn with `rounds` calls of models. A turn without any had a hook that kept the prompt
    /// back, and the session's last warning has the reason.
    pub fn of_turn(outcome: &Outcome, rounds: u32, last_warning: Option<&str>) -> Self {
        if rounds == 0 && matches!(outcome, Outcome::Complete { .. }) {
            return Self::from_error(last_warning.unwrap_or("not sent to the model").to_owned());
        }
        Self::from_outcome(outcome)
    }

    fn from_error(error: String) -> Self {
        Self {
            subtype: "error_during_execution",
            error: Some(error),
            stop: None,
            kept_partial: false,
        }
    }

    fn from_outcome(outcome: &Outcome) -> Self {
        let failed = Self::from_error;
        let silent = |subtype| Self { subtype, error: None, stop: None, kept_partial: false };
        match outcome {
            Outcome::Complete { stop } => {
                let ending = match stop {
                    StopReason::Refusal => failed("the model refused".to_owned()),
                    StopReason::ContentFilter => {
                        failed("the provider's content filter stopped the answer".to_owned())
                    }
                    StopReason::EndTurn
                    | StopReason::ToolUse
                    | StopReason::MaxTokens
                    | StopReason::StopSequence
                    | StopReason::Pause
                    | StopReason::Other => silent("success"),
                };
                Self { stop: Some(*stop), ..ending }
            }
            Outcome::RoundLimit { .. } => silent("error_max_turns"),
            Outcome::Cancelled => failed("cancelled".to_owned()),
            Outcome::Stuck { what } => failed(what.clone()),
            Outcome::Unfit { why, .. } => {
                Self { subtype: "error_max_structured_output_retries", ..failed(why.clone()) }
            }
            Outcome::Failed { error, .. }
                if Exit::from_provider_error(error) == Exit::OverBudget =>
            {
                Self { subtype: "error_max_budget_usd", ..failed(error.to_string()) }
            }
            Outcome::Failed { error, kept_partial } => {
                Self { kept_partial: *kept_partial, ..failed(error.to_string()) }
            }
        }
    }
}
