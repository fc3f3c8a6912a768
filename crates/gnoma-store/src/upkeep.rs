//! What the writing thread of a store does besides its jobs.

use std::{
    cell::Cell,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gnoma_core::store::StoreErrorKind;
use rusqlite::Connection;

use crate::{
    db, erase,
    error::Result,
    files,
    log::{self, Log},
    sql::execute_cached,
    text_index,
    writer::Upkeep,
};

/// Pieces of what was deleted that are erased before the program ends; some ten milliseconds each.
const MOST_LAST_PIECES: usize = 200;

/// Keeps one database in shape.
pub(crate) struct Maintenance {
    path: PathBuf,
    opened: Option<(u64, u64)>,
    log: Log,
    /// True if something was deleted that the log may still hold.
    deleted: Arc<AtomicBool>,
    /// The table of sessions was read with its indexes.
    is_checked: Cell<bool>,
}

impl Maintenance {
    /// The keeper of the open database at `path`. `deleted` is set when something is to be gone
    /// without a trace.
    pub(crate) fn new(path: PathBuf, deleted: Arc<AtomicBool>) -> Self {
        let (opened, log) = (files::file_identity(&path), Log::for_database(&path));
        Self { path, opened, log, deleted, is_checked: Cell::new(false) }
    }

    /// Once in a run: an index that leaves out a session hides it and nothing else tells. What is wrong is
    /// recovered at the next start.
    fn check_sessions(&self, connection: &Connection) {
        if !self.is_checked.replace(true)
            && let Err(error) = db::check_table(connection, "session")
            && error.kind == StoreErrorKind::Damaged
        {
            files::mark_damaged(&self.path);
        }
    }

    /// Does a piece of taking what was deleted out of the index, the free pages and at last the log;
    /// says whether more is left. What others are reading goes when the log is next written from its
    /// beginning.
    fn erase_deleted(&self, connection: &Connection) -> Result<bool> {
        if !self.deleted.load(Ordering::SeqCst) {
            return Ok(false);
        }
        let more = erase::erase_piece(connection)?;
        if !more {
            self.deleted.store(false, Ordering::SeqCst);
            log::erase_log(connection)?;
        }
        Ok(more)
    }
}

impl Upkeep for Maintenance {
    fn may_write(&self) -> Result<()> {
        files::check_same_file(&self.path, self.opened)
    }

    fn flush(&self) -> Result<()> {
        self.log.flush()
    }

    fn turn_ended(&self, connection: &Connection) -> Result<()> {
        if log::count_pages(connection)? >= log::TOO_LONG_PAGES {
            log::work_in(connection)?;
        }
        Ok(())
    }

    fn run_maintenance(&self, connection: &Connection) -> Result<bool> {
        self.may_write()?;
        if self.erase_deleted(connection)? {
            return Ok(true);
        }
        self.check_sessions(connection);
        // A full disk is no reason to leave the rest.
        drop(self.log.make_room(connection));
        if text_index::is_behind(connection)? {
            execute_cached(connection, "BEGIN IMMEDIATE")?;
            text_index::index_batch(connection)?;
            execute_cached(connection, "COMMIT")?;
            return Ok(true);
        }
        if log::count_pages(connection)? >= log::LONG_PAGES {
            log::work_in(connection)?;
        }
        Ok(false)
    }

    fn on_thread_end(&self, connection: &Connection) {
        for _ in 0..MOST_LAST_PIECES {
            if !matches!(self.erase_deleted(connection), Ok(true)) {
                break;
            }
        }
    }
}
