//! Model calls with the work that they belong to, for sums by session, project, branch and task.
//!
//! A call is written in the transaction that settles it, so a day's calls and the day's sums (`arm_day`) agree. The
//! sums stay for ever. Calls, and names that only they have, are removed after [`KEPT_DAYS`] by the next process that
//! counts a call, or when a person asks for it. Sums that no call explains are older than that, of a gnoma that did not
//! record calls, or of rows that cannot be read. A clock that is wrongly ahead costs details, never sums.

use std::{collections::BTreeMap, ops::ControlFlow};

use gnoma_core::{
    ErrorKind,
    ledger::{Amount, CallOrigin, SettledCall, Total},
    message::ModelRef,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    error_sentences::LedgerResultExt,
    statements::{daily_totals, run_statement},
};
use crate::{
    calendar::{DAY_MS, begin_ms, day_of},
    error::Result,
    text::clamp_count,
};

/// Days after which a call is removed.
pub const KEPT_DAYS: i64 = 400;

/// Rows that are removed in one transaction of upkeep.
const PIECE_ROWS: i64 = 500;

/// Calls that are removed in one transaction when a person asks for it.
const FORGOTTEN_AT_ONCE: i64 = 20_000;

/// Damaged rows that are described one by one.
const MAX_DESCRIBED: usize = 5;

/// Bytes of a name that are kept, such as a branch's.
const MAX_NAME_BYTES: usize = 1_024;

/// The kind of a name.
#[derive(Clone, Copy)]
enum NameKind {
    Project = 1,
    Branch = 2,
    Session = 3,
    Task = 4,
    Failure = 5,
    Work = 6,
}

/// Names a text of the ledger: a project, branch, session or kind of task. `0` stands for an unknown one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub i64);

impl NameId {
    /// The failure of a call whose process died while it ran. What the call took is an estimate.
    pub const PROCESS_DIED: Self = Self(-1);
}

/// One settled call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallRow {
    /// The time at which it was settled, in milliseconds since 1970.
    pub at_ms: i64,
    /// The number of the arm in [`UsageRead::arms`].
    pub arm: i64,
    /// The project's folder.
    pub project: NameId,
    /// The git branch.
    pub branch: NameId,
    /// The session that a person started.
    pub session: NameId,
    /// The elf's session; unknown for calls of the person's own session.
    pub elf: NameId,
    /// A hash of the turn's id; 0 if it is unknown.
    pub turn: i64,
    /// The kind of task.
    pub task: NameId,
    /// The error that ended it; unknown for a call that succeeded.
    pub failure: NameId,
    /// The tokens and money that the call took.
    pub amount: Amount,
    /// Tokens that were thought.
    pub thinking: u64,
    /// The price was known.
    pub is_priced: bool,
    /// Milliseconds until the first part of the answer.
    pub first_part_ms: Option<u64>,
    /// The text with the facts of [`gnoma_core::ledger::WorkFact`].
    pub work: NameId,
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedCall {
    /// The number of the call, if it can be read.
    pub number: Option<i64>,
    /// The time in milliseconds since 1970, if it can be read.
    pub at_ms: Option<i64>,
}

/// The rows that cannot be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamagedCalls {
    /// The number of damaged rows.
    pub count: u64,
    /// The first of them.
    pub first: Vec<DamagedCall>,
}

/// The state of a ledger at one moment, with its calls folded into `state`.
pub struct UsageRead<T> {
    /// The result of the fold.
    pub state: T,
    /// Sums by day and arm, which include every call.
    pub totals: Vec<Total>,
    /// The arms by their number.
    pub arms: BTreeMap<i64, ModelRef>,
    /// Calls that are left out of `state`.
    pub damaged: DamagedCalls,
}

/// Returns the row of a call that is being settled, and records its names.
pub(super) fn make_row(
    connection: &Connection,
    (arm, at_ms): (i64, i64),
    origin: &CallOrigin,
    call: &SettledCall,
) -> Result<CallRow> {
    let CallOrigin { project, branch, session, elf, turn, task, .. } = origin;
    let id = |kind, name: &str| name_id(connection, kind, name, day_of(at_ms)).map(NameId);
    Ok(CallRow {
        at_ms,
        arm,
        project: id(NameKind::Project, project)?,
        branch: id(NameKind::Branch, branch)?,
        session: id(NameKind::Session, session)?,
        elf: id(NameKind::Session, elf)?,
        turn: hash_turn(turn),
        task: id(NameKind::Task, task)?,
        failure: id(NameKind::Failure, call.failure.map_or("", failure_name))?,
        amount: call.amount,
        thinking: call.thinking,
        is_priced: call.is_priced,
        first_part_ms: call.first_part_ms,
        work: id(NameKind::Work, &origin.work_lines())?,
    })
}

