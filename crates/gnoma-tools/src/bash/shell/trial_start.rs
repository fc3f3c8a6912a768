//! Starts commands on trial.

use std::path::{Path, PathBuf};

use gnoma_core::ToolCx;
use gnoma_sandbox::{Overlay, Policy, TEMPORARY};

use super::{BuiltSandbox, Shell, TrialPolicy};
use crate::{
    Sandbox,
    bash::{
        outside_names::list_outside_names,
        policy::held_to_reading,
        process::Process,
        start_error::CommandStartError,
        writable::{make_writable, refuse_if_led_away},
    },
};

impl TrialPolicy {
    /// The places that the command finds, that are hidden from it, or that it cannot try without its being reported.
    pub(in crate::bash) fn known_places(&self, roots: &[PathBuf]) -> Vec<PathBuf> {
        let Policy { readable, writable, outside_names, .. } = &self.policy;
        let shown = readable.shown_paths().unwrap_or_default().iter();
        let is_served = |name: &&PathBuf| {
            // Names in a folder that leads to the workspace may be absent all the same.
            gnoma_sandbox::reports_tried_files() && !roots.iter().any(|root| root.starts_with(name))
        };
        let served = outside_names.iter().filter(is_served);
        shown.chain(readable.hidden_paths()).chain(writable).chain(served).cloned().collect()
    }
}

impl Shell {
    /// Returns the policy under which a command will run on trial; `None` where there is no sandbox.
    pub(in crate::bash) fn policy_hiding_secrets_in_trial(
        &self,
        cx: &ToolCx,
    ) -> Option<TrialPolicy> {
        let Sandbox::Walled { policy, reading, too_wide, .. } = &self.sandbox else { return None };
        let mut policy = policy.as_ref().clone();
        make_writable(&mut policy, cx, too_wide, &[]);
        // Temporary files are the session's own.
        let is_temporary = |path: &PathBuf| TEMPORARY.iter().any(|tmp| path == Path::new(tmp));
        let is_beside =
            |path: &&PathBuf| !cx.roots.contains(path) && path.is_dir() && !is_temporary(path);
        let beside = policy.writable.iter().filter(is_beside).cloned().collect();
        // It sees what a reading command sees, and finds it writable where a layer takes the changes. A place
        // to hold would be made in the workspace itself.
        let writable = policy.writable.clone();
        let (mut found, scratch) = (self.survey_workspace(cx), self.temporary_folder(cx, reading));
        // On trial these work trees are names outside, and a look into one is reported.
        found.forget_work_tree_marks();
        let held = held_to_reading(&policy, cx, reading, scratch, found);
        let policy = Policy { writable, local_sockets: true, umask: self.umask, ..held };
        let variables = self.environment.as_deref().unwrap_or_default();
        let outside_names = list_outside_names(&cx.roots, &policy, variables, cx.grant.reads_only);
        let policy = Policy { outside_names, ..policy };
        Some(TrialPolicy { policy, beside })
    }

    /// Starts a command on trial: in these layers, alone, and without the workspace's secrets.
    ///
    /// # Errors
    /// A granted place leads elsewhere, there is no sandbox, or the system refused.
    pub(in crate::bash) fn start_on_trial(
        &self,
        command: &str,
        cx: &ToolCx,
        TrialPolicy { mut policy, .. }: TrialPolicy,
        overlays: Vec<Overlay>,
    ) -> Result<Process, CommandStartError> {
        refuse_if_led_away(cx)?;
        let BuiltSandbox::Walls(walls) = self.init_sandbox() else {
            return Err(CommandStartError::NoSandbox);
        };
        policy.writable.retain(|path| overlays.iter().any(|over| path.starts_with(&over.at)));
        let policy = Policy { overlays, traceparent: cx.traceparent.clone(), ..policy };
        self.start_readily(walls, command, cx, &policy)
    }
}
