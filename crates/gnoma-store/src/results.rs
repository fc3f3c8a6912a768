//! Large tool results, beside the entries that refer to them.
//!
//! A result is divided into pieces that are compressed separately, so that reading from its middle loads only what
//! is needed. It belongs to the first tool message added after it; forks that share that message share it. The
//! caller decides whether a result is large.

use std::collections::HashSet;

use gnoma_core::store::{ResultId, ResultSlice, SessionId, StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    error::{Result, SqliteResultExt, damaged_error, not_found},
    lock::{self, Identity},
    options::RedactHook,
    redact,
    session_row::{self, SessionRow},
    text::{MAX_COUNT, clamp_size},
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
    pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { start: row.get(0)?, body: row.get(1)? })
    }
}

/// A result ready to be written.
pub(crate) struct PackedResult {
    bytes: usize,
    pieces: Vec<Piece>,
}

/// Does all that needs no database.
pub(crate) fn prepare_result(redact: &RedactHook, text: &str) -> Result<PackedResult> {
    // Redacted whole, so that no cut goes through a secret.
    pack_text(&truncate_text(redact::redact_words(redact, text), MAX_RESULT_BYTES))
}

fn truncate_text(mut text: String, max_bytes: usize) -> String {
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

fn pack_text(text: &str) -> Result<PackedResult> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.floor_char_boundary(PIECE_BYTES));
        let body = zstd::bulk::compress(piece.as_bytes(), LEVEL).map_err(|error| {
            let sentence = format!("a tool result cannot be compressed: {error}");
            StoreError::new(StoreErrorKind::Io, sentence)
        })?;
        pieces.push(Piece { start: clamp_size(text.len() - rest.len()), body });
        rest = after;
    }
    Ok(PackedResult { bytes: text.len(), pieces })
}

/// The text of a piece.
pub(crate) fn unpack_piece(body: &[u8]) -> Result<String> {
    let bytes = zstd::bulk::decompress(body, PIECE_BYTES)
        .map_err(|error| damaged_error(&format!("a piece of a result: {error}")))?;
    String::from_utf8(bytes)
        .map_err(|error| damaged_error(&format!("a piece of a result: {error}")))
}

/// Adds a result for a store that may write the session.
pub(crate) fn add_result(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    packed: &PackedResult,
    now_ms: i64,
) -> Result<ResultId> {
    let known = session_row::find_session(connection, session)?;
    lock::refuse_if_held(connection, me, known.number, now_ms)?;
    let number = last_number(connection, &known)?.checked_add(1).ok_or_else(|| {
        let sentence = "this session cannot save more large results; continue in a new session";
        StoreError::new(StoreErrorKind::Io, sentence)
    })?;
    insert_result(connection, known.number, number, packed)?;
    Ok(result_handle(number))
}

/// Adds imported results to a new session, under the handles its entries speak of. What is no
/// handle of ours, or one that was there before, is left out.
pub(crate) fn add_imported_results(
    connection: &Connection,
    session: &SessionId,
    results: &[(ResultId, PackedResult)],
) -> Result<()> {
    let known = session_row::find_session(connection, session)?;
    let mut taken = HashSet::new();
    for (id, packed) in results {
        let number = number_of(id).filter(|number| (1..=MAX_TAKEN_NUMBER).contains(number));
        if let Some(number) = number.filter(|number| taken.insert(*number)) {
            insert_result(connection, known.number, number, packed)?;
        }
    }
    Ok(())
}

fn insert_result(
    connection: &Connection,
    session: i64,
    number: i64,
    packed: &PackedResult,
) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO result(session, number, bytes) VALUES (?1, ?2, ?3)")
        .and_then(|mut insert| insert.execute(params![session, number, clamp_size(packed.bytes)]))
        .map_sqlite_error()?;
    insert_pieces(connection, connection.last_insert_rowid(), &packed.pieces)?;
    let stored: usize = packed.pieces.iter().map(|piece| piece.body.len()).sum();
    connection
        .prepare_cached("UPDATE session SET bytes = min(bytes + ?2, ?3) WHERE number = ?1")
        .and_then(|mut update| update.execute([session, clamp_size(stored), MAX_COUNT]))
        .map_sqlite_error()
        .map(|_| ())
}

/// The handles of the session and of the past it shares.
pub(crate) fn list_results(connection: &Connection, session: &SessionId) -> Result<Vec<ResultId>> {
    let known = session_row::find_session(connection, session)?;
    connection
        .prepare_cached(
            "WITH RECURSIVE past(id) AS (SELECT ?2 UNION SELECT entry.parent FROM past \
             JOIN entry ON entry.id = past.id WHERE entry.parent IS NOT NULL) \
             SELECT number FROM result WHERE session = ?1 \
             UNION SELECT number FROM result WHERE entry IN (SELECT id FROM past) ORDER BY number",
        )
        .and_then(|mut all| {
            all.query_map(params![known.number, known.fork_entry], |row| {
                row.get(0).map(result_handle)
            })?
            .collect()
        })
        .map_sqlite_error()
}

fn result_handle(number: i64) -> ResultId {
    ResultId::new(format!("r{number}"))
}

/// Adds the pieces of a result.
pub(crate) fn insert_pieces(connection: &Connection, result: i64, pieces: &[Piece]) -> Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT INTO piece(result, start, body) VALUES (?1, ?2, ?3)")
        .map_sqlite_error()?;
    for piece in pieces {
        insert.execute(params![result, piece.start, piece.body]).map_sqlite_error()?;
    }
    Ok(())
}

