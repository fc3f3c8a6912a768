//! The settings by which turns are routed.

use gnoma_core::{
    ModelRef,
    ledger::{Amount, ExhaustedLimit},
};
use jiff::tz::TimeZone;

use crate::{
    clock::Zone,
    pool::PoolLimits,
    rules::{MatchedPaths, PathBase, Roles, Rule},
};

/// The way in which arms are used for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// As the router finds best.
    #[default]
    Auto,
    /// One arm, nobody checks.
    Single,
    /// One arm; its work is checked, and another arm continues if the check fails.
    Cascade,
    /// Several at once, the best answer counts.
    Ensemble,
    /// Several at once, one answer is made of all.
    Synthesis,
}

impl Strategy {
    /// All of them, in the order of the settings' documentation.
    pub const ALL: [Self; 5] =
        [Self::Auto, Self::Single, Self::Cascade, Self::Ensemble, Self::Synthesis];

    /// Returns the strategy's name for people and programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Single => "single",
            Self::Cascade => "cascade",
            Self::Ensemble => "ensemble",
            Self::Synthesis => "synthesis",
        }
    }

    /// Reports whether several arms answer in this strategy.
    pub(super) fn is_panel(self) -> bool {
        matches!(self, Self::Ensemble | Self::Synthesis)
    }
}

/// The check of the work before it is delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// The project's checks if it has any, else a reviewing arm.
    #[default]
    Auto,
    /// The project's checks only.
    Checks,
    /// A reviewing arm only.
    Reviewer,
    /// The work is not checked.
    Off,
}

impl Verify {
    /// All of them, in the order of the settings' documentation.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Checks, Self::Reviewer, Self::Off];

    /// Returns the name of this check in the settings.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Checks => "checks",
            Self::Reviewer => "reviewer",
            Self::Off => "off",
        }
    }
}

/// The settings by which turns are routed.
#[derive(Clone, Debug)]
pub struct RouterSettings {
    /// The routing rules of the user.
    pub rules: Vec<Rule>,
    /// Mistakes in the rules that the user already knows about, so that they are reported once.
    pub said: Vec<String>,
    /// Arms for parts of the work.
    pub roles: Roles,
    /// Micro-dollars that a right result of an ordinary task is worth.
    pub value_micro_usd: u64,
    /// Micro-dollars that a second of waiting costs.
    pub second_micro_usd: u64,
    /// The way in which arms are used.
    pub strategy: Strategy,
    /// Most attempts at a task.
    pub max_attempts: usize,
    /// The check that looks at the work.
    pub verify: Verify,
    /// Commands that prove the project right; the user vouches for them.
    pub checks: Vec<String>,
    /// True if another arm takes over from one that fails.
    pub failover: bool,
    /// True if the router learns from the outcomes of tasks.
    pub learn: bool,
    /// Only this arm is asked.
    pub pinned: Option<ModelRef>,
    /// True if nothing may leave this machine.
    pub local_only: bool,
    /// The arm that says what kind of task it is; without one the words are judged.
    pub classifier: Option<ModelRef>,
    /// The folder at which the paths in rules begin.
    pub ground: PathBase,
    /// The classifier does nothing else.
    pub only_classifies: bool,
    /// The limits on how much may be spent, and how fast.
    pub limits: PoolLimits,
    /// The project, as its spending is counted.
    pub project: String,
    /// The zone of the people who read times and whose hours rules speak of.
    pub zone: Zone,
    /// The seed for choices between equal arms.
    pub seed: u64,
}

impl Default for RouterSettings {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            said: Vec::new(),
            roles: Roles::default(),
            value_micro_usd: 10_000_000,
            second_micro_usd: 0,
            strategy: Strategy::default(),
            max_attempts: 3,
            verify: Verify::default(),
            checks: Vec::new(),
            failover: true,
            learn: true,
            pinned: None,
            local_only: false,
            classifier: None,
            ground: PathBase::default(),
            only_classifies: false,
            limits: PoolLimits::default(),
            project: String::new(),
            zone: || TimeZone::UTC,
            seed: 0,
        }
    }
}

impl RouterSettings {
    /// Reports whether the project's checks decide if work holds.
    #[must_use]
    pub fn runs_checks(&self) -> bool {
        !self.checks.is_empty() && matches!(self.verify, Verify::Auto | Verify::Checks)
    }

    /// Returns the starting state of path rules, in which nothing but the folder has been met yet.
    #[must_use]
    pub fn new_concern(&self) -> MatchedPaths {
        MatchedPaths::new(&self.rules, self.ground.clone())
    }

    /// Describes a limit that has no room for a call.
    #[must_use]
    pub fn describe_full_limit(&self, full: &ExhaustedLimit, need: &Amount, now_ms: i64) -> String {
        self.limits.describe_full_limit(full, need, now_ms, self.zone)
    }

    /// Reports whether the arm is only there to classify tasks.
    pub(super) fn is_classifier_only(&self, arm: &ModelRef) -> bool {
        self.only_classifies && self.classifier.as_ref() == Some(arm)
    }
}
