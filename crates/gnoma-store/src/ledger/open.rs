//! Finds, creates and opens the ledger's file.
//!
//! A file that cannot be used, because it is damaged or a newer gnoma's, is set aside as a whole, and what its
//! pages still contain goes into a new one ([`super::salvage`]). If some of the money may be missing, that is noted
//! ([`super::doubt`]), and caps stay closed until a person says otherwise. The file is never changed, and it stays
//! where it is while another process has it open. An intact database of another kind is rejected and left alone.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use gnoma_core::store::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, config::DbConfig};

use super::{
    error_sentences::{LedgerResultExt, ledger_error, reword_error},
    salvage,
    schema::{APPLICATION_ID, STEPS},
    unknown_spend,
};
use crate::{db, error::Result, files, sql, text::clamp_size, users::User};

/// Pages after which a commit works the log in; pauses do it earlier.
const LOG_PAGES: i64 = 2000;

/// The part of the log file that is kept for the next writes, in bytes.
const LOG_KEPT_BYTES: i64 = 1024 * 1024;

/// Prepared statements that are kept.
const STATEMENTS: usize = 64;

/// A part of every ledger's schema: one whose number is damaged is told from a foreign file by it.
const MARK: &str = "CREATE TABLE pool_day (%micro_usd%";

/// The word that the name of a newer gnoma's ledger gets when it is set aside.
const NEWER: &str = "newer";

/// A ledger that could not be used and was set aside, which should be reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedLedger {
    /// The path at which the file is now.
    pub path: PathBuf,
    /// The version of the file, where a newer gnoma wrote it; else it was damaged.
    pub newer: Option<i64>,
    /// All that was counted is counted on.
    pub complete: bool,
}

impl fmt::Display for QuarantinedLedger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.newer {
            Some(version) => write!(
                f,
                "the spending ledger was written by a newer gnoma (version {version}, this \
                 one knows {})",
                STEPS.len()
            )?,
            None => f.write_str("the spending ledger was damaged")?,
        }
        match self.complete {
            true => f.write_str("; all spending was recovered")?,
            false => write!(f, "; {}", unknown_spend::WORDS)?,
        }
        write!(f, "; the old file is saved as `{}`", self.path.display())
    }
}

/// The reason why a file is not used as it is.
enum LedgerFault {
    Damaged,
    Newer(i64),
    Other(StoreError),
}

impl From<StoreError> for LedgerFault {
    fn from(error: StoreError) -> Self {
        match error.kind {
            StoreErrorKind::Damaged => Self::Damaged,
            _ => Self::Other(error),
        }
    }
}

/// Opens the ledger at `path`, making it or putting it aside where needed.
pub(super) fn open_ledger(
    path: &Path,
    patience: Duration,
) -> Result<(Connection, Option<QuarantinedLedger>, User)> {
    let shown = path.display().to_string();
    let reword = |error| reword_error(error, &shown);
    let folder = path.parent().unwrap_or(Path::new("."));
    refuse_special_files(path)?;
    files::make_folder(folder).map_err(reword)?;
    let alone =
        files::acquire_lock(&files::sibling_path(path, files::LOCK), patience).map_err(reword)?;
    let user = User::join(path).map_err(reword)?;
    let newer = match open_if_sound(path, patience) {
        Ok(connection) => {
            files::mark_used(&alone);
            return Ok((connection, None, user));
        }
        Err(LedgerFault::Other(error)) => return Err(error),
        Err(LedgerFault::Damaged) => None,
        Err(LedgerFault::Newer(version)) => Some(version),
    };
    // Whoever dies before the end leaves a ledger that is looked through again.
    files::mark_damaged(path);
    let aside = put_aside(path, newer, &user)?;
    let (connection, complete) = begin_anew(path, &aside, patience)?;
    remove_doubt(path)?;
    files::mark_used(&alone);
    Ok((connection, Some(QuarantinedLedger { path: aside, newer, complete }), user))
}

