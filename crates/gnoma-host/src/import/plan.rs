//! The plan of an import: each setting and file that would be added.

use gnoma_config::toml;

use crate::mcp_edit::{self, NewServer};

/// A setting or file that would be imported.
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
    /// An MCP server that would be added.
    Server(NewServer),
    /// A file among the person's settings.
    File {
        /// The path of the file, relative to the folder of the settings.
        to: String,
        /// The content of the file.
        text: String,
        /// The origin of the file.
        from: String,
    },
}

impl ImportStep {
    /// Describes the step in a line without secrets.
    #[must_use]
    pub fn to_line(&self) -> String {
        match self {
            Self::Rule { action, rule, theirs } => format!("{action} {rule} (from `{theirs}`)"),
            Self::Server(server) => {
                let reach = match &server.url {
                    Some(url) => shown_url(url),
                    None => shown_command(&server.command),
                };
                format!("MCP server {}: {reach}", server.name)
            }
            Self::File { to, from, .. } => format!("{to} (from {from})"),
        }
    }

    /// Returns the text that is added to the settings for the step.
    pub(super) fn to_settings(&self) -> Option<String> {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        match self {
            Self::Rule { action, rule, .. } => Some(format!(
                "\n[[permission.rules]]\nrule = {}\naction = {}\n",
                quoted(rule),
                quoted(action)
            )),
            Self::Server(server) => Some(format!("\n{}", mcp_edit::render_entry(server))),
            Self::File { .. } => None,
        }
    }
}

/// Parts of names whose values are not shown.
const SECRETIVE: [&str; 7] = ["auth", "cookie", "credential", "key", "pass", "secret", "token"];
/// The text for a value that is not shown.
const HIDDEN: &str = "…";

fn is_secretive(name: &str) -> bool {
    let name = name.to_lowercase();
    SECRETIVE.iter().any(|part| name.contains(part))
}

/// An address without what can be a password in it: the user, and what is asked for.
fn shown_url(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let (place, rest) = url.split_at(end);
    let (scheme, behind) = place.split_once("://").unwrap_or(("", place));
    let (host, path) = behind.split_at(behind.find('/').unwrap_or(behind.len()));
    let host = match host.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => host.to_owned(),
    };
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let rest = if rest.is_empty() { String::new() } else { format!("?{HIDDEN}") };
    format!("{scheme}{host}{path}{rest}")
}

/// A command without the values that its arguments call secret.
fn shown_command(command: &[String]) -> String {
    let mut shown: Vec<String> = Vec::new();
    let mut is_value = false;
    for argument in command {
        let named = argument.split_once(['=', ':']).filter(|(name, _)| is_secretive(name));
        shown.push(match named {
            _ if is_value && !argument.starts_with('-') => HIDDEN.to_owned(),
            Some((name, _)) => format!("{name}={HIDDEN}"),
            None if argument.contains("://") => shown_url(argument),
            None => argument.clone(),
        });
        is_value = argument.starts_with('-') && named.is_none() && is_secretive(argument);
    }
    shown.join(" ")
}

/// The plan of an import: what would be imported, and what not.
#[derive(Clone, Debug, Default)]
pub struct ImportPlan {
    /// The steps that would be added.
    pub steps: Vec<ImportStep>,
    /// The settings that already exist, a line each.
    pub known: Vec<String>,
    /// The settings that gnoma uses in place, a sentence each.
    pub as_is: Vec<String>,
    /// The settings that cannot be imported, a sentence each with what to do.
    pub left: Vec<String>,
}

impl ImportPlan {
    /// Reports whether nothing was found at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
            && self.known.is_empty()
            && self.as_is.is_empty()
            && self.left.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_plan_hides_secret_values_in_commands_and_urls() {
        for (written, shown) in [
            ("npx -y server", "npx -y server"),
            ("x --token t0p --port 80", "x --token … --port 80"),
            ("x --api-key=t0p API_TOKEN=t0p", "x --api-key=… API_TOKEN=…"),
            ("x https://u:t0p@h.example/p?k=t0p", "x https://…@h.example/p?…"),
        ] {
            let command: Vec<String> = written.split(' ').map(str::to_owned).collect();
            assert_eq!(shown_command(&command), shown);
        }
        let header = ["curl".to_owned(), "-H".to_owned(), "Authorization: Bearer t0p".to_owned()];
        assert!(!shown_command(&header).contains("t0p"));
        assert_eq!(shown_url("https://x.example/mcp"), "https://x.example/mcp");
        assert_eq!(shown_url("u:t0p@h#t0p"), "…@h?…");
    }
}
