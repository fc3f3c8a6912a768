//! Statements that several modules run.

use rusqlite::Connection;

use crate::error::{Result, SqliteResultExt};

/// Runs a statement without values that is used again and again.
pub(crate) fn execute_cached(connection: &Connection, sql: &str) -> Result<()> {
    connection
        .prepare_cached(sql)
        .and_then(|mut run| run.execute([]))
        .map(|_| ())
        .map_sqlite_error()
}

/// Says how deleting treats the bytes that are deleted.
pub(crate) fn secure_delete(connection: &Connection, how: &str) -> Result<()> {
    connection.pragma_update_and_check(None, "secure_delete", how, |_| Ok(())).map_sqlite_error()
}

/// For settings of which some answer with a row and some do not.
pub(crate) fn no_answer(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        other => Err(other),
    }
}
