//! The file of the write-ahead log: flushing it, extending it, and merging it.
//!
//! What is flushed when: SQLite runs with `synchronous=NORMAL` and flushes where order matters: the log before its
//! pages are copied into the main file, the main file before the log starts again, and the beginning of a log (with
//! the folder that names it) before its first frame. Commits do not flush; a turn's end does, here. A power failure
//! can therefore lose only the tail of the log. Each frame's checksum covers all frames before it since the
//! beginning, which gets new random numbers each time: whatever of the tail reached the disk, in whatever order,
//! reading ends before the first frame that is missing or older, and at the last commit before that. What the end
//! of a turn has flushed comes earlier.
//!
//! The log stays between runs, and it does not matter which process continues it: the next one reads it through, as
//! after a crash, and appends. That takes a millisecond for a few hundred pages, so the log is kept that short.
//!
//! Flushing a file that grows makes the file system commit its own journal, which costs milliseconds; flushing one
//! that is overwritten costs a tenth of that. So the log is extended in advance, during a pause. Zeros are never a
//! valid frame.

use std::{
    cell::OnceCell,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use crate::{
    error::{Result, SqliteResultExt, from_io},
    sql::execute_cached,
};

/// Length the log gets ahead of time: several turns.
const ROOM_BYTES: u64 = 1024 * 1024;

/// Pages of a log that is worth working in: half of the room.
pub(crate) const LONG_PAGES: i64 = 128;

/// Pages of a log that should not wait for a pause any more: all of the room.
pub(crate) const TOO_LONG_PAGES: i64 = 256;

/// The log of an open connection, which keeps it from being replaced.
pub(crate) struct Log {
    path: PathBuf,
    /// Set once there was something to write.
    file: OnceCell<Option<File>>,
}

impl Log {
    /// The log of the database at `database`.
    pub(crate) fn for_database(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: OnceCell::new() }
    }

    /// Brings what is committed to the disk. Databases without a log do that in the commit.
    pub(crate) fn flush(&self) -> Result<()> {
        let Some(file) = self.open_file()? else { return Ok(()) };
        file.sync_data().map_err(|error| from_io("cannot flush", &self.path, &error))
    }

    /// Makes the log longer, if it is short.
    pub(crate) fn make_room(&self, connection: &Connection) -> Result<()> {
        let Some(file) = self.open_file()? else { return Ok(()) };
        if file.metadata().is_ok_and(|facts| facts.len() >= ROOM_BYTES) {
            return Ok(());
        }
        // Whoever holds this lock is the only one that makes the log longer.
        execute_cached(connection, "BEGIN IMMEDIATE")?;
        let made = self.preallocate_file(file);
        let ended = execute_cached(connection, "ROLLBACK");
        made.map_err(|error| from_io("cannot extend", &self.path, &error)).and(ended)
    }

    fn preallocate_file(&self, file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length >= ROOM_BYTES {
            return Ok(());
        }
        let mut end = OpenOptions::new().append(true).open(&self.path)?;
        let written = io::copy(&mut io::repeat(0).take(ROOM_BYTES - length), &mut end);
        if written.is_err() {
            // The last of the room is better used by what is to be stored.
            end.set_len(length)?;
        }
        written.and_then(|_| end.sync_all())
    }

    fn open_file(&self) -> Result<Option<&File>> {
        if let Some(known) = self.file.get() {
            return Ok(known.as_ref());
        }
        let opened = match OpenOptions::new().read(true).write(true).open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(from_io("cannot open", &self.path, &error)),
        };
        Ok(self.file.get_or_init(|| opened).as_ref())
    }
}

/// Pages in the log. None where there is no log.
pub(crate) fn count_pages(connection: &Connection) -> Result<i64> {
    run_checkpoint(connection, "PRAGMA wal_checkpoint(NOOP)").map(|(pages, _)| pages)
}

/// Works the log into the main file as far as nobody is disturbed, so that it is written from its
/// beginning again.
pub(crate) fn work_in(connection: &Connection) -> Result<()> {
    let (pages, worked_in) = run_checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
    if pages > 0 && pages == worked_in { begin_anew(connection) } else { Ok(()) }
}

/// Works the log in and leaves nothing of what it held, unless another process is at it.
pub(crate) fn erase_log(connection: &Connection) -> Result<()> {
    match run_checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")? {
        (0, _) => begin_anew(connection),
        _ => Ok(()),
    }
}

/// The first write to a log waits for the disk: better now than in a turn. A value that does not
/// change is not written, so this takes two steps.
fn begin_anew(connection: &Connection) -> Result<()> {
    let transaction = connection.unchecked_transaction().map_sqlite_error()?;
    execute_cached(&transaction, "UPDATE indexed SET up_to = up_to + 1")?;
    execute_cached(&transaction, "UPDATE indexed SET up_to = up_to - 1")?;
    transaction.commit().map_sqlite_error()
}

/// Pages in the log, and how many of them are in the main file.
fn run_checkpoint(connection: &Connection, pragma: &str) -> Result<(i64, i64)> {
    connection.query_row(pragma, [], |row| Ok((row.get(1)?, row.get(2)?))).map_sqlite_error()
}
