//! Whether a rule holds for a task. Conditions of different sorts must all hold; of one sort, one is enough.

use serde::{Deserialize, Serialize};

use super::{
    glob::fits_path,
    hours::{Hours, LocalTime},
};
use crate::{classify::plain_name, task::TaskKind};

/// Conditions; what is not said holds always.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RuleConditions {
    /// Kinds of task, without regard to case and underscores.
    pub tasks: Vec<String>,
    /// Globs over the files spoken of, or the folder; see [`super::fits_path`].
    pub paths: Vec<String>,
    /// The times of the week at which the rule holds.
    pub hours: Option<Hours>,
    /// At least so hard.
    pub min_complexity: Option<u8>,
    /// At most so hard.
    pub max_complexity: Option<u8>,
}

/// A task as rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFacts {
    /// The kind of the task.
    pub kind: TaskKind,
    /// The estimated difficulty of the task, in percent.
    pub complexity: u8,
    /// Micro-dollars a right result is worth.
    pub value_micro_usd: u64,
    /// Files spoken of and the folder, relative to the project ([`super::Concern`]).
    pub paths: Vec<String>,
    /// Files that the conversation holds, relative to the project: what pins and bans keep from an arm is in there.
    pub touched: Vec<String>,
    /// The local day and time; `None` where it is not known, and then no rule about hours holds.
    pub time: Option<LocalTime>,
}

impl RuleConditions {
    /// Reports whether the conditions hold for a task.
    #[must_use]
    pub fn applies_to(&self, facts: &WorkFacts) -> bool {
        self.holds_but_for_paths(facts) && self.fits_paths(&facts.paths)
    }

    /// Reports whether the conditions hold for a task or for what the conversation holds already.
    #[must_use]
    pub fn holds_still(&self, facts: &WorkFacts) -> bool {
        let fits = self.fits_paths(&facts.paths) || self.fits_paths(&facts.touched);
        fits && self.holds_but_for_paths(facts)
    }

    fn holds_but_for_paths(&self, facts: &WorkFacts) -> bool {
        let kind = plain_name(&facts.kind.0);
        let task = self.tasks.is_empty() || self.tasks.iter().any(|task| plain_name(task) == kind);
        let hours = self
            .hours
            .as_ref()
            .is_none_or(|hours| facts.time.is_some_and(|time| hours.contains_time(time)));
        let hard_enough = self.min_complexity.is_none_or(|least| facts.complexity >= least);
        let easy_enough = self.max_complexity.is_none_or(|most| facts.complexity <= most);
        task && hours && hard_enough && easy_enough
    }

    fn fits_paths(&self, paths: &[String]) -> bool {
        self.paths.is_empty()
            || paths.iter().any(|path| self.paths.iter().any(|glob| fits_path(glob, path)))
    }

    /// Returns how narrow the conditions are: their number, then the characters of the longest glob of paths that
    /// are meant as they stand.
    pub(super) fn narrowness(&self) -> (usize, usize) {
        let conditions = [
            !self.tasks.is_empty(),
            !self.paths.is_empty(),
            self.hours.is_some(),
            self.min_complexity.is_some(),
            self.max_complexity.is_some(),
        ];
        let literal =
            |glob: &String| glob.chars().filter(|char| !matches!(char, '*' | '?')).count();
        (
            conditions.into_iter().filter(|said| *said).count(),
            self.paths.iter().map(literal).max().unwrap_or(0),
        )
    }
}
