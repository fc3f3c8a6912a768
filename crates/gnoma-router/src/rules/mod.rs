//! What the person decided about arms: pins, bans, preferences and bounds, and who plays which role. Rules come in as
//! data with the place they were written at, and every refusal and contradiction names it. Reading rules from files is
//! elsewhere, and so is knowing what time it is.

mod apply;
mod check;
mod glob;
mod hours;
mod paths;
mod prefer;
mod roles;
mod rule_conditions;

use serde::{Deserialize, Serialize};

pub use apply::{AppliedRules, Bounds, apply_rules};
pub use check::{check_rules, misses_arms};
pub use glob::{MOST_GLOB_CHARS, fits_arm, fits_path};
pub use hours::{Day, Hours, LocalTime, MINUTES_PER_DAY};
pub use paths::{MatchedPaths, PathBase};
pub use roles::{Role, Roles, WorkStage};
pub use rule_conditions::{RuleConditions, WorkFacts};

/// Rules that are looked at; further ones are named as left out. Whoever reads rules should refuse more.
pub const MOST_RULES: usize = 512;
/// Percent of a task's worth that preferences add up to at most.
pub const MOST_PREFERENCE_PERCENT: u32 = 100;

/// One rule about arms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The name that the person gave the rule.
    pub name: String,
    /// The place where the rule stands, such as `gnoma.toml:12`.
    pub origin: String,
    /// The conditions under which the rule holds.
    #[serde(default)]
    pub when: RuleConditions,
    /// The effects of the rule.
    pub then: Vec<RuleEffect>,
}

/// The effect of a rule. Arms are globs over `provider/model`, such as `anthropic/*`; see [`fits_arm`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleEffect {
    /// Only these arms may be used.
    Pin(String),
    /// None of these arms may be used.
    Forbid(Vec<String>),
    /// Rather these: they may be worse by so much and are still taken.
    Prefer {
        /// The arms that are preferred.
        arms: Vec<String>,
        /// By how many percent of what the task is worth.
        percent: u32,
    },
    /// None that is expected to cost more than so many micro-dollars.
    MaxCostMicroUsd(u64),
    /// None that is expected to take more than so many seconds.
    MaxSeconds(u32),
}

impl Rule {
    /// Returns the rule's name and where it stands, for messages.
    #[must_use]
    pub fn label(&self) -> String {
        format!("rule `{}` ({})", self.name, self.origin)
    }

    /// Reports whether the rule is about certain files, which must not reach the arms that it leaves out.
    fn is_about_paths(&self) -> bool {
        !self.when.paths.is_empty()
    }

    fn pinned_globs(&self) -> impl Iterator<Item = &str> {
        self.then.iter().filter_map(RuleEffect::pinned_glob)
    }

    fn forbids_arm(&self, arm: &str) -> bool {
        self.then.iter().any(|action| action.forbids_arm(arm))
    }

    /// By how many percent of the task's worth it prefers an arm.
    fn preference_percent(&self, arm: &str) -> u32 {
        self.then.iter().map(|action| action.preference_percent(arm)).fold(0, u32::saturating_add)
    }
}

impl RuleEffect {
    /// The glob of arms it pins.
    fn pinned_glob(&self) -> Option<&str> {
        match self {
            Self::Pin(arms) => Some(arms),
            Self::Forbid(_)
            | Self::Prefer { .. }
            | Self::MaxCostMicroUsd(_)
            | Self::MaxSeconds(_) => None,
        }
    }

    fn forbids_arm(&self, arm: &str) -> bool {
        match self {
            Self::Forbid(globs) => globs.iter().any(|glob| fits_arm(glob, arm)),
            Self::Pin(_) | Self::Prefer { .. } | Self::MaxCostMicroUsd(_) | Self::MaxSeconds(_) => {
                false
            }
        }
    }

    /// By how many percent of the task's worth it prefers an arm.
    fn preference_percent(&self, arm: &str) -> u32 {
        match self {
            Self::Prefer { arms, percent } if arms.iter().any(|glob| fits_arm(glob, arm)) => {
                *percent
            }
            Self::Pin(_)
            | Self::Forbid(_)
            | Self::Prefer { .. }
            | Self::MaxCostMicroUsd(_)
            | Self::MaxSeconds(_) => 0,
        }
    }

    /// All globs of arms in it.
    fn arm_globs(&self) -> &[String] {
        match self {
            Self::Pin(glob) => std::slice::from_ref(glob),
            Self::Forbid(globs) | Self::Prefer { arms: globs, .. } => globs,
            Self::MaxCostMicroUsd(_) | Self::MaxSeconds(_) => &[],
        }
    }
}
