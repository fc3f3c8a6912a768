//! Writes files as a whole: a reader finds the old content or the new, also after a crash.

use std::{
    fs::{DirBuilder, File, Permissions},
    io::{self, Write as _},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
};

use tempfile::NamedTempFile;

/// Replaces a file by one that only its owner can read and write, and creates its folder likewise if there is none.
///
/// # Errors
/// The file cannot be written; the earlier one is as it was.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_folder(folder_of(path))?;
    FileReplacement::prepare(path, bytes, None)?.commit()
}

/// Creates a folder that only its owner can enter, and the missing ones above it. One that exists stays as it is.
///
/// # Errors
/// The folder cannot be created.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The new content of a file, on the disk beside the old. Dropped, it is removed.
#[derive(Debug)]
pub struct FileReplacement<'p> {
    path: &'p Path,
    file: NamedTempFile,
}

impl<'p> FileReplacement<'p> {
    /// Writes the content, with these permissions or else for the owner alone.
    ///
    /// # Errors
    /// The content cannot be written.
    pub fn prepare(
        path: &'p Path,
        bytes: &[u8],
        permissions: Option<Permissions>,
    ) -> io::Result<Self> {
        let mut file = NamedTempFile::new_in(folder_of(path))?;
        file.write_all(bytes)?;
        permissions.map_or(Ok(()), |permissions| file.as_file().set_permissions(permissions))?;
        file.as_file().sync_all()?;
        Ok(Self { path, file })
    }

    /// Puts the content in the file's place.
    ///
    /// # Errors
    /// The file cannot be replaced, or is a device, a pipe or a socket, such as `/dev/null`; it is as it was.
    pub fn commit(self) -> io::Result<()> {
        let kind = self.path.symlink_metadata().map(|facts| facts.file_type());
        if kind.is_ok_and(|kind| !kind.is_file() && !kind.is_symlink() && !kind.is_dir()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        self.file.persist(self.path)?;
        // The new name, too, outlives a crash, except on file systems that cannot flush a folder.
        drop(File::open(folder_of(self.path)).and_then(|folder| folder.sync_all()));
        Ok(())
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::{
            fs::{FileTypeExt as _, PermissionsExt as _},
            net::UnixListener,
        },
    };

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn private_file_replacement_has_mode_0600() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/state.json");
        replace(&path, b"one").unwrap();
        assert_eq!((mode(&path), mode(&folder.path().join("new"))), (0o600, 0o700));
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        replace(&path, b"two").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o600));
    }

    #[test]
    fn device_pipe_or_socket_is_not_replaced_by_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let _socket = UnixListener::bind(&path).unwrap();
        assert_eq!(replace(&path, b"x").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(path.symlink_metadata().unwrap().file_type().is_socket());
    }

    #[test]
    fn dropped_file_replacement_leaves_the_file_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        fs::write(&path, "one").unwrap();
        drop(FileReplacement::prepare(&path, b"two", None).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
        let open = Some(Permissions::from_mode(0o644));
        FileReplacement::prepare(&path, b"two", open).unwrap().commit().unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"two".to_vec(), 0o644));
    }
}
