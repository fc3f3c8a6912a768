//! Brings a database from whatever version it has to today's.
//!
//! Each step and its version number are one transaction: a process that dies on the way leaves the
//! last whole version. Newer versions are refused and left as they are; a newer number over today's
//! tables is damage.

use gnoma_core::store::{Record, StoreError, StoreErrorKind};
use rusqlite::{Connection, TransactionBehavior, params};

use crate::{
    error::{Result, SqliteResultExt},
    schema, text,
};

type Migration = fn(&Connection) -> Result<()>;

/// Migration `n` leads from version `n` to `n + 1`.
const MIGRATIONS: [Migration; 6] =
    [create_tree, create_words, create_holds, create_results, create_origins, create_children];

/// Brings `connection` to today's version.
pub(crate) fn migrate_to_latest(connection: &mut Connection) -> Result<()> {
    forward_to(connection, MIGRATIONS.len())
}

fn forward_to(connection: &mut Connection, target: usize) -> Result<()> {
    refuse_newer(connection, schema_version(connection)?)?;
    for (number, step) in MIGRATIONS.iter().enumerate().take(target) {
        if schema_version(connection)? > number {
            continue;
        }
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_sqlite_error()?;
        // Another process may have been faster while this one waited.
        if schema_version(&transaction)? == number {
            step(&transaction)?;
            transaction
                .pragma_update(None, "application_id", schema::APPLICATION_ID)
                .map_sqlite_error()?;
            transaction
                .pragma_update(None, "user_version", text::clamp_size(number + 1))
                .map_sqlite_error()?;
        }
        transaction.commit().map_sqlite_error()?;
    }
    Ok(())
}

fn schema_version(connection: &Connection) -> Result<usize> {
    let version: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_sqlite_error()?;
    // Below nothing: no gnoma wrote that.
    Ok(usize::try_from(version).unwrap_or(usize::MAX))
}

fn refuse_newer(connection: &Connection, version: usize) -> Result<()> {
    if version <= MIGRATIONS.len() {
        return Ok(());
    }
    let mut todays = Connection::open_in_memory().map_sqlite_error()?;
    migrate_to_latest(&mut todays)?;
    // Every version changes the tables.
    if list_tables(connection)? == list_tables(&todays)? {
        return Err(StoreError::new(StoreErrorKind::Damaged, "its version number is wrong"));
    }
    Err(StoreError::new(
        StoreErrorKind::TooNew,
        format!(
            "a newer gnoma wrote the session database (version {version}; this one reads up to {}); \
             it was left unchanged: update gnoma",
            MIGRATIONS.len()
        ),
    ))
}

/// Names and definitions of all tables and indexes.
fn list_tables(connection: &Connection) -> Result<Vec<(String, Option<String>)>> {
    connection
        .prepare("SELECT name, sql FROM sqlite_schema ORDER BY name")
        .and_then(|mut all| all.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect())
        .map_sqlite_error()
}

fn create_tree(connection: &Connection) -> Result<()> {
    connection.execute_batch(schema::TREE).map_sqlite_error()
}

fn create_holds(connection: &Connection) -> Result<()> {
    connection.execute_batch(schema::HOLDS).map_sqlite_error()
}

fn create_results(connection: &Connection) -> Result<()> {
    connection.execute_batch(schema::RESULTS).map_sqlite_error()
}

fn create_origins(connection: &Connection) -> Result<()> {
    connection.execute_batch(schema::ORIGINS).map_sqlite_error()
}

fn create_children(connection: &Connection) -> Result<()> {
    connection.execute_batch(schema::CHILDREN).map_sqlite_error()
}

fn create_words(connection: &Connection) -> Result<()> {
    connection.execute_batch(schema::WORDS).map_sqlite_error()?;
    let mut entries =
        connection.prepare("SELECT id, session, body FROM entry").map_sqlite_error()?;
    let mut rows = entries.query([]).map_sqlite_error()?;
    while let Some(row) = rows.next().map_sqlite_error()? {
        let (id, session): (i64, i64) =
            (row.get(0).map_sqlite_error()?, row.get(1).map_sqlite_error()?);
        let body: String = row.get(2).map_sqlite_error()?;
        count_old(connection, id, session, &body)?;
    }
    Ok(())
}

