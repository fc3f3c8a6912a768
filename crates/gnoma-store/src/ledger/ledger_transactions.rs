//! The steps that change the ledger. Each runs inside one transaction that excludes all others, so
//! that steps of parallel callers, threads or processes never overlap.

use gnoma_core::{
    ledger::{
        Amount, CallOrigin, ExhaustedLimit, HoldId, Level, PoolDraw, ReservationRequest,
        SettledCall,
    },
    message::ModelRef,
    store::{StoreError, StoreErrorKind},
};
use rusqlite::{Connection, OptionalExtension, params};

pub(super) use super::statements::{daily_totals, run_statement};
use super::{
    calls::{self, CallRow},
    error_sentences::LedgerResultExt,
    limit_check,
    lost_calls::{self, LostCall},
    window,
};
use crate::{
    calendar::day_of,
    error::Result,
    lock::{Hold, Identity},
    text::{MAX_COUNT, clamp_count},
};

/// That a process was there is written this often.
const SEEN_EVERY_MS: i64 = 60_000;

/// The columns of an amount that limits may be about.
const COUNTED: [&str; 5] = ["requests", "input", "output", "micro_usd", "cached"];

/// The columns that only days of arms have.
const CACHED: [&str; 1] = ["cache_write"];

/// The facts that a process remembers of its own reservation, so that it can settle it. If others took the process for
/// dead, they have settled it, and their estimate stays.
#[derive(Clone, Debug)]
pub(super) struct ReservedCall {
    pub(super) arm: ModelRef,
    pub(super) pools: Vec<String>,
    pub(super) origin: CallOrigin,
}

impl ReservedCall {
    /// Returns what is to be remembered of `ask`.
    pub(super) fn from_ask(ask: &ReservationRequest) -> Self {
        let pools = ask.draws.iter().map(|draw| draw.pool.clone()).collect();
        Self { arm: ask.arm.clone(), pools, origin: ask.origin.clone() }
    }
}

/// The ledger as one of its users sees it within a transaction.
pub(super) struct LedgerTransaction<'c> {
    pub(super) connection: &'c Connection,
    pub(super) me: &'c Identity,
    /// The check that tells whether the process of a row may still settle.
    pub(super) is_live: &'c dyn Fn(&Hold) -> bool,
}

