//! Use of a rate limit within a sliding window, and when the window frees it.
//!
//! Days and months are sums of days. A window that rolls counts single calls as far as they are
//! kept, and before that whole days: rather too much than too little.
//!
//! What is dated later than now counts too: it happened before, under a clock that was ahead. So a
//! clock that goes back frees nothing; after one that was wrongly ahead, see
//! [`crate::ledger::SqliteLedger::redate_future`].

use gnoma_core::ledger::{Amount, Level, Unit, Window};
use rusqlite::{Connection, Params, Row};

use super::{error_sentences::LedgerResultExt, limit_check};
use crate::{
    calendar::{begin_ms, day_of, month_start, next_month},
    error::Result,
};

/// The time after which to ask again where only calls in flight are in the way, since room may come at any moment,
/// in milliseconds.
const IN_FLIGHT_MS: i64 = 1000;

/// The columns of an amount, summed.
const SUMS: &str = "coalesce(sum(requests), 0), coalesce(sum(input), 0), \
                    coalesce(sum(output), 0), coalesce(sum(micro_usd), 0), \
                    coalesce(sum(cached), 0)";

/// Reads the five columns of an amount from `first` on.
pub(super) fn read_amount(row: &Row<'_>, first: usize) -> rusqlite::Result<Amount> {
    let column = |offset: usize| -> rusqlite::Result<u64> {
        row.get::<_, i64>(first + offset).map(|value| u64::try_from(value).unwrap_or(0))
    };
    Ok(Amount {
        requests: column(0)?,
        input: column(1)?,
        output: column(2)?,
        micro_usd: column(3)?,
        cached: column(4)?,
        ..Amount::default()
    })
}

/// Returns what was settled in `pool` within `window`.
pub(super) fn used_amount(
    connection: &Connection,
    pool: i64,
    window: Window,
    at_ms: i64,
) -> Result<Amount> {
    match window {
        Window::Rolling { ms } => rolling_amount(connection, pool, start_of(ms, at_ms)),
        Window::Day => days_from(connection, pool, day_of(at_ms)),
        Window::Month => days_from(connection, pool, month_start(day_of(at_ms))),
        Window::Ever => days_from(connection, pool, i64::MIN),
    }
}

/// Returns what calls in flight hold of `pool`.
pub(super) fn held_amount(connection: &Connection, pool: i64) -> Result<Amount> {
    let sql =
        format!("SELECT {SUMS} FROM draw JOIN hold ON hold.id = draw.hold WHERE draw.pool = ?1");
    sum_amounts(connection, &sql, [pool])
}

/// Returns when the window begins again.
pub(super) fn resets_at(
    connection: &Connection,
    pool: i64,
    window: Window,
    at_ms: i64,
) -> Result<Option<i64>> {
    let Window::Rolling { ms } = window else { return Ok(calendar_reset(window, at_ms)) };
    let first: Option<i64> = connection
        .prepare_cached("SELECT min(at_ms) FROM spent WHERE pool = ?1 AND at_ms > ?2")
        .and_then(|mut find| find.query_row([pool, start_of(ms, at_ms)], |row| row.get(0)))
        .or_ledger_error()?;
    Ok(Some(first.map_or(at_ms, |first| first.saturating_add(clamp_ms(ms)))))
}

/// Returns when `level` may have room for `need` again.
pub(super) fn free_at(
    connection: &Connection,
    pool: i64,
    level: &Level,
    need: u64,
    at_ms: i64,
) -> Result<Option<i64>> {
    if need > level.limit.most {
        return Ok(None);
    }
    if level.used.saturating_add(need) <= level.limit.most {
        return Ok(Some(at_ms.saturating_add(IN_FLIGHT_MS)));
    }
    let Window::Rolling { ms } = level.limit.window else {
        return Ok(calendar_reset(level.limit.window, at_ms));
    };
    let surplus =
        limit_check::used_and_held(level).saturating_add(need).saturating_sub(level.limit.most);
    let start = start_of(ms, at_ms);
    let leaves = when_gone(connection, pool, start, level.limit.unit, surplus)?.unwrap_or(at_ms);
    Ok(Some(leaves.saturating_add(clamp_ms(ms))))
}

/// The time of the call with which so much of `unit` was taken since `start`.
fn when_gone(
    connection: &Connection,
    pool: i64,
    start: i64,
    unit: Unit,
    surplus: u64,
) -> Result<Option<i64>> {
    let mut calls = connection
        .prepare_cached(
            "SELECT at_ms, requests, input, output, micro_usd, cached FROM spent \
             WHERE pool = ?1 AND at_ms > ?2 ORDER BY at_ms",
        )
        .or_ledger_error()?;
    let mut rows = calls.query([pool, start]).or_ledger_error()?;
    let mut gone = 0_u64;
    while let Some(row) = rows.next().or_ledger_error()? {
        gone = gone.saturating_add(read_amount(row, 1).or_ledger_error()?.in_unit(unit));
        if gone >= surplus {
            return row.get(0).map(Some).or_ledger_error();
        }
    }
    Ok(None)
}

fn calendar_reset(window: Window, at_ms: i64) -> Option<i64> {
    match window {
        Window::Day => Some(begin_ms(day_of(at_ms) + 1)),
        Window::Month => Some(begin_ms(next_month(day_of(at_ms)))),
        Window::Rolling { .. } | Window::Ever => None,
    }
}

fn clamp_ms(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn start_of(ms: u64, at_ms: i64) -> i64 {
    at_ms.saturating_sub(clamp_ms(ms))
}

/// Returns the sum of the calls after `start`.
fn rolling_amount(connection: &Connection, pool: i64, start: i64) -> Result<Amount> {
    let kept: i64 = connection
        .prepare_cached("SELECT from_day FROM kept")
        .and_then(|mut find| find.query_row([], |row| row.get(0)))
        .or_ledger_error()?;
    let first = start.saturating_add(1).max(begin_ms(kept));
    let sql = format!("SELECT {SUMS} FROM spent WHERE pool = ?1 AND at_ms >= ?2");
    let mut calls = sum_amounts(connection, &sql, [pool, first])?;
    let day = day_of(start.saturating_add(1));
    if day >= kept {
        return Ok(calls);
    }
    let sql = format!("SELECT {SUMS} FROM pool_day WHERE pool = ?1 AND day >= ?2 AND day < ?3");
    calls.add(&sum_amounts(connection, &sql, [pool, day, kept])?);
    Ok(calls)
}

fn days_from(connection: &Connection, pool: i64, day: i64) -> Result<Amount> {
    let sql = format!("SELECT {SUMS} FROM pool_day WHERE pool = ?1 AND day >= ?2");
    sum_amounts(connection, &sql, [pool, day])
}

fn sum_amounts(connection: &Connection, sql: &str, values: impl Params) -> Result<Amount> {
    connection
        .prepare_cached(sql)
        .and_then(|mut add| add.query_row(values, |row| read_amount(row, 0)))
        .or_ledger_error()
}
