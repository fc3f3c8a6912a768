//! Deletes permanently: removes what was deleted from the index and frees the pages, piece by piece. [`crate::log`]
//! deals with the log; saved files of a session stay in its vault.

use rusqlite::Connection;

use crate::{
    error::{Result, SqliteResultExt},
    sql::{execute_cached, secure_delete},
};

/// Pages of the index that are rewritten at once.
const MERGE_PAGES: i64 = 1000;

/// Free pages given back at once: other processes wait meanwhile.
const FREE_PAGES: i64 = 2000;

/// Does one piece, in a transaction of its own; says whether more is left.
pub(crate) fn erase_piece(connection: &Connection) -> Result<bool> {
    execute_cached(connection, "BEGIN IMMEDIATE")?;
    let more = with_secure_delete(connection, || {
        let merged = merge_index(connection)?;
        Ok(give_back(connection)? || merged)
    })?;
    execute_cached(connection, "COMMIT")?;
    Ok(more)
}

/// Overwrites all that `work` deletes. Elsewhere that is done only where it costs no further write.
pub(crate) fn with_secure_delete<T>(
    connection: &Connection,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    secure_delete(connection, "ON")?;
    let done = work();
    secure_delete(connection, "FAST")?;
    done
}

/// Deleted entries leave their words in the index until its parts are merged.
fn merge_index(connection: &Connection) -> Result<bool> {
    /// The index writes at least this many rows when it merges anything.
    const MERGED_ROWS: i64 = 2;
    let rows = || -> Result<i64> {
        connection.query_row("SELECT total_changes()", [], |row| row.get(0)).map_sqlite_error()
    };
    let before = rows()?;
    connection
        .prepare_cached("INSERT INTO words(words, rank) VALUES ('merge', ?1)")
        .and_then(|mut merge| merge.execute([-MERGE_PAGES]))
        .map_sqlite_error()?;
    Ok(rows()? - before >= MERGED_ROWS)
}

/// Gives room that is no longer used back to the file system; says whether more is left.
pub(crate) fn give_back(connection: &Connection) -> Result<bool> {
    let free = || -> Result<i64> {
        connection.pragma_query_value(None, "freelist_count", |row| row.get(0)).map_sqlite_error()
    };
    let before = free()?;
    if before == 0 {
        return Ok(false);
    }
    let mut statement = connection
        .prepare(&format!("PRAGMA incremental_vacuum({FREE_PAGES})"))
        .map_sqlite_error()?;
    let mut rows = statement.query([]).map_sqlite_error()?;
    while rows.next().map_sqlite_error()?.is_some() {}
    let after = free()?;
    Ok(0 < after && after < before)
}