/// Records a call that is being settled under `number`.
pub(super) fn insert_row(connection: &Connection, number: i64, row: &CallRow) -> Result<()> {
    let amount = &row.amount;
    run_statement(
        connection,
        "INSERT OR REPLACE INTO call VALUES \
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
        params![
            row.at_ms,
            number,
            row.arm,
            row.project.0,
            row.branch.0,
            row.session.0,
            row.elf.0,
            row.turn,
            row.task.0,
            row.failure.0,
            clamp_count(amount.requests),
            clamp_count(amount.input),
            clamp_count(amount.cached),
            clamp_count(amount.cache_write),
            clamp_count(amount.output),
            clamp_count(row.thinking),
            row.is_priced.then(|| clamp_count(amount.micro_usd)),
            row.first_part_ms.map(clamp_count),
            row.work.0,
        ],
    )
    .map(|_| ())
}

/// Returns the id of a name that a call of `day` has. Records a new one.
fn name_id(connection: &Connection, kind: NameKind, name: &str, day: i64) -> Result<i64> {
    if name.is_empty() {
        return Ok(0);
    }
    let name = gnoma_core::text_truncation::word_prefix(name, MAX_NAME_BYTES);
    let found: Option<(i64, i64)> = connection
        .prepare_cached("SELECT number, last_day FROM call_name WHERE kind = ?1 AND name = ?2")
        .and_then(|mut find| {
            let columns = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
            find.query_row(params![kind as i64, name], columns).optional()
        })
        .or_ledger_error()?;
    if let Some((number, last_day)) = found {
        if last_day < day {
            run_statement(
                connection,
                "UPDATE call_name SET last_day = ?2 WHERE number = ?1",
                [number, day],
            )?;
        }
        return Ok(number);
    }
    let sql = "INSERT INTO call_name(kind, name, last_day) VALUES (?1, ?2, ?3)";
    run_statement(connection, sql, params![kind as i64, name, day])?;
    Ok(connection.last_insert_rowid())
}

/// Returns 48 bits of a hash of the turn's id: enough to count turns, and 6 bytes in the file.
fn hash_turn(turn: &str) -> i64 {
    if turn.is_empty() {
        return 0;
    }
    let hash = blake3::hash(turn.as_bytes());
    hash.as_bytes().iter().take(6).fold(0, |bits, byte| (bits << 8) | i64::from(*byte))
}

fn failure_name(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Auth => "auth",
        ErrorKind::Forbidden => "forbidden",
        ErrorKind::BadRequest => "bad_request",
        ErrorKind::ContextTooLong => "context_too_long",
        ErrorKind::NotFound => "not_found",
        ErrorKind::RateLimited => "rate_limited",
        ErrorKind::Quota => "quota",
        ErrorKind::Overloaded => "overloaded",
        ErrorKind::ServerError => "server_error",
        ErrorKind::Unreachable => "unreachable",
        ErrorKind::Certificate => "certificate",
        ErrorKind::WrongServer => "wrong_server",
        ErrorKind::Network => "network",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Garbled => "garbled",
        ErrorKind::Protocol => "protocol",
        ErrorKind::Agent => "agent",
        ErrorKind::Cancelled => "cancelled",
    }
}

/// Folds the calls from the UTC day of `from_ms` on into `state`, in the order of their times, until `add` breaks.
/// One row is in memory at a time.
pub(super) fn fold_rows<T>(
    connection: &Connection,
    from_ms: i64,
    mut state: T,
    mut add: impl FnMut(&mut T, CallRow) -> ControlFlow<()>,
) -> Result<UsageRead<T>> {
    let day = day_of(from_ms);
    let mut damaged = DamagedCalls::default();
    let arms = read_arms(connection)?;
    let mut select =
        connection.prepare_cached("SELECT * FROM call WHERE at_ms >= ?1").or_ledger_error()?;
    let mut rows = select.query([begin_ms(day)]).or_ledger_error()?;
    while let Some(row) = rows.next().or_ledger_error()? {
        match read_row(row) {
            Ok(call) if arms.contains_key(&call.arm) => {
                if add(&mut state, call).is_break() {
                    break;
                }
            }
            // A call of an unknown arm would count beside its day's sum.
            Ok(_) | Err(_) => damaged.add(row),
        }
    }
    let from_day = i32::try_from(day).unwrap_or(if day < 0 { i32::MIN } else { i32::MAX });
    let sums = daily_totals(connection, from_day)?;
    Ok(UsageRead { state, totals: sums, arms, damaged })
}

impl DamagedCalls {
    fn add(&mut self, row: &Row<'_>) {
        self.count += 1;
        if self.first.len() < MAX_DESCRIBED {
            let (at_ms, number) = (row.get(0).ok(), row.get(1).ok());
            self.first.push(DamagedCall { number, at_ms });
        }
    }
}