impl LedgerTransaction<'_> {
    /// Holds room in all pools of `ask`, or says which limit has none.
    pub(super) fn reserve(
        &self,
        ask: &ReservationRequest,
    ) -> Result<std::result::Result<HoldId, ExhaustedLimit>> {
        self.settle_dead_processes()?;
        let levels = self.levels(&ask.draws, ask.at_ms)?;
        match self.longest_refusal(&levels, ask)? {
            Some(full) => Ok(Err(full)),
            None => self.insert_hold(ask).map(Ok),
        }
    }

    /// The refusal that lasts longest.
    fn longest_refusal(
        &self,
        levels: &[Level],
        ask: &ReservationRequest,
    ) -> Result<Option<ExhaustedLimit>> {
        let mut longest: Option<ExhaustedLimit> = None;
        for level in limit_check::levels_without_room(levels, &ask.amount) {
            let need = ask.amount.in_unit(level.limit.unit);
            let pool = self.find_pool(&level.pool)?;
            let full = ExhaustedLimit {
                pool: level.pool.clone(),
                limit: level.limit,
                used: limit_check::used_and_held(level),
                free_at_ms: match pool {
                    Some(pool) => window::free_at(self.connection, pool, level, need, ask.at_ms)?,
                    // Nothing was ever taken, and yet there is no room.
                    None => None,
                },
            };
            let wait = |full: &ExhaustedLimit| full.free_at_ms.unwrap_or(i64::MAX);
            if longest.as_ref().is_none_or(|longest| wait(&full) > wait(longest)) {
                longest = Some(full);
            }
        }
        Ok(longest)
    }

    fn insert_hold(&self, ask: &ReservationRequest) -> Result<HoldId> {
        let process = self.sign_in(ask.at_ms)?;
        let taken = ask.amount;
        let arm = self.find_or_insert_arm(&ask.arm)?;
        let facts = lost_calls::describe_call(self.connection, arm, ask)?;
        // Sixty-three random bits are never drawn twice.
        let id: i64 = self
            .connection
            .prepare_cached(
                "INSERT INTO hold(id, process, at_ms, requests, input, output, micro_usd, cached, \
                 call_facts) VALUES (random() & 0x7fffffffffffffff, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
                 RETURNING id",
            )
            .and_then(|mut insert| {
                insert.query_row(
                    params![
                        process,
                        ask.at_ms,
                        clamp_count(taken.requests),
                        clamp_count(taken.input),
                        clamp_count(taken.output),
                        clamp_count(taken.micro_usd),
                        clamp_count(taken.cached),
                        facts,
                    ],
                    |row| row.get(0),
                )
            })
            .or_ledger_error()?;
        for draw in &ask.draws {
            let pool = self.pool_or_new(&draw.pool)?;
            self.run_statement(
                "INSERT OR IGNORE INTO draw(pool, hold) VALUES (?1, ?2)",
                [pool, id],
            )?;
        }
        Ok(HoldId(id))
    }

    /// Settles a reservation with what was taken; a second time changes nothing.
    pub(super) fn settle_hold(
        &self,
        hold: HoldId,
        kept: Option<&ReservedCall>,
        at_ms: i64,
        call: &SettledCall,
    ) -> Result<()> {
        let Some(kept) = kept else { return self.is_settled(hold) };
        let Some(number) = self.number_settlement(hold.0, at_ms)? else { return Ok(()) };
        release_hold(self.connection, hold.0)?;
        let arm = self.find_or_insert_arm(&kept.arm)?;
        let row = calls::make_row(self.connection, (arm, at_ms), &kept.origin, call)?;
        let pools = unique_names(&kept.pools).map(|name| self.pool_or_new(name));
        self.book_call(number, &row, &pools.collect::<Result<Vec<i64>>>()?)
    }

    /// Numbers the settlement of a reservation; `None` if it is settled already.
    fn number_settlement(&self, hold: i64, at_ms: i64) -> Result<Option<i64>> {
        let sql = "INSERT OR IGNORE INTO settled(hold, at_ms) VALUES (?1, ?2)";
        let is_first = self.run_statement(sql, [hold, at_ms])? > 0;
        Ok(is_first.then(|| self.connection.last_insert_rowid()))
    }

    /// Counts a call that is settled under `number` on its day and arm and in its pools, and records it.
    fn book_call(&self, number: i64, row: &CallRow, pools: &[i64]) -> Result<()> {
        let (day, amount) = (day_of(row.at_ms), &row.amount);
        self.add_day(day, row.arm, amount)?;
        calls::insert_row(self.connection, number, row)?;
        for pool in pools {
            self.add_amount(&day_sql("pool_day", "pool, day"), [*pool, day], amount)?;
            self.add_call(*pool, row.at_ms, number, amount)?;
        }
        Ok(())
    }

    fn is_settled(&self, hold: HoldId) -> Result<()> {
        let settled: Option<i64> = self
            .connection
            .prepare_cached("SELECT 1 FROM settled WHERE hold = ?1")
            .and_then(|mut find| find.query_row([hold.0], |row| row.get(0)).optional())
            .or_ledger_error()?;
        settled.map(|_| ()).ok_or_else(|| {
            StoreError::new(
                StoreErrorKind::NotFound,
                "the reservation of a model call was dropped before it was settled; what the \
                 call cost is not counted",
            )
        })
    }

    fn add_day(&self, day: i64, arm: i64, amount: &Amount) -> Result<()> {
        self.add_amount(&day_sql("arm_day", "day, arm"), [day, arm], amount)?;
        self.run_statement(
            &format!(
                "UPDATE arm_day SET cache_write = min(cache_write + ?3, {MAX_COUNT}) \
                 WHERE day = ?1 AND arm = ?2"
            ),
            [day, arm, clamp_count(amount.cache_write)],
        )
        .map(|_| ())
    }

    fn add_amount(&self, sql: &str, key: [i64; 2], amount: &Amount) -> Result<()> {
        let [first, second] = key;
        self.run_statement(
            sql,
            params![
                first,
                second,
                clamp_count(amount.requests),
                clamp_count(amount.input),
                clamp_count(amount.output),
                clamp_count(amount.micro_usd),
                clamp_count(amount.cached),
            ],
        )
        .map(|_| ())
    }

    fn add_call(&self, pool: i64, at_ms: i64, number: i64, amount: &Amount) -> Result<()> {
        self.run_statement(
            "INSERT INTO spent(pool, at_ms, settled, requests, input, output, micro_usd, cached) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            params![
                pool,
                at_ms,
                number,
                clamp_count(amount.requests),
                clamp_count(amount.input),
                clamp_count(amount.output),
                clamp_count(amount.micro_usd),
                clamp_count(amount.cached),
            ],
        )
        .map(|_| ())
    }

    /// Returns the state of all limits of `draws`. Changes nothing: what a dead process holds is held until it is
    /// settled.
    pub(super) fn levels(&self, draws: &[PoolDraw], at_ms: i64) -> Result<Vec<Level>> {
        let mut levels = Vec::new();
        for draw in draws.iter().filter(|draw| !draw.limits.is_empty()) {
            let number = self.find_pool(&draw.pool)?;
            let held = match number {
                Some(pool) => window::held_amount(self.connection, pool)?,
                None => Amount::default(),
            };
            for limit in &draw.limits {
                // A pool that nobody drew on has no number and no rows.
                let pool = number.unwrap_or(i64::MIN);
                let used = window::used_amount(self.connection, pool, limit.window, at_ms)?;
                let resets_at_ms = window::resets_at(self.connection, pool, limit.window, at_ms)?;
                levels.push(Level {
                    pool: draw.pool.clone(),
                    limit: *limit,
                    used: used.in_unit(limit.unit),
                    held: held.in_unit(limit.unit),
                    resets_at_ms,
                });
            }
        }
        Ok(levels)
    }

    /// Settles the calls that processes had in flight when they died, at the time and with the amount of their
    /// reservations. Writes nothing if no process died.
    pub(super) fn settle_dead_processes(&self) -> Result<()> {
        for process in self.dead_processes()? {
            for LostCall { hold, pools, row } in lost_calls::read_lost(self.connection, process)? {
                if let Some(number) = self.number_settlement(hold, row.at_ms)? {
                    self.book_call(number, &row, &pools)?;
                }
            }
            self.run_statement("DELETE FROM process WHERE number = ?1", [process])?;
        }
        Ok(())
    }

    /// Returns the numbers of processes that are recorded and no longer run.
    pub(super) fn dead_processes(&self) -> Result<Vec<i64>> {
        let mut others = self
            .connection
            .prepare_cached(
                "SELECT token, pid, host, boot, space, started, since_ms, seen_ms, number \
                 FROM process WHERE token <> ?1",
            )
            .or_ledger_error()?;
        let mut rows = others.query([&self.me.token]).or_ledger_error()?;
        let mut dead: Vec<i64> = Vec::new();
        while let Some(row) = rows.next().or_ledger_error()? {
            let process = Hold::from_row(row, 0).or_ledger_error()?;
            if process.is_some_and(|process| !(self.is_live)(&process)) {
                dead.push(row.get(8).or_ledger_error()?);
            }
        }
        Ok(dead)
    }

    /// The row of this process; others that cannot look at it see by it that it lives.
    fn sign_in(&self, at_ms: i64) -> Result<i64> {
        let me = self.me;
        self.run_statement(
            "INSERT INTO process(token, pid, host, boot, space, started, since_ms, seen_ms) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) \
             ON CONFLICT(token) DO UPDATE SET seen_ms = ?7 WHERE ?7 - seen_ms >= ?8",
            params![
                me.token,
                me.pid,
                me.host,
                me.boot,
                me.space,
                me.started,
                at_ms,
                SEEN_EVERY_MS,
            ],
        )?;
        self.connection
            .prepare_cached("SELECT number FROM process WHERE token = ?1")
            .and_then(|mut find| find.query_row([&me.token], |row| row.get(0)))
            .or_ledger_error()
    }

    fn find_pool(&self, name: &str) -> Result<Option<i64>> {
        self.connection
            .prepare_cached("SELECT number FROM pool WHERE name = ?1")
            .and_then(|mut find| find.query_row([name], |row| row.get(0)).optional())
            .or_ledger_error()
    }

    fn pool_or_new(&self, name: &str) -> Result<i64> {
        if let Some(number) = self.find_pool(name)? {
            return Ok(number);
        }
        self.run_statement("INSERT INTO pool(name) VALUES (?1)", [name])?;
        Ok(self.connection.last_insert_rowid())
    }

    fn find_or_insert_arm(&self, arm: &ModelRef) -> Result<i64> {
        let known: Option<i64> = self
            .connection
            .prepare_cached("SELECT number FROM arm WHERE provider = ?1 AND model = ?2")
            .and_then(|mut find| {
                find.query_row([&arm.provider, &arm.model], |row| row.get(0)).optional()
            })
            .or_ledger_error()?;
        if let Some(number) = known {
            return Ok(number);
        }
        self.run_statement(
            "INSERT INTO arm(provider, model) VALUES (?1, ?2)",
            [&arm.provider, &arm.model],
        )?;
        Ok(self.connection.last_insert_rowid())
    }

    fn run_statement(&self, sql: &str, values: impl rusqlite::Params) -> Result<usize> {
        run_statement(self.connection, sql, values)
    }
}

