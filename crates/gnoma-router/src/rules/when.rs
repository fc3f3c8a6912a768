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
pub struct When {
    /// Kinds of task, without regard to case and underscores.
    pub tasks: Vec<String>,
    /// Globs over the files spoken of, or the folder; see [`super::fits_path`].
    pub paths: Vec<String>,
    /// Times.
    pub hours: Option<Hours>,
    /// At least so hard.
    pub min_complexity: Option<u8>,
    /// At most so hard.
    pub max_complexity: Option<u8>,
}

/// A task as rules see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkFacts {
    /// Its kind.
    pub kind: TaskKind,
    /// How hard it seems, in percent.
    pub complexity: u8,
    /// Micro-dollars a right result is worth.
    pub value_micro_usd: u64,
    /// Files spoken of and the folder, relative to the project ([`super::Concern`]).
    pub paths: Vec<String>,
    /// Files that the conversation holds, relative to the project: what pins and bans keep from an arm is in there.
    pub touched: Vec<String>,
    /// What the clock on the wall says; `None` where nobody knows, and no rule about hours holds.
    pub time: Option<LocalTime>,
}

impl When {
    /// Whether it holds for a task.
    #[must_use]
    pub fn holds(&self, facts: &WorkFacts) -> bool {
        self.holds_but_for_paths(facts) && self.fits_paths(&facts.paths)
    }

    /// Whether it holds for a task or for what the conversation holds already.
    #[must_use]
    pub fn holds_still(&self, facts: &WorkFacts) -> bool {
        let fits = self.fits_paths(&facts.paths) || self.fits_paths(&facts.touched);
        fits && self.holds_but_for_paths(facts)
    }

    fn holds_but_for_paths(&self, facts: &WorkFacts) -> bool {
        let kind = plain_name(&facts.kind.0);
        let task = self.tasks.is_empty() || self.tasks.iter().any(|task| plain_name(task) == kind);
        let hours =
            self.hours.as_ref().is_none_or(|hours| facts.time.is_some_and(|time| hours.hold(time)));
        let hard_enough = self.min_complexity.is_none_or(|least| facts.complexity >= least);
        let easy_enough = self.max_complexity.is_none_or(|most| facts.complexity <= most);
        task && hours && hard_enough && easy_enough
    }

    fn fits_paths(&self, paths: &[String]) -> bool {
        self.paths.is_empty()
            || paths.iter().any(|path| self.paths.iter().any(|glob| fits_path(glob, path)))
    }

    /// How narrow it is: the number of conditions, then the characters of its longest glob of paths that are meant
    /// as they stand.
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
