//! Who removes stand-ins when a command is over: the launcher itself when it still can, else another
//! process that outlives it. As long as one of those who hold the lifeline lives, the other waits.

use std::os::fd::OwnedFd;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::{
    channel,
    fault::{Fault, FaultStep},
    protect::{self, Protection, StandIn},
    raw_syscalls,
};

/// A pipe that nothing is written to: it ends when the last holder of its writer has ended.
pub(super) struct Lifeline {
    end: OwnedFd,
    writer: OwnedFd,
}

impl Lifeline {
    /// Makes one. Processes that are started from now on hold it.
    pub(super) fn new() -> Result<Self, Fault> {
        let (end, writer) = channel::open_pipe()?;
        Ok(Self { end, writer })
    }
}

/// The keeper of a command's stand-ins.
pub(super) struct StandInKeeper<'a> {
    stand_ins: &'a [StandIn],
    other: Option<(Pid, OwnedFd)>,
}

impl<'a> StandInKeeper<'a> {
    /// Returns a keeper that has nothing to remove.
    pub(super) fn without_stand_ins() -> Self {
        Self { stand_ins: &[], other: None }
    }

    /// Starts the other process where there is something to remove.
    pub(super) fn start(protection: &'a Protection, lifeline: Lifeline) -> Result<Self, Fault> {
        let stand_ins = &protection.stand_ins;
        if stand_ins.is_empty() {
            return Ok(Self::without_stand_ins());
        }
        let Lifeline { end, writer } = lifeline;
        let mut writer = Some(writer);
        let keep = || {
            // The keeper's own copy would keep it waiting for itself.
            drop(writer.take());
            protect::run_keeper(stand_ins, &end);
            0
        };
        let process = raw_syscalls::fork_for(keep).with_step(|| "start a process".to_owned())?;
        Ok(Self { stand_ins, other: writer.map(|writer| (process, writer)) })
    }

    /// True if nothing has to be removed.
    pub(super) fn has_nothing(&self) -> bool {
        self.stand_ins.is_empty()
    }

    /// Does the work while the other one sleeps, which saves waiting for it to wake.
    pub(super) fn remove_now(&self) {
        protect::remove_stand_ins(self.stand_ins);
        if let Some((process, _)) = self.other {
            kill_process(process, Signal::KILL).ok();
            // Not every system collects orphans.
            waitpid(Some(process), WaitOptions::empty()).ok();
        }
    }
}
