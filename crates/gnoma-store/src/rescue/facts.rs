//! What is known of a session beside its entries: its writer, its origin if it was imported, and the session that
//! started it.

use rusqlite::Connection;

use crate::{
    child,
    error::{Explain, Result},
    lock, origin,
};

/// Copies what can be read for the sessions of `new`. Whether those that write still live is asked
/// when it matters.
pub(super) fn copy(old: &Connection, new: &Connection) -> Result<()> {
    let sessions: Vec<i64> = new
        .prepare("SELECT number FROM session")
        .and_then(|mut all| all.query_map([], |row| row.get(0))?.collect())
        .explain()?;
    for session in sessions {
        // Older databases have no such tables.
        if let Ok(Some(hold)) = lock::of(old, session) {
            lock::insert(new, session, &hold)?;
        }
        if let Ok(Some(hash)) = origin::of(old, session) {
            origin::insert(new, session, &hash)?;
        }
        if let Ok(Some(row)) = child::of(old, session) {
            child::insert(new, session, &row)?;
        }
    }
    Ok(())
}
