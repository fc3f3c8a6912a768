//! What the writing lane of a store does besides its jobs.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::Connection;

use crate::{
    db,
    error::Result,
    lane::execute,
    lock::{self, Identity},
    log::{self, Log},
    words,
    writer::Upkeep,
};

/// Keeps one database in shape.
pub(crate) struct Keeper {
    path: PathBuf,
    opened: Option<(u64, u64)>,
    identity: Arc<Identity>,
    log: Log,
    /// Something was deleted that the log may still hold.
    deleted: Arc<AtomicBool>,
}

impl Keeper {
    /// The keeper of the open database at `path`. `deleted` is set when something is to be gone
    /// without a trace.
    pub(crate) fn new(path: PathBuf, identity: Arc<Identity>, deleted: Arc<AtomicBool>) -> Self {
        let (opened, log) = (db::identity(&path), Log::of(&path));
        Self { path, opened, identity, log, deleted }
    }

    /// Takes what was deleted out of the log as well. What is in use then goes when the log is
    /// next written from its beginning.
    fn erase_deleted(&self, connection: &Connection) {
        if self.deleted.swap(false, Ordering::SeqCst) {
            drop(log::erase(connection));
        }
    }
}

impl Upkeep for Keeper {
    fn may_write(&self) -> Result<()> {
        db::still(&self.path, self.opened)
    }

    fn flush(&self) -> Result<()> {
        self.log.flush()
    }

    fn turn_ended(&self, connection: &Connection) -> Result<()> {
        if log::pages(connection)? >= log::TOO_LONG_PAGES {
            log::work_in(connection)?;
        }
        Ok(())
    }

    fn tend(&self, connection: &Connection) -> Result<bool> {
        self.may_write()?;
        self.erase_deleted(connection);
        // A full disk is no reason to leave the rest.
        drop(self.log.make_room(connection));
        if words::is_behind(connection)? {
            execute(connection, "BEGIN IMMEDIATE")?;
            words::follow(connection)?;
            execute(connection, "COMMIT")?;
            return Ok(true);
        }
        if log::pages(connection)? >= log::LONG_PAGES {
            log::work_in(connection)?;
        }
        Ok(false)
    }

    fn leave(&self, connection: &Connection) {
        // A hold that stays behind is taken over when this process is gone.
        drop(lock::release_all(connection, &self.identity));
        self.erase_deleted(connection);
    }
}
