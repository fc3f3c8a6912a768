//! Sessions and their entries in SQL. Each function works inside a transaction of its caller.

use gnoma_core::{
    Role, Usage,
    store::{
        ChildFacts, EntryId, NewEntry, NewSession, Parent, Record, SessionFacts, SessionId,
        StoreError, StoreErrorKind,
    },
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::{
    child,
    entry::{PreparedRecord, may_be_message, parse_record},
    error::{Result, SqliteResultExt, invalid_id, session_exists_error},
    ids,
    lock::{self, Hold, Identity},
    path, results,
    session_row::{SessionRow, check_entry_belongs, find_session, missing_session_error},
    text::{self, MAX_COUNT, clamp_count, clamp_size, read_count},
};

/// Tries to find a free id; two sessions of one second share one in sixteen million.
const ID_TRIES: usize = 8;

/// Begins a session under the id it asks for, or under one that is free.
pub(crate) fn begin_session(
    connection: &Connection,
    project: &str,
    new: &NewSession,
) -> Result<SessionId> {
    if let Some(id) = &new.id {
        if !ids::is_session_id(id.as_str()) {
            return Err(invalid_id(id));
        }
        let is_free = insert_row(connection, id, project, new)?;
        return if is_free { Ok(id.clone()) } else { Err(session_exists_error(id)) };
    }
    for _ in 0..ID_TRIES {
        let chance =
            connection.query_row("SELECT random()", [], |row| row.get(0)).map_sqlite_error()?;
        let id = ids::session_id(new.at_ms, chance);
        if insert_row(connection, &id, project, new)? {
            return Ok(id);
        }
    }
    Err(StoreError::new(StoreErrorKind::Busy, "no session id is free this second; retry"))
}

/// Adds the row of a session, unless there is one of this id; says whether it did.
fn insert_row(
    connection: &Connection,
    id: &SessionId,
    project: &str,
    new: &NewSession,
) -> Result<bool> {
    let is_free = connection
        .execute(
            "INSERT OR IGNORE INTO session(id, project, title, created_ms, changed_ms) \
             VALUES (?1, ?2, ?3, ?4, ?4)",
            params![id.as_str(), project, new.title, new.at_ms],
        )
        .map_sqlite_error()
        .map(|added| added == 1)?;
    match &new.parent {
        Some((parent, name)) if is_free => child::add_child(connection, id, parent, name)?,
        Some(_) | None => (),
    }
    Ok(is_free)
}

/// Adds an entry for a store that may write the session.
pub(crate) fn append_entry(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    parent: Parent,
    at_ms: i64,
    new: &PreparedRecord,
) -> Result<EntryId> {
    let known = find_session(connection, session)?;
    if let Some(hold) = lock::refuse_if_held(connection, me, known.number, at_ms)? {
        lock::touch_hold(connection, me, &hold, known.number, at_ms)?;
    }
    let parent = match parent {
        Parent::Tip => known.tip,
        Parent::Start => None,
        Parent::After(entry) => Some(check_entry_belongs(connection, &known, session, entry)?),
    };
    if let Some(Record::Tombstone { of }) = new.record {
        hide_entry(connection, check_entry_belongs(connection, &known, session, of)?)?;
    }
    insert_entry(connection, &known, parent, at_ms, new)
}

/// The same for several of one session, each after the one before it.
pub(crate) fn append_all(
    connection: &Connection,
    me: &Identity,
    new: &[NewEntry],
    prepared: &[PreparedRecord],
) -> Result<Vec<EntryId>> {
    let mut entries: Vec<EntryId> = Vec::with_capacity(new.len());
    for (new, prepared) in new.iter().zip(prepared) {
        let parent = entries.last().map_or(new.parent, |last| Parent::After(*last));
        let entry = append_entry(connection, me, &new.session, parent, new.at_ms, prepared)?;
        entries.push(entry);
    }
    Ok(entries)
}

/// Adds an entry whose parent is known to be right.
pub(crate) fn insert_entry(
    connection: &Connection,
    known: &SessionRow,
    parent: Option<i64>,
    at_ms: i64,
    new: &PreparedRecord,
) -> Result<EntryId> {
    write_entry(connection, known, None, parent, at_ms, new).map(EntryId)
}

/// Adds an entry under the id it had in another database. The tip is the caller's to set.
pub(crate) fn restore_entry(
    connection: &Connection,
    session: i64,
    id: i64,
    parent: Option<i64>,
    at_ms: i64,
    new: &PreparedRecord,
) -> Result<()> {
    let known = SessionRow { number: session, tip: None, fork_entry: None, untitled: true };
    if let Some(Record::Tombstone { of }) = new.record {
        hide_entry(connection, of.0)?;
    }
    write_entry(connection, &known, Some(id), parent, at_ms, new).map(|_| ())
}

fn write_entry(
    connection: &Connection,
    known: &SessionRow,
    id: Option<i64>,
    parent: Option<i64>,
    at_ms: i64,
    new: &PreparedRecord,
) -> Result<i64> {
    connection
        .prepare_cached(
            "INSERT INTO entry(id, session, parent, at_ms, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )
        .and_then(|mut insert| insert.execute(params![id, known.number, parent, at_ms, new.body]))
        .map_sqlite_error()?;
    let id = connection.last_insert_rowid();
    if matches!(&new.record, Some(Record::Message(message)) if message.role() == Role::Tool) {
        results::bind_results(connection, known.number, id)?;
    }
    count_in(connection, known, id, at_ms, new)?;
    Ok(id)
}

/// Returns what an entry adds to its session's row: tokens, messages, and a title where it gives one.
fn counted_of(known: &SessionRow, new: &PreparedRecord) -> (Usage, i64, Option<String>) {
    match &new.record {
        Some(Record::Used(usage)) => (*usage, 0, None),
        Some(Record::Message(message)) if known.untitled => {
            (Usage::default(), 1, text::title_of(message))
        }
        Some(Record::Message(_)) => (Usage::default(), 1, None),
        Some(Record::Title { text }) => (Usage::default(), 0, Some(text.clone())),
        Some(
            Record::Asked { .. }
            | Record::Routed { .. }
            | Record::Judged { .. }
            | Record::ToolEnded(_)
            | Record::Paid { .. }
            | Record::Checked { .. }
            | Record::Summary { .. }
            | Record::Checkpoint { .. }
            | Record::Interrupted { .. }
            | Record::Rewound { .. }
            | Record::Tombstone { .. },
        )
        | None => (Usage::default(), 0, None),
    }
}

/// Keeps the session's row in step with its new tip.
fn count_in(
    connection: &Connection,
    known: &SessionRow,
    tip: i64,
    at_ms: i64,
    new: &PreparedRecord,
) -> Result<()> {
    let (usage, messages, title) = counted_of(known, new);
    connection
        .prepare_cached(
            "UPDATE session SET tip = ?2, changed_ms = max(changed_ms, ?3), \
             messages = messages + ?4, bytes = min(bytes + ?5, ?13), \
             input = min(input + ?6, ?13), output = min(output + ?7, ?13), \
             cache_read = min(cache_read + ?8, ?13), cache_write = min(cache_write + ?9, ?13), \
             reasoning = min(reasoning + ?10, ?13), \
             title = CASE WHEN ?12 THEN coalesce(?11, title) \
             ELSE coalesce(title, ?11) END WHERE number = ?1",
        )
        .and_then(|mut update| {
            update.execute(params![
                known.number,
                tip,
                at_ms,
                messages,
                clamp_size(new.body.len()),
                clamp_count(usage.input),
                clamp_count(usage.output),
                clamp_count(usage.cache_read),
                clamp_count(usage.cache_write),
                clamp_count(usage.reasoning),
                title,
                matches!(new.record, Some(Record::Title { .. })),
                MAX_COUNT,
            ])
        })
        .map_sqlite_error()
        .map(|_| ())
}

/// No longer shows or finds an entry.
pub(crate) fn hide_entry(connection: &Connection, entry: i64) -> Result<()> {
    let node = path::load_node(connection, entry)?;
    connection.execute("UPDATE entry SET hidden = 1 WHERE id = ?1", [entry]).map_sqlite_error()?;
    connection.execute("DELETE FROM words WHERE rowid = ?1", [entry]).map_sqlite_error()?;
    hide_results_before(connection, node.parent.filter(|parent| *parent < entry))
}

/// Hides what was noted of calls between their message and the one with their results.
fn hide_results_before(connection: &Connection, entry: Option<i64>) -> Result<()> {
    let mut next = entry;
    while let Some(id) = next {
        let node = path::load_node(connection, id)?;
        match parse_record(&node.body) {
            Some(Record::Message(_)) => break,
            None if may_be_message(&node.body) => break,
            Some(Record::ToolEnded(_)) => {
                connection
                    .execute("UPDATE entry SET hidden = 1 WHERE id = ?1", [id])
                    .map_sqlite_error()?;
            }
            Some(_) | None => {}
        }
        next = node.parent.filter(|parent| *parent < id);
    }
    Ok(())
}

/// Begins a session that shares the past of another.
pub(crate) fn fork_session(
    connection: &Connection,
    project: &str,
    source: &SessionId,
    at: EntryId,
    at_ms: i64,
) -> Result<SessionId> {
    let known = find_session(connection, source)?;
    check_entry_belongs(connection, &known, source, at)?;
    let id = begin_session(connection, project, &NewSession { at_ms, ..NewSession::default() })?;
    connection
        .execute(
            "UPDATE session SET tip = ?3, fork_entry = ?3, fork_session = ?2, \
             title = (SELECT title FROM session WHERE id = ?2) WHERE id = ?1",
            params![id.as_str(), source.as_str(), at.0],
        )
        .map_sqlite_error()?;
    Ok(id)
}

/// Gives a session a title, and says so in its tree.
pub(crate) fn rename_session(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    title: String,
    at_ms: i64,
) -> Result<()> {
    let new = PreparedRecord::new(Record::Title { text: title })?;
    append_entry(connection, me, session, Parent::Tip, at_ms, &new).map(|_| ())
}

/// Forgets a session nobody holds, and those below it.
pub(crate) fn delete_session(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    now_ms: i64,
) -> Result<()> {
    let known = find_session(connection, session)?;
    let all = child::session_tree(connection, known.number)?;
    for number in &all {
        lock::refuse_if_held(connection, me, *number, now_ms)?;
    }
    for number in all {
        connection.execute("DELETE FROM hold WHERE session = ?1", [number]).map_sqlite_error()?;
        connection
            .execute("UPDATE session SET deleted = 1 WHERE number = ?1", [number])
            .map_sqlite_error()?;
    }
    sweep_deleted(connection)
}

/// Removes what only deleted sessions need. A fork that goes may free its source's entries, and
/// sources are older: the newest go first.
fn sweep_deleted(connection: &Connection) -> Result<()> {
    let deleted: Vec<i64> = connection
        .prepare_cached("SELECT number FROM session WHERE deleted = 1 ORDER BY number DESC")
        .and_then(|mut find| find.query_map([], |row| row.get(0))?.collect())
        .map_sqlite_error()?;
    for number in deleted {
        remove_unshared(connection, number)?;
    }
    Ok(())
}

fn remove_unshared(connection: &Connection, number: i64) -> Result<()> {
    const UNSHARED: &str = "WITH RECURSIVE kept(id) AS (\
         SELECT fork_entry FROM session WHERE fork_entry IS NOT NULL AND number <> ?1 \
         UNION SELECT entry.parent FROM kept JOIN entry ON entry.id = kept.id \
         WHERE entry.parent IS NOT NULL) \
         SELECT id FROM entry WHERE session = ?1 AND id NOT IN (SELECT id FROM kept)";
    for table in [
        "DELETE FROM result WHERE entry IN",
        "DELETE FROM words WHERE rowid IN",
        "DELETE FROM entry WHERE id IN",
    ] {
        connection.execute(&format!("{table} ({UNSHARED})"), [number]).map_sqlite_error()?;
    }
    connection
        .execute("DELETE FROM result WHERE session = ?1 AND entry IS NULL", [number])
        .map_sqlite_error()?;
    connection
        .execute(
            "DELETE FROM session WHERE number = ?1 \
             AND NOT EXISTS (SELECT 1 FROM entry WHERE session = ?1)",
            [number],
        )
        .map_sqlite_error()
        .map(|_| ())
}

const FACTS: &str = "session.id, session.project, coalesce(session.title, ''), \
     session.created_ms, session.changed_ms, session.messages, session.bytes, session.input, \
     session.output, session.cache_read, session.cache_write, session.reasoning, \
     session.fork_session, session.fork_entry, child.name, child.open, above.id";

/// The index at which the hold's columns begin.
const FACTS_COLUMNS: usize = 17;

/// The columns of facts and where they come from. `index`: how sessions are looked through.
fn facts_sql(index: &str) -> String {
    format!(
        "SELECT {FACTS}, {} FROM session {index} LEFT JOIN hold ON hold.session = session.number \
         LEFT JOIN child ON child.session = session.number \
         LEFT JOIN session AS above ON above.number = child.parent",
        Hold::COLUMNS
    )
}

/// Facts of one session.
pub(crate) fn session_facts(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    now_ms: i64,
) -> Result<SessionFacts> {
    let sql = format!("{} WHERE session.id = ?1 AND session.deleted = 0", facts_sql(""));
    connection
        .prepare_cached(&sql)
        .and_then(|mut find| {
            find.query_row([session.as_str()], |row| read_facts(row, me, now_ms)).optional()
        })
        .map_sqlite_error()?
        .map_or_else(|| Err(missing_session_error(connection, session)), Ok)
}

/// Facts of the sessions that one has started, in the order it did.
pub(crate) fn child_facts(
    connection: &Connection,
    me: &Identity,
    session: &SessionId,
    now_ms: i64,
) -> Result<Vec<SessionFacts>> {
    let known = find_session(connection, session)?;
    let sql = format!(
        "{} WHERE child.parent = ?1 AND session.deleted = 0 ORDER BY session.number",
        facts_sql("")
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut find| {
            find.query_map([known.number], |row| read_facts(row, me, now_ms))?.collect()
        })
        .map_sqlite_error()
}

/// Facts of the sessions that people opened, those changed last. Where it is more than the latest, the rows themselves are read:
/// they are few, and an index may leave one out.
pub(crate) fn list_sessions(
    connection: &Connection,
    me: &Identity,
    max: usize,
    now_ms: i64,
) -> Result<Vec<SessionFacts>> {
    let by_index = if max > 1 { "NOT INDEXED" } else { "" };
    let sql = format!(
        "{} WHERE session.deleted = 0 AND child.session IS NULL \
         ORDER BY session.changed_ms DESC, session.number DESC LIMIT ?1",
        facts_sql(by_index)
    );
    connection
        .prepare_cached(&sql)
        .and_then(|mut find| {
            find.query_map([clamp_size(max)], |row| read_facts(row, me, now_ms))?.collect()
        })
        .map_sqlite_error()
}

fn read_facts(row: &Row<'_>, me: &Identity, now_ms: i64) -> rusqlite::Result<SessionFacts> {
    let fork: (Option<String>, Option<i64>) = (row.get(12)?, row.get(13)?);
    let held = Hold::from_row(row, FACTS_COLUMNS)?;
    let child: (Option<String>, Option<bool>, Option<String>) =
        (row.get(14)?, row.get(15)?, row.get(16)?);
    Ok(SessionFacts {
        id: SessionId::new(row.get::<_, String>(0)?),
        project: row.get(1)?,
        title: row.get(2)?,
        created_ms: row.get(3)?,
        changed_ms: row.get(4)?,
        messages: read_count(row, 5)?,
        bytes: read_count(row, 6)?,
        usage: Usage {
            input: read_count(row, 7)?,
            output: read_count(row, 8)?,
            cache_read: read_count(row, 9)?,
            cache_write: read_count(row, 10)?,
            reasoning: read_count(row, 11)?,
        },
        forked_from: fork.0.zip(fork.1).map(|(id, at)| (SessionId::new(id), EntryId(at))),
        held_by: held.filter(|hold| hold.is_live(me, now_ms)).map(|hold| hold.holder()),
        child: child.2.map(|parent| ChildFacts {
            parent: SessionId::new(parent),
            name: child.0.unwrap_or_default(),
            is_open: child.1.unwrap_or_default(),
        }),
    })
}
