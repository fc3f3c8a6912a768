//! Finds, makes, brings forward and recovers the database, and opens it for writing.
//!
//! Opening is serialised by a lock file, so that making, migrating and recovering happen once;
//! recovering waits until nobody else has the database open. A file that is not ours is refused
//! untouched.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use gnoma_core::store::{StoreError, StoreErrorKind};
use rusqlite::Connection;

use crate::{
    create,
    db::{self, journal_for, open_connection},
    error::{Result, SqliteResultExt, from_io},
    files::{self, DOUBT, LOCK, sibling_path},
    migrate,
    options::Options,
    rescue,
    rescue_report::RescueReport,
    schema,
    users::User,
};

/// The number of bytes from the beginning of a file within which the schema's text stands at the latest.
const MARK_WITHIN_BYTES: u64 = 64 * 1024;

/// The number of bytes of a file that are read at a time.
const MAX_READ_BYTES: usize = 64 * 1024;

/// A file without tables is no longer than this.
const NEW_FILE_BYTES: usize = 8 * 1024;

/// First bytes of every SQLite 3 file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Opens the store's database for writing, making or recovering it where needed. It is in use until
/// the user is dropped.
pub(crate) fn open_database(options: &Options) -> Result<(Connection, Option<RescueReport>, User)> {
    files::make_folder(&options.folder)?;
    let path = options.path();
    let alone = files::acquire_lock(&sibling_path(&path, LOCK), options.patience)?;
    let user = User::join(&path)?;
    let (connection, rescued) = open_or_rescue(options, &path, &user)?;
    files::mark_used(&alone);
    Ok((connection, rescued, user))
}

/// Recovers the database and opens what came of it. Nobody in this process has it open.
pub(crate) fn recover_and_open(
    options: &Options,
    user: &User,
) -> Result<(Connection, RescueReport)> {
    let path = options.path();
    let _alone = files::acquire_lock(&sibling_path(&path, LOCK), options.patience)?;
    let rescued = user.with_exclusive_lock(|| rescue::rescue_database(options, &path))?;
    Ok((open_sound(options, &path)?, rescued))
}

/// Opens a database that is not known to be sound.
pub(crate) fn as_it_is(options: &Options) -> Result<Connection> {
    open_connection(&options.path(), options.patience, journal_for(options))
}

/// Opens the database for reading alone. Nothing is made, recovered or brought forward.
pub(crate) fn to_read(options: &Options) -> Result<Connection> {
    let mut connection = db::connect_to_read(&options.path(), options.patience)?;
    migrate::migrate_to_latest(&mut connection)?;
    Ok(connection)
}

fn open_or_rescue(
    options: &Options,
    path: &Path,
    user: &User,
) -> Result<(Connection, Option<RescueReport>)> {
    if !path.exists() {
        rescue::install_rescued(path)?;
    }
    make_file(options, path)?;
    // SQLite takes a file that ends within its first page for a new one.
    if sibling_path(path, DOUBT).exists() || files::is_cut_short(path) {
        return recover_database(options, path, user);
    }
    match open_sound(options, path) {
        Err(error) if error.kind == StoreErrorKind::Damaged => {
            recover_database(options, path, user)
        }
        other => other.map(|connection| (connection, None)),
    }
}

/// Recovers what is readable; a file that was never ours is refused.
fn recover_database(
    options: &Options,
    path: &Path,
    user: &User,
) -> Result<(Connection, Option<RescueReport>)> {
    if !is_ours(path)? {
        return Err(foreign_error(path));
    }
    let rescued = user.with_exclusive_lock(|| rescue::rescue_database(options, path))?;
    Ok((open_sound(options, path)?, Some(rescued)))
}

fn open_sound(options: &Options, path: &Path) -> Result<Connection> {
    let mut connection = open_connection(path, options.patience, journal_for(options))?;
    migrate::migrate_to_latest(&mut connection)?;
    // Reads a page of each table: what is plainly broken shows now and not in the middle of a turn.
    connection
        .query_row(
            "SELECT (SELECT max(id) FROM entry), (SELECT max(changed_ms) FROM session)",
            [],
            |_| Ok(()),
        )
        .map_sqlite_error()?;
    Ok(connection)
}

/// Makes the database, unless it is there.
fn make_file(options: &Options, path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.is_file() => Ok(()),
        Ok(_) => Err(foreign_error(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create::create_database(path, journal_for(options))
        }
        Err(error) => Err(from_io("cannot read", path, &error)),
    }
}

/// Reports whether a file that cannot be used was ours once, by its bytes.
fn is_ours(path: &Path) -> Result<bool> {
    let mut head = Vec::new();
    let file = File::open(path).map_err(|error| from_io("cannot read", path, &error))?;
    file.take(MARK_WITHIN_BYTES)
        .read_to_end(&mut head)
        .map_err(|error| from_io("cannot read", path, &error))?;
    Ok(bears_our_marks(&head) || is_blank(path, &head)? || rescue::holds_ours(path))
}

/// Reports whether the file is nothing but zeros: power failed before what was written was on the disk.
fn is_blank(path: &Path, head: &[u8]) -> Result<bool> {
    let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    if !is_zero(head) {
        return Ok(false);
    }
    let failed = |error| from_io("cannot read", path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let mut bytes = vec![0; MAX_READ_BYTES];
    loop {
        match file.read(&mut bytes).map_err(failed)? {
            0 => return Ok(true),
            read if bytes.get(..read).is_some_and(is_zero) => {}
            _ => return Ok(false),
        }
    }
}

fn bears_our_marks(head: &[u8]) -> bool {
    let application = head
        .get(68..72)
        .map(|bytes| bytes.iter().fold(0_i32, |id, byte| (id << 8) | i32::from(*byte)));
    match application {
        Some(schema::APPLICATION_ID) => true,
        _ if contains_bytes(head, schema::MARK.as_bytes()) => true,
        // A process died between making the file and its tables: the log may hold them.
        Some(0) if head.starts_with(MAGIC) => {
            head.len() <= NEW_FILE_BYTES && !contains_bytes(head, b"CREATE ")
        }
        Some(_) => false,
        None => MAGIC.starts_with(head) || head.starts_with(MAGIC),
    }
}

fn contains_bytes(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

fn foreign_error(path: &Path) -> StoreError {
    StoreError::new(
        StoreErrorKind::Foreign,
        format!(
            "`{}` is not a gnoma session database and was left unchanged; move it elsewhere",
            path.display()
        ),
    )
}
