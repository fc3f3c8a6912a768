//! Whether money may have been spent that the ledger does not know of.
//!
//! This is a note in the ledger itself, so that every process knows it. Windows that begin after the first call
//! that was requested then are complete again. Until then, or until a person accepts the gap, no call that costs
//! money is admitted under a spending limit.

use gnoma_core::{
    ledger::{ReservationRequest, Unit, Window},
    store::{StoreError, StoreErrorKind},
};
use rusqlite::{Connection, OptionalExtension};

use super::{error_sentences::LedgerResultExt, ledger_transactions};
use crate::{
    calendar::{day_of, month_start},
    error::Result,
    pages::{FoundRow, FoundValue},
};

/// The note: nothing, or the time of the first call after the loss.
const NOTE: &str = "doubt";

/// Pools of turns: those of today's turns were never in a ledger that was lost.
const TURN: &str = "turn:";

/// The text that tells people what is wrong and what to do.
pub(super) const WORDS: &str = "not all spending could be recovered, so model calls under a \
     spending cap are denied; check `gnoma router pools`, then accept its totals with `gnoma \
     router pools --accept-loss`, or remove the caps for now";

/// Reports whether a row of the notes is the one about spending that is not known.
pub(super) fn is_note(row: &FoundRow) -> bool {
    matches!(row.values.first(), Some(FoundValue::Text(name)) if name == NOTE)
}

/// Notes that money may be missing.
pub(super) fn mark_unknown(connection: &Connection) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO note(name, text) VALUES (?1, '')";
    ledger_transactions::run_statement(connection, sql, [NOTE]).map(|_| ())
}

/// Counts on with what there is; says whether anything was in doubt.
pub(super) fn accept_unknown(connection: &Connection) -> Result<bool> {
    ledger_transactions::run_statement(connection, "DELETE FROM note WHERE name = ?1", [NOTE])
        .map(|gone| gone > 0)
}

/// Since when all is known: `None` where nothing is in doubt.
pub(super) fn known_since(connection: &Connection) -> Result<Option<Option<i64>>> {
    let text: Option<String> = connection
        .prepare_cached("SELECT text FROM note WHERE name = ?1")
        .and_then(|mut find| find.query_row([NOTE], |row| row.get(0)).optional())
        .or_ledger_error()?;
    Ok(text.map(|text| text.parse().ok()))
}

/// Refuses a call whose limits on money reach back to what is not known.
pub(super) fn refuse_if_unknown(connection: &Connection, ask: &ReservationRequest) -> Result<()> {
    let Some(since) = known_since(connection)? else { return Ok(()) };
    let since_ms = match since {
        Some(since_ms) => since_ms,
        None => {
            let sql = "UPDATE note SET text = ?2 WHERE name = ?1";
            ledger_transactions::run_statement(connection, sql, [NOTE, &ask.at_ms.to_string()])?;
            ask.at_ms
        }
    };
    let reaches_back = |window| match window {
        Window::Rolling { ms } => {
            ask.at_ms.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)) <= since_ms
        }
        Window::Day => day_of(since_ms) >= day_of(ask.at_ms),
        Window::Month => day_of(since_ms) >= month_start(day_of(ask.at_ms)),
        Window::Ever => true,
    };
    let is_shut = ask.amount.micro_usd > 0
        && ask.draws.iter().filter(|draw| !draw.pool.starts_with(TURN)).any(|draw| {
            let mut limits = draw.limits.iter();
            limits.any(|limit| limit.unit == Unit::MicroUsd && reaches_back(limit.window))
        });
    if !is_shut {
        return Ok(());
    }
    let sentence = format!("the spending ledger was damaged: {WORDS}");
    Err(StoreError::new(StoreErrorKind::Io, sentence))
}
