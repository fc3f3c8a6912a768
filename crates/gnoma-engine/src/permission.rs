//! Whether a call may run. Pure: facts in, a verdict with its reason out.
//!
//! Plain until the guard takes it over: the mode decides by what the tool does to the world.
//! [`judge`] is the one place that is asked, also for tools that come from elsewhere.

use gnoma_core::{
    session::PermissionMode,
    tool::{Access, ToolSpec},
};

/// What is to be done with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It runs.
    Allow {
        /// Which rule or mode says so.
        reason: String,
    },
    /// It does not run; the reason goes to the model.
    Deny {
        /// Why not.
        reason: String,
    },
    /// A person decides.
    Ask {
        /// Why they must.
        reason: String,
        /// What the call would change, as a unified diff.
        preview: Option<String>,
    },
}

/// Judges a call of `tool` in `mode`.
#[must_use]
pub fn judge(mode: PermissionMode, tool: &ToolSpec) -> Verdict {
    let by = |what: &str| format!("mode {mode}: {what}");
    let allow = |what: &str| Verdict::Allow { reason: by(what) };
    let deny = |what: &str| Verdict::Deny { reason: by(what) };
    let ask = |what: &str| Verdict::Ask { reason: by(what), preview: None };
    match (mode, tool.access) {
        (PermissionMode::Bypass, _) => allow("everything runs"),
        (PermissionMode::Deny, _) => deny("nothing runs"),
        (PermissionMode::Default, _) => ask("every call is asked for"),
        (
            PermissionMode::AcceptEdits | PermissionMode::Auto | PermissionMode::Plan,
            Access::Read,
        ) => allow("reading runs"),
        (PermissionMode::Plan, Access::Edit | Access::Execute) => {
            deny("only reading runs while planning")
        }
        (PermissionMode::AcceptEdits, Access::Edit) => allow("edits run"),
        (PermissionMode::Auto, Access::Edit) => ask("edits are asked for"),
        (PermissionMode::AcceptEdits | PermissionMode::Auto, Access::Execute) => {
            ask("commands are asked for")
        }
    }
}
