//! A folder with a layer over it, as a descriptor for a process that has no name spaces of its own.
//!
//! Who makes it enters the session's name spaces, mounts the layer without a place and hands the mount
//! over through its input. The mount lasts as long as anybody holds the descriptor.

use std::{
    ffi::OsString,
    io::{IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    process::ExitCode,
};

use rustix::{
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
    process::{PidfdFlags, pidfd_open},
    stdio::stdin,
    thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces},
};

use super::{
    entry::read_plan,
    fault::{Fault, FaultStep},
    memory, overlay, raw_syscalls,
};

/// Most descriptors in a message.
const MAX_MOUNTS: usize = 64;
/// Room for as many.
const ROOM: usize = rustix::cmsg_space!(ScmRights(MAX_MOUNTS));

/// Mounts the plan's first overlay and hands it to whoever is at the other end of the input.
pub(super) fn hand_out(args: &mut impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    raw_syscalls::close_inherited().with_step(|| "close files".to_owned())?;
    let plan = memory::with_own_paths(read_plan(args)?)?;
    let missing = |what| Fault::new("open a view", what);
    let session = plan.session_process().ok_or_else(|| missing("there are no namespaces"))?;
    let overlay = plan.policy.overlays.first().ok_or_else(|| missing("none was asked for"))?;
    let entered = pidfd_open(session, PidfdFlags::empty()).and_then(|session| {
        move_into_thread_name_spaces(session.as_fd(), ThreadNameSpaceType::USER)
    });
    entered.with_step(|| "enter the session's namespaces".to_owned())?;
    raw_syscalls::unshare(UnshareFlags::NEWNS)
        .with_step(|| "make a namespace of mounts".to_owned())?;
    send_mounts(stdin(), &[overlay::mount_overlay(overlay, &[])?])?;
    Ok(ExitCode::SUCCESS)
}

/// Hands mounts over to whoever is at the other end.
pub(super) fn send_mounts(to: impl AsFd, mounts: &[OwnedFd]) -> Result<(), Fault> {
    let mut space = [MaybeUninit::uninit(); ROOM];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let mounts: Vec<_> = mounts.iter().map(AsFd::as_fd).collect();
    if !message.push(SendAncillaryMessage::ScmRights(&mounts)) {
        return Err(Fault::new("hand mounts over", "they do not fit into a message"));
    }
    let sent = sendmsg(to, &[IoSlice::new(&[1])], &mut message, SendFlags::empty());
    sent.map(drop).with_step(|| "hand mounts over".to_owned())
}

/// Takes the descriptor; `None` when none comes.
pub(crate) fn receive_mount(from: &UnixStream) -> Option<OwnedFd> {
    receive_all(from).pop()
}

/// Takes all descriptors of a message; none when none comes.
pub(super) fn receive_all(from: &UnixStream) -> Vec<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); ROOM];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    if recvmsg(from, &mut [IoSliceMut::new(&mut word)], &mut message, flags).is_err() {
        return Vec::new();
    }
    let descriptors = message.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    descriptors.flatten().collect()
}
