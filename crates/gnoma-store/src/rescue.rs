//! Recovers a damaged database: reads what is readable, and sets the damaged files aside.
//!
//! The damaged files are only ever copied and renamed. The new database is complete before
//! anything is renamed; a process that dies on the way leaves either the old state or a finished
//! rescue that the next start adopts. Not for foreign files.

mod facts;
mod leaves;
mod results;

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::{Path, PathBuf},
};

use gnoma_core::store::NewSession;
use rusqlite::{Connection, OptionalExtension, params};

use crate::{
    db::open_connection,
    entry::{PreparedRecord, is_as_written, may_be_message, parse_record},
    error::{Result, SqliteResultExt, from_io},
    files::{
        DAMAGED, DOUBT, PARTS, private_file, remove_database, rename_file, set_aside, sibling_path,
        suffixed_path,
    },
    json_repair::{self, MAX_BYTES_TRIED},
    migrate,
    options::{Journal, Options},
    pairs, path, redact,
    rescue_report::RescueReport,
    session, text_index,
};

/// A row with a larger number got it by damage; new ones would have no numbers left after it.
const MAX_ID: i64 = 1 << 40;

pub(crate) use self::leaves::holds_ours;

/// Puts a fresh database with all that is readable in the place of a damaged one.
pub(crate) fn rescue_database(options: &Options, damaged: &Path) -> Result<RescueReport> {
    let copy = sibling_path(damaged, "copy");
    let found = sibling_path(damaged, "found");
    let building = sibling_path(damaged, "building");
    for leftover in [&copy, &found, &building] {
        remove_database(leftover)?;
    }
    let outcome = copy_parts(damaged, &copy).and_then(|()| {
        undo_half_steps(&copy);
        let not_found = leaves::collect_rows(&copy, &found)?;
        let mut rescued = build_rescued(options, &found, &building)?;
        rescued.lost += not_found.entries;
        rescued.unknown = not_found.unknown;
        Ok(rescued)
    });
    remove_database(&copy)?;
    remove_database(&found)?;
    if outcome.is_err() {
        // The error that led here is the one to tell.
        drop(remove_database(&building));
    }
    let mut rescued = outcome?;
    let finished = sibling_path(damaged, "rescued");
    rename_file(&building, &finished)?;
    // What is left is its empty journal.
    remove_database(&building)?;
    rescued.aside = set_aside(damaged, DAMAGED)?;
    put_in_place(&finished, damaged)?;
    Ok(rescued)
}

/// Gives a finished rescue its name. It is sound: the doubt was of the other, which is not there any
/// more.
fn put_in_place(finished: &Path, path: &Path) -> Result<()> {
    let doubt = sibling_path(path, DOUBT);
    if doubt.exists() {
        fs::remove_file(&doubt).map_err(|error| from_io("cannot remove", &doubt, &error))?;
    }
    rename_file(finished, path)
}

/// Puts a finished rescue in place whose process died before it could.
pub(crate) fn install_rescued(missing: &Path) -> Result<()> {
    let finished = sibling_path(missing, "rescued");
    if !finished.exists() {
        return Ok(());
    }
    if PARTS.iter().any(|ending| suffixed_path(missing, ending).exists()) {
        // The damaged database's log must not be taken for the new one's.
        set_aside(missing, DAMAGED)?;
    }
    put_in_place(&finished, missing)
}

fn copy_parts(from: &Path, to: &Path) -> Result<()> {
    for ending in ["", "-wal", "-journal"] {
        let (source, target) = (suffixed_path(from, ending), suffixed_path(to, ending));
        if source.exists() {
            let copied = fs::File::open(&source).and_then(|mut source| {
                let mut target = private_file(&target)?;
                std::io::copy(&mut source, &mut target)
            });
            copied.map_err(|error| from_io("cannot copy", &source, &error))?;
        }
    }
    Ok(())
}

/// Has SQLite take back the changes of a process that died within them, where there is no log. What
/// it says of the rest does not matter.
fn undo_half_steps(copy: &Path) {
    if suffixed_path(copy, "-journal").exists()
        && let Ok(connection) = Connection::open(copy)
    {
        drop(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())));
    }
}

