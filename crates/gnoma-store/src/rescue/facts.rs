//! What is known of a session beside its entries: its writer, its origin if it was imported, and the session that
//! started it.

use rusqlite::Connection;

use crate::{
    child,
    error::{Result, SqliteResultExt},
    lock, origin,
};

/// Copies what can be read for the sessions of `new`. Whether those that write still live is asked
/// when it matters.
pub(super) fn copy_facts(old: &Connection, new: &Connection) -> Result<()> {
    let sessions: Vec<i64> = new
        .prepare("SELECT number FROM session")
        .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect())
        .map_sqlite_error()?;
    for session in sessions {
        // Older databases have no such tables.
        if let Ok(Some(hold)) = lock::find_hold(old, session) {
            lock::insert_hold(new, session, &hold)?;
        }
        if let Ok(Some(hash)) = origin::origin_hash(old, session) {
            origin::insert_origin(new, session, &hash)?;
        }
        if let Ok(Some(row)) = child::find_child(old, session) {
            child::insert_child(new, session, &row)?;
        }
    }
    Ok(())
}