/// Opens the ledger at `path` for reading; `None` if it must first be repaired or brought to today's version, which
/// [`open_ledger`] does. Creates no file, takes no lock that a writer has, and changes nothing.
pub(super) fn open_to_read(path: &Path, patience: Duration) -> Result<Option<Connection>> {
    refuse_special_files(path)?;
    if files::sibling_path(path, files::DOUBT).exists() || files::is_cut_short(path) {
        return Ok(None);
    }
    let recognised = |opened: Result<Connection>| {
        let connection =
            opened.map_err(|error| reword_error(error, &path.display().to_string()))?;
        check_application_id(&connection, path).map(|()| connection)
    };
    let connection = match recognised(db::open_read_only(path, patience)) {
        Err(error) if error.kind == StoreErrorKind::Damaged => return Ok(None),
        // In a read-only folder SQLite cannot create the file for its locks, which is not needed without a log.
        Err(error) if error.kind == StoreErrorKind::ReadOnly && !files::has_log(path) => {
            recognised(db::open_immutable(path))?
        }
        opened => opened?,
    };
    let (found, known) = (schema_version(&connection)?, clamp_size(STEPS.len()));
    if found > known {
        let sentence = format!(
            "the spending ledger was written by a newer gnoma (version {found}, this one knows \
             {known}); update this gnoma to read it"
        );
        return Err(StoreError::new(StoreErrorKind::TooNew, sentence));
    }
    Ok((found == known).then_some(connection))
}

/// A new ledger with what the one set aside still holds, and whether that is all the money.
fn begin_anew(path: &Path, aside: &Path, patience: Duration) -> Result<(Connection, bool)> {
    let mut connection = match open_and_migrate(path, patience) {
        Ok(connection) => connection,
        Err(LedgerFault::Other(error)) => return Err(error),
        Err(LedgerFault::Damaged | LedgerFault::Newer(_)) => {
            return Err(ledger_error(
                StoreErrorKind::Io,
                "a new file does not hold what was written",
            ));
        }
    };
    unknown_spend::mark_unknown(&connection)?;
    let complete = salvage::salvage_rows(aside, &mut connection)?;
    if complete {
        unknown_spend::accept_unknown(&connection)?;
    }
    Ok((connection, complete))
}

/// A ledger that is gone with its owner and never touches the disk.
pub(super) fn in_memory() -> Result<Connection> {
    let mut connection = Connection::open_in_memory().or_ledger_error()?;
    settle_down(&connection)?;
    connection.pragma_update(None, "temp_store", "MEMORY").or_ledger_error()?;
    match migrate_to_latest(&mut connection) {
        Ok(()) => Ok(connection),
        Err(LedgerFault::Other(error)) => Err(error),
        Err(LedgerFault::Damaged | LedgerFault::Newer(_)) => {
            Err(ledger_error(StoreErrorKind::Io, "no memory for it"))
        }
    }
}

fn put_aside(path: &Path, newer: Option<i64>, user: &User) -> Result<PathBuf> {
    let why = if newer.is_some() { NEWER } else { files::DAMAGED };
    user.with_exclusive_lock(|| files::set_aside(path, why)).map_err(|error| match error.kind {
        StoreErrorKind::Busy => StoreError::new(
            StoreErrorKind::Busy,
            "the spending ledger is damaged, and another gnoma has it open; close the other gnoma \
             and restart this one, so that it can set the file aside",
        ),
        _ => reword_error(error, "it could not be set aside"),
    })
}

fn remove_doubt(path: &Path) -> Result<()> {
    match fs::remove_file(files::sibling_path(path, files::DOUBT)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(ledger_error(StoreErrorKind::Io, &error.to_string()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn open_if_sound(path: &Path, patience: Duration) -> std::result::Result<Connection, LedgerFault> {
    if files::sibling_path(path, files::DOUBT).exists() || files::is_cut_short(path) {
        return Err(LedgerFault::Damaged);
    }
    open_and_migrate(path, patience)
}

fn open_and_migrate(
    path: &Path,
    patience: Duration,
) -> std::result::Result<Connection, LedgerFault> {
    make_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).or_ledger_error()?;
    connection.busy_timeout(patience).or_ledger_error()?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).or_ledger_error()?;
    check_application_id(&connection, path)?;
    let journal = db::journal_in(path.parent().unwrap_or(Path::new(".")));
    let has_log = db::set_journal(&connection, journal, patience)
        .map_err(|error| reword_error(error, "its journal"))?;
    // With a log, the last moment before the power fails may be lost, and nothing else; the death of
    // a process loses nothing. Limits are not worth a flush in every call.
    let synchronous = if has_log { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous).or_ledger_error()?;
    settle_down(&connection)?;
    migrate_to_latest(&mut connection)?;
    look_around(&connection)?;
    Ok(connection)
}

/// Refuses a pipe, device or folder in the place of one of the ledger's files: opening or reading one can wait for ever.
fn refuse_special_files(path: &Path) -> Result<()> {
    let is_special = |file: &PathBuf| fs::metadata(file).is_ok_and(|facts| !facts.is_file());
    match files::PARTS
        .map(|ending| files::suffixed_path(path, ending))
        .iter()
        .find(|file| is_special(file))
    {
        Some(file) => Err(foreign_error(file)),
        None => Ok(()),
    }
}

/// Makes an empty file that only its owner can read, unless it is there.
fn make_file(path: &Path) -> Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|facts| !facts.is_file()) {
        return Err(foreign_error(path));
    }
    let failed = |error: io::Error| {
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreErrorKind::Full,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                StoreErrorKind::ReadOnly
            }
            _ => StoreErrorKind::Io,
        };
        ledger_error(kind, &format!("`{}`: {error}", path.display()))
    };
    files::private_file(path).map(drop).map_err(failed)
}

