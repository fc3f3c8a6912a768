//! What a session reports of a choice of a model.

use serde::{Deserialize, Serialize};

use crate::message::ModelRef;

/// How a turn was routed, for people and for the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Routing {
    /// Type of the task, such as `debug`.
    pub kind: String,
    /// How difficult it seems, in percent.
    pub complexity: u8,
    /// What decided that: `heuristic`, `slm`, `slm_fallback`, `user`.
    pub decided_by: String,
    /// How the arms are used: `single`, `cascade`, `ensemble` or `synthesis`.
    pub strategy: String,
    /// Who is asked first; several for an ensemble.
    pub arms: Vec<ModelRef>,
    /// Why, in one line.
    pub why: String,
    /// Every candidate with its numbers, and what excluded the others, a line each.
    pub candidates: Vec<String>,
    /// The seed that broke ties.
    pub seed: u64,
}

impl Routing {
    /// Names for people what judged the kind and the difficulty of the task.
    #[must_use]
    pub fn judge(&self) -> &str {
        match self.decided_by.as_str() {
            "heuristic" | "slm_fallback" => "wording",
            "slm" => "a small model",
            other => other,
        }
    }
}
