//! Rebuilds sums that a damaged ledger has lost, from what else counts the same calls: the calls that are recorded, the
//! sums by arm, and the pool that every call draws on. Of two sums of a day, the larger counts.

use rusqlite::Connection;

use super::statements::run_statement;
use crate::{calendar::DAY_MS, error::Result, text::MAX_COUNT};

/// The pool that every call draws on.
const ALL_POOL: &str = "all";

/// The provider and model of sums whose model is lost.
const UNKNOWN_ARM: &str = "unknown";

/// Columns that both kinds of daily sums have. They only ever rise.
pub(super) const SUMS: [&str; 5] = ["requests", "input", "output", "micro_usd", "cached"];

/// Raises the daily sums of arms to what the recorded calls add up to.
pub(super) fn sum_up_calls(new: &Connection) -> Result<()> {
    let columns = [SUMS.as_slice(), &["cache_write"]].concat();
    let sums = join_columns(&columns, |name| {
        format!("min(coalesce(sum({name}), 0), {MAX_COUNT}) AS {name}")
    });
    let sql = format!(
        "INSERT INTO arm_day(day, arm, {}) SELECT at_ms / {DAY_MS}, arm, {sums} FROM call \
         WHERE at_ms >= 0 GROUP BY 1, 2 ON CONFLICT(day, arm) DO UPDATE SET {}",
        columns.join(", "),
        raise_columns(&columns)
    );
    run_statement(new, &sql, []).map(|_| ())
}

/// Raises the daily sums of the pool that every call draws on to what the arms add up to.
pub(super) fn sum_up_arms(new: &Connection) -> Result<()> {
    run_statement(new, "INSERT OR IGNORE INTO pool(name) VALUES (?1)", [ALL_POOL])?;
    let sums = join_columns(&SUMS, |name| format!("min(sum({name}), {MAX_COUNT})"));
    let sql = format!(
        "INSERT INTO pool_day(pool, day, {}) SELECT (SELECT number FROM pool WHERE name = ?1), day, \
         {sums} FROM arm_day GROUP BY day ON CONFLICT(pool, day) DO UPDATE SET {}",
        SUMS.join(", "),
        raise_columns(&SUMS)
    );
    run_statement(new, &sql, [ALL_POOL]).map(|_| ())
}

/// Adds what the pool that every call draws on has beyond the sums of arms, as those of an unknown arm.
pub(super) fn add_unknown_arm(new: &Connection) -> Result<()> {
    let rests = join_columns(&SUMS, |name| {
        format!("max(pool_day.{name} - coalesce(sum(arm_day.{name}), 0), 0) AS {name}")
    });
    let rests = format!(
        "SELECT pool_day.day AS day, {rests} FROM pool_day LEFT JOIN arm_day USING (day) \
         WHERE pool = (SELECT number FROM pool WHERE name = '{ALL_POOL}') GROUP BY pool_day.day"
    );
    let columns = SUMS.join(", ");
    let arm = format!(
        "INSERT OR IGNORE INTO arm(provider, model) SELECT ?1, ?1 \
         WHERE EXISTS (SELECT 1 FROM ({rests}) WHERE max({columns}) > 0)"
    );
    run_statement(new, &arm, [UNKNOWN_ARM])?;
    let sum = join_columns(&SUMS, |name| format!("{name} = {name} + excluded.{name}"));
    let sql = format!(
        "INSERT INTO arm_day(day, arm, {columns}) SELECT day, number, {columns} FROM ({rests}), arm \
         WHERE provider = ?1 AND model = ?1 AND max({columns}) > 0 \
         ON CONFLICT(day, arm) DO UPDATE SET {sum}"
    );
    run_statement(new, &sql, [UNKNOWN_ARM]).map(|_| ())
}

fn join_columns(columns: &[&str], write: impl Fn(&str) -> String) -> String {
    columns.iter().map(|name| write(name)).collect::<Vec<_>>().join(", ")
}

fn raise_columns(columns: &[&str]) -> String {
    join_columns(columns, |name| format!("{name} = max({name}, excluded.{name})"))
}
