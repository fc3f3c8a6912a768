//! The row of a session, and which entries belong to it.
//!
//! An index finds ids. If it has none, the rows themselves are searched: a damaged index must not make an existing
//! session look as if it had never existed.

use gnoma_core::store::{EntryId, SessionId, StoreError};
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Result, SqliteResultExt, damaged_error, not_found};

/// A session's row, as far as adding to it needs.
pub(crate) struct SessionRow {
    /// The number of the session in this database.
    pub(crate) number: i64,
    /// The latest entry of the session.
    pub(crate) tip: Option<i64>,
    /// The entry at which the session left the one it was forked from.
    pub(crate) fork_entry: Option<i64>,
    /// True if the session's first message is still to name it.
    pub(crate) untitled: bool,
}

/// Finds a session by its id.
pub(crate) fn find_session(connection: &Connection, id: &SessionId) -> Result<SessionRow> {
    connection
        .prepare_cached(
            "SELECT number, tip, fork_entry, title IS NULL FROM session \
             WHERE id = ?1 AND deleted = 0",
        )
        .and_then(|mut find| {
            find.query_row([id.as_str()], |row| {
                Ok(SessionRow {
                    number: row.get(0)?,
                    tip: row.get(1)?,
                    fork_entry: row.get(2)?,
                    untitled: row.get(3)?,
                })
            })
            .optional()
        })
        .map_sqlite_error()?
        .map_or_else(|| Err(missing_session_error(connection, id)), Ok)
}

/// Returns the error that tells why the index leads to no session of this id.
pub(crate) fn missing_session_error(connection: &Connection, id: &SessionId) -> StoreError {
    let is_there = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM session NOT INDEXED WHERE id = ?1 AND deleted = 0)",
        )
        .and_then(|mut ask| ask.query_row([id.as_str()], |row| row.get(0)))
        .map_sqlite_error();
    match is_there {
        Ok(true) => damaged_error(&format!("its index lacks session `{id}`")),
        Ok(false) => not_found(format_args!("session `{id}`")),
        Err(error) => error,
    }
}

/// Checks that `entry` is the session's own or of the past it shares.
pub(crate) fn check_entry_belongs(
    connection: &Connection,
    known: &SessionRow,
    session: &SessionId,
    entry: EntryId,
) -> Result<i64> {
    let own = connection
        .prepare_cached("SELECT session FROM entry WHERE id = ?1")
        .and_then(|mut find| find.query_row([entry.0], |row| row.get::<_, i64>(0)).optional())
        .map_sqlite_error()?
        .is_some_and(|owner| owner == known.number);
    if own || is_shared(connection, known.fork_entry, entry.0)? {
        return Ok(entry.0);
    }
    Err(not_found(format_args!("entry `{entry}` in session `{session}`")))
}

fn is_shared(connection: &Connection, fork_entry: Option<i64>, entry: i64) -> Result<bool> {
    let Some(fork_entry) = fork_entry else { return Ok(false) };
    connection
        .prepare_cached(
            "WITH RECURSIVE past(id) AS (SELECT ?1 UNION SELECT entry.parent FROM past \
             JOIN entry ON entry.id = past.id WHERE entry.parent IS NOT NULL) \
             SELECT EXISTS (SELECT 1 FROM past WHERE id = ?2)",
        )
        .and_then(|mut find| find.query_row([fork_entry, entry], |row| row.get(0)))
        .map_sqlite_error()
}
