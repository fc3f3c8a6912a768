//! Reads small files of a person, and writes new ones on request.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

pub use gnoma_core::bounded_file::read_text as read;

use crate::{HostError, Result};

/// A new file that a person asks for and that only they can read. It is removed unless it is finished: half a file
/// would be in the way of the next try.
pub struct NewFile {
    path: PathBuf,
    out: BufWriter<File>,
    is_finished: bool,
}

impl NewFile {
    /// Creates a file that must not exist yet.
    ///
    /// # Errors
    /// The name is already in use, or the file cannot be created.
    pub fn create(path: &Path) -> Result<Self> {
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => HostError::usage(format!(
                "`{}` already exists; choose another name, or remove it",
                path.display()
            )),
            _ => cannot_write(path, error),
        })?;
        Ok(Self { path: path.to_owned(), out: BufWriter::new(file), is_finished: false })
    }

    /// Appends bytes to the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|error| cannot_write(&self.path, error))
    }

    /// Writes what is buffered, after which the file stays.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        self.out.flush().map_err(|error| cannot_write(&self.path, error))?;
        self.is_finished = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_finished {
            drop(fs::remove_file(&self.path));
        }
    }
}

fn cannot_write(path: &Path, error: io::Error) -> HostError {
    anyhow::Error::new(error).context(format!("cannot write `{}`", path.display())).into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn new_file_never_overwrites_and_is_removed_unless_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        let mut file = NewFile::create(&path).unwrap();
        file.write(b"half").unwrap();
        drop(file);
        assert!(!path.exists());
        let mut file = NewFile::create(&path).unwrap();
        file.write(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let Err(error) = NewFile::create(&path) else { panic!("it was replaced") };
        assert!(error.to_string().contains("already exists; choose another name"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
    }
}
