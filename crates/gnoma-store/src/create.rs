//! Makes a new database: whole, under another name, and only then in its place.
//!
//! Nobody ever finds half of it, so nothing has to be undone when a process or the power fails on
//! the way, and it takes one flush in all. The new name reaches the disk with the first log or
//! journal, whose making flushes the folder. Bringing old databases forward is
//! [`crate::migrate`]'s.

use std::{
    fs::{self, File},
    path::Path,
};

use rusqlite::{Connection, OpenFlags};

use crate::{
    db,
    error::{Result, SqliteResultExt, from_io},
    files::{self, sibling_path},
    migrate,
    options::Journal,
};

/// Makes the database at `path`, where none may be.
pub(crate) fn create_database(path: &Path, journal: Journal) -> Result<()> {
    let building = sibling_path(path, "building");
    files::remove_database(&building)?;
    let file = files::private_file(&building);
    let file = file.map_err(|error| from_io("cannot create", &building, &error))?;
    let built =
        build_database(&building, journal).and_then(|()| put_in_place(&file, &building, path));
    if built.is_err() {
        // The error that led here is the one to tell.
        drop(files::remove_database(&building));
    }
    built
}

fn build_database(path: &Path, journal: Journal) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut new = Connection::open_with_flags(path, flags).map_sqlite_error()?;
    db::request_journal_mode(&new, "OFF").map_sqlite_error()?;
    new.pragma_update(None, "synchronous", "OFF").map_sqlite_error()?;
    db::before_first_page(&new)?;
    migrate::migrate_to_latest(&mut new)?;
    match journal {
        // Where there can be no log, whoever opens the database finds that out again.
        Journal::Auto => drop(db::request_journal_mode(&new, "WAL").map_sqlite_error()?),
        Journal::Rollback => {}
    }
    new.close().map_err(|(_, error)| error).map_sqlite_error()
}

fn put_in_place(file: &File, building: &Path, path: &Path) -> Result<()> {
    file.sync_all().map_err(|error| from_io("cannot flush", building, &error))?;
    // The log of a database that is gone must not be taken for this one's.
    files::remove_database(path)?;
    fs::rename(building, path).map_err(|error| from_io("cannot rename", building, &error))
}
