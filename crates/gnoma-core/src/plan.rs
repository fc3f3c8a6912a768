//! The plan of a piece of work: its steps, and where each stands. Models keep it by a tool, people see it.

use serde::{Deserialize, Serialize};

use crate::json::RawJson;

/// Most steps of a plan.
pub const MAX_STEPS: usize = 30;
/// Longest step, in bytes.
pub const MAX_STEP_BYTES: usize = 300;

/// Where a step stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    #[default]
    Pending,
    /// Under way.
    #[serde(alias = "in_progress")]
    Active,
    /// Done.
    #[serde(alias = "completed")]
    Done,
}

/// A step of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanStep {
    /// What is done in it, in a line.
    pub text: String,
    /// Where it stands.
    #[serde(default)]
    pub status: StepStatus,
}

/// The marks of a plan as text, by status.
const MARKS: [(StepStatus, &str); 3] =
    [(StepStatus::Done, "[x] "), (StepStatus::Active, "[>] "), (StepStatus::Pending, "[ ] ")];

#[derive(Deserialize)]
struct PlanArguments {
    steps: Vec<PlanStep>,
}

/// Arguments that are no plan; displayed in words for the model.
#[derive(thiserror::Error)]
pub enum PlanArgumentsError {
    /// The arguments do not have the shape of a plan.
    #[error(transparent)]
    Arguments(#[from] serde_json::Error),
    /// The plan has too many steps, or a step is empty or too long.
    #[error("a plan has at most {} steps of 1 to {} bytes each", MAX_STEPS, MAX_STEP_BYTES)]
    TooLarge,
}

crate::debug_as_display!(PlanArgumentsError);

/// Reads the plan in the arguments of a call that sets it.
///
/// # Errors
/// The arguments are no plan.
pub fn parse_plan(arguments: &RawJson) -> Result<Vec<PlanStep>, PlanArgumentsError> {
    let PlanArguments { mut steps } = arguments.read()?;
    for step in &mut steps {
        step.text = step.text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let is_fit = |step: &PlanStep| (1..=MAX_STEP_BYTES).contains(&step.text.len());
    if steps.len() > MAX_STEPS || !steps.iter().all(is_fit) {
        return Err(PlanArgumentsError::TooLarge);
    }
    Ok(steps)
}

/// A plan as text, a line each: `[x]` done, `[>]` under way, `[ ]` to come.
#[must_use]
pub fn to_text(steps: &[PlanStep]) -> String {
    let mark = |status| MARKS.iter().find(|(of, _)| *of == status).map_or("", |(_, mark)| mark);
    let line = |step: &PlanStep| format!("{}{}", mark(step.status), step.text);
    steps.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The plan in a text: the lines that are marked as its steps.
#[must_use]
pub fn from_text(text: &str) -> Vec<PlanStep> {
    let step = |line: &str| {
        MARKS.iter().find_map(|(status, mark)| {
            Some(PlanStep { text: line.strip_prefix(mark)?.to_owned(), status: *status })
        })
    };
    text.lines().filter_map(step).take(MAX_STEPS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_steps_round_trip_through_text() {
        let arguments = r#"{"steps":[{"text":"read\n the code","status":"done"},
            {"text":"change it","status":"in_progress"},{"text":"test"}]}"#;
        let steps = parse_plan(&RawJson::parse(arguments).unwrap()).unwrap();
        let text = to_text(&steps);
        assert_eq!(text, "[x] read the code\n[>] change it\n[ ] test");
        assert_eq!(from_text(&format!("It was long.\n{text}\nThe end.")), steps);
        for wrong in [r#"{"steps":[{"text":" "}]}"#, r#"{"steps":[{"text":"a","status":"x"}]}"#] {
            assert!(parse_plan(&RawJson::parse(wrong).unwrap()).is_err(), "{wrong}");
        }
    }
}
