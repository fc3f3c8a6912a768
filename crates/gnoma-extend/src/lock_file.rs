//! Files that a process locks, so that no other process does the same work. The lock ends with the process.

use std::{fs::File, io, path::Path};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// Locks a file, and makes it if there is none; `None` if another process has it locked.
pub(crate) fn try_lock_file(path: &Path) -> io::Result<Option<File>> {
    let file = open_lock_file(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Locks a file, and makes it if there is none. Waits while another process has it, so it is only for locks that are
/// held for a moment.
pub(crate) fn lock_file(path: &Path) -> io::Result<File> {
    let file = open_lock_file(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}
