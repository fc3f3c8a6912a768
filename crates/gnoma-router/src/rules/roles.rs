//! Who plays which role, and which role a piece of work is for. Work that no role is given for is routed freely.

use serde::{Deserialize, Serialize};

use crate::{arm::ArmId, classify::TaskType};

/// What an arm is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Summaries of long conversations, and classifying requests.
    Small,
    /// Deciding what to do.
    Planner,
    /// Doing it.
    Editor,
    /// Judging it.
    Reviewer,
}

impl Role {
    /// Its name, such as `planner`.
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
    /// Which role it is for; `None` for questions, which any arm may answer.
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

/// Who plays which role; `None`: whoever is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roles {
    /// For chores.
    pub small: Option<ArmId>,
    /// For plans.
    pub planner: Option<ArmId>,
    /// For changes.
    pub editor: Option<ArmId>,
    /// For judgements.
    pub reviewer: Option<ArmId>,
}

impl Roles {
    /// Who is set for a piece of work.
    #[must_use]
    pub fn arm(&self, stage: WorkStage) -> Option<(Role, &ArmId)> {
        let role = stage.role()?;
        let arm = match role {
            Role::Small => &self.small,
            Role::Planner => &self.planner,
            Role::Editor => &self.editor,
            Role::Reviewer => &self.reviewer,
        };
        Some((role, arm.as_ref()?))
    }
}
