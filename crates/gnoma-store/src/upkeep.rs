//! What the writing lane of a store does besides its jobs.

use std::{path::PathBuf, sync::Arc};

use rusqlite::Connection;

use crate::{
    db,
    error::{Explain, Result},
    lane::execute,
    lock::{self, Identity},
    log::Log,
    words,
    writer::Upkeep,
};

/// Rows changed after which the log is worth working in: some turns.
const WORTH_WORKING_IN: u64 = 100;

/// Keeps one database in shape.
pub(crate) struct Keeper {
    path: PathBuf,
    opened: Option<(u64, u64)>,
    identity: Arc<Identity>,
    log: Log,
    /// The log was looked after once.
    has_room: bool,
    /// Rows changed when the log was last worked in.
    worked_in: u64,
}

impl Keeper {
    /// The keeper of the open database at `path`.
    pub(crate) fn new(path: PathBuf, identity: Arc<Identity>) -> Self {
        let (opened, log) = (db::identity(&path), Log::of(&path));
        Self { path, opened, identity, log, has_room: false, worked_in: 0 }
    }
}

impl Upkeep for Keeper {
    fn may_write(&self) -> Result<()> {
        db::still(&self.path, self.opened)
    }

    fn flush(&self) -> Result<()> {
        self.log.flush()
    }

    fn tend(&mut self, connection: &Connection) -> Result<bool> {
        self.may_write()?;
        if !std::mem::replace(&mut self.has_room, true) {
            // A full disk is no reason to leave the rest.
            drop(self.log.make_room(connection));
        }
        if words::is_behind(connection)? {
            execute(connection, "BEGIN IMMEDIATE")?;
            words::follow(connection)?;
            execute(connection, "COMMIT")?;
            return Ok(true);
        }
        let changed = connection.total_changes();
        if changed.saturating_sub(self.worked_in) >= WORTH_WORKING_IN {
            self.worked_in = changed;
            work_in(connection)?;
        }
        Ok(false)
    }

    fn leave(&mut self, connection: &Connection) {
        // A hold that stays behind is taken over when this process is gone.
        drop(lock::release_all(connection, &self.identity));
    }
}

/// Works the log into the main file as far as nobody is disturbed, so that the log is written from
/// its beginning again. The first write there waits for the disk: better now than in a turn.
fn work_in(connection: &Connection) -> Result<()> {
    let (written, worked_in): (i64, i64) = connection
        .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| Ok((row.get(1)?, row.get(2)?)))
        .explain()?;
    if written > 0 && written == worked_in {
        execute(connection, "UPDATE indexed SET up_to = up_to")?;
    }
    Ok(())
}
