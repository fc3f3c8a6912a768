//! Locks between processes. The kernel drops them with the process, so none can be left behind.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    thread::sleep,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};

use super::error::{Error, PathErrorExt};

/// The number of tries for a lock that is taken, and the time between them.
const TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(25);

/// A link in the place of a lock leads to somebody else's file.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// A held lock; dropping it lets go.
#[derive(Debug)]
pub(super) struct HeldLock {
    file: File,
    /// False where the file system has no locks.
    pub(super) is_real: bool,
}

impl HeldLock {
    /// Does something alone with what is held together with others; `None` while others do hold it.
    pub(super) fn while_alone<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let is_alone =
            self.is_real && flock(&self.file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let done = is_alone.then(act);
        for _ in 0..TRIES {
            // Changing a lock may give it up on the way; whoever takes it then is soon done.
            match flock(&self.file, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(PAUSE),
                Ok(()) | Err(_) => break,
            }
        }
        done
    }
}

impl Drop for HeldLock {
    /// Closing the file would not be enough: a child that another thread is just starting has it open
    /// too, until it becomes its program.
    fn drop(&mut self) {
        // What cannot be unlocked was never locked.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

/// Waits for the lock together with others. Without locks in the file system it is only pretended.
pub(super) fn lock_shared(path: &Path) -> Result<HeldLock, Error> {
    acquire_lock(path, FlockOperation::NonBlockingLockShared, TRIES)
}

/// Waits for the lock alone.
pub(super) fn lock_exclusive(path: &Path) -> Result<HeldLock, Error> {
    acquire_lock(path, FlockOperation::NonBlockingLockExclusive, TRIES)
}

/// Takes the lock alone, or says [`Error::Busy`] at once.
pub(super) fn try_alone(path: &Path) -> Result<HeldLock, Error> {
    acquire_lock(path, FlockOperation::NonBlockingLockExclusive, 1)
}

fn acquire_lock(path: &Path, operation: FlockOperation, tries: u32) -> Result<HeldLock, Error> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(NO_LINK)
        .open(path)
        .io_context("open", path)?;
    for attempt in 1..=tries {
        match flock(&file, operation) {
            Ok(()) => return Ok(HeldLock { file, is_real: true }),
            Err(Errno::WOULDBLOCK) if attempt < tries => sleep(PAUSE),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS) => {
                return Ok(HeldLock { file, is_real: false });
            }
            Err(refused) => return Err(refused).io_context("lock", path),
        }
    }
    Err(Error::Busy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_lock_is_released_even_if_a_child_inherited_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("lock");
        let held = lock_exclusive(&place).unwrap();
        let inherited = held.file.try_clone().unwrap();
        assert!(matches!(try_alone(&place), Err(Error::Busy)));
        drop(held);
        assert!(try_alone(&place).is_ok());
        drop(inherited);
    }

    #[test]
    fn shared_lock_becomes_exclusive_only_without_other_holders() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("lock");
        let (mine, yours) = (lock_shared(&place).unwrap(), lock_shared(&place).unwrap());
        assert_eq!(mine.while_alone(|| ()), None);
        drop(yours);
        assert!(mine.while_alone(|| shared_at_once(&place)).is_some_and(|shared| !shared));
        assert!(matches!(try_alone(&place), Err(Error::Busy)), "it is shared again");
    }

    fn shared_at_once(place: &Path) -> bool {
        acquire_lock(place, FlockOperation::NonBlockingLockShared, 1).is_ok()
    }

    #[test]
    fn symlink_is_rejected_as_a_lock_file() {
        let folder = tempfile::tempdir().unwrap();
        let (place, elsewhere) = (folder.path().join("lock"), folder.path().join("elsewhere"));
        std::os::unix::fs::symlink(&elsewhere, &place).unwrap();
        assert!(matches!(lock_exclusive(&place), Err(Error::Io { .. })));
        assert!(!elsewhere.exists());
    }
}