fn build_rescued(options: &Options, source: &Path, target: &Path) -> Result<RescueReport> {
    private_file(target).map_err(|error| from_io("cannot create", target, &error))?;
    let mut new = open_connection(target, options.patience, Journal::Rollback)?;
    migrate::migrate_to_latest(&mut new)?;
    let transaction = new.transaction().map_sqlite_error()?;
    let mut source = Connection::open(source).map_sqlite_error()?;
    // One look at all of it: each on its own would take and give back locks.
    let old = source.transaction().map_sqlite_error()?;
    let mut rescued = write_rows(options, &old, &transaction, &find_readable_rows(&old)?)?;
    let results = row_numbers(&old, "SELECT id FROM result WHERE id <= ?1 ORDER BY id")?;
    rescued.lost += results::copy_results(&old, &transaction, &results)?;
    facts::copy_facts(&old, &transaction)?;
    drop(old);
    text_index::follow_to_the_end(&transaction)?;
    transaction.commit().map_sqlite_error()?;
    new.close().map_err(|(_, error)| error).map_sqlite_error()?;
    Ok(rescued)
}

/// The rows that can be read. Of entries the ids alone: their bodies may be more than there is memory for.
#[derive(Default)]
struct ReadableRows {
    sessions: Vec<OldSession>,
    entries: Vec<i64>,
    lost: u64,
}

struct OldSession {
    number: i64,
    id: String,
    project: String,
    title: Option<String>,
    created_ms: i64,
    changed_ms: i64,
    tip: Option<i64>,
    fork_session: Option<String>,
    fork_entry: Option<i64>,
    deleted: bool,
}

struct OldEntry {
    id: i64,
    session: i64,
    parent: Option<i64>,
    at_ms: i64,
    prepared: PreparedRecord,
}

/// Reads which rows there are. One that cannot be read hides no other.
fn find_readable_rows(old: &Connection) -> Result<ReadableRows> {
    let mut found = ReadableRows::default();
    for number in row_numbers(old, "SELECT number FROM session WHERE number <= ?1 ORDER BY number")?
    {
        found.sessions.extend(old_session(old, number).ok().flatten());
    }
    for id in row_numbers(old, "SELECT id FROM entry WHERE id <= ?1 ORDER BY id")? {
        match old_entry(old, id) {
            Ok(entry) => found.entries.extend(entry.map(|entry| entry.id)),
            Err(()) => found.lost += 1,
        }
    }
    Ok(found)
}

/// The numbers of rows, without those that only damage can have made.
fn row_numbers(old: &Connection, sql: &str) -> Result<Vec<i64>> {
    old.prepare(sql)
        .and_then(|mut all| all.query_map([MAX_ID], |row| row.get(0))?.collect())
        .map_sqlite_error()
}

fn old_session(old: &Connection, number: i64) -> rusqlite::Result<Option<OldSession>> {
    old.prepare_cached(
        "SELECT id, project, title, created_ms, changed_ms, tip, fork_session, fork_entry, \
         deleted FROM session WHERE number = ?1",
    )?
    .query_row([number], |row| {
        Ok(OldSession {
            number,
            id: row.get(0)?,
            project: row.get(1)?,
            title: row.get(2)?,
            created_ms: row.get(3)?,
            changed_ms: row.get(4)?,
            tip: row.get(5)?,
            fork_session: row.get(6)?,
            fork_entry: row.get(7)?,
            deleted: row.get(8)?,
        })
    })
    .optional()
}

fn old_entry(old: &Connection, id: i64) -> std::result::Result<Option<OldEntry>, ()> {
    let row = old
        .prepare_cached("SELECT session, parent, at_ms, body FROM entry WHERE id = ?1")
        .and_then(|mut find| {
            find.query_row([id], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get::<_, String>(3)?))
            })
            .optional()
        })
        .map_err(|_| ())?;
    let Some((session, parent, at_ms, body)) = row else { return Ok(None) };
    let mended =
        if is_as_written(&body) { None } else { json_repair::repair_entry(&body, MAX_BYTES_TRIED) };
    let prepared = match (mended, PreparedRecord::of_body(&body)) {
        (Some(record), _) => PreparedRecord::new(record).map_err(|_| ())?,
        // Whatever else is sound may be of a newer version.
        (None, Some(prepared)) => prepared,
        (None, None) if may_be_message(&body) => json_repair::in_words(&body)
            .and_then(|record| PreparedRecord::new(record).ok())
            .ok_or(())?,
        (None, None) => return Err(()),
    };
    Ok(Some(OldEntry { id, session, parent, at_ms, prepared }))
}

