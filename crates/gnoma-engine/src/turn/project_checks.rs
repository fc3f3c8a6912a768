//! The project's checks under way, one after the other.
//!
//! They are judged by the same gate as a model's commands, a person is asked where one would be, and
//! they are shown while they run. No model sees their calls: what they find is the verdict.

use gnoma_core::{CallId, RawJson, ToolCall};
use serde_json::json;

use super::{batch::Batch, protocol::Checks};

#[derive(Debug)]
pub(super) struct ProjectCheckRun {
    pub(super) checks: Checks,
    /// The index of the check that is being judged, asked about or run.
    at: usize,
    /// The call of the current check.
    pub(super) batch: Batch,
}

impl ProjectCheckRun {
    /// Begins with the first command; `None` if there is none. `name` numbers the checks: no two calls of a session
    /// share an id.
    pub(super) fn new(checks: Checks, name: &str) -> Option<(Self, ToolCall)> {
        Self::begin_at(checks, 0, name)
    }

    /// Continues with the next command; if there is none, returns all of them.
    pub(super) fn next(self, name: &str) -> Result<(Self, ToolCall), Vec<String>> {
        let commands = self.checks.commands.clone();
        Self::begin_at(self.checks, self.at + 1, name).ok_or(commands)
    }

    fn begin_at(checks: Checks, at: usize, name: &str) -> Option<(Self, ToolCall)> {
        let arguments =
            RawJson::from_value(&json!({ "command": checks.commands.get(at)? })).ok()?;
        // No model's call has such an id.
        let id = CallId::new(format!("gnoma-check-{name}-{}", at + 1));
        let mut batch = Batch::of_check(ToolCall::new(id, &*checks.tool, arguments));
        let call = batch.take_startable().pop()?;
        Some((Self { checks, at, batch }, call))
    }

    /// The command under way.
    pub(super) fn command(&self) -> &str {
        self.checks.commands.get(self.at).map_or("", String::as_str)
    }
}
