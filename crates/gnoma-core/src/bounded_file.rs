//! Reads files of unknown kind and size, such as those of a project. A named pipe in their place would hang the
//! program, a device would never end.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a regular file for reading. Never waits for the other end of a pipe.
///
/// # Errors
/// The file cannot be opened, or is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    const WITHOUT_WAITING: i32 = OFlags::NONBLOCK.union(OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(WITHOUT_WAITING).open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// Reads a regular file.
///
/// # Errors
/// The file cannot be read, is no regular file, or has more than `max_bytes` ([`io::ErrorKind::FileTooLarge`]).
pub fn read_existing(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let bytes = read_start(path, max_bytes.saturating_add(1))?;
    if bytes.len() as u64 > max_bytes {
        let why = format!("it is larger than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a regular file; `None` if nothing has this name.
///
/// # Errors
/// As for [`read_existing`].
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match read_existing(path, max_bytes) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        bytes => bytes.map(Some),
    }
}

/// Reads a regular file of UTF-8; `None` if nothing has this name.
///
/// # Errors
/// As for [`read`], or the file is not UTF-8 ([`io::ErrorKind::InvalidData`]).
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    read(path, max_bytes)?.map(|bytes| io::read_to_string(&*bytes)).transpose()
}

/// Reads the first `max_bytes` of a regular file.
///
/// # Errors
/// The file cannot be read, or is no regular file.
pub fn read_start(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    #[test]
    fn bounded_file_read_fails_above_the_size_limit_or_on_invalid_utf8() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        assert_eq!(read(&path, 4).unwrap(), None);
        fs::write(&path, "word").unwrap();
        assert_eq!(read_text(&path, 4).unwrap().as_deref(), Some("word"));
        assert_eq!(read_start(&path, 2).unwrap(), b"wo");
        assert_eq!(read(&path, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_named_pipe_or_folder_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(read(&pipe, 4).unwrap_err().to_string(), "it is not a regular file");
        assert_eq!(read(folder.path(), 4).unwrap_err().to_string(), "it is a folder");
    }
}
