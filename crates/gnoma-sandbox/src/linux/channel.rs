//! Pipes between the processes of a launch.

use std::{ffi::OsString, os::fd::OwnedFd};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::{Errno, read, write},
    pipe::{PipeFlags, pipe_with},
};

use super::fault::{Fault, FaultStep};
use crate::word_codec::{self, LENGTH_BYTES};

/// A pipe that no program inherits: where to read, and where to write.
pub(super) fn open_pipe() -> Result<(OwnedFd, OwnedFd), Fault> {
    pipe_with(PipeFlags::CLOEXEC).with_step(|| "make a pipe".to_owned())
}

/// Writes all bytes of a message.
pub(super) fn send_bytes(to: &OwnedFd, bytes: &[u8]) -> Result<(), Fault> {
    let mut left = bytes;
    while !left.is_empty() {
        match write(to, left) {
            Ok(written) => left = left.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(error) => return Err(Fault::new("pass a command on", error)),
        }
    }
    Ok(())
}

/// Waits for packed words. `None` when the writer, or one of those whose end is `awaited`, has ended
/// before there were any, or when they make no sense.
pub(super) fn receive_words(from: &OwnedFd, awaited: &[&OwnedFd]) -> Option<Vec<OsString>> {
    let mut stated = [0; LENGTH_BYTES];
    read_exactly(from, awaited, &mut stated)?;
    let mut bytes = vec![0; word_codec::decode_length(stated)?];
    read_exactly(from, awaited, &mut bytes)?;
    word_codec::unpack_words(&bytes)
}

fn read_exactly(from: &OwnedFd, awaited: &[&OwnedFd], bytes: &mut [u8]) -> Option<()> {
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        if !is_readable(from, awaited) {
            return None;
        }
        match read(from, rest) {
            Ok(0) => return None,
            Ok(count) => filled += count,
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// Waits until there is something to read, or one of the others has ended.
fn is_readable(from: &OwnedFd, awaited: &[&OwnedFd]) -> bool {
    let all = [from].into_iter().chain(awaited.iter().copied());
    let mut events: Vec<_> = all.map(|one| PollFd::new(one, PollFlags::IN)).collect();
    while poll(&mut events, None) == Err(Errno::INTR) {}
    events.first().is_some_and(|event| event.revents().contains(PollFlags::IN))
}
