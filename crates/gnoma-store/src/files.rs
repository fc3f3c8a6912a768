//! The files of a database: their names, making, locking, and setting them aside.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gnoma_core::{
    private_file::create_folder,
    store::{StoreError, StoreErrorKind},
};
use rustix::fs::{FlockOperation, OFlags, flock};

use crate::{
    backoff::Backoff,
    error::{Result, from_io},
    ids,
};

/// Ending of the file that is locked while a database is opened.
pub(crate) const LOCK: &str = "lock";

/// Ending of the file that says a database is damaged.
pub(crate) const DOUBT: &str = "doubt";

/// Remembers that a database was found damaged; the next start sets it aside.
pub(crate) fn mark_damaged(path: &Path) {
    // Without the note the next start may miss the damage, but nothing is lost by that.
    drop(private_file(&sibling_path(path, DOUBT)));
}

/// Reports whether a file is there that ends within its first page: SQLite takes it for a new one. False where its
/// log or journal may hold the rest.
///
/// An empty file is new, unless it was in use ([`mark_used`]): whoever made it died, or found the disk full,
/// before its first page. The log beside one that was in use SQLite would delete.
pub(crate) fn is_cut_short(path: &Path) -> bool {
    /// All our databases have pages of this size.
    const PAGE_BYTES: u64 = 4096;
    let length = |path: &Path| fs::metadata(path).map(|facts| facts.len());
    match length(path) {
        Ok(0) => {
            suffixed_path(path, "-wal").exists()
                || length(&sibling_path(path, LOCK)).is_ok_and(|length| length > 0)
        }
        Ok(length) => length < PAGE_BYTES && !has_log(path),
        Err(_) => false,
    }
}

/// Returns whether a write-ahead log or journal beside a database may hold a part of it.
pub(crate) fn has_log(path: &Path) -> bool {
    let is_filled =
        |ending| fs::metadata(suffixed_path(path, ending)).is_ok_and(|facts| facts.len() > 0);
    ["-wal", "-journal"].into_iter().any(is_filled)
}

/// Notes in the lock file that the database beside it has been sound once. Where that cannot be written,
/// nothing is lost.
pub(crate) fn mark_used(mut lock: &File) {
    if lock.metadata().is_ok_and(|facts| facts.len() == 0) {
        drop(lock.write_all(b"used\n"));
    }
}

/// Tells one file from another that has taken its name.
pub(crate) fn file_identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|facts| (facts.dev(), facts.ino()))
}

/// Fails once another process has put a recovered database in the place of the open one.
pub(crate) fn check_same_file(path: &Path, opened: Option<(u64, u64)>) -> Result<()> {
    if file_identity(path) == opened {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::NotFound,
        "the session database was moved or replaced while it was open; start gnoma again",
    ))
}

/// Returns the path `<path>.<ending>`.
pub(crate) fn sibling_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

/// Makes the folder, for its owner alone; one of somebody else is refused.
pub(crate) fn make_folder(folder: &Path) -> Result<()> {
    create_folder(folder).map_err(|error| from_io("cannot create the folder", folder, &error))?;
    let facts = fs::metadata(folder).map_err(|error| from_io("cannot read", folder, &error))?;
    if facts.uid() != rustix::process::geteuid().as_raw() {
        return Err(StoreError::new(
            StoreErrorKind::Foreign,
            format!(
                "the folder `{}` belongs to another user, who could read and change what is saved in \
                 it; choose a folder of your own for sessions",
                folder.display()
            ),
        ));
    }
    let mode = facts.mode();
    if mode & 0o077 != 0 {
        // Where the file system has no modes one continues without.
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

/// Takes the lock file. Where the file system has no locks one continues without.
pub(crate) fn acquire_lock(path: &Path, patience: Duration) -> Result<File> {
    let file = private_file(path).map_err(|error| from_io("cannot create", path, &error))?;
    let mut waits = Backoff::new(patience);
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if waits.wait() => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::new(
                    StoreErrorKind::Busy,
                    "another gnoma process is opening the session database; retry in a moment",
                ));
            }
            Ok(()) | Err(_) => return Ok(file),
        }
    }
}

/// Most damaged databases that are kept: the first, which nothing was lost of yet, and the latest.
const MAX_ASIDE: usize = 8;

/// The word that the name of a damaged database gets when it is set aside.
pub(crate) const DAMAGED: &str = "damaged";

/// Files a database may consist of.
pub(crate) const PARTS: [&str; 4] = ["", "-wal", "-journal", "-shm"];

pub(crate) fn suffixed_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Removes all files of a database.
pub(crate) fn remove_database(path: &Path) -> Result<()> {
    for ending in PARTS {
        let file = suffixed_path(path, ending);
        if file.exists() {
            fs::remove_file(&file).map_err(|error| from_io("cannot remove", &file, &error))?;
        }
    }
    Ok(())
}

pub(crate) fn rename_file(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|error| from_io("cannot rename", from, &error))
}

/// Renames the files of a database to a name that says `why` and when, next to where they were.
pub(crate) fn set_aside(damaged: &Path, why: &str) -> Result<PathBuf> {
    const TRIES: i64 = 1000;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now_ms = i64::try_from(now.as_millis()).unwrap_or(0);
    // Ids tell seconds apart; two in one second sort by the rest.
    let within = now_ms.rem_euclid(1000) * TRIES;
    let aside = (within..within + TRIES)
        .map(|count| sibling_path(damaged, &format!("{why}-{}", ids::session_id(now_ms, count))))
        .find(|aside| PARTS.iter().all(|ending| !suffixed_path(aside, ending).exists()))
        .unwrap_or_else(|| sibling_path(damaged, why));
    for ending in PARTS {
        let file = suffixed_path(damaged, ending);
        if file.exists() {
            rename_file(&file, &suffixed_path(&aside, ending))?;
        }
    }
    forget_some(damaged, why, &aside);
    Ok(aside)
}

/// Removes databases set aside that are neither the first nor among the latest, and never the one that
/// was just set aside, whatever the clock says.
fn forget_some(damaged: &Path, why: &str, newest: &Path) {
    let (Some(folder), Some(name)) = (damaged.parent(), damaged.file_name()) else { return };
    let start = format!("{}.{why}", name.to_string_lossy());
    let mut aside = BTreeSet::new();
    for file in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with(&start) {
            let main = PARTS.iter().rev().find_map(|ending| name.strip_suffix(ending));
            aside.extend(main.map(str::to_owned));
        }
    }
    // Names sort by time.
    let surplus = aside.len().saturating_sub(MAX_ASIDE);
    let older = aside.iter().map(|main| folder.join(main)).filter(|main| main != newest);
    for main in older.skip(1).take(surplus) {
        // One that cannot be removed stays until the next time.
        drop(remove_database(&main));
    }
}
