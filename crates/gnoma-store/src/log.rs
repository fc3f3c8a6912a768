//! The file of the write-ahead log: flushing it, and room in it.
//!
//! Flushing a file that grows makes the file system commit its own journal, which costs
//! milliseconds; flushing one that is overwritten costs a tenth of that. So the log is made longer
//! ahead of time, in a pause. Readers of a log stop at the first frame that is not valid, and zeros
//! never are.

use std::{
    cell::OnceCell,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use rusqlite::Connection;

use crate::{
    error::{Result, from_io},
    lane::execute,
};

/// Length the log gets ahead of time: several turns.
const ROOM_BYTES: u64 = 1024 * 1024;

/// Written at once.
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The log of an open connection, which keeps it from being replaced.
pub(crate) struct Log {
    path: PathBuf,
    /// Set once there was something to write.
    file: OnceCell<Option<File>>,
}

impl Log {
    /// The log of the database at `database`.
    pub(crate) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: OnceCell::new() }
    }

    /// Brings what is committed to the disk. Databases without a log do that in the commit.
    pub(crate) fn flush(&self) -> Result<()> {
        let Some(file) = self.file()? else { return Ok(()) };
        file.sync_data().map_err(|error| from_io("cannot flush", &self.path, &error))
    }

    /// Makes the log longer, if it is short.
    pub(crate) fn make_room(&self, connection: &Connection) -> Result<()> {
        let Some(file) = self.file()? else { return Ok(()) };
        // Whoever holds this lock is the only one that makes the log longer.
        execute(connection, "BEGIN IMMEDIATE")?;
        let made = self.extend(file);
        let ended = execute(connection, "ROLLBACK");
        made.map_err(|error| from_io("cannot make room in", &self.path, &error)).and(ended)
    }

    fn extend(&self, file: &File) -> io::Result<()> {
        let length = file.metadata()?.len();
        if length >= ROOM_BYTES {
            return Ok(());
        }
        let mut end = OpenOptions::new().append(true).open(&self.path)?;
        let mut written = Ok(());
        let mut left = ROOM_BYTES - length;
        while left > 0 && written.is_ok() {
            let next = usize::try_from(left).unwrap_or(ZEROS.len()).min(ZEROS.len());
            written = end.write_all(ZEROS.get(..next).unwrap_or(&ZEROS));
            left = left.saturating_sub(u64::try_from(next).unwrap_or(left));
        }
        if written.is_err() {
            // The last of the room is better used by what is to be stored.
            end.set_len(length)?;
        }
        written.and_then(|()| end.sync_all())
    }

    fn file(&self) -> Result<Option<&File>> {
        if let Some(known) = self.file.get() {
            return Ok(known.as_ref());
        }
        let opened = match self.open() {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(from_io("cannot open", &self.path, &error)),
        };
        Ok(self.file.get_or_init(|| opened).as_ref())
    }

    fn open(&self) -> io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        if let Some(folder) = self.path.parent() {
            // Its name must survive as well. Some file systems flush no folders, and need not.
            drop(File::open(folder).and_then(|folder| folder.sync_all()));
        }
        Ok(file)
    }
}
