//! Collects the rows that the pages of a damaged database still hold into one that SQLite can read. Its
//! tables are known, so neither the schema nor an index nor the root of a tree is needed: each row says by
//! its form what it is.
//!
//! What was deleted stays so: pages that are not in use are left out, and within a page SQLite overwrites
//! what it deletes.

use std::{collections::HashSet, path::Path};

use rusqlite::{Connection, params_from_iter};

use crate::{
    entry::parse,
    error::{Explain, Result, from_io},
    files::private_file,
    ids,
    pages::{FoundRow, FoundValue, PageUse, Pages},
};

/// The columns of today's tables, without laws: what is damaged may break them.
const TABLES: &str = "
CREATE TABLE session(number INTEGER PRIMARY KEY, id, project, title, created_ms, changed_ms, tip,
  fork_session, fork_entry, deleted);
CREATE TABLE entry(id INTEGER PRIMARY KEY, session, parent, at_ms, body);
CREATE TABLE result(id INTEGER PRIMARY KEY, session, number, entry, bytes);
CREATE TABLE piece(id INTEGER PRIMARY KEY, result, start, body);
CREATE INDEX piece_of_result ON piece(result, start);
CREATE TABLE hold(session INTEGER PRIMARY KEY, token, pid, host, boot, space, started, since_ms,
  seen_ms);
CREATE TABLE origin(session INTEGER PRIMARY KEY, source);
";

/// How each compressed piece of a result begins.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A table and how many of its first columns are brought over.
type KnownTable = (&'static str, usize);

/// What a row is of, by its form.
fn table_of(row: &FoundRow) -> Option<KnownTable> {
    use FoundValue::{Blob, Int, Null, Text};
    row.rowid.filter(|rowid| *rowid > 0)?;
    match row.values.as_slice() {
        // What later versions added stands behind.
        [Null, Int(_), Null | Int(_), Int(_), Text(_)]
        | [Null, Int(_), Null | Int(_), Int(_), Text(_), Int(_)] => Some(("entry", 5)),
        [
            Null,
            Text(id),
            Text(_),
            Null | Text(_),
            Int(_),
            Int(_),
            Null | Int(_),
            Null | Text(_),
            ..,
        ] if ids::is_session_id(id) && matches!(row.values.len(), 10 | 17) => Some(("session", 10)),
        [Null, Int(_), Int(_), Null | Int(_), Int(_)] => Some(("result", 5)),
        [Null, Int(_), Int(_), Blob(body)] if body.starts_with(&ZSTD) => Some(("piece", 4)),
        [Null, Text(_), Int(_), Text(_), Text(_), Text(_), Text(_), Int(_), Int(_)] => {
            Some(("hold", 9))
        }
        [Null, Text(_)] => Some(("origin", 2)),
        _ => None,
    }
}

/// Whether a page of the file at `path` holds an entry of a session.
pub(crate) fn holds_ours(path: &Path) -> bool {
    let is_entry = |row: &FoundRow| match (table_of(row), row.values.get(4)) {
        (Some(("entry", _)), Some(FoundValue::Text(body))) => parse(body).is_some(),
        _ => false,
    };
    Pages::open(path).is_ok_and(|pages| {
        (1..=pages.count())
            .any(|number| pages.node(number).is_some_and(|node| node.rows.iter().any(is_entry)))
    })
}

/// Writes all rows of `damaged` to a new file at `to`; the number of entries that others speak of and
/// that are not among them.
pub(super) fn collect(damaged: &Path, to: &Path) -> Result<u64> {
    let pages = Pages::open(damaged).map_err(|error| from_io("cannot read", damaged, &error))?;
    private_file(to).map_err(|error| from_io("cannot make", to, &error))?;
    let new = Connection::open(to).explain()?;
    new.pragma_update(None, "synchronous", "OFF").explain()?;
    new.execute_batch(TABLES).explain()?;
    let transaction = new.unchecked_transaction().explain()?;
    let free = pages.free();
    let is_given_up = |number| match pages.role(number) {
        Some(PageUse::Map | PageUse::Overflow) => true,
        Some(PageUse::Free) => free.contains(&number),
        Some(PageUse::Tree) | None => false,
    };
    let mut broken = Vec::new();
    for number in (1..=pages.count()).filter(|number| !is_given_up(*number)) {
        let node = pages.node(number).unwrap_or_default();
        if !node.whole {
            broken.push(number);
        }
        insert_all(&transaction, &node.rows)?;
    }
    // What is found without its page's pointers never takes the place of what they lead to.
    for number in broken {
        insert_all(&transaction, &pages.search(number, &|row| table_of(row).is_some()))?;
    }
    let missing = missing(&transaction)?;
    transaction.commit().explain()?;
    Ok(missing)
}

fn insert_all(new: &Connection, rows: &[FoundRow]) -> Result<()> {
    for row in rows {
        let Some((table, columns)) = table_of(row) else { continue };
        let number = FoundValue::Int(row.rowid.unwrap_or_default());
        let values = std::iter::once(&number).chain(row.values.iter().skip(1)).take(columns);
        let places = vec!["?"; columns].join(", ");
        new.prepare_cached(&format!("INSERT OR IGNORE INTO {table} VALUES ({places})"))
            .and_then(|mut insert| insert.execute(params_from_iter(values)))
            .explain()?;
    }
    Ok(())
}

/// Entries that others come after, and that are not there.
fn missing(new: &Connection) -> Result<u64> {
    let mut named = new
        .prepare(
            "SELECT parent FROM entry \
             WHERE parent IS NOT NULL AND parent NOT IN (SELECT id FROM entry) \
             UNION SELECT tip FROM session \
             WHERE tip IS NOT NULL AND tip NOT IN (SELECT id FROM entry)",
        )
        .explain()?;
    let named = named
        .query_map([], |row| row.get(0))
        .and_then(Iterator::collect::<rusqlite::Result<HashSet<i64>>>)
        .explain()?;
    Ok(u64::try_from(named.len()).unwrap_or(u64::MAX))
}