/// Lets go of a reservation; one that is not there changes nothing.
pub(super) fn release_hold(connection: &Connection, hold: i64) -> Result<()> {
    run_statement(connection, "DELETE FROM hold WHERE id = ?1", [hold]).map(|_| ())
}

/// Lets go of everything the process holds.
pub(super) fn remove_process(connection: &Connection, me: &Identity) -> Result<()> {
    run_statement(connection, "DELETE FROM process WHERE token = ?1", [&me.token]).map(|_| ())
}

/// Moves what is dated later than `now_ms` to that time; says how many calls were.
pub(super) fn redate_future(connection: &Connection, now_ms: i64) -> Result<u64> {
    let today = day_of(now_ms);
    let with_caches = [COUNTED.as_slice(), CACHED.as_slice()].concat();
    for (table, key, columns, counted) in [
        ("pool_day", "pool", "pool, day", COUNTED.as_slice()),
        ("arm_day", "arm", "day, arm", &with_caches),
    ] {
        let sql = later_days_sql(table, key, columns, counted);
        run_statement(connection, &sql, [today])?;
        run_statement(connection, &format!("DELETE FROM {table} WHERE day > ?1"), [today])?;
    }
    run_statement(connection, "UPDATE spent SET at_ms = ?1 WHERE at_ms > ?1", [now_ms])?;
    run_statement(connection, "UPDATE call SET at_ms = ?1 WHERE at_ms > ?1", [now_ms])?;
    run_statement(connection, "UPDATE call_name SET last_day = ?1 WHERE last_day > ?1", [today])?;
    run_statement(connection, "UPDATE hold SET at_ms = ?1 WHERE at_ms > ?1", [now_ms])?;
    let calls =
        run_statement(connection, "UPDATE settled SET at_ms = ?1 WHERE at_ms > ?1", [now_ms])?;
    Ok(u64::try_from(calls).unwrap_or(u64::MAX))
}