fn write_rows(
    options: &Options,
    old: &Connection,
    new: &Connection,
    found: &ReadableRows,
) -> Result<RescueReport> {
    let alive: HashSet<i64> = found.entries.iter().copied().collect();
    let mut tips = HashMap::new();
    for old in &found.sessions {
        insert_session(new, old, &alive)?;
        tips.insert(old.number, old.tip.filter(|tip| alive.contains(tip)));
    }
    let mut latest = HashMap::<i64, i64>::new();
    let entries = found.entries.len();
    for entry in found.entries.iter().filter_map(|id| old_entry(old, *id).ok().flatten()) {
        if let std::collections::hash_map::Entry::Vacant(missing) = tips.entry(entry.session) {
            insert_lost_session(options, new, &entry)?;
            missing.insert(None);
        }
        let sound = entry.parent.filter(|parent| *parent < entry.id && alive.contains(parent));
        let parent = entry.parent.and(sound.or_else(|| latest.get(&entry.session).copied()));
        latest.insert(entry.session, entry.id);
        let OldEntry { id, session, at_ms, prepared, .. } = &entry;
        session::restore_entry(new, *session, *id, parent, *at_ms, prepared)?;
    }
    for (number, tip) in &tips {
        let tip = tip.or_else(|| latest.get(number).copied());
        new.execute(
            "UPDATE session SET tip = coalesce(?2, fork_entry) WHERE number = ?1",
            params![number, tip],
        )
        .map_sqlite_error()?;
        mend_path(new, tip)?;
    }
    let sessions: i64 = new
        .query_row("SELECT count(*) FROM session WHERE deleted = 0", [], |row| row.get(0))
        .map_sqlite_error()?;
    Ok(RescueReport {
        aside: PathBuf::new(),
        sessions: u64::try_from(sessions).unwrap_or(0),
        entries: u64::try_from(entries).unwrap_or(0),
        lost: found.lost,
        unknown: false,
    })
}

fn insert_session(new: &Connection, old: &OldSession, alive: &HashSet<i64>) -> Result<()> {
    let fork_entry = old.fork_entry.filter(|entry| alive.contains(entry));
    new.execute(
        "INSERT OR IGNORE INTO session(number, id, project, title, created_ms, changed_ms, \
         fork_session, fork_entry, deleted) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        params![
            old.number,
            old.id,
            old.project,
            old.title,
            old.created_ms,
            old.changed_ms,
            old.fork_session,
            fork_entry,
            old.deleted,
        ],
    )
    .map_sqlite_error()
    .map(|_| ())
}

/// A session whose own row is lost gets a new one, named after its first entry.
fn insert_lost_session(options: &Options, new: &Connection, first: &OldEntry) -> Result<()> {
    let start = NewSession { at_ms: first.at_ms, ..NewSession::default() };
    let project = redact::redact_words(&*options.redact, &options.project);
    let id = session::begin_session(new, &project, &start)?;
    new.execute("UPDATE session SET number = ?2 WHERE id = ?1", params![id.as_str(), first.session])
        .map_sqlite_error()
        .map(|_| ())
}

fn mend_path(new: &Connection, tip: Option<i64>) -> Result<()> {
    let mut path = Vec::new();
    let mut next = tip;
    while let Some(id) = next {
        let node = path::load_node(new, id)?;
        match parse_record(&node.body) {
            _ if node.hidden => {}
            Some(record) => path.push((id, record)),
            // Whoever knows what it says knows how the others belong to it.
            None if may_be_message(&node.body) => return Ok(()),
            None => {}
        }
        next = node.parent.filter(|parent| *parent < id);
    }
    path.reverse();
    for (id, mend) in pairs::repair_pairs(&path) {
        let body = PreparedRecord::new(mend)?.into_body();
        new.execute("UPDATE entry SET body = ?2 WHERE id = ?1", params![id, body])
            .map_sqlite_error()?;
    }
    Ok(())
}
