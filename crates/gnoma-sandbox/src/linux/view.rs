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
    fault::{Fault, FaultStep},
    launch::read_plan,
    overlay, raw,
};

/// Room for one descriptor in a message.
const ROOM: usize = rustix::cmsg_space!(ScmRights(1));

/// Mounts the plan's first overlay and hands it to whoever is at the other end of the input.
pub(super) fn hand_out(args: &mut impl Iterator<Item = OsString>) -> Result<ExitCode, Fault> {
    raw::close_inherited().step(|| "close files".to_owned())?;
    let plan = read_plan(args)?;
    let missing = |what| Fault::new("open a view", what);
    let session = plan.session().ok_or_else(|| missing("there are no namespaces"))?;
    let overlay = plan.policy.overlays.first().ok_or_else(|| missing("none was asked for"))?;
    let entered = pidfd_open(session, PidfdFlags::empty()).and_then(|session| {
        move_into_thread_name_spaces(session.as_fd(), ThreadNameSpaceType::USER)
    });
    entered.step(|| "enter the session's namespaces".to_owned())?;
    raw::unshare(UnshareFlags::NEWNS).step(|| "make a namespace of mounts".to_owned())?;
    let mount = overlay::mount(overlay)?;
    let mut space = [MaybeUninit::uninit(); ROOM];
    let mut message = SendAncillaryBuffer::new(&mut space);
    let mount = [mount.as_fd()];
    if !message.push(SendAncillaryMessage::ScmRights(&mount)) {
        return Err(missing("it does not fit into a message"));
    }
    sendmsg(stdin(), &[IoSlice::new(&[1])], &mut message, SendFlags::empty())
        .step(|| "hand a view over".to_owned())?;
    Ok(ExitCode::SUCCESS)
}

/// Takes the descriptor; `None` when none comes.
pub(crate) fn receive(from: &UnixStream) -> Option<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); ROOM];
    let mut message = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(from, &mut [IoSliceMut::new(&mut word)], &mut message, flags).ok()?;
    message.drain().find_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    })
}
