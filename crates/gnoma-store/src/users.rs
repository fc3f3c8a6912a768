//! Processes that have a database open.
//!
//! Each store shares the lock of a file beside its database for as long as it lives; replacing the database
//! requires the exclusive lock. On a file system without locks, gnoma continues without them.

use std::{fs::File, path::Path};

use gnoma_core::store::{StoreError, StoreErrorKind};
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    error::{Result, from_io},
    files,
};

/// One of those that have a database open, until it is dropped.
pub(crate) struct User {
    file: File,
}

impl User {
    /// Joins those that have `database` open. Nobody is alone with it meanwhile: that takes the lock
    /// that opening takes.
    pub(crate) fn join(database: &Path) -> Result<Self> {
        let path = files::sibling_path(database, "users");
        let file =
            files::private_file(&path).map_err(|error| from_io("cannot create", &path, &error))?;
        let user = Self { file };
        user.lock_shared();
        Ok(user)
    }

    /// Does `work` while nobody else has the database open.
    pub(crate) fn with_exclusive_lock<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if flock(&self.file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
            return Err(StoreError::new(
                StoreErrorKind::Busy,
                "the session database is damaged, and another gnoma has it open; close the other \
                 gnoma and restart this one to recover what is readable",
            ));
        }
        let done = work();
        self.lock_shared();
        done
    }

    fn lock_shared(&self) {
        // It fails only where there are no locks.
        flock(&self.file, FlockOperation::NonBlockingLockShared).unwrap_or_default();
    }
}

impl Drop for User {
    /// Closing the file is not enough: a process that another thread is starting has a copy of every open file until it has
    /// become its program, and would keep the lock for that long.
    fn drop(&mut self) {
        // It fails only where there are no locks.
        flock(&self.file, FlockOperation::Unlock).unwrap_or_default();
    }
}
