//! Connections to the database, with gnoma's settings.
//!
//! The log stays when a database is closed: creating one again, and merging it at the end, would wait for the disk
//! in each run. To copy a database, copy both files.

use std::{fs, os::unix::ffi::OsStrExt as _, path::Path, time::Duration};

use gnoma_core::store::StoreErrorKind;
use rusqlite::{Connection, OpenFlags, config::DbConfig};

use crate::{
    backoff::Backoff,
    error::{Result, SqliteResultExt, damaged_error},
    options::{Journal, Options},
    schema,
    sql::{no_answer, secure_delete},
};

/// The log may grow to this many pages before a commit works it into the main file, whoever waits.
const LOG_PAGES: i64 = 4000;

/// The part of the log file that is kept for the next writes, in bytes.
const LOG_KEPT_BYTES: i64 = 4 * 1024 * 1024;

/// Reads the whole database with its indexes and says whether it is sound.
pub(crate) fn check_integrity(connection: &Connection) -> Result<()> {
    is_ok(connection, "PRAGMA integrity_check(1)")
}

/// Reads one table with its indexes and says whether they are sound.
pub(crate) fn check_table(connection: &Connection, table: &str) -> Result<()> {
    is_ok(connection, &format!("PRAGMA integrity_check({table})"))
}

fn is_ok(connection: &Connection, check: &str) -> Result<()> {
    let answer: String = connection.query_row(check, [], |row| row.get(0)).map_sqlite_error()?;
    if answer == "ok" { Ok(()) } else { Err(damaged_error(&answer)) }
}

/// A connection with our settings. The file must exist; one that is not plainly ours counts as
/// damaged and is left as it is.
pub(crate) fn open_connection(
    path: &Path,
    patience: Duration,
    journal: Journal,
) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_sqlite_error()?;
    connection.busy_timeout(patience).map_sqlite_error()?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_sqlite_error()?;
    check_application_id(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    if fs::metadata(path).is_ok_and(|facts| facts.len() == 0) {
        before_first_page(&connection)?;
    }
    let has_log = set_journal(&connection, journal, patience)?;
    for (name, value) in [
        ("wal_autocheckpoint", LOG_PAGES),
        ("journal_size_limit", LOG_KEPT_BYTES),
        ("cell_size_check", 1),
        ("trusted_schema", 0),
        ("foreign_keys", 1),
    ] {
        // Some of these answer with a row, some do not.
        connection
            .pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(no_answer)
            .map_sqlite_error()?;
    }
    // A log is flushed when it is asked for and before it is worked in; without one it is the
    // commit that must.
    let synchronous = if has_log { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous).map_sqlite_error()?;
    // What is deleted is overwritten where that costs no further write.
    secure_delete(&connection, "FAST")?;
    Ok(connection)
}

/// A connection that only reads. Its log is read as well; what others write meanwhile is seen where the
/// system lets them be seen.
pub(crate) fn connect_to_read(path: &Path, patience: Duration) -> Result<Connection> {
    let connection = open_read_only(path, patience)?;
    check_application_id(&connection)?;
    Ok(connection)
}

/// Opens a database of any of our kinds so that nothing can be written through the connection.
pub(crate) fn open_read_only(path: &Path, patience: Duration) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    read_only(Connection::open_with_flags(path, flags).map_sqlite_error()?, patience)
}

/// Opens a database that nobody changes, such as one on a read-only file system. SQLite takes no locks then, and needs
/// no file for those of a log.
pub(crate) fn open_immutable(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' | b'-' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    read_only(Connection::open_with_flags(uri, flags).map_sqlite_error()?, Duration::ZERO)
}

fn read_only(connection: Connection, patience: Duration) -> Result<Connection> {
    connection.busy_timeout(patience).map_sqlite_error()?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_sqlite_error()?;
    connection.set_prepared_statement_cache_capacity(64);
    for name in ["cell_size_check", "query_only"] {
        connection
            .pragma_update_and_check(None, name, 1, |_| Ok(()))
            .or_else(no_answer)
            .map_sqlite_error()?;
    }
    connection.pragma_update(None, "trusted_schema", 0).map_sqlite_error()?;
    Ok(connection)
}

/// Asks the open database and not the file: whoever opens and closes a file takes away the locks
/// that other connections of the same process have on it.
fn check_application_id(connection: &Connection) -> Result<()> {
    let number: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .map_sqlite_error()?;
    if number == schema::APPLICATION_ID {
        return Ok(());
    }
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_sqlite_error()?;
    // A process may have died between making the file and its tables.
    if number == 0 && tables == 0 {
        return Ok(());
    }
    Err(damaged_error("it does not say that it is gnoma's"))
}

/// Sets the journal and reports whether there is a write-ahead log now. The database's own waiting does not cover a
/// change of journal.
pub(crate) fn set_journal(
    connection: &Connection,
    journal: Journal,
    patience: Duration,
) -> Result<bool> {
    let mut waits = Backoff::new(patience);
    loop {
        let set = match journal {
            Journal::Auto => {
                request_journal_mode(connection, "WAL").and_then(|mode| match mode.as_str() {
                    "wal" => Ok(mode),
                    _ => request_journal_mode(connection, "TRUNCATE"),
                })
            }
            Journal::Rollback => request_journal_mode(connection, "TRUNCATE"),
        };
        match set.map_sqlite_error() {
            Ok(mode) => return Ok(mode == "wal"),
            Err(error) if error.kind == StoreErrorKind::Busy && waits.wait() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Asks for a journal; the one there is then.
pub(crate) fn request_journal_mode(
    connection: &Connection,
    mode: &str,
) -> rusqlite::Result<String> {
    connection.pragma_update_and_check(None, "journal_mode", mode, |row| row.get(0))
}

/// A write-ahead log needs memory shared between all users of the file.
pub(crate) fn journal_for(options: &Options) -> Journal {
    match options.journal {
        Journal::Rollback => Journal::Rollback,
        Journal::Auto => journal_in(&options.folder),
    }
}

/// The journal that suits the file system of `folder`.
pub(crate) fn journal_in(folder: &Path) -> Journal {
    if is_network(folder) { Journal::Rollback } else { Journal::Auto }
}

#[cfg(target_os = "linux")]
fn is_network(folder: &Path) -> bool {
    // NFS, SMB, CIFS, SMB2, 9P, Ceph, AFS, Lustre and FUSE, as in statfs(2).
    const NETWORK: [u32; 9] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x0102_1997,
        0x00C3_6400,
        0x5346_414F,
        0x0BD0_0BD0,
        0x6573_5546,
    ];
    rustix::fs::statfs(folder)
        .is_ok_and(|facts| NETWORK.iter().any(|kind| i128::from(*kind) == i128::from(facts.f_type)))
}

#[cfg(not(target_os = "linux"))]
fn is_network(_folder: &Path) -> bool {
    false
}

/// Applies the settings that must be set while a database has no page.
pub(crate) fn before_first_page(connection: &Connection) -> Result<()> {
    // Room of deleted sessions can be given back later.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_sqlite_error()
}
