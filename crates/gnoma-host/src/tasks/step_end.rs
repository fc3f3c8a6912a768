//! Descriptions of steps that have begun and have no good end. Pure.

use gnoma_extend::tasks::{StepRecord, describe_open_state};

/// Returns the reason of a failure, behind a colon; empty if there is none.
pub(super) fn describe_why(step: &StepRecord) -> String {
    let why = step.why.trim().trim_end_matches('.');
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

/// Describes a step that has no good end beside another one, for the end of a sentence about that one.
pub(super) fn describe_other((number, step): &(usize, &StepRecord)) -> String {
    let state = describe_open_state(step.state);
    format!("; step {number} ({}) {state}{}", step.title, describe_why(step))
}