/// Results nobody has spoken of yet belong to `entry` from now on.
pub(crate) fn bind_results(connection: &Connection, session: i64, entry: i64) -> Result<()> {
    connection
        .prepare_cached("UPDATE result SET entry = ?2 WHERE session = ?1 AND entry IS NULL")
        .and_then(|mut update| update.execute([session, entry]))
        .map_sqlite_error()
        .map(|_| ())
}

/// The last number in use, in the session or in the past it shares: a handle that was said before
/// a fork continues meaning what it meant.
fn last_number(connection: &Connection, known: &SessionRow) -> Result<i64> {
    let own: Option<i64> = connection
        .prepare_cached("SELECT max(number) FROM result WHERE session = ?1")
        .and_then(|mut ask| ask.query_row([known.number], |row| row.get(0)))
        .map_sqlite_error()?;
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
        .map_sqlite_error()
}

/// Reads a slice of a result of the session or of the past it shares.
pub(crate) fn read_slice(
    connection: &Connection,
    session: &SessionId,
    id: &ResultId,
    from: u64,
    max_bytes: usize,
) -> Result<ResultSlice> {
    let known = session_row::find_session(connection, session)?;
    let found = match number_of(id) {
        Some(number) => find_result(connection, &known, number)?,
        None => None,
    };
    let (result, total) =
        found.map_or_else(|| Err(missing_result_error(connection, &known, id)), Ok)?;
    let total_bytes =
        u64::try_from(total).map_err(|_| damaged_error(&format!("result {result} has no size")))?;
    let Some(from) = i64::try_from(from).ok().filter(|from| *from < total) else {
        return Ok(ResultSlice { total_bytes, ..ResultSlice::default() });
    };
    let max_bytes = max_bytes.clamp(1, MAX_READ_BYTES);
    let (start, window) = read_window(connection, result, from, max_bytes)?;
    let begin = window.floor_char_boundary(usize::try_from(from - start).unwrap_or(0));
    let text = slice_lines(window.get(begin..).unwrap_or_default(), max_bytes);
    let end = start.saturating_add(clamp_size(begin + text.len()));
    let next = if end < total && !text.is_empty() { u64::try_from(end).ok() } else { None };
    Ok(ResultSlice { text: text.to_owned(), next, total_bytes })
}

/// Returns the error that tells why the index leads to no result of this handle.
fn missing_result_error(connection: &Connection, known: &SessionRow, id: &ResultId) -> StoreError {
    let is_there = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM result NOT INDEXED WHERE session = ?1 AND number = ?2)",
        )
        .and_then(|mut ask| ask.query_row(params![known.number, number_of(id)], |row| row.get(0)))
        .map_sqlite_error();
    match is_there {
        Ok(true) => damaged_error(&format!("its index lacks result `{id}`")),
        Ok(false) => not_found(format_args!("result `{id}` in this session")),
        Err(error) => error,
    }
}

fn number_of(id: &ResultId) -> Option<i64> {
    let digits = id.as_str().strip_prefix('r')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// A result's row and size.
fn find_result(
    connection: &Connection,
    known: &SessionRow,
    number: i64,
) -> Result<Option<(i64, i64)>> {
    let pair = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let own = connection
        .prepare_cached("SELECT id, bytes FROM result WHERE session = ?1 AND number = ?2")
        .and_then(|mut ask| ask.query_row([known.number, number], pair).optional())
        .map_sqlite_error()?;
    let (None, Some(fork_entry)) = (own, known.fork_entry) else { return Ok(own) };
    connection
        .prepare_cached(
            "WITH RECURSIVE past(id) AS (SELECT ?1 UNION SELECT entry.parent FROM past \
             JOIN entry ON entry.id = past.id WHERE entry.parent IS NOT NULL) \
             SELECT id, bytes FROM result WHERE number = ?2 AND entry IN (SELECT id FROM past)",
        )
        .and_then(|mut ask| ask.query_row([fork_entry, number], pair).optional())
        .map_sqlite_error()
}

/// The pieces that hold the slice, joined, and where they begin.
fn read_window(
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
        .map_sqlite_error()?;
    let bounds =
        [result, from - clamp_size(PIECE_BYTES), from.saturating_add(clamp_size(max_bytes))];
    let mut rows = find.query(bounds).map_sqlite_error()?;
    let mut joined: Option<(i64, String)> = None;
    while let Some(row) = rows.next().map_sqlite_error()? {
        let piece = Piece::from_row(row).map_sqlite_error()?;
        let text = unpack_piece(&piece.body)?;
        let (start, window) = joined.get_or_insert((piece.start, String::new()));
        if piece.start != start.saturating_add(clamp_size(window.len())) {
            return Err(damaged_error(&format!("a piece of result {result} is missing")));
        }
        window.push_str(&text);
    }
    joined
        .filter(|(start, _)| *start <= from)
        .ok_or_else(|| damaged_error(&format!("a piece of result {result} is missing")))
}

/// The beginning of `text`: whole lines of at most `max_bytes`, or as much of the first line; at
/// least one character.
fn slice_lines(text: &str, max_bytes: usize) -> &str {
    if text.len() <= max_bytes {
        return text;
    }
    let cut = crate::text::text_prefix(text, max_bytes);
    let end = match cut.rfind('\n') {
        Some(newline) => newline + 1,
        None if cut.is_empty() => text.chars().next().map_or(0, char::len_utf8),
        None => cut.len(),
    };
    text.get(..end).unwrap_or_default()
}
