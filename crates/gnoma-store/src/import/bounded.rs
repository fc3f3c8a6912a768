//! Files read within limits.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

use super::imported::import_error;
use crate::error::{Result, from_io};

/// Longest line; longer ones are skipped without being held.
const MAX_LINE_BYTES: u64 = 32 * 1024 * 1024;

/// Largest file read whole.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Most bytes of one import.
const MAX_TOTAL_BYTES: u64 = 1024 * 1024 * 1024;

/// Most files of one folder.
const MAX_FILES: usize = 100_000;

/// Longest name that becomes part of a path.
const MAX_NAME_BYTES: usize = 200;

/// One line of a file, or the remark that it was too long.
pub(super) enum BoundedLine {
    /// The line without its end.
    Text(Vec<u8>),
    /// The line was longer than a line may be.
    TooLong,
}

/// Hands each line of `path` to `take`.
pub(super) fn each_line(
    path: &Path,
    mut take: impl FnMut(BoundedLine) -> Result<()>,
) -> Result<()> {
    let file = open_file(path, MAX_TOTAL_BYTES)?;
    let mut reader = BufReader::new(file.take(MAX_TOTAL_BYTES));
    let failed = |error: std::io::Error| from_io("cannot read", path, &error);
    loop {
        let mut line = Vec::new();
        let read =
            (&mut reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line).map_err(failed)?;
        if read == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n')
            && u64::try_from(read).is_ok_and(|read| read == MAX_LINE_BYTES)
        {
            drop(line);
            reader.skip_until(b'\n').map_err(failed)?;
            take(BoundedLine::TooLong)?;
            continue;
        }
        while line.last().is_some_and(u8::is_ascii_whitespace) {
            line.pop();
        }
        if !line.is_empty() {
            take(BoundedLine::Text(line))?;
        }
    }
}

/// Reads a whole file, up to the limit.
pub(super) fn read_file(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path, MAX_FILE_BYTES)?
        .take(MAX_FILE_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| from_io("cannot read", path, &error))?;
    Ok(bytes)
}

/// Opens a plain file of at most `max` bytes; links and devices are refused.
fn open_file(path: &Path, max: u64) -> Result<File> {
    let facts = fs::symlink_metadata(path).map_err(|error| from_io("cannot read", path, &error))?;
    if !facts.is_file() {
        return Err(import_error(format_args!("`{}` is not a plain file", path.display())));
    }
    if facts.len() > max {
        return Err(import_error(format_args!(
            "`{}` is larger than {} MB",
            path.display(),
            max / (1024 * 1024)
        )));
    }
    File::open(path).map_err(|error| from_io("cannot read", path, &error))
}

/// The `.json` files of a folder by name. A folder that is not there has none.
pub(super) fn json_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(Vec::new()) };
    let mut files: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .take(MAX_FILES + 1)
        .collect();
    if files.len() > MAX_FILES {
        return Err(import_error(format_args!("`{}` has too many files", folder.display())));
    }
    gnoma_core::sort::sort_items(&mut files);
    Ok(files)
}

/// Reports whether `name` may become a part of a path: it stays in its folder.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The bytes a whole import may still take.
pub(super) struct Budget(u64);

impl Budget {
    /// Creates a full budget of bytes.
    pub(super) fn new() -> Self {
        Self(MAX_TOTAL_BYTES)
    }

    /// Takes `bytes` from it.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.0 = self.0.checked_sub(bytes).ok_or_else(|| {
            import_error(format_args!("it is larger than {} MB", MAX_TOTAL_BYTES / (1024 * 1024)))
        })?;
        Ok(())
    }
}
