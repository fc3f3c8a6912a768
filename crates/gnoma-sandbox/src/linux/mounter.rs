//! Who lays layers over folders for a command whose root is made already: the layers lie where that root no
//! longer leads, and must not be mounted before it is known that nobody else works in them.

use std::{
    io::{Read, Write},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::PathBuf,
};

use rustix::{process::Pid, thread::UnshareFlags};

use super::{
    confine,
    entry::hide_memory,
    fault::{Fault, FaultStep},
    mounts::Copies,
    overlay, raw_syscalls, view,
};
use crate::policy::Overlay;

/// A process that sees the machine as it is and waits until the layers are wanted.
pub(super) struct Mounter {
    process: Pid,
    /// The connection over which the process is asked for the layers, and over which it hands them over.
    line: UnixStream,
}

impl Mounter {
    /// Starts it where there are layers. To be called before the root is made, by the first of a namespace of
    /// processes, with which it ends.
    pub(super) fn start(overlays: &[Overlay], absent: &[PathBuf]) -> Result<Option<Self>, Fault> {
        if overlays.is_empty() {
            return Ok(None);
        }
        let failed = || "start a process".to_owned();
        let (line, mut other) = UnixStream::pair().with_step(failed)?;
        let serve = || u8::from(serve_mounts(overlays, absent, &mut other).is_err());
        let process = raw_syscalls::fork_for(serve).with_step(failed)?;
        Ok(Some(Self { process, line }))
    }

    /// Has the layers mounted, each still without a place. Its process has given up everything by then and ends; that
    /// takes a while, in which its own mounts are taken down. Whoever watches over the command is told of it, or would
    /// take it for something that the command has left behind.
    pub(super) fn receive_mounts(mut self, overlays: &[Overlay]) -> Result<(Copies, Pid), Fault> {
        self.line.write_all(&[1]).with_step(|| "ask for layers".to_owned())?;
        let mounts: Vec<OwnedFd> = view::receive_all(&self.line);
        if mounts.len() != overlays.len() {
            return Err(Fault::new("mount layers over the workspace", "they could not be mounted"));
        }
        let mut copies: Vec<(PathBuf, OwnedFd)> =
            overlays.iter().map(|overlay| overlay.at.clone()).zip(mounts).collect();
        gnoma_core::sort::sort_by(&mut copies, |one, other| one.0.cmp(&other.0));
        Ok((Copies(copies), self.process))
    }
}

fn serve_mounts(
    overlays: &[Overlay],
    absent: &[PathBuf],
    line: &mut UnixStream,
) -> Result<(), Fault> {
    raw_syscalls::unshare(UnshareFlags::NEWNS)
        .with_step(|| "make a namespace of mounts".to_owned())?;
    line.read_exact(&mut [0]).with_step(|| "wait for its turn".to_owned())?;
    let mount = |overlay| overlay::mount_overlay(overlay, absent);
    let mounts: Result<Vec<_>, _> = overlays.iter().map(mount).collect();
    let mounts = mounts?;
    // The command may begin before this process has ended.
    hide_memory()?;
    confine::drop_all_rights()?;
    view::send_mounts(line, &mounts)
}
