//! Parent and child sessions, and whether a child has ended.

use gnoma_core::store::SessionId;
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    error::{Result, SqliteResultExt, not_found},
    lock::Identity,
};

/// A row of the table `child`.
pub(crate) struct ChildRow {
    parent: i64,
    name: String,
    is_open: bool,
}

/// Says that `parent` has started the session, which is at work.
pub(crate) fn add_child(
    connection: &Connection,
    session: &SessionId,
    parent: &SessionId,
    name: &str,
) -> Result<()> {
    let added = connection
        .execute(
            "INSERT INTO child(session, parent, name, open) \
             SELECT own.number, above.number, ?3, 1 FROM session AS own, session AS above \
             WHERE own.id = ?1 AND above.id = ?2 AND above.deleted = 0",
            params![session.as_str(), parent.as_str(), name],
        )
        .map_sqlite_error()?;
    if added == 0 { Err(not_found(format_args!("session `{parent}`"))) } else { Ok(()) }
}

/// Returns what is known of a session that another one has started.
pub(crate) fn find_child(connection: &Connection, session: i64) -> Result<Option<ChildRow>> {
    connection
        .prepare_cached("SELECT parent, name, open FROM child WHERE session = ?1")
        .and_then(|mut find| {
            find.query_row([session], |row| {
                Ok(ChildRow { parent: row.get(0)?, name: row.get(1)?, is_open: row.get(2)? })
            })
            .optional()
        })
        .map_sqlite_error()
}

/// Adds what is known of a session in another database. Where the one that started it is lost, it stands
/// alone.
pub(crate) fn insert_child(connection: &Connection, session: i64, row: &ChildRow) -> Result<()> {
    connection
        .execute(
            "INSERT INTO child(session, parent, name, open) SELECT ?1, ?2, ?3, ?4 \
             WHERE EXISTS (SELECT 1 FROM session WHERE number = ?2)",
            params![session, row.parent, row.name, row.is_open],
        )
        .map_sqlite_error()
        .map(|_| ())
}

/// Says whether a session is at work; nothing of one that nobody has started.
pub(crate) fn set_open(connection: &Connection, session: i64, is_open: bool) -> Result<()> {
    connection
        .prepare_cached("UPDATE child SET open = ?2 WHERE session = ?1")
        .and_then(|mut update| update.execute(params![session, is_open]))
        .map_sqlite_error()
        .map(|_| ())
}

/// A session ends that is in this store's hand.
pub(crate) fn mark_ended(connection: &Connection, me: &Identity, session: i64) -> Result<()> {
    connection
        .execute(
            "UPDATE child SET open = 0 WHERE session = ?1 \
             AND EXISTS (SELECT 1 FROM hold WHERE session = ?1 AND token = ?2)",
            params![session, me.token],
        )
        .map_sqlite_error()
        .map(|_| ())
}

/// A session and all below it, each before those that it has started.
pub(crate) fn session_tree(connection: &Connection, session: i64) -> Result<Vec<i64>> {
    connection
        .prepare_cached(
            "WITH RECURSIVE tree(number) AS (SELECT ?1 UNION \
             SELECT child.session FROM tree JOIN child ON child.parent = tree.number) \
             SELECT number FROM tree",
        )
        .and_then(|mut find| find.query_map([session], |row| row.get(0))?.collect())
        .map_sqlite_error()
}
