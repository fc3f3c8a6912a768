//! The ten types of task, their names and what each is worth. Which words speak of which is in `words.tsv`.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::task::TaskKind;

/// A type of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TaskType {
    /// Look for ways in for an attacker.
    SecurityReview,
    /// Find out what is wrong, and mend it.
    Debug,
    /// Write tests.
    UnitTest,
    /// Judge what is there.
    Review,
    /// Change the form, not the behaviour.
    Refactor,
    /// Split work among several agents.
    Orchestration,
    /// Decide what to do and how.
    Planning,
    /// Tell what is there, or how the world is.
    Explain,
    /// Rote work.
    Boilerplate,
    /// Make something new.
    Generation,
}

/// No type has this name.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("no task type is called `{0}`")]
pub struct UnknownType(pub String);

gnoma_core::debug_as_display!(UnknownType);

impl TaskType {
    /// All, in the order in which equals are parted.
    pub const ALL: [Self; 10] = [
        Self::SecurityReview,
        Self::Debug,
        Self::UnitTest,
        Self::Review,
        Self::Refactor,
        Self::Orchestration,
        Self::Planning,
        Self::Explain,
        Self::Boilerplate,
        Self::Generation,
    ];

    /// Returns the name of the type, such as `unit_test`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SecurityReview => "security_review",
            Self::Debug => "debug",
            Self::UnitTest => "unit_test",
            Self::Review => "review",
            Self::Refactor => "refactor",
            Self::Orchestration => "orchestration",
            Self::Planning => "planning",
            Self::Explain => "explain",
            Self::Boilerplate => "boilerplate",
            Self::Generation => "generation",
        }
    }

    /// The kind under which the router learns about it.
    #[must_use]
    pub fn task_kind(self) -> TaskKind {
        TaskKind::new(self.name())
    }

    /// Returns the worth of a right result, in percent of a normal task.
    #[must_use]
    pub fn value_percent(self) -> u32 {
        match self {
            Self::Boilerplate => 60,
            Self::Explain => 70,
            Self::UnitTest => 80,
            Self::Refactor => 90,
            Self::Generation => 100,
            Self::Review => 110,
            Self::Debug => 120,
            Self::Planning => 140,
            Self::Orchestration => 150,
            Self::SecurityReview => 200,
        }
    }

    /// The complexity of a task of this type of which nothing else is known.
    pub(super) fn usual_complexity(self) -> u8 {
        match self {
            Self::SecurityReview | Self::Orchestration => 60,
            Self::Refactor | Self::Planning | Self::Debug => 40,
            Self::UnitTest | Self::Review => 35,
            Self::Generation => 30,
            Self::Explain => 15,
            Self::Boilerplate => 10,
        }
    }

    /// The complexity that a task of this type has at least, however easy it sounds.
    #[must_use]
    pub fn least_complexity(self) -> u8 {
        match self {
            Self::SecurityReview | Self::Orchestration => 60,
            Self::Debug | Self::Planning | Self::Review => 20,
            Self::Refactor | Self::UnitTest => 15,
            Self::Explain | Self::Boilerplate | Self::Generation => 0,
        }
    }
}

/// A name as it is compared: without case and without what joins words.
pub(crate) fn plain_name(name: &str) -> String {
    plain_letters(name).collect()
}

fn plain_letters(name: &str) -> impl Iterator<Item = char> {
    name.chars().filter(|char| !matches!(char, '_' | '-' | ' ')).flat_map(char::to_lowercase)
}

/// Without regard to case and underscores.
impl FromStr for TaskType {
    type Err = UnknownType;

    fn from_str(name: &str) -> Result<Self, UnknownType> {
        Self::ALL
            .into_iter()
            .find(|kind| plain_letters(kind.name()).eq(plain_letters(name)))
            .ok_or_else(|| UnknownType(name.to_owned()))
    }
}

impl TryFrom<String> for TaskType {
    type Error = UnknownType;

    fn try_from(name: String) -> Result<Self, UnknownType> {
        name.parse()
    }
}

impl From<TaskType> for String {
    fn from(kind: TaskType) -> Self {
        kind.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_type_names_parse_in_any_case_and_separator() {
        for kind in TaskType::ALL {
            for spelling in [
                kind.name().to_owned(),
                kind.name().to_uppercase(),
                kind.name().replace('_', ""),
                kind.name().replace('_', "-"),
            ] {
                assert_eq!(spelling.parse(), Ok(kind));
            }
        }
        assert_eq!("tests".parse::<TaskType>(), Err(UnknownType("tests".to_owned())));
    }
}
