//! Questions to the person (permission requests), and the possible answers.

use serde::{Deserialize, Serialize};

/// What a person is asked for, where yes or no is no answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Inquiry {
    /// Answers to choose from; may be empty. Other words are an answer too.
    pub choices: Vec<String>,
}

/// Something that a command has changed and that a person must see by name before it is kept: what runs later,
/// what leads elsewhere, what is secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotableChange {
    /// Its name among the parts of the question; what a screen would not show as letters is escaped.
    pub name: String,
    /// What happened to it, what it is and why that matters, in one line: "creates a program, which version control
    /// reads on every run".
    pub what: String,
}

/// A person's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PermissionAnswer {
    /// Run it, this once.
    Allow,
    /// Run it, and from now on whatever the rule covers that the question showed.
    Always,
    /// Run it, and from now on whatever this rule covers, which the person wrote or widened.
    Rule {
        /// The rule, as people write it, such as `bash(cargo test *)`.
        rule: String,
        /// How long and where it applies.
        scope: Scope,
    },
    /// It has run on trial: keep these of what it changed, this once, and nothing else.
    Part {
        /// Which: names that the question offered, folders that hold some, or patterns with `*`.
        names: Vec<String>,
    },
    /// Do not; the reason goes to the model.
    Deny {
        /// Why not; may be empty.
        reason: String,
    },
    /// These words. To a question that offers no words to answer with (one without an [`Inquiry`]),
    /// they are a reason to deny.
    Text {
        /// One of the choices, or what the person wrote.
        text: String,
    },
}

impl PermissionAnswer {
    /// Reports whether all of what was asked about may happen.
    #[must_use]
    pub fn is_approval(&self) -> bool {
        matches!(self, Self::Allow | Self::Always | Self::Rule { .. })
    }

    /// The answer as one to a question whether something may run: words are a reason to deny, and so is a choice of
    /// nothing.
    #[must_use]
    pub fn to_permission(self) -> Self {
        match self {
            Self::Text { text } => Self::Deny { reason: text },
            Self::Part { names } if names.is_empty() => {
                Self::Deny { reason: "none of its changes was chosen".to_owned() }
            }
            answer => answer,
        }
    }

    /// The answer as one to an [`Inquiry`]: a yes says nothing there, so it counts as no answer.
    #[must_use]
    pub fn to_inquiry(self) -> Self {
        match self {
            Self::Allow | Self::Always | Self::Rule { .. } | Self::Part { .. } => {
                Self::Deny { reason: String::new() }
            }
            answer => answer,
        }
    }
}

/// How long and where a remembered rule holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Until the session ends.
    #[default]
    Session,
    /// In this project, from now on.
    Project,
    /// Wherever this person works, from now on.
    User,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permission_answer_that_selects_no_part_is_a_denial() {
        let part = |names: &[&str]| PermissionAnswer::Part {
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        assert!(matches!(part(&[]).to_permission(), PermissionAnswer::Deny { .. }));
        assert_eq!(part(&["a"]).to_permission(), part(&["a"]));
    }
}
