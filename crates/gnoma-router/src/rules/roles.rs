//! Who plays which role, and which role a piece of work is for. Work that no role is given for is routed freely.

use serde::{Deserialize, Serialize};

use crate::{arm::ArmId, classify::TaskType};

/// The role that an arm plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Summaries of long conversations, and classifying requests.
    Small,
    /// Deciding what to do.
    Planner,
    /// Doing what was decided.
    Editor,
    /// Judging what was done.
    Reviewer,
}

impl Role {
    /// Returns the name of the role, such as `planner`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Planner => "planner",
            Self::Editor => "editor",
            Self::Reviewer => "reviewer",
        }
    }
}

/// A piece of work within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkStage {
    /// Summarising and classifying.
    Chore,
    /// A turn of the person's.
    Turn(TaskType),
    /// Judging an attempt, before it is delivered.
    Verify,
}

impl WorkStage {
    /// Returns the role that the work is for; `None` for questions, which any arm may answer.
    #[must_use]
    pub fn role(self) -> Option<Role> {
        match self {
            Self::Chore => Some(Role::Small),
            Self::Verify => Some(Role::Reviewer),
            Self::Turn(kind) => match kind {
                TaskType::Planning | TaskType::Orchestration => Some(Role::Planner),
                TaskType::Review | TaskType::SecurityReview => Some(Role::Reviewer),
                TaskType::Debug
                | TaskType::UnitTest
                | TaskType::Refactor
                | TaskType::Boilerplate
                | TaskType::Generation => Some(Role::Editor),
                TaskType::Explain => None,
            },
        }
    }
}

/// The arms that play the roles; `None` leaves the choice of the arm to routing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roles {
    /// The arm for chores.
    pub small: Option<ArmId>,
    /// The arm for plans.
    pub planner: Option<ArmId>,
    /// The arm for changes.
    pub editor: Option<ArmId>,
    /// The arm for judgements.
    pub reviewer: Option<ArmId>,
}

impl Roles {
    /// Returns the arms that play roles, each after the setting that names it.
    pub fn named_arms(&self) -> impl Iterator<Item = (&'static str, &ArmId)> {
        let Self { small, planner, editor, reviewer } = self;
        let all = [
            ("router.roles.small", small),
            ("router.roles.planner", planner),
            ("router.roles.editor", editor),
            ("router.roles.reviewer", reviewer),
        ];
        all.into_iter().filter_map(|(key, arm)| Some((key, arm.as_ref()?)))
    }

    /// Returns the role and the arm that are set for a piece of work.
    #[must_use]
    pub fn arm_for_stage(&self, stage: WorkStage) -> Option<(Role, &ArmId)> {
        let role = stage.role()?;
        Some((role, self.arm_of(role.name())?))
    }

    /// Returns the arm that is set for the role of this name.
    #[must_use]
    pub fn arm_of(&self, role: &str) -> Option<&ArmId> {
        let arm = match role {
            "small" => &self.small,
            "planner" => &self.planner,
            "editor" => &self.editor,
            "reviewer" => &self.reviewer,
            _ => return None,
        };
        arm.as_ref()
    }
}
