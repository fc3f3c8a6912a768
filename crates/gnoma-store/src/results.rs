//! Large tool results, beside the entries that refer to them.
//!
//! A result is divided into pieces that are compressed separately, so that reading from its middle loads only what
//! is needed. It belongs to the first tool message added after it; forks that share that message share it. The
//! caller decides whether a result is large.

use std::collections::HashSet;

use gnoma_core::store::{ResultId, ResultSlice, SessionId, StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    error::{Explain, Result, damaged, not_found},
    lock::{self, Identity},
    options::Redact,
    redact,
    session_row::{self, SessionRow},
    text::{MAX_COUNT, whole},
};

/// Most bytes kept of one result; the rest is cut off, and the text says so.
const MAX_RESULT_BYTES: usize = 64 * 1024 * 1024;

/// Most bytes of one piece.
const PIECE_BYTES: usize = 256 * 1024;

/// Most bytes read at once.
const MAX_READ_BYTES: usize = 1024 * 1024;

/// Largest number of a handle that is taken from a file; there is room for more after it.
const MAX_TAKEN_NUMBER: i64 = 1 << 31;

/// The level of the compression: at this level it is faster than the disk.
const LEVEL: i32 = 3;

/// A part of a result.
pub(crate) struct Piece {
    /// The place where the part begins, in bytes of the result.
    pub(crate) start: i64,
    /// The part's compressed bytes.
    pub(crate) body: Vec<u8>,
}

impl Piece {
    /// Reads the columns `start` and `body`.
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { start: row.get(0)?, body: row.get(1)? })
    }
}

/// A result ready to be written.
pub(crate) struct Packed {
    bytes: usize,
    pieces: Vec<Piece>,
}

/// Does all that needs no database.
pub(crate) fn prepare(redact: &Redact, text: &str) -> Result<Packed> {
    // Redacted whole, so that no cut goes through a secret.
    pack(&bounded(redact::words(redact, text), MAX_RESULT_BYTES))
}

fn bounded(mut text: String, max_bytes: usize) -> String {
    const MEGABYTE: usize = 1024 * 1024;
    let bytes = text.len();
    if bytes > max_bytes {
        text.truncate(text.floor_char_boundary(max_bytes));
        text.push_str(&format!(
            "\n[cut here: the result has {} MB, of which {} MB are saved]",
            bytes.div_ceil(MEGABYTE),
            max_bytes / MEGABYTE
        ));
    }
    text
}

fn pack(text: &str) -> Result<Packed> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        let body = zstd::bulk::compress(piece.as_bytes(), LEVEL).map_err(|error| {
            let sentence = format!("a tool result cannot be compressed: {error}");
            StoreError::new(StoreErrorKind::Io, sentence)
        })?;
        pieces.push(Piece { start: whole(text.len() - rest.len()), body });
        rest = after;
    }
    Ok(Packed { bytes: text.len(), pieces })
}

/// The text of a piece.
pub(crate) fn unpack(body: &[u8]) -> Result<String> {
    let bytes = zstd::bulk::decompress(body, PIECE_BYTES)
        .map_err(|error| damaged(&format!("a piece of a result: {error}")))?;
    String::from_utf8(bytes).map_err(|error| damaged(&format!("a piece of a result: {error}")))
}

/// Adds a result for a store that may write the session.
pub(crate) fn put(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    packed: &Packed,
    now_ms: i64,
) -> Result<ResultId> {
    let known = session_row::find(connection, session)?;
    lock::refuse_if_held(connection, me, known.number, now_ms)?;
    let number = last_number(connection, &known)?.checked_add(1).ok_or_else(|| {
        let sentence = "this session cannot save more large results; continue in a new session";
        StoreError::new(StoreErrorKind::Io, sentence)
    })?;
    insert(connection, known.number, number, packed)?;
    Ok(handle(number))
}