/// Does for an entry of version 1 what is done for new ones when they are added. An entry that
/// cannot be read stays as it is.
fn count_old(connection: &Connection, id: i64, session: i64, body: &str) -> Result<()> {
    let record = Record::from_json(body).ok();
    let usage = match &record {
        Some(Record::Used(usage)) => *usage,
        _ => gnoma_core::Usage::default(),
    };
    connection
        .prepare_cached(
            "UPDATE session SET messages = messages + ?2, bytes = min(bytes + ?3, ?9), \
             input = min(input + ?4, ?9), output = min(output + ?5, ?9), \
             cache_read = min(cache_read + ?6, ?9), cache_write = min(cache_write + ?7, ?9), \
             reasoning = min(reasoning + ?8, ?9) WHERE number = ?1",
        )
        .and_then(|mut update| {
            update.execute(params![
                session,
                i64::from(matches!(record, Some(Record::Message(_)))),
                text::clamp_size(body.len()),
                text::clamp_count(usage.input),
                text::clamp_count(usage.output),
                text::clamp_count(usage.cache_read),
                text::clamp_count(usage.cache_write),
                text::clamp_count(usage.reasoning),
                text::MAX_COUNT,
            ])
        })
        .map_sqlite_error()?;
    if let Some(Record::Tombstone { of }) = &record {
        connection
            .execute("UPDATE entry SET hidden = 1 WHERE id = ?1", [of.0])
            .map_sqlite_error()?;
        connection.execute("DELETE FROM words WHERE rowid = ?1", [of.0]).map_sqlite_error()?;
    }
    match record.as_ref().and_then(text::searchable_text) {
        Some(words) => connection
            .prepare_cached("INSERT INTO words(rowid, text) VALUES (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![id, words]))
            .map(|_| ())
            .map_sqlite_error(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::{Message, Usage};

    use super::*;

    /// A database of `version` with one session of one message and its usage.
    fn of_version(version: usize) -> Connection {
        let mut connection = Connection::open_in_memory().unwrap();
        forward_to(&mut connection, version).unwrap();
        if version == 0 {
            return connection;
        }
        connection
            .execute_batch(
                "INSERT INTO session(id, project, created_ms, changed_ms, tip)
                 VALUES ('20260101-000000-abcdef', '/p', 1, 2, 2)",
            )
            .unwrap();
        let records = [
            Record::Message(Arc::new(Message::user_text("where is the teapot"))),
            Record::Used(Usage { input: 7, output: 3, ..Usage::default() }),
        ];
        for record in records {
            let body = serde_json::to_string(&record).unwrap();
            connection
                .execute("INSERT INTO entry(session, at_ms, body) VALUES (1, 5, ?1)", [body])
                .unwrap();
        }
        connection
    }

    #[test]
    fn every_older_schema_version_migrates_with_its_entries() {
        for version in 0..=MIGRATIONS.len() {
            let mut connection = of_version(version);
            migrate_to_latest(&mut connection).unwrap();
            assert_eq!(super::schema_version(&connection).unwrap(), MIGRATIONS.len());
            let entries: i64 =
                connection.query_row("SELECT count(*) FROM entry", [], |row| row.get(0)).unwrap();
            assert_eq!(entries, if version == 0 { 0 } else { 2 }, "from version {version}");
        }
    }

    #[test]
    fn migration_builds_search_index_and_totals_of_old_entries() {
        let mut connection = of_version(1);
        migrate_to_latest(&mut connection).unwrap();
        let found: i64 = connection
            .query_row("SELECT rowid FROM words WHERE words MATCH 'teapot'", [], |row| row.get(0))
            .unwrap();
        assert_eq!(found, 1);
        let sums: (i64, i64, i64) = connection
            .query_row("SELECT messages, input, output FROM session", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        assert_eq!(sums, (1, 7, 3));
    }

    #[test]
    fn newer_schema_version_is_rejected_and_untouched() {
        let mut connection = of_version(MIGRATIONS.len());
        connection.pragma_update(None, "user_version", 99).unwrap();
        connection.execute_batch("ALTER TABLE session ADD COLUMN colour TEXT").unwrap();
        let error = migrate_to_latest(&mut connection).unwrap_err();
        assert_eq!(error.kind, StoreErrorKind::TooNew);
        assert_eq!(super::schema_version(&connection).unwrap(), 99);
    }
}
