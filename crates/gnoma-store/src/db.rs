//! Finds, makes and opens the database file.
//!
//! Files are 0600, the folder is 0700 and ours. Opening is serialised by a lock file, so that making,
//! migrating and recovering happen once; recovering waits until nobody else has the database open. A
//! file that is not ours is refused untouched.
//!
//! The log stays when a database is closed: making one anew, and working it in at the end, would
//! wait for the disk in each run. A copy of a database is a copy of both files.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Read},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use gnoma_core::store::{StoreError, StoreErrorKind};
use rusqlite::{Connection, OpenFlags, config::DbConfig};
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::{
    create, erase,
    error::{Explain, Result, damaged, from_io},
    lane::Waits,
    migrate,
    options::{Journal, Options},
    salvage::{self, Rescued},
    schema,
    users::User,
};

/// The log may grow to this many pages before a commit works it into the main file, whoever waits.
const LOG_PAGES: i64 = 4000;

/// What of the log file is kept for the next writes.
const LOG_KEPT_BYTES: i64 = 4 * 1024 * 1024;

/// Where the schema's text stands at the latest.
const MARK_WITHIN_BYTES: u64 = 64 * 1024;

/// A file without tables is no longer than this.
const NEW_FILE_BYTES: usize = 8 * 1024;

/// Ending of the file that says a database is damaged.
pub(crate) const DOUBT: &str = "doubt";

/// First bytes of every SQLite 3 file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Opens the store's database for writing, making or recovering it where needed. It is in use until
/// the user is dropped.
pub(crate) fn open(options: &Options) -> Result<(Connection, Option<Rescued>, User)> {
    make_folder(&options.folder)?;
    let path = options.path();
    let _alone = lock(&beside(&path, "lock"), options.patience)?;
    let user = User::join(&path)?;
    let (connection, rescued) = open_or_rescue(options, &path, &user)?;
    Ok((connection, rescued, user))
}

fn open_or_rescue(
    options: &Options,
    path: &Path,
    user: &User,
) -> Result<(Connection, Option<Rescued>)> {
    if !path.exists() {
        salvage::adopt(path)?;
    }
    make_file(options, path)?;
    if beside(path, DOUBT).exists() {
        return rescue(options, path, user);
    }
    match open_sound(options, path) {
        Err(error) if error.kind == StoreErrorKind::Damaged => rescue(options, path, user),
        other => other.map(|connection| (connection, None)),
    }
}

/// Recovers what is readable; a file that was never ours is refused.
fn rescue(options: &Options, path: &Path, user: &User) -> Result<(Connection, Option<Rescued>)> {
    if !is_ours(path)? {
        return Err(foreign(path));
    }
    let rescued = user.alone(|| salvage::rescue(options, path))?;
    Ok((open_sound(options, path)?, Some(rescued)))
}

fn open_sound(options: &Options, path: &Path) -> Result<Connection> {
    let mut connection = connect(path, options.patience, journal_for(options))?;
    migrate::forward(&mut connection)?;
    // Reads a page of each table: what is plainly broken shows now and not in the middle of a turn.
    connection
        .query_row(
            "SELECT (SELECT max(id) FROM entry), (SELECT max(changed_ms) FROM session)",
            [],
            |_| Ok(()),
        )
        .explain()?;
    Ok(connection)
}

/// Remembers that a database was found damaged; the next start sets it aside.
pub(crate) fn doubt(path: &Path) {
    // Without the note the next start may miss the damage, but nothing is lost by that.
    drop(private_file(&beside(path, DOUBT)));
}

/// Tells one file from another that has taken its name.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Fails once another process has put a recovered database in the place of the open one.
pub(crate) fn still(path: &Path, opened: Option<(u64, u64)>) -> Result<()> {
    if identity(path) == opened {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::NotFound,
        "the session database was moved or replaced while it was open; start gnoma again",
    ))
}

/// Reads the whole database and says whether it is sound.
pub(crate) fn check(connection: &Connection) -> Result<()> {
    let answer: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).explain()?;
    if answer == "ok" { Ok(()) } else { Err(damaged(&answer)) }
}

/// A connection with our settings. The file must exist; one that is not plainly ours counts as
/// damaged and is left as it is.
pub(crate) fn connect(path: &Path, patience: Duration, journal: Journal) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).explain()?;
    connection.busy_timeout(patience).explain()?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).explain()?;
    recognise(&connection)?;
    connection.set_prepared_statement_cache_capacity(64);
    if fs::metadata(path).is_ok_and(|facts| facts.len() == 0) {
        create::before_first_page(&connection)?;
    }
    let has_log = set_journal(&connection, journal, patience)?;
    for (name, value) in [
        ("wal_autocheckpoint", LOG_PAGES),
        ("journal_size_limit", LOG_KEPT_BYTES),
        ("cell_size_check", 1),
        ("trusted_schema", 0),
        ("foreign_keys", 1),
    ] {
        // Some of these answer with a row, some do not.
        connection
            .pragma_update_and_check(None, name, value, |_| Ok(()))
            .or_else(no_answer)
            .explain()?;
    }
    // A log is flushed when it is asked for and before it is worked in; without one it is the
    // commit that must.
    let synchronous = if has_log { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous).explain()?;
    // What is deleted is overwritten where that costs no further write.
    erase::secure_delete(&connection, "FAST")?;
    Ok(connection)
}

/// Asks the open database and not the file: whoever opens and closes a file takes away the locks
/// that other connections of the same process have on it.
fn recognise(connection: &Connection) -> Result<()> {
    let number: i32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).explain()?;
    if number == schema::APPLICATION_ID {
        return Ok(());
    }
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .explain()?;
    // A process may have died between making the file and its tables.
    if number == 0 && tables == 0 {
        return Ok(());
    }
    Err(damaged("it does not say that it is gnoma's"))
}

