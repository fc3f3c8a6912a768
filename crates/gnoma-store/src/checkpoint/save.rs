//! Reading one file into the store, also while somebody writes to it.

use std::{
    ffi::OsStr,
    fs::File,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, fstat, openat},
    io::Errno,
};

use super::{
    error::{Error, PathErrorExt},
    hash::Hash,
    objects::MAX_WHOLE_BYTES,
    places::now_ns,
    skipped::SkipCause,
    stamp::{Stamp, file_type},
    state::FileNode,
    write::{Batch, read_full},
};

/// The number of tries to read a file that changes while it is read.
const TRIES: u32 = 3;

/// The result of saving a file.
pub(super) enum FileSaveOutcome {
    /// The file was stored.
    File(FileNode),
    /// There is nothing of that name any more, or no file.
    Gone,
    /// The file cannot be read.
    Unsaved(SkipCause),
}

/// Stores the contents of `name` in `folder`.
pub(super) fn save_contents(
    batch: &Batch<'_>,
    folder: &OwnedFd,
    name: &[u8],
    max_bytes: u64,
) -> Result<FileSaveOutcome, Error> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut last = None;
    for _ in 0..TRIES {
        let file = match openat(folder, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(FileSaveOutcome::Gone),
            Err(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                return Err(Errno::MFILE).io_context("open", Path::new(OsStr::from_bytes(name)));
            }
            Err(_) => return Ok(FileSaveOutcome::Unsaved(SkipCause::Unreadable)),
        };
        let begun_ns = now_ns();
        let Some(before) = regular_file_stamp(&file) else { return Ok(FileSaveOutcome::Gone) };
        if before.size > max_bytes {
            return Ok(FileSaveOutcome::Unsaved(SkipCause::TooLarge));
        }
        let Some((hash, size)) = store_contents(batch, &file, before.size)? else {
            return Ok(FileSaveOutcome::Unsaved(SkipCause::Unreadable));
        };
        let steady = regular_file_stamp(&file).is_some_and(|after| after.same_contents(&before));
        let node = FileNode {
            stamp: before,
            hash,
            size,
            is_racy: !steady || before.is_racy(begun_ns),
            is_unsteady: !steady,
        };
        if steady {
            return Ok(FileSaveOutcome::File(node));
        }
        last = Some(node);
    }
    // The prefix it had when reading began; the next snapshot reads it again.
    Ok(last.map_or(FileSaveOutcome::Gone, FileSaveOutcome::File))
}

fn regular_file_stamp(file: &File) -> Option<Stamp> {
    let stat = fstat(file).ok()?;
    file_type(&stat).is_file().then(|| Stamp::from_stat(&stat))
}

/// `None` when the file's bytes cannot be had.
fn store_contents(batch: &Batch<'_>, file: &File, size: u64) -> Result<Option<(Hash, u64)>, Error> {
    if size > MAX_WHOLE_BYTES {
        if let Some(cloned) = batch.put_clone(file)? {
            return Ok(Some(cloned));
        }
        return match batch.put_large(file, size) {
            Ok(stored) => Ok(Some(stored)),
            Err(Error::Io { what: "read", .. }) => Ok(None),
            Err(failed) => Err(failed),
        };
    }
    let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
    let Ok(count) = read_full(&mut &*file, &mut bytes) else { return Ok(None) };
    bytes.truncate(count);
    Ok(Some((batch.store_bytes(&bytes)?, count as u64)))
}
