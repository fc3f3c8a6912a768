//! Reading the small files of a repository.

use std::{
    fs::{File, OpenOptions},
    io::Read as _,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The text for a longer file: no file of settings begins like this.
const UNREADABLE: &str = "[";

/// An ordinary file, opened for reading; `None` for all else, and where there is nothing.
pub(crate) fn open_file(path: &Path) -> Option<File> {
    opened(path).filter(|file| file.metadata().is_ok_and(|facts| facts.is_file()))
}

/// A file, opened without waiting for whoever fills a pipe.
pub(super) fn opened(path: &Path) -> Option<File> {
    const WITHOUT_WAITING: i32 = (OFlags::NONBLOCK.bits() | OFlags::NOCTTY.bits()).cast_signed();
    OpenOptions::new().read(true).custom_flags(WITHOUT_WAITING).open(path).ok()
}

/// A file's text; `None` if there is none.
pub(super) fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = opened(path)?;
    let kind = file.metadata().ok()?.file_type();
    if !kind.is_file() {
        return (!kind.is_dir()).then(|| UNREADABLE.to_owned());
    }
    file.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 == MAX_BYTES {
        return Some(UNREADABLE.to_owned());
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_place_of_a_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(text(&pipe).as_deref(), Some(UNREADABLE));
        assert_eq!(text(folder.path()), None);
        assert_eq!(text(&folder.path().join("none")), None);
    }
}
