//! The lock of a session: the row that names its writing process, and whether that still lives.
//!
//! On this machine a process is its number, its start time and the boot it belongs to, so a number
//! used again is not mistaken for its former owner. Of processes elsewhere (another machine, another
//! container) nothing can be known but when they last wrote.

use std::fs;

use gnoma_core::store::{Holder, StoreError, StoreErrorKind};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{Result, SqliteResultExt};

/// After this long without a write, a holder that cannot be looked at counts as gone.
const SILENT_HOLD_MS: i64 = 6 * 60 * 60 * 1000;

/// This process, as written into holds.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// Tells two stores of one process apart.
    pub(crate) token: String,
    pub(crate) pid: u32,
    pub(crate) host: String,
    pub(crate) boot: String,
    pub(crate) space: String,
    pub(crate) started: String,
}

impl Identity {
    /// Looks at this process.
    pub(crate) fn of_this_process(token: String) -> Self {
        let pid = std::process::id();
        Self {
            token,
            pid,
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            boot: read_trimmed("/proc/sys/kernel/random/boot_id"),
            space: fs::read_link("/proc/self/ns/pid")
                .map(|link| link.to_string_lossy().into_owned())
                .unwrap_or_default(),
            started: process_start(pid).unwrap_or_default(),
        }
    }
}

fn read_trimmed(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Returns when a process of this machine started, in ticks since boot; `None` when there is no such process. Empty
/// where the system does not tell.
fn process_start(pid: u32) -> Option<String> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => start_of(&stat),
        Err(_) if fs::exists("/proc/self/stat").unwrap_or(false) => None,
        Err(_) => {
            let raw = i32::try_from(pid).ok()?;
            let pid = rustix::process::Pid::from_raw(raw)?;
            rustix::process::test_kill_process(pid).ok().map(|()| String::new())
        }
    }
}

/// The start time in a line of `/proc/PID/stat`; `None` for a process that has ended and was not
/// waited for yet.
fn start_of(stat: &str) -> Option<String> {
    // The name in brackets may hold anything: count fields after its end. The state is the third
    // field of all, the start time the twenty-second.
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X" | "x");
    fields.nth(18).filter(|_| !has_ended).map(str::to_owned)
}

/// One row of the table `hold`.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    owner: Identity,
    since_ms: i64,
    seen_ms: i64,
}

impl Hold {
    /// The columns [`from_row`](Self::from_row) expects, from the first.
    pub(crate) const COLUMNS: &str = "hold.token, hold.pid, hold.host, hold.boot, hold.space, \
                                      hold.started, hold.since_ms, hold.seen_ms";

    /// Reads a row whose columns begin at `first`; `None` where there is no hold.
    pub(crate) fn from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Option<Self>> {
        let Some(token) = row.get::<_, Option<String>>(first)? else { return Ok(None) };
        Ok(Some(Self {
            owner: Identity {
                token,
                pid: row.get(first + 1)?,
                host: row.get(first + 2)?,
                boot: row.get(first + 3)?,
                space: row.get(first + 4)?,
                started: row.get(first + 5)?,
            },
            since_ms: row.get(first + 6)?,
            seen_ms: row.get(first + 7)?,
        }))
    }

    /// Returns when the holder's process started, in ticks since boot.
    #[cfg(test)]
    pub(crate) fn process_start(&self) -> &str {
        &self.owner.started
    }

    /// Returns the holder as shown to people.
    pub(crate) fn holder(&self) -> Holder {
        Holder { pid: self.owner.pid, host: self.owner.host.clone(), since_ms: self.since_ms }
    }

    /// Reports whether the holder may still write.
    pub(crate) fn is_live(&self, me: &Identity, now_ms: i64) -> bool {
        is_live(self, me, now_ms, &process_start)
    }
}

fn is_live(
    hold: &Hold,
    me: &Identity,
    now_ms: i64,
    started: &dyn Fn(u32) -> Option<String>,
) -> bool {
    let owner = &hold.owner;
    if owner.host == me.host && owner.boot != me.boot {
        return false;
    }
    if owner.host == me.host && owner.space == me.space {
        return started(owner.pid).is_some_and(|start| start == owner.started);
    }
    now_ms.saturating_sub(hold.seen_ms) < SILENT_HOLD_MS
}

/// The hold on a session, live or not.
pub(crate) fn find_hold(connection: &Connection, session: i64) -> Result<Option<Hold>> {
    let sql = format!("SELECT {} FROM hold WHERE session = ?1", Hold::COLUMNS);
    connection
        .prepare_cached(&sql)
        .and_then(|mut find| find.query_row([session], |row| Hold::from_row(row, 0)).optional())
        .map_sqlite_error()
        .map(Option::flatten)
}

/// Fails when somebody else who may still live holds the session.
pub(crate) fn refuse_if_held(
    connection: &Connection,
    me: &Identity,
    session: i64,
    now_ms: i64,
) -> Result<Option<Hold>> {
    match find_hold(connection, session)? {
        Some(hold) if hold.owner.token == me.token => Ok(Some(hold)),
        Some(hold) if hold.is_live(me, now_ms) => Err(held_error(hold.holder())),
        other => Ok(other),
    }
}

