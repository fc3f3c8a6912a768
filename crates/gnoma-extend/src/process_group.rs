//! A program with all that it starts.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// A process group, killed when dropped.
#[derive(Debug)]
pub(crate) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Returns the group that a program leads; none if the program was waited for.
    pub(crate) fn with_leader(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Returns the number of the leader's process.
    pub(crate) fn id(&self) -> Option<i32> {
        self.0.map(|pid| pid.as_raw_nonzero().get())
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // The only failure is that no process is left.
            kill_process_group(leader, Signal::KILL).ok();
        }
    }
}