/// Adds imported results to a new session, under the handles its entries speak of. What is no
/// handle of ours, or one that was there before, is left out.
pub(crate) fn adopt(
    connection: &Connection,
    session: &SessionId,
    results: &[(ResultId, Packed)],
) -> Result<()> {
    let known = session_row::find(connection, session)?;
    let mut taken = HashSet::new();
    for (id, packed) in results {
        let number = number_of(id).filter(|number| (1..=MAX_TAKEN_NUMBER).contains(number));
        if let Some(number) = number.filter(|number| taken.insert(*number)) {
            insert(connection, known.number, number, packed)?;
        }
    }
    Ok(())
}

fn insert(connection: &Connection, session: i64, number: i64, packed: &Packed) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO result(session, number, bytes) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute(params![session, number, whole(packed.bytes)]))
        .explain()?;
    insert_pieces(connection, connection.last_insert_rowid(), &packed.pieces)?;
    let stored: usize = packed.pieces.iter().map(|piece| piece.body.len()).sum();
    connection
        .prepare_cached("UPDATE session SET bytes = min(bytes + ?2, ?3) WHERE number = ?1")
        .and_then(|mut update| update.execute([session, whole(stored), MAX_COUNT]))
        .explain()
        .map(|_| ())
}

/// The handles of the session and of the past it shares.
pub(crate) fn list(connection: &Connection, session: &SessionId) -> Result<Vec<ResultId>> {
    let known = session_row::find(connection, session)?;
    connection
        .prepare_cached(
            "WITH RECURSIVE past(id) AS (SELECT ?2 UNION SELECT entry.parent FROM past \
             JOIN entry ON entry.id = past.id WHERE entry.parent IS NOT NULL) \
             SELECT number FROM result WHERE session = ?1 \
             UNION SELECT number FROM result WHERE entry IN (SELECT id FROM past) ORDER BY number",
        )
        .and_then(|mut all| {
            all.query_map(params![known.number, known.fork_entry], |row| row.get(0).map(handle))?
                .collect()
        })
        .explain()
}

fn handle(number: i64) -> ResultId {
    ResultId::new(format!("r{number}"))
}

/// Adds the pieces of a result.
pub(crate) fn insert_pieces(connection: &Connection, result: i64, pieces: &[Piece]) -> Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT INTO piece(result, start, body) VALUES (?1, ?2, ?3)")
        .explain()?;
    for piece in pieces {
        insert.execute(params![result, piece.start, piece.body]).explain()?;
    }
    Ok(())
}

/// Results nobody has spoken of yet belong to `entry` from now on.
pub(crate) fn bind(connection: &Connection, session: i64, entry: i64) -> Result<()> {
    connection
        .prepare_cached("UPDATE result SET entry = ?2 WHERE session = ?1 AND entry IS NULL")
        .and_then(|mut update| update.execute([session, entry]))
        .explain()
        .map(|_| ())
}

/// The last number in use, in the session or in the past it shares: a handle that was said before
/// a fork continues meaning what it meant.
fn last_number(connection: &Connection, known: &SessionRow) -> Result<i64> {
    let own: Option<i64> = connection
        .prepare_cached("SELECT max(number) FROM result WHERE session = ?1")
        .and_then(|mut ask| ask.query_row([known.number], |row| row.get(0)))
        .explain()?;
    if let Some(own) = own {
        return Ok(own);
    }
    let Some(fork_entry) = known.fork_entry else { return Ok(0) };
    connection
        .prepare_cached(
            "WITH RECURSIVE past(id) AS (SELECT ?1 UNION SELECT entry.parent FROM past \
             JOIN entry ON entry.id = past.id WHERE entry.parent IS NOT NULL) \
             SELECT coalesce(max(number), 0) FROM result WHERE entry IN (SELECT id FROM past)",
        )
        .and_then(|mut ask| ask.query_row([fork_entry], |row| row.get(0)))
        .explain()
}

