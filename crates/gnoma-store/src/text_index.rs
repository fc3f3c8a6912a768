//! The index of all words. It is updated late: adding an entry does not wait for it, and a search updates it first.
//! [`crate::search`] finds words.

use rusqlite::{Connection, params};

use crate::{
    entry::parse_record,
    error::{Result, SqliteResultExt},
    text::{self, clamp_size},
};

/// Entries indexed in one transaction; other processes wait meanwhile.
pub(crate) const AT_ONCE_ENTRIES: usize = 256;

/// Bytes of words after which a transaction ends early.
const AT_ONCE_BYTES: usize = 512 * 1024;

/// Reports whether there are entries the index does not know.
pub(crate) fn is_behind(connection: &Connection) -> Result<bool> {
    connection
        .prepare_cached(
            "SELECT coalesce((SELECT max(id) FROM entry), 0) > (SELECT max(up_to) FROM indexed)",
        )
        .and_then(|mut ask| ask.query_row([], |row| row.get(0)))
        .map_sqlite_error()
}

/// Indexes some entries inside a transaction of the caller's; says whether more are left.
pub(crate) fn index_batch(connection: &Connection) -> Result<bool> {
    let before: i64 = connection
        .prepare_cached("SELECT coalesce(max(up_to), 0) FROM indexed")
        .and_then(|mut ask| ask.query_row([], |row| row.get(0)))
        .map_sqlite_error()?;
    let (after, more) = index_after(connection, before)?;
    connection
        .prepare_cached("UPDATE indexed SET up_to = ?1")
        .and_then(|mut update| update.execute([after]))
        .map_sqlite_error()?;
    Ok(more)
}

/// The last entry that was indexed, and whether more are left.
fn index_after(connection: &Connection, before: i64) -> Result<(i64, bool)> {
    let mut entries = connection
        .prepare_cached("SELECT id, hidden, body FROM entry WHERE id > ?1 ORDER BY id LIMIT ?2")
        .map_sqlite_error()?;
    let mut rows =
        entries.query(params![before, clamp_size(AT_ONCE_ENTRIES)]).map_sqlite_error()?;
    let (mut last, mut count, mut bytes) = (before, 0, 0);
    while let Some(row) = rows.next().map_sqlite_error()? {
        last = row.get(0).map_sqlite_error()?;
        count += 1;
        if !row.get::<_, bool>(1).map_sqlite_error()? {
            let body: String = row.get(2).map_sqlite_error()?;
            bytes += index_entry(connection, last, &body)?;
        }
        if bytes >= AT_ONCE_BYTES {
            return Ok((last, true));
        }
    }
    Ok((last, count == AT_ONCE_ENTRIES))
}

/// Indexes one entry; the number of bytes. One that cannot be read has no words.
fn index_entry(connection: &Connection, id: i64, body: &str) -> Result<usize> {
    let record = parse_record(body);
    let Some(words) = record.as_ref().and_then(text::searchable_text) else { return Ok(0) };
    connection
        .prepare_cached("INSERT INTO words(rowid, text) VALUES (?1, ?2)")
        .and_then(|mut insert| insert.execute(params![id, words]))
        .map_sqlite_error()?;
    Ok(words.len())
}

/// Indexes all there is, in the transaction of the caller.
pub(crate) fn follow_to_the_end(connection: &Connection) -> Result<()> {
    while index_batch(connection)? {}
    Ok(())
}