fn check_application_id(connection: &Connection, path: &Path) -> Result<()> {
    let number: i32 = connection
        .pragma_query_value(None, "application_id", |row| row.get(0))
        .or_ledger_error()?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .or_ledger_error()?;
    // A process may have died between making the file and its tables.
    if number == APPLICATION_ID || (number == 0 && tables == 0) {
        return Ok(());
    }
    let ours = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE sql LIKE ?1", [MARK], |row| row.get(0))
        .or_ledger_error()?;
    match ours {
        0 => Err(foreign_error(path)),
        1.. | i64::MIN..0 => Err(ledger_error(StoreErrorKind::Damaged, "its header")),
    }
}

fn settle_down(connection: &Connection) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    for (name, value) in [
        ("wal_autocheckpoint", LOG_PAGES),
        ("journal_size_limit", LOG_KEPT_BYTES),
        ("cell_size_check", 1),
        ("trusted_schema", 0),
        ("foreign_keys", 1),
    ] {
        connection
            .pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(sql::no_answer)
            .or_ledger_error()?;
    }
    Ok(())
}

/// Brings the tables to today's version; each step is one transaction with its number.
fn migrate_to_latest(connection: &mut Connection) -> std::result::Result<(), LedgerFault> {
    let known = clamp_size(STEPS.len());
    let found = schema_version(connection)?;
    if found > known {
        return Err(LedgerFault::Newer(found));
    }
    for (number, step) in (1..).zip(STEPS) {
        if schema_version(connection)? >= number {
            continue;
        }
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .or_ledger_error()?;
        transaction.execute_batch(step).or_ledger_error()?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID).or_ledger_error()?;
        transaction.pragma_update(None, "user_version", number).or_ledger_error()?;
        transaction.commit().or_ledger_error()?;
    }
    Ok(())
}

fn schema_version(connection: &Connection) -> Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).or_ledger_error()
}

/// Reads a page of each large table: what is plainly broken shows now and not in a call.
fn look_around(connection: &Connection) -> Result<()> {
    connection
        .query_row(
            "SELECT (SELECT from_day FROM kept), (SELECT max(number) FROM settled), \
             (SELECT max(day) FROM arm_day), (SELECT max(number) FROM pool), \
             (SELECT max(pool) FROM pool_day), (SELECT max(pool) FROM spent)",
            [],
            |row| row.get::<_, i64>(0),
        )
        .or_ledger_error()?;
    // A pool whose name its index does not find would begin at nothing. Damage in the others, which are small, would
    // only show in a call or a report, or fail each settlement of what dead processes reserved.
    for table in ["pool", "pool_day", "arm", "arm_day", "process", "hold", "draw"] {
        let sql = format!("PRAGMA integrity_check({table})");
        let found: String = connection.query_row(&sql, [], |row| row.get(0)).or_ledger_error()?;
        if found != "ok" {
            return Err(ledger_error(StoreErrorKind::Damaged, &found));
        }
    }
    Ok(())
}

fn foreign_error(path: &Path) -> StoreError {
    StoreError::new(
        StoreErrorKind::Foreign,
        format!(
            "`{}` is not a gnoma ledger and was left unchanged; move it elsewhere",
            path.display()
        ),
    )
}
