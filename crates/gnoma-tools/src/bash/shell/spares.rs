//! Launchers that stand ready for the next command.

use std::sync::{MutexGuard, PoisonError};

use gnoma_core::ToolCx;
use gnoma_sandbox::{Policy, SessionSandbox};
use tokio::process::Command;

use super::{Shell, installed_shell};
use crate::bash::{process::Process, spare::Spare};

impl Shell {
    /// Runs a command by the launcher that stands ready, if one does.
    pub(super) fn run_by_spare(
        &self,
        walls: &SessionSandbox,
        command: &str,
        cx: &ToolCx,
        policy: &Policy,
    ) -> Option<Process> {
        let spare = self.place_of_spare(policy).take()?;
        if !cx.cwd.is_dir() {
            return None;
        }
        self.run_with_spare(spare, walls, command, cx, policy)
    }

    /// Runs a command by a launcher that waits.
    pub(super) fn run_with_spare(
        &self,
        spare: Spare,
        walls: &SessionSandbox,
        command: &str,
        cx: &ToolCx,
        policy: &Policy,
    ) -> Option<Process> {
        let shell = installed_shell(&self.program);
        let process = spare.run(&walls.encode_order(shell, ["-c", command], &cx.cwd, policy)?)?;
        Some(process.with_policy(policy))
    }

    pub(super) fn launcher_in_waiting(
        &self,
        walls: &SessionSandbox,
        policy: &Policy,
    ) -> Option<Spare> {
        let mut launcher = Command::from(walls.spare_command(policy)?);
        launcher.process_group(0);
        let output = self.connect_output(&mut launcher).ok()?;
        Spare::start(launcher, output)
    }

    fn place_of_spare(&self, policy: &Policy) -> MutexGuard<'_, Option<Spare>> {
        let [in_place, on_trial] = &self.spares;
        let is_trial = policy.overlays.iter().any(|overlay| !overlay.is_view());
        let place = if is_trial { on_trial } else { in_place };
        place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a launcher ready for the next command, which is mostly of the same kind as the last. To be called while that
    /// one runs, when there is nothing else to do.
    pub(super) fn keep_spare(&self, walls: &SessionSandbox, policy: &Policy) {
        let mut spare = self.place_of_spare(policy);
        if spare.is_none() {
            *spare = self.launcher_in_waiting(walls, policy);
        }
    }
}
