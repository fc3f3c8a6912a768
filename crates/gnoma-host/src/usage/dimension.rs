//! The properties of calls that usage can be summed up by.

use std::{fmt, str::FromStr};

use gnoma_core::ledger::WorkFact;

/// A calendar period of the local time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Period {
    /// A day.
    Day,
    /// A week, which begins on Monday.
    Week,
    /// A month.
    Month,
}

impl Period {
    /// Returns the name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }
}

/// A property of calls that usage is summed up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dimension {
    /// The time, in calendar periods.
    Period(Period),
    /// The folder of the project.
    Project,
    /// The git branch that was checked out.
    Branch,
    /// The session that a person started, with its elfs.
    Session,
    /// The elf, or the main session.
    Elf,
    /// The model at its provider.
    Model,
    /// The provider of the model.
    Provider,
    /// The kind of task that the turn was classified as.
    Task,
    /// A fact about the work: account, agent, skill or MCP server.
    Work(WorkFact),
}

impl Dimension {
    /// Every dimension, in the order in which help lists them.
    pub const ALL: [Self; 14] = [
        Self::Period(Period::Day),
        Self::Period(Period::Week),
        Self::Period(Period::Month),
        Self::Project,
        Self::Branch,
        Self::Session,
        Self::Elf,
        Self::Model,
        Self::Provider,
        Self::Task,
        Self::Work(WorkFact::Account),
        Self::Work(WorkFact::Agent),
        Self::Work(WorkFact::Skill),
        Self::Work(WorkFact::Mcp),
    ];

    /// Returns the name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Period(period) => period.name(),
            Self::Project => "project",
            Self::Branch => "branch",
            Self::Session => "session",
            Self::Elf => "elf",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Task => "task",
            Self::Work(WorkFact::Account) => "account",
            Self::Work(WorkFact::Agent) => "agent",
            Self::Work(WorkFact::Skill) => "skill",
            Self::Work(WorkFact::Mcp) => "mcp",
            Self::Work(WorkFact::Part) => "part",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that is no [`Dimension`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DimensionError(String);

impl fmt::Display for DimensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Dimension::ALL.iter().map(|dimension| dimension.name()).collect();
        write!(f, "usage has no `{}` to sum up by; choose from {}", self.0, names.join(", "))
    }
}

impl std::error::Error for DimensionError {}

impl FromStr for Dimension {
    type Err = DimensionError;

    fn from_str(text: &str) -> Result<Self, DimensionError> {
        let known = Self::ALL.into_iter().find(|dimension| dimension.name() == text);
        known.ok_or_else(|| DimensionError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_dimension_names_round_trip() {
        for dimension in Dimension::ALL {
            assert_eq!(dimension.name().parse(), Ok(dimension));
        }
    }

    #[test]
    fn unknown_usage_dimension_error_lists_the_known_ones() {
        let error = "colour".parse::<Dimension>().unwrap_err().to_string();
        assert!(error.contains("has no `colour`") && error.contains("choose from day"), "{error}");
    }
}