/// Reads a slice of a result of the session or of the past it shares.
pub(crate) fn read(
    connection: &Connection,
    session: &SessionId,
    id: &ResultId,
    from: u64,
    max_bytes: usize,
) -> Result<ResultSlice> {
    let known = session_row::find(connection, session)?;
    let found = match number_of(id) {
        Some(number) => find(connection, &known, number)?,
        None => None,
    };
    let (result, total) = found.map_or_else(|| Err(missing(connection, &known, id)), Ok)?;
    let total_bytes =
        u64::try_from(total).map_err(|_| damaged(&format!("result {result} has no size")))?;
    let Some(from) = i64::try_from(from).ok().filter(|from| *from < total) else {
        return Ok(ResultSlice { total_bytes, ..ResultSlice::default() });
    };
    let max_bytes = max_bytes.clamp(1, MAX_READ_BYTES);
    let (start, window) = window(connection, result, from, max_bytes)?;
    let begin = window.floor_char_boundary(usize::try_from(from - start).unwrap_or(0));
    let text = slice(window.get(begin..).unwrap_or_default(), max_bytes);
    let end = start.saturating_add(whole(begin + text.len()));
    let next = if end < total && !text.is_empty() { u64::try_from(end).ok() } else { None };
    Ok(ResultSlice { text: text.to_owned(), next, total_bytes })
}

/// Returns the error that tells why the index leads to no result of this handle.
fn missing(connection: &Connection, known: &SessionRow, id: &ResultId) -> StoreError {
    let is_there = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM result NOT INDEXED WHERE session = ?1 AND number = ?2)",
        )
        .and_then(|mut ask| ask.query_row(params![known.number, number_of(id)], |row| row.get(0)))
        .explain();
    match is_there {
        Ok(true) => damaged(&format!("its index lacks result `{id}`")),
        Ok(false) => not_found(format_args!("result `{id}` in this session")),
        Err(error) => error,
    }
}

fn number_of(id: &ResultId) -> Option<i64> {
    let digits = id.as_str().strip_prefix('r')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// A result's row and size.
fn find(connection: &Connection, known: &SessionRow, number: i64) -> Result<Option<(i64, i64)>> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let own = connection
        .prepare_cached("SELECT id, bytes FROM result WHERE session = ?1 AND number = ?2")
        .and_then(|mut ask| ask.query_row([known.number, number], pair).optional())
        .explain()?;
    let (None, Some(fork_entry)) = (own, known.fork_entry) else { return Ok(own) };
    connection
        .prepare_cached(
            "WITH RECURSIVE past(id) AS (SELECT ?1 UNION SELECT entry.parent FROM past \
             JOIN entry ON entry.id = past.id WHERE entry.parent IS NOT NULL) \
             SELECT id, bytes FROM result WHERE number = ?2 AND entry IN (SELECT id FROM past)",
        )
        .and_then(|mut ask| ask.query_row([fork_entry, number], pair).optional())
        .explain()
}

/// The pieces that hold the slice, joined, and where they begin.
fn window(
    connection: &Connection,
    result: i64,
    from: i64,
    max_bytes: usize,
) -> Result<(i64, String)> {
    let mut find = connection
        .prepare_cached(
            "SELECT start, body FROM piece WHERE result = ?1 AND start > ?2 AND start < ?3 \
             ORDER BY start",
        )
        .explain()?;
    let bounds = [result, from - whole(PIECE_BYTES), from.saturating_add(whole(max_bytes))];
    let mut rows = find.query(bounds).explain()?;
    let mut joined: Option<(i64, String)> = None;
    while let Some(row) = rows.next().explain()? {
        let piece = Piece::read(row).explain()?;
        let text = unpack(&piece.body)?;
        let (start, window) = joined.get_or_insert((piece.start, String::new()));
        if piece.start != start.saturating_add(whole(window.len())) {
            return Err(damaged(&format!("a piece of result {result} is missing")));
        }
        window.push_str(&text);
    }
    joined
        .filter(|(start, _)| *start <= from)
        .ok_or_else(|| damaged(&format!("a piece of result {result} is missing")))
}

/// The beginning of `text`: whole lines of at most `max_bytes`, or as much of the first line; at
/// least one character.
fn slice(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let cut = crate::text::beginning(text, max_bytes);
    let end = match cut.rfind('\n') {
        Some(newline) => newline + 1,
        None if cut.is_empty() => text.chars().next().map_or(0, char::len_utf8),
        None => cut.len(),
    };
    text.get(..end).unwrap_or_default()
}
