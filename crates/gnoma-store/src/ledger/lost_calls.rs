//! Calls of processes that died while they ran. Nobody knows what such a call took, so what was reserved for it counts:
//! too much rather than too little.

use gnoma_core::ledger::{ReservationRequest, SettledCall};
use rusqlite::Connection;

use super::{
    calls::{self, CallRow, NameId},
    error_sentences::LedgerResultExt,
    window,
};
use crate::error::Result;

/// The numbers of the arm, project, branch, session, elf, turn and task of a call in flight, 1 if its price is known, and
/// the number of its work, which reservations of older versions lack.
type CallFacts = Vec<i64>;

/// A call that was in flight when its process died.
pub(super) struct LostCall {
    pub(super) hold: i64,
    /// The pools that it drew on.
    pub(super) pools: Vec<i64>,
    /// The row that it gets.
    pub(super) row: CallRow,
}

/// Returns the text that a reservation of a call keeps, so that another process can settle it. Records its names.
pub(super) fn describe_call(
    connection: &Connection,
    arm: i64,
    ask: &ReservationRequest,
) -> Result<String> {
    let call = SettledCall::from(ask.amount);
    let row = calls::make_row(connection, (arm, ask.at_ms), &ask.origin, &call)?;
    let CallRow { project, branch, session, elf, turn, task, work, .. } = row;
    let is_priced = ask.is_priced.into();
    let facts = [arm, project.0, branch.0, session.0, elf.0, turn, task.0, is_priced, work.0];
    Ok(format!("{facts:?}"))
}

/// Returns the calls that a process had in flight. Of those that an older gnoma reserved, nothing but the amount is
/// known: they are left out.
pub(super) fn read_lost(connection: &Connection, process: i64) -> Result<Vec<LostCall>> {
    let mut find = connection
        .prepare_cached(
            "SELECT id, at_ms, call_facts, requests, input, output, micro_usd, cached FROM hold \
             WHERE process = ?1 AND call_facts IS NOT NULL",
        )
        .or_ledger_error()?;
    let mut rows = find.query([process]).or_ledger_error()?;
    let mut lost = Vec::new();
    while let Some(row) = rows.next().or_ledger_error()? {
        let facts: String = row.get(2).or_ledger_error()?;
        let Ok(facts) = serde_json::from_str::<CallFacts>(&facts) else { continue };
        let [arm, project, branch, session, elf, turn, task, is_priced, ref work @ ..] = facts[..]
        else {
            continue;
        };
        let hold: i64 = row.get(0).or_ledger_error()?;
        lost.push(LostCall {
            hold,
            pools: read_pools(connection, hold)?,
            row: CallRow {
                at_ms: row.get(1).or_ledger_error()?,
                arm,
                project: NameId(project),
                branch: NameId(branch),
                session: NameId(session),
                elf: NameId(elf),
                turn,
                task: NameId(task),
                failure: NameId::PROCESS_DIED,
                amount: window::read_amount(row, 3).or_ledger_error()?,
                is_priced: is_priced != 0,
                work: NameId(work.first().copied().unwrap_or(0)),
                ..CallRow::default()
            },
        });
    }
    Ok(lost)
}

fn read_pools(connection: &Connection, hold: i64) -> Result<Vec<i64>> {
    let mut find =
        connection.prepare_cached("SELECT pool FROM draw WHERE hold = ?1").or_ledger_error()?;
    let pools = find.query_map([hold], |row| row.get(0));
    pools.and_then(Iterator::collect).or_ledger_error()
}
