//! Statements that several parts of the ledger run.

use gnoma_core::{
    ledger::{Amount, Total},
    message::ModelRef,
};
use rusqlite::Connection;

use super::{error_sentences::LedgerResultExt, window};
use crate::error::Result;

/// Runs a statement; returns how many rows it changed.
pub(super) fn run_statement(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<usize> {
    connection.prepare_cached(sql).and_then(|mut run| run.execute(values)).or_ledger_error()
}

/// Returns the sums by day and arm from a day on, the earliest first.
pub(super) fn daily_totals(connection: &Connection, from_day: i32) -> Result<Vec<Total>> {
    let mut days = connection
        .prepare_cached(
            "SELECT day, provider, model, requests, input, output, micro_usd, cached, cache_write \
             FROM arm_day JOIN arm ON arm.number = arm_day.arm \
             WHERE day >= ?1 ORDER BY day, provider, model",
        )
        .or_ledger_error()?;
    let rows = days
        .query_map([from_day], |row| {
            let day: i64 = row.get(0)?;
            let cache_write = u64::try_from(row.get::<_, i64>(8)?).unwrap_or(0);
            Ok(Total {
                day: i32::try_from(day).unwrap_or(i32::MAX),
                arm: ModelRef { provider: row.get(1)?, model: row.get(2)? },
                amount: Amount { cache_write, ..window::read_amount(row, 3)? },
            })
        })
        .or_ledger_error()?;
    rows.collect::<rusqlite::Result<_>>().or_ledger_error()
}