/// For settings of which some answer with a row and some do not.
pub(crate) fn no_answer(error: rusqlite::Error) -> rusqlite::Result<()> {
    match error {
        rusqlite::Error::QueryReturnedNoRows => Ok(()),
        other => Err(other),
    }
}

/// Whether there is a write-ahead log now. The database's own waiting does not cover a change of
/// journal.
pub(crate) fn set_journal(
    connection: &Connection,
    journal: Journal,
    patience: Duration,
) -> Result<bool> {
    let mut waits = Waits::new(patience);
    loop {
        let set = match journal {
            Journal::Auto => {
                set_journal_once(connection, "WAL").and_then(|mode| match mode.as_str() {
                    "wal" => Ok(mode),
                    _ => set_journal_once(connection, "TRUNCATE"),
                })
            }
            Journal::Rollback => set_journal_once(connection, "TRUNCATE"),
        };
        match set.explain() {
            Ok(mode) => return Ok(mode == "wal"),
            Err(error) if error.kind == StoreErrorKind::Busy && waits.wait() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Asks for a journal; the one there is then.
pub(crate) fn set_journal_once(connection: &Connection, mode: &str) -> rusqlite::Result<String> {
    connection.pragma_update_and_check(None, "journal_mode", mode, |row| row.get(0))
}

/// A write-ahead log needs memory shared between all users of the file.
pub(crate) fn journal_for(options: &Options) -> Journal {
    match options.journal {
        Journal::Rollback => Journal::Rollback,
        Journal::Auto => journal_in(&options.folder),
    }
}

/// The journal that suits the file system of `folder`.
pub(crate) fn journal_in(folder: &Path) -> Journal {
    if is_network(folder) { Journal::Rollback } else { Journal::Auto }
}

#[cfg(target_os = "linux")]
fn is_network(folder: &Path) -> bool {
    // NFS, SMB, CIFS, SMB2, 9P, Ceph, AFS, Lustre and FUSE, as in statfs(2).
    const NETWORK: [u32; 9] = [
        0x6969,
        0x517B,
        0xFF53_4D42,
        0xFE53_4D42,
        0x0102_1997,
        0x00C3_6400,
        0x5346_414F,
        0x0BD0_0BD0,
        0x6573_5546,
    ];
    rustix::fs::statfs(folder)
        .is_ok_and(|facts| NETWORK.iter().any(|kind| i128::from(*kind) == i128::from(facts.f_type)))
}

#[cfg(not(target_os = "linux"))]
fn is_network(_folder: &Path) -> bool {
    false
}

/// `<path>.<ending>`.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Makes the folder, for its owner alone; one of somebody else is refused.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(folder).map_err(|error| from_io("cannot make the folder", folder, &error))?;
    let facts = fs::metadata(folder).map_err(|error| from_io("cannot read", folder, &error))?;
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(StoreError::new(
            StoreErrorKind::Foreign,
            format!(
                "the folder `{}` belongs to another user, who could read and change what is kept in \
                 it; choose a folder of your own for sessions",
                folder.display()
            ),
        ));
    }
    let mode = facts.mode();
    if mode & 0o077 != 0 {
        // Where the file system has no modes one goes on without.
        drop(fs::set_permissions(folder, Permissions::from_mode(mode & 0o700)));
    }
    Ok(())
}

/// Opens or makes a file that only its owner can read. A link is not followed: it may have been
/// planted.
pub(crate) fn private_file(path: &Path) -> io::Result<File> {
    let no_links = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_links)
        .open(path)
}

/// Makes the database, unless it is there.
fn make_file(options: &Options, path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_file() => Ok(()),
        Ok(_) => Err(foreign(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create::create(path, journal_for(options))
        }
        Err(error) => Err(from_io("cannot read", path, &error)),
    }
}

/// Takes the lock file. Where the file system has no locks one goes on without.
pub(crate) fn lock(path: &Path, patience: Duration) -> Result<File> {
    let file = private_file(path).map_err(|error| from_io("cannot make", path, &error))?;
    let mut waits = Waits::new(patience);
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if waits.wait() => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::new(
                    StoreErrorKind::Busy,
                    "another gnoma process is busy opening the session database; try again",
                ));
            }
            Ok(()) | Err(_) => return Ok(file),
        }
    }
}

/// Whether a file that cannot be used was ours once, by its bytes.
fn is_ours(path: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(|error| from_io("cannot read", path, &error))?;
    file.take(MARK_WITHIN_BYTES)
        .read_to_end(&mut head)
        .map_err(|error| from_io("cannot read", path, &error))?;
    Ok(bears_our_marks(&head))
}

fn bears_our_marks(head: &[u8]) -> bool {
    let application = head
        .get(68..72)
        .map(|bytes| bytes.iter().fold(0_i32, |id, byte| (id << 8) | i32::from(*byte)));
    match application {
        Some(schema::APPLICATION_ID) => true,
        _ if contains(head, schema::MARK.as_bytes()) => true,
        // A process died between making the file and its tables: the log may hold them.
        Some(0) if head.starts_with(MAGIC) => {
            head.len() <= NEW_FILE_BYTES && !contains(head, b"CREATE ")
        }
        Some(_) => false,
        None => MAGIC.starts_with(head) || head.starts_with(MAGIC),
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn foreign(path: &Path) -> StoreError {
    StoreError::new(
        StoreErrorKind::Foreign,
        format!(
            "`{}` is not a session database of gnoma; it was left as it is: move it away",
            path.display()
        ),
    )
}
