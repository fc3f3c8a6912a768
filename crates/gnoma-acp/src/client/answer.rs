//! Requests that an agent sends to gnoma (read a file, ask for permission), and the answers to them.

use gnoma_core::json_value::json;
use serde_json::Value;

use super::{
    call::{AgentCall, list_field, text_field},
    clean::clean_text,
};
use crate::wire::RpcId;

/// Most options of a question that are looked at.
const MAX_OPTIONS: usize = 16;

/// A request of an agent: for a permission, or for reading or writing a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentRequestKind {
    /// To go on with a call of its own.
    Permission {
        /// The agent's name for the call.
        id: String,
        /// The call that needs permission.
        call: Box<AgentCall>,
        /// The forms in which the agent takes the answer.
        answers: PermissionChoices,
    },
    /// The text of a file.
    Read {
        /// The path of the file.
        path: String,
        /// The first line, from 1.
        line: Option<u64>,
        /// The most lines to return.
        limit: Option<u64>,
    },
    /// To write a text into a file.
    Write {
        /// The path of the file.
        path: String,
        /// All of the text.
        content: String,
    },
}

impl AgentRequestKind {
    /// A wish for a file; `None` where it is none that can be understood.
    pub(super) fn of_file(method: &str, params: &Value) -> Option<Self> {
        let path = text_field(params, "path")?.to_owned();
        let number = |name: &str| params.get(name).and_then(Value::as_u64);
        Some(match method {
            "fs/read_text_file" => {
                Self::Read { path, line: number("line"), limit: number("limit") }
            }
            "fs/write_text_file" => {
                Self::Write { path, content: text_field(params, "content")?.to_owned() }
            }
            _ => return None,
        })
    }
}

/// The options of a question that gnoma may choose: those that hold for once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PermissionChoices {
    allow: Option<String>,
    reject: Option<String>,
}

impl PermissionChoices {
    pub(super) fn from_params(params: &Value) -> Self {
        let mut answers = Self::default();
        let mut lasting = Self::default();
        for option in list_field(params, "options").iter().take(MAX_OPTIONS) {
            let Some(id) = text_field(option, "optionId") else { continue };
            let place = match text_field(option, "kind") {
                Some("allow_once") => &mut answers.allow,
                Some("allow_always") => &mut lasting.allow,
                Some("reject_once") => &mut answers.reject,
                Some("reject_always") => &mut lasting.reject,
                _ => continue,
            };
            place.get_or_insert_with(|| id.to_owned());
        }
        // A lasting yes would take the next question from the person; a lasting no takes nothing.
        answers.reject = answers.reject.or(lasting.reject);
        answers
    }

    /// The answer as it is sent; without a fitting option the question counts as withdrawn.
    pub(super) fn outcome_json(&self, allowed: bool) -> Value {
        let chosen = if allowed { &self.allow } else { &self.reject };
        match chosen {
            Some(id) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }
}

/// A wish under the id that its answer goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PendingAgentRequest {
    pub(super) id: RpcId,
    /// The way to answer a question; `None` if a file is wanted.
    pub(super) answers: Option<PermissionChoices>,
}

/// The words of an error as an agent sent it.
pub(super) fn parse_error_text(error: &str) -> String {
    let read: Option<Value> = gnoma_core::json::from_str(error).ok();
    let message = read.as_ref().and_then(|error| text_field(error, "message"));
    let detail = read.as_ref().and_then(|error| error.get("data")?.get("details")?.as_str());
    let both: Vec<_> = message.into_iter().chain(detail).map(clean_text).collect();
    if both.is_empty() { clean_text(error) } else { both.join(": ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn approval_selects_allow_once_never_allow_always() {
        let options = json!({ "options": [
            { "optionId": "forever", "kind": "allow_always" },
            { "optionId": "yes", "kind": "allow_once" },
            { "optionId": "never", "kind": "reject_always" },
        ]});
        let answers = PermissionChoices::from_params(&options);
        assert_eq!(answers.outcome_json(true)["outcome"]["optionId"], "yes");
        assert_eq!(answers.outcome_json(false)["outcome"]["optionId"], "never");
        let only_ever = json!({ "options": [{ "optionId": "f", "kind": "allow_always" }] });
        let answers = PermissionChoices::from_params(&only_ever);
        assert_eq!(answers.outcome_json(true)["outcome"]["outcome"], "cancelled");
    }
}
