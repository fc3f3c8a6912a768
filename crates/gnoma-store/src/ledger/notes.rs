//! Texts that processes share by way of the ledger's file. What they mean is known elsewhere.

use gnoma_core::store::StoreErrorKind;
use rusqlite::{Connection, OptionalExtension};

use super::{
    error_sentences::{LedgerResultExt, ledger_error},
    ledger_transactions,
};
use crate::error::Result;

/// Largest note that is kept.
pub const MAX_NOTE_BYTES: usize = 4 << 20;

/// Lets `change` have a note and keeps what it makes of it.
pub(super) fn change_note(
    connection: &Connection,
    name: &str,
    change: impl FnOnce(Option<&str>) -> Option<String>,
) -> Result<()> {
    let text: Option<String> = connection
        .prepare_cached("SELECT text FROM note WHERE name = ?1")
        .and_then(|mut find| find.query_row([name], |row| row.get(0)).optional())
        .or_ledger_error()?;
    let Some(new) = change(text.as_deref()) else { return Ok(()) };
    if new.len() > MAX_NOTE_BYTES {
        let cause = format!("a note of {} bytes is too large", new.len());
        return Err(ledger_error(StoreErrorKind::Io, &cause));
    }
    let sql = "INSERT INTO note(name, text) VALUES (?1, ?2) \
               ON CONFLICT(name) DO UPDATE SET text = excluded.text";
    ledger_transactions::run_statement(connection, sql, [name, new.as_str()]).map(|_| ())
}

/// Removes the note of this name.
pub(super) fn remove_note(connection: &Connection, name: &str) -> Result<()> {
    ledger_transactions::run_statement(connection, "DELETE FROM note WHERE name = ?1", [name])
        .map(|_| ())
}
