//! The person's own script that writes the line at the bottom of the terminal. It runs as hooks do: in their sandbox,
//! with facts as JSON on standard input, in the form that Claude Code's `statusLine` has. When it runs and what is
//! shown of its output is the terminal's part.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use gnoma_core::{json_value::json, text_truncation};
use gnoma_extend::hooks::{HookLineError, HookRunner};
use serde_json::Value;

use crate::{Project, extensions};

/// The time that the script may take.
const MAX_RUN: Duration = Duration::from_millis(300);
/// The time that the sandbox around the script may take to start, once.
const MAX_START: Duration = Duration::from_secs(2);
/// Most bytes that are shown.
const MAX_BYTES: usize = 4 << 10;
/// Keeps the script from filling the disk: no file that it writes, its output included, gets larger than 1 MiB (in
/// blocks of 512 bytes).
const FILE_LIMIT: &str = "ulimit -f 2048\n";

/// The exit code of a shell whose command was ended by the signal `SIGXFSZ`, because a file was to get larger.
const TOO_LARGE: i32 = 153;

/// The reason why the script has no line to show, in a few words.
#[derive(thiserror::Error)]
pub enum StatusScriptError {
    /// The output of the script, or a file that it wrote, was to get larger than 1 MiB.
    #[error("wrote more than 1 MiB")]
    TooLarge,
    /// The script was not started, took too long, or failed.
    #[error(transparent)]
    Line(HookLineError),
}

gnoma_core::debug_as_display!(StatusScriptError);

/// The script, ready to run.
#[derive(Debug)]
pub struct StatusScript {
    line: String,
    project: String,
    runner: Arc<HookRunner>,
    is_begun: OnceLock<()>,
}

impl StatusScript {
    /// Returns the script that the person has set; `None` without one.
    #[must_use]
    pub fn from_project(project: &Project) -> Option<Self> {
        let command = project.personal.status_command.as_ref()?;
        Some(Self {
            line: format!("{FILE_LIMIT}{command}"),
            project: extensions::extension_places(project).project.display().to_string(),
            runner: Arc::new(extensions::hook_runner(project)),
            is_begun: OnceLock::new(),
        })
    }

    /// Runs it with facts about the session, and returns the first line that it printed. `facts` has the session's
    /// folder as `cwd`.
    ///
    /// # Errors
    /// See [`StatusScriptError`].
    pub async fn run(&self, mut facts: Value) -> Result<String, StatusScriptError> {
        let folder = facts.get("cwd").cloned().unwrap_or_default();
        if let Some(facts) = facts.as_object_mut() {
            facts.insert("hook_event_name".to_owned(), json!("Status"));
            let workspace = json!({ "current_dir": folder, "project_dir": self.project });
            facts.insert("workspace".to_owned(), workspace);
        }
        if self.is_begun.set(()).is_ok() {
            // What is wrong with the sandbox is told by the script's own run.
            self.runner.run_line(":", "", MAX_START).await.unwrap_or_default();
        }
        let printed = self.runner.run_line(&self.line, &facts.to_string(), MAX_RUN).await;
        let printed = printed.map_err(|error| match error {
            HookLineError::ExitCode(TOO_LARGE) => StatusScriptError::TooLarge,
            other => StatusScriptError::Line(other),
        })?;
        let first = printed.lines().next().unwrap_or_default();
        Ok(text_truncation::word_prefix(first, MAX_BYTES).to_owned())
    }
}