/// Adds an amount to the row of a day, which is made where it is missing.
fn day_sql(table: &str, key: &str) -> String {
    let columns = COUNTED.join(", ");
    format!(
        "INSERT INTO {table}({key}, {columns}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) {}",
        on_conflict(key, &COUNTED)
    )
}

/// Adds the later days' amounts to the row of the day `?1`.
fn later_days_sql(table: &str, key: &str, columns: &str, counted: &[&str]) -> String {
    let values = columns.replace("day", "?1");
    let sums: Vec<String> = counted.iter().map(|column| format!("sum({column})")).collect();
    format!(
        "INSERT INTO {table}({columns}, {}) SELECT {values}, {} \
         FROM {table} WHERE day > ?1 GROUP BY {key} {}",
        counted.join(", "),
        sums.join(", "),
        on_conflict(columns, counted)
    )
}

/// Sums stay below what later sums of them can hold.
fn on_conflict(key: &str, counted: &[&str]) -> String {
    let added: Vec<String> = counted
        .iter()
        .map(|column| format!("{column} = min({column} + excluded.{column}, {MAX_COUNT})"))
        .collect();
    format!("ON CONFLICT({key}) DO UPDATE SET {}", added.join(", "))
}

/// Names once each, in their order.
fn unique_names(names: &[String]) -> impl Iterator<Item = &String> {
    names
        .iter()
        .enumerate()
        .filter(|(at, name)| !names.iter().take(*at).any(|n| n == *name))
        .map(|(_, name)| name)
}
