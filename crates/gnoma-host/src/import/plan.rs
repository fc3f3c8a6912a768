//! What would be taken over, piece by piece.

use gnoma_config::toml;

use crate::mcp_edit::{self, NewServer};

/// Something that would be taken over.
#[derive(Clone, Debug)]
pub enum ImportStep {
    /// A rule of permissions.
    Rule {
        /// `allow`, `ask` or `deny`.
        action: &'static str,
        /// As gnoma writes it.
        rule: String,
        /// As it was written.
        theirs: String,
    },
    /// An MCP server.
    Server(NewServer),
    /// A file among the person's settings.
    File {
        /// Its place, seen from the folder of the settings.
        to: String,
        /// What it says.
        text: String,
        /// Where it comes from.
        from: String,
    },
}

impl ImportStep {
    /// What it is, in a line without secrets.
    #[must_use]
    pub fn told(&self) -> String {
        match self {
            Self::Rule { action, rule, theirs } => format!("{action} {rule} (from `{theirs}`)"),
            Self::Server(server) => {
                let reach = server.url.clone().unwrap_or_else(|| server.command.join(" "));
                format!("MCP server {}: {reach}", server.name)
            }
            Self::File { to, from, .. } => format!("{to} (from {from})"),
        }
    }

    /// What is added to the settings for it.
    pub(super) fn settings(&self) -> Option<String> {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        match self {
            Self::Rule { action, rule, .. } => Some(format!(
                "\n[[permission.rules]]\nrule = {}\naction = {}\n",
                quoted(rule),
                quoted(action)
            )),
            Self::Server(server) => Some(format!("\n{}", mcp_edit::entry(server))),
            Self::File { .. } => None,
        }
    }
}

/// What would be taken over, and what not.
#[derive(Clone, Debug, Default)]
pub struct ImportPlan {
    /// What would be added.
    pub steps: Vec<ImportStep>,
    /// What is there already, a line each.
    pub known: Vec<String>,
    /// What gnoma reads where it lies, a sentence each.
    pub as_is: Vec<String>,
    /// What cannot be taken over, a sentence each with what to do.
    pub left: Vec<String>,
}

impl ImportPlan {
    /// Whether nothing was found at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.known.is_empty()
            && self.as_is.is_empty()
            && self.left.is_empty()
    }
}
