//! The properties of calls that usage can be summed up by.

use std::{fmt, str::FromStr};

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
}

impl Dimension {
    /// Every dimension, in the order in which help lists them.
    pub const ALL: [Self; 10] = [
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
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Properties of calls that people may ask for and the ledger does not record, with what it lacks.
const UNRECORDED: [(&str, &str); 4] = [
    ("account", "which account of a provider paid"),
    ("agent", "which agent an elf was"),
    ("skill", "which skill was in use"),
    ("mcp", "for which MCP server a model was called"),
];

/// A name that is no [`Dimension`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DimensionError {
    /// The ledger does not record it.
    Unrecorded {
        /// The name as it was given.
        name: String,
        /// The fact that the ledger lacks.
        fact: &'static str,
    },
    /// No dimension has this name.
    Unknown {
        /// The name as it was given.
        name: String,
    },
}

impl fmt::Display for DimensionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unrecorded { name, fact } => {
                write!(f, "the ledger cannot sum up by `{name}`: it does not record {fact}")?;
            }
            Self::Unknown { name } => write!(f, "usage has no `{name}` to sum up by")?,
        }
        let names: Vec<&str> = Dimension::ALL.iter().map(|dimension| dimension.name()).collect();
        write!(f, "; choose from {}", names.join(", "))
    }
}

impl std::error::Error for DimensionError {}

impl FromStr for Dimension {
    type Err = DimensionError;

    fn from_str(text: &str) -> Result<Self, DimensionError> {
        if let Some(known) = Self::ALL.into_iter().find(|dimension| dimension.name() == text) {
            return Ok(known);
        }
        let name = text.to_owned();
        Err(match UNRECORDED.iter().find(|(known, _)| *known == text) {
            Some((_, fact)) => DimensionError::Unrecorded { name, fact },
            None => DimensionError::Unknown { name },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for dimension in Dimension::ALL {
            assert_eq!(dimension.name().parse(), Ok(dimension));
        }
    }

    #[test]
    fn what_the_ledger_does_not_record_is_said() {
        let error = "skill".parse::<Dimension>().unwrap_err().to_string();
        assert!(error.contains("does not record which skill was in use"), "{error}");
        let error = "colour".parse::<Dimension>().unwrap_err().to_string();
        assert!(error.contains("has no `colour`") && error.contains("choose from day"), "{error}");
    }
}
