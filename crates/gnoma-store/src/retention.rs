//! Forgets old sessions: by age, by number, by size. Never one that is in use.

use gnoma_core::store::SessionId;
use rusqlite::Connection;

use crate::{
    error::{Explain, Result},
    lock::{self, Identity},
    session,
};

/// What is kept. `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions not added to for longer than this go.
    pub max_age_ms: Option<i64>,
    /// The oldest beyond this many go.
    pub max_sessions: Option<usize>,
    /// The oldest go until the rest is no larger than this.
    pub max_bytes: Option<u64>,
}

/// What a pruning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Sessions that were forgotten, oldest first.
    pub forgotten: Vec<SessionId>,
    /// Sessions that should have gone but are in use.
    pub in_use: Vec<SessionId>,
}

struct Candidate {
    number: i64,
    id: SessionId,
    changed_ms: i64,
    bytes: u64,
}

/// Forgets what `retention` does not keep.
pub(crate) fn prune(
    connection: &Connection,
    me: &Identity,
    retention: Retention,
    now_ms: i64,
) -> Result<Pruned> {
    let candidates = candidates(connection)?;
    let mut pruned = Pruned::default();
    for candidate in surplus(candidates, retention, now_ms) {
        match lock::of(connection, candidate.number)? {
            Some(hold) if hold.is_live(me, now_ms) => pruned.in_use.push(candidate.id),
            Some(_) | None => {
                session::delete(connection, me, &candidate.id, now_ms)?;
                pruned.forgotten.push(candidate.id);
            }
        }
    }
    give_back(connection)?;
    Ok(pruned)
}

/// Gives room that is no longer used back to the file system.
pub(crate) fn give_back(connection: &Connection) -> Result<()> {
    /// Pages moved at once: this runs inside a transaction.
    const PAGES: u32 = 2000;
    let mut statement =
        connection.prepare(&format!("PRAGMA incremental_vacuum({PAGES})")).explain()?;
    let mut rows = statement.query([]).explain()?;
    while rows.next().explain()?.is_some() {}
    Ok(())
}

/// All sessions, oldest first.
fn candidates(connection: &Connection) -> Result<Vec<Candidate>> {
    connection
        .prepare_cached(
            "SELECT number, id, changed_ms, bytes FROM session WHERE deleted = 0 \
             ORDER BY changed_ms, number",
        )
        .and_then(|mut all| {
            all.query_map([], |row| {
                Ok(Candidate {
                    number: row.get(0)?,
                    id: SessionId::new(row.get::<_, String>(1)?),
                    changed_ms: row.get(2)?,
                    bytes: u64::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
                })
            })?
            .collect()
        })
        .explain()
}

fn surplus(candidates: Vec<Candidate>, retention: Retention, now_ms: i64) -> Vec<Candidate> {
    let mut sessions = candidates.len();
    let mut bytes: u64 = candidates.iter().map(|candidate| candidate.bytes).sum();
    let mut surplus = Vec::new();
    for candidate in candidates {
        let age_ms = now_ms.saturating_sub(candidate.changed_ms);
        let goes = retention.max_age_ms.is_some_and(|max| age_ms > max)
            || retention.max_sessions.is_some_and(|max| sessions > max)
            || retention.max_bytes.is_some_and(|max| bytes > max);
        if goes {
            sessions -= 1;
            bytes -= candidate.bytes;
            surplus.push(candidate);
        }
    }
    surplus
}
