//! Makes a folder in memory for the process that asks, see [`super::memory`].

use std::{ffi::OsString, os::fd::AsFd, process::ExitCode};

use rustix::{
    mount::{OpenTreeFlags, open_tree},
    process::{PidfdFlags, pidfd_open},
    stdio::stdin,
    thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces},
};

use super::{
    entry::read_plan,
    fault::{Fault, FaultStep},
    mount_points::empty_folder,
    raw_syscalls, view,
};

/// Only its owner opens the folder.
const MODE: &str = "700";

/// Makes a folder in memory and hands it to the process at the other end of the input.
pub(super) fn hand_out(args: &mut impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    raw_syscalls::close_inherited().with_step(|| "close files".to_owned())?;
    let plan = read_plan(args)?;
    let missing = || Fault::new("make a folder in memory", "there are no namespaces");
    let session = plan.session_process().ok_or_else(missing)?;
    let entered = pidfd_open(session, PidfdFlags::empty()).and_then(|session| {
        move_into_thread_name_spaces(session.as_fd(), ThreadNameSpaceType::USER)
    });
    entered.with_step(|| "enter the session's namespaces".to_owned())?;
    let separate = || {
        let made = raw_syscalls::unshare(UnshareFlags::NEWNS);
        made.with_step(|| "make a namespace of mounts".to_owned())
    };
    separate()?;
    let folder = empty_folder(MODE).with_step(|| "make a folder in memory".to_owned())?;
    separate()?;
    // Commands mount it in namespaces of their own, which Linux permits since 6.15.
    let flags = OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::AT_EMPTY_PATH;
    open_tree(&folder, "", flags)
        .with_step(|| "share a folder in memory, for which it needs Linux 6.15".to_owned())?;
    view::send_mounts(stdin(), &[folder])?;
    Ok(ExitCode::SUCCESS)
}
