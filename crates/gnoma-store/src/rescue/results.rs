//! Large results out of a damaged database: each whole or not at all.

use rusqlite::{Connection, Row, params};

use crate::{
    error::{Result, SqliteResultExt},
    results::{self, Piece},
};

struct OldResult {
    id: i64,
    session: i64,
    number: i64,
    entry: Option<i64>,
    bytes: i64,
}

impl OldResult {
    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            session: row.get(1)?,
            number: row.get(2)?,
            entry: row.get(3)?,
            bytes: row.get(4)?,
        })
    }
}

/// Copies what is whole and still has a place; the number of results that are lost.
pub(super) fn copy_results(old: &Connection, new: &Connection, ids: &[i64]) -> Result<u64> {
    let mut lost = 0;
    // Older databases have no such table.
    let Ok(mut find) =
        old.prepare("SELECT id, session, number, entry, bytes FROM result WHERE id = ?1")
    else {
        return Ok(lost);
    };
    for id in ids {
        let found = match find.query_row([id], OldResult::from_row) {
            Ok(found) => found,
            Err(rusqlite::Error::QueryReturnedNoRows) => continue,
            Err(_) => {
                lost += 1;
                continue;
            }
        };
        if !has_place(new, &found)? {
            continue;
        }
        match read_whole_pieces(old, &found) {
            Some(pieces) => insert_result(new, &found, &pieces)?,
            None => lost += 1,
        }
    }
    Ok(lost)
}

fn has_place(new: &Connection, found: &OldResult) -> Result<bool> {
    new.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM session WHERE number = ?1) \
         AND (?2 IS NULL OR EXISTS (SELECT 1 FROM entry WHERE id = ?2)) \
         AND NOT EXISTS (SELECT 1 FROM result WHERE session = ?1 AND number = ?3)",
    )
    .and_then(|mut ask| {
        ask.query_row(params![found.session, found.entry, found.number], |row| row.get(0))
    })
    .map_sqlite_error()
}

/// All pieces, if they are sound and follow each other to the end.
fn read_whole_pieces(old: &Connection, found: &OldResult) -> Option<Vec<Piece>> {
    let mut find = old
        .prepare_cached("SELECT start, body FROM piece WHERE result = ?1 ORDER BY start")
        .ok()?;
    let rows = find.query_map([found.id], Piece::from_row).ok()?;
    let pieces = rows.collect::<rusqlite::Result<Vec<_>>>().ok()?;
    let mut end = 0;
    for piece in &pieces {
        let text = results::unpack_piece(&piece.body).ok()?;
        (piece.start == end).then_some(())?;
        end += i64::try_from(text.len()).ok()?;
    }
    (end == found.bytes).then_some(pieces)
}

fn insert_result(new: &Connection, found: &OldResult, pieces: &[Piece]) -> Result<()> {
    new.prepare_cached(
        "INSERT INTO result(id, session, number, entry, bytes) VALUES (?1, ?2, ?3, ?4, ?5)",
    )
    .and_then(|mut insert| {
        insert.execute(params![found.id, found.session, found.number, found.entry, found.bytes])
    })
    .map_sqlite_error()?;
    results::insert_pieces(new, found.id, pieces)
}
