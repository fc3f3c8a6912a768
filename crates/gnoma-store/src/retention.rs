//! Forgets old sessions: by age, by number, by size. Never one that is in use.

use gnoma_core::store::SessionId;
use rusqlite::Connection;

use crate::{
    erase,
    error::{Result, SqliteResultExt},
    lock::{self, Identity},
    session,
    text::read_count,
};

/// The limits on what is kept. `None` sets no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Sessions not added to for longer than this go.
    pub max_age_ms: Option<i64>,
    /// The oldest beyond this many go.
    pub max_sessions: Option<usize>,
    /// The oldest go until the rest is no larger than this.
    pub max_bytes: Option<u64>,
}

/// The result of a pruning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrunedSessions {
    /// Sessions that were forgotten, oldest first.
    pub forgotten: Vec<SessionId>,
    /// Sessions that should have gone but are in use.
    pub in_use: Vec<SessionId>,
}

struct Candidate {
    number: i64,
    id: SessionId,
    /// The time at which the session was last added to, or came here.
    changed_ms: i64,
    bytes: u64,
}

/// Forgets what `retention` does not keep.
pub(crate) fn prune_sessions(
    connection: &Connection,
    me: &Identity,
    retention: Retention,
    now_ms: i64,
) -> Result<PrunedSessions> {
    let candidates = list_candidates(connection)?;
    let mut pruned = PrunedSessions::default();
    for candidate in select_surplus(candidates, retention, now_ms) {
        match lock::find_hold(connection, candidate.number)? {
            Some(hold) if hold.is_live(me, now_ms) => pruned.in_use.push(candidate.id),
            Some(_) | None => {
                session::delete_session(connection, me, &candidate.id, now_ms)?;
                pruned.forgotten.push(candidate.id);
            }
        }
    }
    // What is left is given back when next something goes.
    erase::give_back(connection)?;
    Ok(pruned)
}

/// Forgets one session nobody holds, and overwrites what its rows took. What is left of its words is
/// for [`erase::piece`] to remove.
pub(crate) fn forget_session(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    now_ms: i64,
) -> Result<()> {
    erase::with_secure_delete(connection, || {
        session::delete_session(connection, me, session, now_ms)
    })
}

/// All sessions that people opened, oldest first, each as large as it is with those below it.
fn list_candidates(connection: &Connection) -> Result<Vec<Candidate>> {
    connection
        .prepare_cached(
            "SELECT number, id, max(changed_ms, created_ms) AS latest_ms, \
             (WITH RECURSIVE tree(n) AS (SELECT top.number UNION \
             SELECT child.session FROM tree JOIN child ON child.parent = tree.n) \
             SELECT sum(below.bytes) FROM tree JOIN session AS below ON below.number = tree.n) \
             FROM session AS top WHERE deleted = 0 \
             AND NOT EXISTS (SELECT 1 FROM child WHERE child.session = top.number) \
             ORDER BY latest_ms, number",
        )
        .and_then(|mut all| {
            all.query_map([], |row| {
                Ok(Candidate {
                    number: row.get(0)?,
                    id: SessionId::new(row.get::<_, String>(1)?),
                    changed_ms: row.get(2)?,
                    bytes: read_count(row, 3)?,
                })
            })?
            .collect()
        })
        .map_sqlite_error()
}

fn select_surplus(candidates: Vec<Candidate>, retention: Retention, now_ms: i64) -> Vec<Candidate> {
    let mut sessions = candidates.len();
    let bytes = candidates.iter().map(|candidate| candidate.bytes);
    let mut bytes = bytes.fold(0, u64::saturating_add);
    let mut surplus = Vec::new();
    for candidate in candidates {
        let age_ms = now_ms.saturating_sub(candidate.changed_ms);
        let goes = retention.max_age_ms.is_some_and(|max| age_ms > max)
            || retention.max_sessions.is_some_and(|max| sessions > max)
            || retention.max_bytes.is_some_and(|max| bytes > max);
        if goes {
            sessions -= 1;
            bytes = bytes.saturating_sub(candidate.bytes);
            surplus.push(candidate);
        }
    }
    surplus
}
