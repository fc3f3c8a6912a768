//! What a hook is.

use std::{path::PathBuf, time::Duration};

use gnoma_core::lifecycle::PointKind;

use super::matcher::Matcher;
use crate::{places::BroughtBy, plugin::with_root};

/// How long a hook may run unless it says otherwise.
pub(crate) const USUAL_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for hooks of gnoma's own settings.
pub const OWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Whose contract a hook keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookContract {
    /// Claude's, which Codex shares.
    Claude,
    /// gnoma's own.
    Own,
}

/// A hook.
#[derive(Clone, Debug)]
pub struct Hook {
    /// What it is called in messages.
    pub name: String,
    /// When it runs.
    pub point: PointKind,
    /// The event's name where it was written.
    pub event: String,
    /// For which tools or words.
    pub(crate) matcher: Matcher,
    /// The shell line.
    pub command: String,
    /// How long it may run.
    pub timeout: Duration,
    /// Whose contract it keeps.
    pub contract: HookContract,
    /// Nobody waits for it, and its answer changes nothing.
    pub is_async: bool,
    /// Where it fails, it blocks.
    pub fails_closed: bool,
    /// Who brought it along.
    pub by: BroughtBy,
    /// Where it was written.
    pub origin: PathBuf,
    /// The folder of the plugin that it is of.
    pub root: Option<PathBuf>,
}

impl Hook {
    /// The shell line as it is run.
    pub(crate) fn line(&self) -> String {
        match &self.root {
            Some(root) => with_root(&self.command, root),
            None => self.command.clone(),
        }
    }
}

/// A hook of gnoma's own settings.
#[derive(Clone, Debug)]
pub struct OwnHook {
    /// Its name; may be empty.
    pub name: String,
    /// One of the words of the setting `event`.
    pub event: String,
    /// The shell line.
    pub exec: String,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// It goes on where it fails.
    pub fails_open: bool,
    /// Glob of tool names; may be empty.
    pub tools: String,
    /// Who brought it along.
    pub by: BroughtBy,
    /// Where it was written.
    pub origin: PathBuf,
}

impl OwnHook {
    /// The hook as it runs.
    #[must_use]
    pub fn hook(self) -> Option<Hook> {
        let point = match &*self.event {
            "pre_tool_use" => PointKind::BeforeTool,
            "post_tool_use" => PointKind::AfterTool,
            "post_tool_use_failure" => PointKind::ToolFailed,
            "session_start" => PointKind::SessionStart,
            "session_end" => PointKind::SessionEnd,
            "user_prompt_submit" => PointKind::Prompt,
            "permission_request" => PointKind::PermissionAsked,
            "permission_denied" => PointKind::PermissionDenied,
            "pre_compact" => PointKind::BeforeCompaction,
            "post_compact" => PointKind::AfterCompaction,
            "stop" => PointKind::BeforeStop,
            "notification" => PointKind::Notification,
            "model_switch" => PointKind::ModelSwitched,
            "subagent_start" => PointKind::ChildStart,
            "subagent_stop" => PointKind::ChildStop,
            _ => return None,
        };
        let name = if self.name.is_empty() { self.exec.clone() } else { self.name };
        Some(Hook {
            name,
            point,
            event: self.event,
            matcher: Matcher::glob(&self.tools),
            command: self.exec,
            timeout: self.timeout.unwrap_or(OWN_TIMEOUT),
            contract: HookContract::Own,
            is_async: false,
            fails_closed: !self.fails_open,
            by: self.by,
            origin: self.origin,
            root: None,
        })
    }
}
