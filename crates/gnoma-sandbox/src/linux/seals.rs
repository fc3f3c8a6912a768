//! Files and folders that a command finds as they are and cannot open.
//!
//! Where `/dev/fuse` can be used they are those of a file system of the command's own ([`super::fuse`]): an open fails
//! for root as well, and is reported. Elsewhere an empty file without rights lies over each where the command may
//! write, Landlock leaves them out where it may only read, and nobody learns who tried.

use std::{
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::{Errno, read},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
        fsconfig_set_string, fsmount, fsopen,
    },
    pipe::{PipeFlags, pipe_with},
    process::{Pid, getegid, geteuid},
    thread::UnshareFlags,
};

use super::{
    confine,
    entry::hide_memory,
    fault::{Fault, FaultStep},
    fuse::SealedFiles,
    paths::OutsideNames,
    raw_syscalls, view,
    watch::let_go_of_streams,
};
use crate::policy::Policy;

/// The device through which the kernel offers file systems in user space.
const DEVICE: &str = "/dev/fuse";
/// Most files that are reported of one command.
const MAX_REPORTED: usize = 1_000;

/// The mechanism that keeps sealed files from being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealKind {
    /// By a file system that reports who tries.
    Served,
    /// By masks and Landlock.
    Masked,
}

impl SealKind {
    /// The better one that this process can use, where a policy seals anything.
    pub(super) fn for_policy(policy: &Policy) -> Self {
        let has_none = policy.sealed.is_empty() && policy.outside_names.is_empty();
        if has_none || policy.shows_machine {
            return Self::Masked;
        }
        if reports_tried_files() { Self::Served } else { Self::Masked }
    }
}

/// True if the sandbox can report here which sealed files a command tries to open.
pub(crate) fn reports_tried_files() -> bool {
    open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).is_ok()
}

/// The file system of a command's sealed files, mounted nowhere yet, and the process that serves it.
pub(super) struct SealServer {
    pub(super) mount: OwnedFd,
    pub(super) process: Pid,
}

impl SealServer {
    /// Starts the process that serves, which sees the machine as it is now. To be called in the command's user
    /// namespace, by the first of its namespace of processes.
    pub(super) fn start(
        files: &[(u16, PathBuf)],
        outside: &OutsideNames,
        teller: &OwnedFd,
    ) -> Result<Self, Fault> {
        let failed = || "seal secret files".to_owned();
        let (line, other) = UnixStream::pair().with_step(failed)?;
        let sealed = SealedFiles { files, outside, teller: Some(teller) };
        let serve = || u8::from(mount_and_serve(&sealed, &other).is_err());
        let process = raw_syscalls::fork_for(serve).with_step(failed)?;
        drop(other);
        let mount = view::receive_all(&line).pop();
        let mount = mount.ok_or_else(|| Fault::new(failed(), "they could not be mounted"))?;
        Ok(Self { mount, process })
    }
}

/// Mounts the file system, hands it over and serves it. That needs no right but to look at the files.
fn mount_and_serve(sealed: &SealedFiles<'_>, line: &UnixStream) -> Result<(), Fault> {
    let failed = || "mount sealed files".to_owned();
    raw_syscalls::unshare(UnshareFlags::NEWNS).with_step(failed)?;
    let device = open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).with_step(failed)?;
    let mount = mount_device(&device).with_step(failed)?;
    // The command may begin before this process is ready.
    hide_memory()?;
    confine::drop_all_rights()?;
    let_go_of_streams(false).with_step(failed)?;
    view::send_mounts(line, &[mount])?;
    sealed.serve_requests(&device);
    Ok(())
}

/// Mounts the file system behind a device without a place.
fn mount_device(device: &OwnedFd) -> Result<OwnedFd, Errno> {
    let kind = fsopen("fuse", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in [
        ("fd", device.as_raw_fd().to_string()),
        ("rootmode", "40555".to_owned()),
        ("user_id", geteuid().as_raw().to_string()),
        ("group_id", getegid().as_raw().to_string()),
    ] {
        fsconfig_set_string(&kind, key, value.as_str())?;
    }
    fsconfig_set_flag(&kind, "allow_other")?;
    fsconfig_create(&kind)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    fsmount(&kind, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// Makes the pipe for the numbers of tried files, and returns its reading and writing ends.
pub(super) fn report_pipe() -> Result<(OwnedFd, OwnedFd), Fault> {
    // The one who serves must never wait.
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).with_step(|| "make a pipe".to_owned())
}

/// The numbers of the files that were tried so far.
pub(super) fn read_reports(from: &OwnedFd) -> Vec<u16> {
    let mut numbers = Vec::new();
    while numbers.len() < MAX_REPORTED {
        let mut number = [0; 2];
        match read(from.as_fd(), &mut number) {
            Ok(2) => numbers.push(u16::from_ne_bytes(number)),
            Err(Errno::INTR) => {}
            _ => break,
        }
    }
    numbers
}
