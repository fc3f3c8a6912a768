//! Notices for people about what the firewall did.

use std::{fmt, sync::Arc};

use super::policy::FirewallAction;

/// The part of a request in which a finding stood.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestPart {
    /// The system prompt.
    System,
    /// The text that the user wrote.
    User,
    /// The text that a model answered.
    Answer,
    /// The thinking of a model.
    Thinking,
    /// The arguments of a call of this tool.
    Arguments(String),
    /// The result of this tool.
    Result(String),
    /// The description of this tool.
    Tool(String),
}

impl fmt::Display for RequestPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("the system prompt"),
            Self::User => f.write_str("your message"),
            Self::Answer => f.write_str("an answer of the model"),
            Self::Thinking => f.write_str("a thought of the model"),
            Self::Arguments(tool) => write!(f, "the arguments of `{tool}`"),
            Self::Result(tool) => write!(f, "the result of `{tool}`"),
            Self::Tool(tool) => write!(f, "the description of `{tool}`"),
        }
    }
}

/// An action or finding of the firewall, reported once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A placeholder took the place of secrets.
    Redacted {
        /// The rule that found them.
        rule: Arc<str>,
        /// The number of secrets that were not reported before.
        count: usize,
        /// The part of the request in which the secrets stood.
        place: RequestPart,
        /// The provider that does not get to see the secrets.
        provider: String,
    },
    /// Secrets were sent, because the policy says so and wants this reported.
    Sent {
        /// The rule that found them.
        rule: Arc<str>,
        /// The number of secrets that were not reported before.
        count: usize,
        /// The part of the request in which the secrets stood.
        place: RequestPart,
        /// The provider that got to see the secrets.
        provider: String,
    },
    /// A text hid or disguised something.
    Disguised {
        /// The thing that was hidden or disguised, in words.
        what: String,
        /// The part of the request in which it stood.
        place: RequestPart,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redacted { rule, count, place, provider } => {
                let secrets = describe_secrets(*count);
                write!(f, "hid {secrets} ({rule}) in {place} from `{provider}`")
            }
            Self::Sent { rule, count, place, provider } => {
                write!(f, "sent {} ({rule}) in {place} to `{provider}`", describe_secrets(*count))
            }
            Self::Disguised { what, place } => write!(f, "disguised text in {place}: {what}"),
        }
    }
}

fn describe_secrets(count: usize) -> String {
    if count == 1 { "a secret".to_owned() } else { format!("{count} secrets") }
}

impl Notice {
    /// The notice that `count` secrets were redacted or sent; `None` when nothing is to be told.
    pub(super) fn from_action(
        action: FirewallAction,
        rule: Arc<str>,
        count: usize,
        place: RequestPart,
        provider: String,
    ) -> Option<Self> {
        match action {
            FirewallAction::Redact => Some(Self::Redacted { rule, count, place, provider }),
            FirewallAction::Warn => Some(Self::Sent { rule, count, place, provider }),
            FirewallAction::Allow | FirewallAction::Block => None,
        }
    }
}
