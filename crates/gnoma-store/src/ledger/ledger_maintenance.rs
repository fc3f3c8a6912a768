//! What the ledger's thread does besides its jobs: retrying what could not be let go, forgetting
//! single calls that no window needs, and keeping the log short.

use std::{path::PathBuf, sync::Arc};

use gnoma_core::store::{StoreError, StoreErrorKind};
use rusqlite::Connection;

use super::{
    calls, error_sentences::LedgerResultExt, ledger_transactions, memory::ProcessReservations,
};
use crate::{
    calendar::{DAY_MS, day_of},
    error::Result,
    files,
    lock::Identity,
    log,
    sql::execute_cached,
    writer::Upkeep,
};

/// Single calls are kept at least this long.
const KEPT_DAYS: i64 = 2;

/// So many of the latest calls are kept in any case: a clock that is wrongly ahead for a moment must
/// not make windows forget.
const KEPT_CALLS: i64 = 5000;

/// Most that is forgotten at once.
const PIECE_CALLS: i64 = 500;

/// Pools that end with what they are named after, and the days after their last call until they are
/// forgotten: nobody continues with a turn, and with a session rarely so late.
const PASSING: [(&str, i64); 2] = [("turn:*", KEPT_DAYS), ("session:*", 90)];

/// Keeps one ledger in shape.
pub(super) struct LedgerMaintenance {
    pub(super) file: Option<File>,
    pub(super) memory: Arc<ProcessReservations>,
    pub(super) identity: Arc<Identity>,
}

/// The file of the open database.
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) opened: Option<(u64, u64)>,
}

impl LedgerMaintenance {
    /// Empties the write-ahead log after calls were removed at a person's request. It stays as it is while another
    /// process reads, until that one's log is worked in.
    fn empty_log(&self, connection: &Connection) {
        if self.file.is_some() && self.memory.take_forgotten() {
            drop(connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())));
        }
    }
}

impl Upkeep for LedgerMaintenance {
    fn may_write(&self) -> Result<()> {
        match &self.file {
            Some(file) if files::file_identity(&file.path) != file.opened => Err(StoreError::new(
                StoreErrorKind::NotFound,
                "the spending ledger was moved or replaced while it was open; start gnoma \
                 again",
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn turn_ended(&self, _connection: &Connection) -> Result<()> {
        Ok(())
    }

    fn run_maintenance(&self, connection: &Connection) -> Result<bool> {
        self.may_write()?;
        execute_cached(connection, "BEGIN IMMEDIATE")?;
        let gone = self.memory.release_dropped(connection)?;
        let now_ms = self.memory.latest_ms();
        let has_more =
            forget_calls(connection, now_ms, KEPT_CALLS)? | calls::remove_old(connection, now_ms)?;
        forget_pools(connection, self.memory.latest_ms())?;
        execute_cached(connection, "COMMIT")?;
        self.memory.forget_dropped(&gone);
        self.empty_log(connection);
        if self.file.is_some() && !has_more && log::count_pages(connection)? >= log::LONG_PAGES {
            // Others may be reading: the next pause is the next try.
            connection
                .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
                .or_ledger_error()?;
        }
        Ok(has_more)
    }

    fn on_thread_end(&self, connection: &Connection) {
        // What stays behind counts no more once the process is gone.
        drop(ledger_transactions::remove_process(connection, &self.identity));
        self.empty_log(connection);
    }
}

/// Forgets a piece of the single calls that are neither young nor among the `latest`; their sums
/// stay.
/// Says whether there are more.
pub(super) fn forget_calls(connection: &Connection, now_ms: i64, latest: i64) -> Result<bool> {
    let before_ms = now_ms.saturating_sub(KEPT_DAYS * DAY_MS);
    let oldest: Option<(i64, i64, i64)> = connection
        .prepare_cached(
            "SELECT max(number), max(at_ms), count(*) FROM (SELECT number, at_ms FROM settled \
             WHERE at_ms < ?1 AND number <= (SELECT max(number) FROM settled) - ?2 \
             ORDER BY number LIMIT ?3)",
        )
        .and_then(|mut find| {
            find.query_row([before_ms, latest, PIECE_CALLS], |row| {
                let last: Option<i64> = row.get(0)?;
                let newest: Option<i64> = row.get(1)?;
                let found: i64 = row.get(2)?;
                Ok(last.zip(newest).map(|(last, newest)| (last, newest, found)))
            })
        })
        .or_ledger_error()?;
    let Some((last, newest_ms, found)) = oldest else { return Ok(false) };
    let values = [last, before_ms];
    // Windows that begin before this day count whole days from now on.
    let day = day_of(newest_ms) + 1;
    ledger_transactions::run_statement(
        connection,
        "UPDATE kept SET from_day = max(from_day, ?1)",
        [day],
    )?;
    ledger_transactions::run_statement(
        connection,
        "DELETE FROM spent WHERE settled IN \
         (SELECT number FROM settled WHERE number <= ?1 AND at_ms < ?2)",
        values,
    )?;
    ledger_transactions::run_statement(
        connection,
        "DELETE FROM settled WHERE number <= ?1 AND at_ms < ?2",
        values,
    )?;
    Ok(found >= PIECE_CALLS)
}

/// Forgets pools of turns and sessions that are long over.
pub(super) fn forget_pools(connection: &Connection, now_ms: i64) -> Result<()> {
    for (names, days) in PASSING {
        forget_named(connection, names, day_of(now_ms).saturating_sub(days))?;
    }
    Ok(())
}

/// Forgets pools with such names that took nothing since that day.
fn forget_named(connection: &Connection, names: &str, before: i64) -> Result<()> {
    let mut find = connection
        .prepare_cached(
            "SELECT number FROM pool WHERE name GLOB ?1 \
             AND NOT EXISTS (SELECT 1 FROM draw WHERE draw.pool = number) \
             AND NOT EXISTS (SELECT 1 FROM pool_day WHERE pool_day.pool = number AND day >= ?2) \
             LIMIT ?3",
        )
        .or_ledger_error()?;
    let over = find
        .query_map(rusqlite::params![names, before, PIECE_CALLS], |row| row.get(0))
        .and_then(Iterator::collect::<rusqlite::Result<Vec<i64>>>)
        .or_ledger_error()?;
    for pool in over {
        ledger_transactions::run_statement(
            connection,
            "DELETE FROM spent WHERE pool = ?1",
            [pool],
        )?;
        ledger_transactions::run_statement(
            connection,
            "DELETE FROM pool_day WHERE pool = ?1",
            [pool],
        )?;
        ledger_transactions::run_statement(
            connection,
            "DELETE FROM pool WHERE number = ?1",
            [pool],
        )?;
    }
    Ok(())
}
