//! Reading the small files of a repository.

use std::{fs::Metadata, path::Path};

use gnoma_core::bounded_file;

/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The text for a longer file: no file of settings begins like this.
const UNREADABLE: &str = "[";

/// A file's text; `None` if there is none.
pub(super) fn read_text(path: &Path) -> Option<String> {
    match bounded_file::read_start(path, MAX_BYTES) {
        Ok(bytes) if bytes.len() as u64 == MAX_BYTES => Some(UNREADABLE.to_owned()),
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => {
            let is_special = |facts: Metadata| !facts.is_file() && !facts.is_dir();
            path.metadata().is_ok_and(is_special).then(|| UNREADABLE.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_pipe_in_place_of_a_git_file_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("config");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read_text(&pipe).as_deref(), Some(UNREADABLE));
        assert_eq!(read_text(folder.path()), None);
        assert_eq!(read_text(&folder.path().join("none")), None);
    }
}
