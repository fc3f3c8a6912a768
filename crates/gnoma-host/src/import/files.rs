//! Reading the files of other assistants: small ones, and JSON with comments.

use std::{io, path::Path};

use gnoma_core::{bounded_file, json::from_hand};
use serde_json::Value;

/// Most bytes of a file.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Most bytes of a file of text that is copied.
const MAX_TEXT_BYTES: u64 = 256 << 10;
/// Most files of a folder.
const MAX_FILES: usize = 500;

/// The reason why a file of another assistant is not imported.
#[derive(thiserror::Error)]
pub(super) enum ImportFileError {
    #[error("it is larger than {} KiB", *max_bytes >> 10)]
    TooLarge { max_bytes: u64 },
    #[error(transparent)]
    Unreadable(#[from] io::Error),
    #[error("it is not valid JSON: {0}")]
    NotJson(#[from] serde_json::Error),
}

gnoma_core::debug_as_display!(ImportFileError);

/// Reads the text of a file; `None` if there is none.
pub(super) fn read_small(path: &Path) -> Result<Option<String>, ImportFileError> {
    read_text_file(path, MAX_TEXT_BYTES)
}

fn read_text_file(path: &Path, max_bytes: u64) -> Result<Option<String>, ImportFileError> {
    bounded_file::read_text(path, max_bytes).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => ImportFileError::TooLarge { max_bytes },
        _ => ImportFileError::Unreadable(error),
    })
}

/// Reads a file of JSON, perhaps with comments; `None` if there is none.
pub(super) fn read_json(path: &Path) -> Result<Option<Value>, ImportFileError> {
    let Some(text) = read_text_file(path, MAX_FILE_BYTES)? else { return Ok(None) };
    Ok(Some(from_hand(&text)?))
}

/// Lists the Markdown files of a folder by name, sorted, with their texts or why there is none.
pub(super) fn markdown_files(folder: &Path) -> Vec<(String, Result<String, ImportFileError>)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_FILES);
    let mut all: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let is_markdown = name.ends_with(".md") && !name.starts_with('.');
            let text = is_markdown.then(|| read_small(&entry.path()).transpose()).flatten()?;
            Some((name, text))
        })
        .collect();
    gnoma_core::sort::sort_by(&mut all, |(a, _), (b, _)| a.cmp(b));
    all
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    #[test]
    fn pipes_devices_and_large_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        mkfifoat(CWD, path("pipe.md"), Mode::from(0o600)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("device.md")).unwrap();
        std::fs::File::create(path("large.md")).unwrap().set_len(MAX_TEXT_BYTES + 1).unwrap();
        std::fs::write(path("small.md"), "text").unwrap();
        let read = markdown_files(folder.path());
        let texts: Vec<_> = read.iter().filter_map(|(_, text)| text.as_deref().ok()).collect();
        assert_eq!((read.len(), texts), (4, vec!["text"]), "{read:?}");
        assert!(matches!(read_small(&path("none.md")), Ok(None)));
    }
}