/// Reads a row of `call`. Fails if a column is negative or of another type than gnoma writes.
fn read_row(row: &Row<'_>) -> rusqlite::Result<CallRow> {
    let sum = |column: usize| -> rusqlite::Result<u64> {
        let value: i64 = row.get(column)?;
        u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
    };
    let optional = |column: usize| match row.get_ref(column)? {
        rusqlite::types::ValueRef::Null => Ok(None),
        _ => sum(column).map(Some),
    };
    let name = |column: usize| row.get(column).map(NameId);
    let micro_usd = optional(16)?;
    Ok(CallRow {
        at_ms: row.get(0)?,
        arm: row.get(2)?,
        project: name(3)?,
        branch: name(4)?,
        session: name(5)?,
        elf: name(6)?,
        turn: row.get(7)?,
        task: name(8)?,
        failure: name(9)?,
        amount: Amount {
            requests: sum(10)?,
            input: sum(11)?,
            cached: sum(12)?,
            cache_write: sum(13)?,
            output: sum(14)?,
            micro_usd: micro_usd.unwrap_or(0),
        },
        thinking: sum(15)?,
        is_priced: micro_usd.is_some(),
        first_part_ms: optional(17)?,
        work: NameId(row.get::<_, Option<i64>>(18)?.unwrap_or(0)),
    })
}

fn read_arms(connection: &Connection) -> Result<BTreeMap<i64, ModelRef>> {
    let mut select =
        connection.prepare_cached("SELECT number, provider, model FROM arm").or_ledger_error()?;
    let arms = select.query_map([], |row| {
        Ok((row.get(0)?, ModelRef { provider: row.get(1)?, model: row.get(2)? }))
    });
    arms.and_then(Iterator::collect).or_ledger_error()
}

/// Returns the texts of names; those that are not in the ledger are left out.
pub(super) fn read_names(
    connection: &Connection,
    ids: &[NameId],
) -> Result<BTreeMap<NameId, String>> {
    let mut find = connection
        .prepare_cached("SELECT name FROM call_name WHERE number = ?1")
        .or_ledger_error()?;
    let mut names = BTreeMap::new();
    for id in ids {
        let name: Option<String> =
            find.query_row([id.0], |row| row.get(0)).optional().or_ledger_error()?;
        if let Some(name) = name {
            names.insert(*id, name);
        }
    }
    Ok(names)
}

/// Removes a piece of the calls that are older than [`KEPT_DAYS`] and, once there are none, of the names whose latest
/// call was older. Returns whether there may be more.
pub(super) fn remove_old(connection: &Connection, now_ms: i64) -> Result<bool> {
    let before_ms = now_ms.saturating_sub(KEPT_DAYS * DAY_MS);
    let is_full = |removed: usize| i64::try_from(removed).unwrap_or(i64::MAX) >= PIECE_ROWS;
    if is_full(remove_before(connection, before_ms, PIECE_ROWS)?) {
        return Ok(true);
    }
    let names = run_statement(
        connection,
        "DELETE FROM call_name WHERE number IN \
         (SELECT number FROM call_name WHERE last_day < ?1 LIMIT ?2)",
        [day_of(before_ms), PIECE_ROWS],
    )?;
    Ok(is_full(names))
}

/// Removes at most `limit` calls before a time, the oldest first. Returns how many were removed.
fn remove_before(connection: &Connection, before_ms: i64, limit: i64) -> Result<usize> {
    run_statement(
        connection,
        "DELETE FROM call WHERE at_ms < ?1 AND (at_ms, settled) IN \
         (SELECT at_ms, settled FROM call WHERE at_ms < ?1 ORDER BY at_ms LIMIT ?2)",
        [before_ms, limit],
    )
}

/// Counts the calls before a time.
pub(super) fn count_before(connection: &Connection, before_ms: i64) -> Result<u64> {
    let calls: i64 = connection
        .prepare_cached("SELECT count(*) FROM call WHERE at_ms < ?1")
        .and_then(|mut find| find.query_row([before_ms], |row| row.get(0)))
        .or_ledger_error()?;
    Ok(u64::try_from(calls).unwrap_or(0))
}

/// Removes a piece of the calls before a time, and names that no call has any more. Their space in the file is
/// overwritten. Returns how many calls were removed: 0 once there are none left.
pub(super) fn forget_before(connection: &Connection, before_ms: i64) -> Result<u64> {
    connection.pragma_update(None, "secure_delete", "ON").or_ledger_error()?;
    let removed = remove_before(connection, before_ms, FORGOTTEN_AT_ONCE)?;
    if removed == 0 {
        run_statement(
            connection,
            "DELETE FROM call_name WHERE number NOT IN (SELECT project FROM call UNION \
             SELECT branch FROM call UNION SELECT session FROM call UNION SELECT elf FROM call \
             UNION SELECT task FROM call UNION SELECT failure FROM call UNION \
             SELECT coalesce(work, 0) FROM call) AND NOT EXISTS (SELECT 1 FROM hold WHERE \
             instr(',' || replace(trim(call_facts, '[]'), ' ', '') || ',', ',' || number || ',') > 0)",
            [],
        )?;
    }
    connection.pragma_update(None, "secure_delete", "OFF").or_ledger_error()?;
    Ok(u64::try_from(removed).unwrap_or(u64::MAX))
}
