//! Collects the remaining rows of a damaged database's pages into a database that SQLite can read. Its tables are
//! known, so neither the schema nor an index nor the root of a tree is needed: the form of each row says what it
//! is.
//!
//! What was deleted stays deleted: unused pages are left out, and within a page SQLite overwrites what it deletes.

use std::path::Path;

use rusqlite::{Connection, params_from_iter};

use crate::{
    entry::{is_as_written, parse_record},
    error::{Result, SqliteResultExt, from_io},
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
CREATE TABLE sequence(id INTEGER PRIMARY KEY, last);
CREATE TABLE hold(session INTEGER PRIMARY KEY, token, pid, host, boot, space, started, since_ms,
  seen_ms);
CREATE TABLE origin(session INTEGER PRIMARY KEY, source);
CREATE TABLE child(session INTEGER PRIMARY KEY, parent, name, open);
";

/// The first bytes of each compressed piece of a result.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A table and how many of its first columns are brought over.
type KnownTable = (&'static str, usize);

/// Returns the table that a row belongs to, by the row's form.
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
        [Null, Int(_), Text(_), Int(_)] => Some(("child", 4)),
        [Text(table), Int(_)] if table == "entry" => Some(("sequence", 2)),
        _ => None,
    }
}

/// Returns how likely it is that a row was made of what damage left of one.
fn rank_row(row: &FoundRow) -> Option<u8> {
    use FoundValue::{Int, Null, Text};
    let ("entry", _) = table_of(row)? else { return Some(0) };
    match row.values.as_slice() {
        [_, Int(1..), parent, Int(_), Text(body), hidden @ ..] if is_as_written(body) => {
            let is_shown = matches!(hidden, [] | [Int(0)]);
            match parent {
                Int(parent) if row.rowid.and_then(|id| id.checked_sub(1)) == Some(*parent) => {
                    Some(u8::from(!is_shown))
                }
                Null => Some(2 + u8::from(!is_shown)),
                Int(1..) => Some(4 + u8::from(!is_shown)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Reports whether a page of the file at `path` holds an entry of a session.
pub(crate) fn holds_ours(path: &Path) -> bool {
    let is_entry = |row: &FoundRow| match (table_of(row), row.values.get(4)) {
        (Some(("entry", _)), Some(FoundValue::Text(body))) => parse_record(body).is_some(),
        _ => false,
    };
    Pages::open(path).is_ok_and(|pages| {
        (1..=pages.page_count()).any(|number| {
            pages.read_node(number).is_some_and(|node| node.rows.iter().any(is_entry))
        })
    })
}

/// The facts about the rows that were not found.
pub(super) struct MissingRows {
    /// Entries that others speak of and that are not there.
    pub(super) entries: u64,
    /// Pages could not be read, and nobody can say what they held.
    pub(super) unknown: bool,
}

/// Writes all rows of `damaged` to a new file at `to`; what is missing.
pub(super) fn collect_rows(damaged: &Path, to: &Path) -> Result<MissingRows> {
    let pages = Pages::open(damaged).map_err(|error| from_io("cannot read", damaged, &error))?;
    private_file(to).map_err(|error| from_io("cannot create", to, &error))?;
    let new = Connection::open(to).map_sqlite_error()?;
    new.pragma_update(None, "synchronous", "OFF").map_sqlite_error()?;
    new.execute_batch(TABLES).map_sqlite_error()?;
    let transaction = new.unchecked_transaction().map_sqlite_error()?;
    let free = pages.free_pages();
    let is_given_up = |number| match pages.page_use(number) {
        Some(PageUse::Map | PageUse::Overflow) => true,
        Some(PageUse::Free) => free.contains(&number),
        Some(PageUse::Tree) | None => false,
    };
    let (mut broken, mut with_loose) = (Vec::new(), Vec::new());
    for number in (1..=pages.page_count()).filter(|number| !is_given_up(*number)) {
        let mut node = pages.read_node(number).unwrap_or_default();
        if !node.whole {
            broken.push((number, node.rows.len() + node.edges.len()));
        }
        if !take_loose(&mut node.rows).is_empty() || !node.edges.is_empty() {
            with_loose.push(number);
        }
        insert_all(&transaction, &node.rows)?;
    }
    // Read again: rows may be long, and pages are many.
    for number in with_loose {
        let mut node = pages.read_node(number).unwrap_or_default();
        insert_loose(&transaction, take_loose(&mut node.rows))?;
        insert_all(&transaction, &node.edges)?;
    }
    let mut unknown = pages.is_cut();
    // What is found without its page's pointers never takes the place of what they lead to.
    for (number, by_pointers) in broken {
        let mut rows = pages.repair_rows(number, &rank_row);
        rows.extend(pages.search_rows(number, &|row| table_of(row).is_some()));
        // Page 1 holds the schema alone, which is known.
        unknown |= number > 1 && pages.may_lack(number, by_pointers + rows.len());
        insert_all(&transaction, &rows)?;
    }
    let entries = count_missing(&transaction)?;
    transaction.commit().map_sqlite_error()?;
    Ok(MissingRows { entries, unknown })
}

/// A row at a page's edge, and the number that it has if it is not its own: the one next to its
/// neighbour's.
struct LooseRow {
    row: FoundRow,
    or_else: Option<i64>,
}

/// Takes the first and the last row of a page where there is a gap before their neighbour: a wrong number
/// there is in line all the same, and may be that of a row elsewhere.
fn take_loose(rows: &mut Vec<FoundRow>) -> Vec<LooseRow> {
    let numbers: Vec<Option<i64>> = rows.iter().map(|row| row.rowid).collect();
    let mut loose = Vec::new();
    if let [.., Some(before), Some(last)] = numbers.as_slice()
        && before.checked_add(1) != Some(*last)
    {
        let or_else = before.checked_add(1);
        loose.extend(rows.pop().map(|row| LooseRow { row, or_else }));
    }
    if let [Some(first), Some(next), ..] = numbers.as_slice()
        && first.checked_add(1) != Some(*next)
        && rows.len() > 1
    {
        let or_else = next.checked_sub(1);
        loose.push(LooseRow { row: rows.remove(0), or_else });
    }
    loose
}

/// Inserts rows whose number nobody else has; the rest with the other number that they may have.
fn insert_loose(new: &Connection, loose: Vec<LooseRow>) -> Result<()> {
    for LooseRow { row, or_else } in loose {
        if insert_all(new, std::slice::from_ref(&row))? == 0 {
            insert_all(new, &[FoundRow { rowid: or_else, ..row }])?;
        }
    }
    Ok(())
}

/// Adds rows and returns how many were added: those of tables that are known, and whose numbers are not taken.
fn insert_all(new: &Connection, rows: &[FoundRow]) -> Result<usize> {
    let mut added = 0;
    for row in rows {
        let Some((table, columns)) = table_of(row) else { continue };
        let number = FoundValue::Int(row.rowid.unwrap_or_default());
        let values = std::iter::once(&number).chain(row.values.iter().skip(1)).take(columns);
        let places = vec!["?"; columns].join(", ");
        added += new
            .prepare_cached(&format!("INSERT OR IGNORE INTO {table} VALUES ({places})"))
            .and_then(|mut insert| insert.execute(params_from_iter(values)))
            .map_sqlite_error()?;
    }
    Ok(added)
}

/// Entries that others come after, and that are not there. A wrong byte may name one that never was:
/// only what can have been counts.
fn count_missing(new: &Connection) -> Result<u64> {
    new.query_row(
        "SELECT count(*) FROM (SELECT parent AS id FROM entry WHERE parent BETWEEN 1 AND id - 1 \
         UNION SELECT tip FROM session WHERE deleted = 0 \
         AND tip BETWEEN 1 AND (SELECT max(last) FROM sequence)) \
         WHERE id NOT IN (SELECT id FROM entry)",
        [],
        |row| row.get(0),
    )
    .map_sqlite_error()
    .map(|count: i64| u64::try_from(count).unwrap_or(0))
}
