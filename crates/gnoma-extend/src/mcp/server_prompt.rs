//! A prompt of a server, as it is shown and remembered.

use rmcp::model::Prompt;
use serde::{Deserialize, Serialize};

use super::naming;

/// A prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPrompt {
    /// What is written behind the slash.
    pub name: String,
    /// What is written behind that.
    pub hint: String,
    /// What it is for.
    pub about: String,
}

impl ServerPrompt {
    pub(super) fn of(server: &str, prompt: &Prompt) -> Self {
        let arguments = prompt.arguments.iter().flatten();
        let hint: Vec<String> = arguments.map(|it| format!("[{}]", line(&it.name))).collect();
        let about = prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or_default();
        Self { name: naming::tool(server, &prompt.name), hint: hint.join(" "), about: line(about) }
    }
}

/// A text of a server in one line, without what steers a terminal.
fn line(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