/// Takes the hold; tells whose remains it replaced.
pub(crate) fn take_hold(
    connection: &Connection,
    me: &Identity,
    session: i64,
    now_ms: i64,
) -> Result<Option<Holder>> {
    let before = refuse_if_held(connection, me, session, now_ms)?;
    if let Some(hold) = before.as_ref().filter(|hold| hold.owner.token == me.token) {
        return touch_hold(connection, me, hold, session, now_ms).map(|()| None);
    }
    let mine = Hold { owner: me.clone(), since_ms: now_ms, seen_ms: now_ms };
    insert_hold(connection, session, &mine)?;
    Ok(before.map(|hold| hold.holder()))
}

/// Writes a hold in the place of the one before.
pub(crate) fn insert_hold(connection: &Connection, session: i64, hold: &Hold) -> Result<()> {
    let Hold { owner, since_ms, seen_ms } = hold;
    connection
        .execute(
            "INSERT OR REPLACE INTO hold(session, token, pid, host, boot, space, started, \
             since_ms, seen_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                session,
                owner.token,
                owner.pid,
                owner.host,
                owner.boot,
                owner.space,
                owner.started,
                since_ms,
                seen_ms,
            ],
        )
        .map_sqlite_error()
        .map(|_| ())
}

/// Remembers that this store, where it is the holder, still writes; once a minute is enough.
pub(crate) fn touch_hold(
    connection: &Connection,
    me: &Identity,
    hold: &Hold,
    session: i64,
    now_ms: i64,
) -> Result<()> {
    const EVERY_MS: i64 = 60_000;
    if hold.owner.token != me.token || now_ms.saturating_sub(hold.seen_ms) < EVERY_MS {
        return Ok(());
    }
    connection
        .execute("UPDATE hold SET seen_ms = ?2 WHERE session = ?1", [session, now_ms])
        .map_sqlite_error()
        .map(|_| ())
}

/// Gives up a hold of this store; others' stay.
pub(crate) fn release_hold(connection: &Connection, me: &Identity, session: i64) -> Result<()> {
    connection
        .execute("DELETE FROM hold WHERE session = ?1 AND token = ?2", params![session, me.token])
        .map_sqlite_error()
        .map(|_| ())
}

/// Gives up all holds of this store.
pub(crate) fn release_all(connection: &Connection, me: &Identity) -> Result<()> {
    connection
        .execute("DELETE FROM hold WHERE token = ?1", [&me.token])
        .map_sqlite_error()
        .map(|_| ())
}

fn held_error(by: Holder) -> StoreError {
    let sentence = format!("this session is open in {by}; close it there, or continue in a copy");
    StoreError::new(StoreErrorKind::Held { by }, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(host: &str, boot: &str, space: &str, started: &str) -> Identity {
        Identity {
            token: "t".into(),
            pid: 77,
            host: host.into(),
            boot: boot.into(),
            space: space.into(),
            started: started.into(),
        }
    }

    #[test]
    fn session_lock_expires_with_its_process_boot_or_heartbeat() {
        let me = identity("here", "boot", "space", "1");
        let alive = |_: u32| Some("500".to_owned());
        let dead = |_: u32| None;
        let hold = |owner: Identity| Hold { owner, since_ms: 0, seen_ms: 1_000 };
        let same = hold(identity("here", "boot", "space", "500"));
        assert!(is_live(&same, &me, i64::MAX, &alive));
        assert!(!is_live(&same, &me, 2_000, &dead));
        let number_reused = hold(identity("here", "boot", "space", "400"));
        assert!(!is_live(&number_reused, &me, 2_000, &alive));
        let before_reboot = hold(identity("here", "older", "space", "500"));
        assert!(!is_live(&before_reboot, &me, 2_000, &alive));
        let container = hold(identity("here", "boot", "elsewhere", "500"));
        let machine = hold(identity("there", "other", "space", "500"));
        for unknown in [container, machine] {
            assert!(is_live(&unknown, &me, 2_000, &dead));
            assert!(!is_live(&unknown, &me, 1_000 + SILENT_HOLD_MS, &dead));
        }
    }

    #[test]
    fn zombie_process_counts_as_dead() {
        let stat = |state: char| {
            let fields = (4..22).map(|field| format!(" {field}")).collect::<String>();
            format!("77 (a) Z (b)) {state}{fields} 500 23 24")
        };
        assert_eq!(start_of(&stat('S')), Some("500".to_owned()));
        assert_eq!(start_of(&stat('Z')), None);
        assert_eq!(start_of(&stat('X')), None);
    }

    #[test]
    fn own_process_counts_as_alive() {
        let me = Identity::of_this_process("t".into());
        let hold = Hold { owner: me.clone(), since_ms: 0, seen_ms: 0 };
        assert!(hold.is_live(&me, i64::MAX));
    }
}
