//! Locks between processes. The kernel drops them with the process, so none can be left behind.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread::sleep,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use super::error::{At, Error};

/// How often a lock that is taken is tried, and how long between.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub(super) struct Held {
    file: File,
    /// False where the file system has no locks.
    pub(super) is_real: bool,
}

impl Drop for Held {
    /// Closing the file would not be enough: a child that another thread is just starting has it open
    /// too, until it becomes its program.
    fn drop(&mut self) {
        // What cannot be unlocked was never locked.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Waits for the lock together with others. Without locks in the file system it is only pretended.
pub(super) fn shared(path: &Path) -> Result<Held, Error> {
    acquire(path, FlockOperation::NonBlockingLockShared, TRIES)
}

/// Waits for the lock alone.
pub(super) fn alone(path: &Path) -> Result<Held, Error> {
    acquire(path, FlockOperation::NonBlockingLockExclusive, TRIES)
}

/// Takes the lock alone, or says [`Error::Busy`] at once.
pub(super) fn try_alone(path: &Path) -> Result<Held, Error> {
    acquire(path, FlockOperation::NonBlockingLockExclusive, 1)
}

fn acquire(path: &Path, operation: FlockOperation, tries: u32) -> Result<Held, Error> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .at("open", path)?;
    for attempt in 1..=tries {
        match flock(&file, operation) {
            Ok(()) => return Ok(Held { file, is_real: true }),
            Err(Errno::WOULDBLOCK) if attempt < tries => sleep(PAUSE),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => {
                return Ok(Held { file, is_real: false });
            }
            Err(refused) => return Err(refused).at("lock", path),
        }
    }
    Err(Error::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_goes_although_a_child_has_inherited_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("lock");
        let held = alone(&place).unwrap();
        let inherited = held.file.try_clone().unwrap();
        assert!(matches!(try_alone(&place), Err(Error::Busy)));
        drop(held);
        assert!(try_alone(&place).is_ok());
        drop(inherited);
    }
}
