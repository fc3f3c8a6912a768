//! The origin of imported sessions, so that none is imported twice. Only a hash is saved, which reveals nothing.

use gnoma_core::store::SessionId;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{Result, SqliteResultExt};

/// Returns the hash that is saved in place of the name that a session had.
pub(crate) fn hash_origin(origin: &str) -> String {
    blake3::hash(origin.as_bytes()).to_hex().to_string()
}

/// The session that came from there, unless it was forgotten.
pub(crate) fn find_session(connection: &Connection, hash: &str) -> Result<Option<SessionId>> {
    connection
        .prepare_cached(
            "SELECT session.id FROM origin JOIN session ON session.number = origin.session \
             WHERE origin.source = ?1 AND session.deleted = 0",
        )
        .and_then(|mut find| find.query_row([hash], |row| row.get::<_, String>(0)).optional())
        .map_sqlite_error()
        .map(|id| id.map(SessionId::new))
}

/// The hash that is kept of a session.
pub(crate) fn origin_hash(connection: &Connection, session: i64) -> Result<Option<String>> {
    connection
        .prepare_cached("SELECT source FROM origin WHERE session = ?1")
        .and_then(|mut find| find.query_row([session], |row| row.get(0)).optional())
        .map_sqlite_error()
}

/// Remembers where a session comes from.
pub(crate) fn insert_origin(connection: &Connection, session: i64, hash: &str) -> Result<()> {
    connection
        .execute("INSERT INTO origin(session, source) VALUES (?1, ?2)", params![session, hash])
        .map_sqlite_error()
        .map(|_| ())
}
