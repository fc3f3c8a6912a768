//! The definition of one hook.

use std::{path::PathBuf, time::Duration};

use gnoma_core::lifecycle::PointKind;

use super::{error::HookError, matcher::Matcher};
use crate::{places::ExtensionSource, plugin::with_root};

/// The time that a hook may run unless it says otherwise.
pub(crate) const USUAL_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for hooks of gnoma's own settings.
pub const OWN_TIMEOUT: Duration = Duration::from_secs(30);
/// The same for hooks that ask a model.
pub(crate) const MODEL_TIMEOUT: Duration = Duration::from_secs(30);

/// Longest time that a hook can be given.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(3600);

/// The way in which a hook handles the facts of a point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookKind {
    /// A program reads them.
    Command,
    /// A model is asked about them.
    Prompt {
        /// The model that is wanted.
        model: Option<String>,
    },
    /// A sub-agent is asked about them, which can read the project's files.
    Agent {
        /// The model that is wanted.
        model: Option<String>,
    },
    /// They are sent to an address.
    Http {
        /// The headers sent with the request; `$NAME` and `${NAME}` are variables.
        headers: Vec<(String, String)>,
        /// The variables that may be filled in.
        variables: Vec<String>,
    },
}

impl HookKind {
    /// Returns the name of this kind of hook; `None` for a program.
    fn name(&self) -> Option<&'static str> {
        match self {
            Self::Command => None,
            Self::Prompt { .. } => Some("prompt"),
            Self::Agent { .. } => Some("agent"),
            Self::Http { .. } => Some("http"),
        }
    }

    /// Checks that a hook of this kind can be run at a point. `about` is its shell line, question or address.
    pub(crate) fn check_point(&self, point: PointKind, about: &str) -> Result<(), HookError> {
        match self {
            Self::Prompt { .. } | Self::Agent { .. } if point == PointKind::SessionEnd => {
                Err(HookError::ModelAtEnd)
            }
            Self::Command | Self::Prompt { .. } | Self::Agent { .. } => Ok(()),
            Self::Http { .. } => check_address(about),
        }
    }
}

/// Checks that facts can be sent to the address.
fn check_address(url: &str) -> Result<(), HookError> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let rest = rest.filter(|rest| !rest.is_empty() && !url.contains(char::is_whitespace));
    let rest = rest.ok_or_else(|| HookError::NotAnAddress(url.to_owned()))?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.contains('@') {
        return Err(HookError::LoginInAddress);
    }
    Ok(())
}

/// The contract that a hook keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookContract {
    /// Claude's, which Codex shares.
    Claude,
    /// The contract of gnoma itself.
    Own,
}

/// A hook as it is run.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The name of the hook in messages.
    pub name: String,
    /// The point at which the hook runs.
    pub point: PointKind,
    /// The event's name as it was written.
    pub event: String,
    /// For which tools or words.
    pub(crate) matcher: Matcher,
    /// For which calls alone, as rules about permissions; `None` for all.
    pub condition: Option<Vec<String>>,
    /// The kind of the hook, which says how it handles the facts.
    pub kind: HookKind,
    /// The shell line, the question, or the address.
    pub command: String,
    /// The time that the hook may run.
    pub timeout: Duration,
    /// The contract that the hook keeps.
    pub contract: HookContract,
    /// `true` if the session does not wait for the hook, and its answer changes nothing.
    pub is_async: bool,
    /// `true` if the hook blocks when it fails.
    pub fails_closed: bool,
    /// The party that provides the hook.
    pub by: ExtensionSource,
    /// The file in which the hook was written.
    pub origin: PathBuf,
    /// The folder of the plugin that it is of.
    pub root: Option<PathBuf>,
}

impl Hook {
    /// Returns a description of what the hook does, for people.
    #[must_use]
    pub fn to_line(&self) -> String {
        match self.kind.name() {
            Some(kind) => format!("{kind}: {}", self.command),
            None => self.command.clone(),
        }
    }

    /// Reports whether the hook was written for Codex, which tells hooks a little more.
    pub(crate) fn is_codex(&self) -> bool {
        self.origin.parent().is_some_and(|folder| folder.ends_with(".codex"))
    }

    /// The shell line as it is run.
    pub(crate) fn shell_line(&self) -> String {
        match &self.root {
            Some(root) => with_root(&self.command, root),
            None => self.command.clone(),
        }
    }
}

/// A hook of gnoma's own settings.
#[derive(Clone, Debug)]
pub struct OwnHook {
    /// The name of the hook; may be empty.
    pub name: String,
    /// One of the words of the setting `event`.
    pub event: String,
    /// The kind of the hook, which says how it handles the facts.
    pub kind: HookKind,
    /// The shell line, the question, or the address.
    pub exec: String,
    /// The time that the hook may run.
    pub timeout: Option<Duration>,
    /// If it fails, the session continues.
    pub fails_open: bool,
    /// Glob of tool names; may be empty.
    pub tools: String,
    /// The party that provides the hook.
    pub by: ExtensionSource,
    /// The file in which the hook was written.
    pub origin: PathBuf,
}

impl OwnHook {
    /// Converts the setting to the hook that runs.
    ///
    /// # Errors
    /// gnoma does not have the event, or the hook cannot run there.
    pub fn into_hook(self) -> Result<Hook, HookError> {
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
            other => return Err(HookError::UnknownEvent(other.to_owned())),
        };
        self.kind.check_point(point, &self.exec)?;
        let name = if self.name.is_empty() { self.exec.clone() } else { self.name };
        Ok(Hook {
            name,
            point,
            event: self.event,
            matcher: Matcher::from_glob(&self.tools),
            condition: None,
            kind: self.kind,
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
