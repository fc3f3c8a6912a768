//! What comes out of an archive, as it is written: plain names, plain files, and links last.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use super::super::{
    content_error::{ArchiveEntryFlaw, PluginArchiveError, PluginTreeError, RefusedLinkTarget},
    tree::{MAX_BYTES, MAX_FILES, Names, check_path},
};

/// Most entries of an archive, folders and notes about files included.
pub(super) const MAX_ENTRIES: usize = 4 * MAX_FILES;
/// Longest target of a link, in bytes.
pub(super) const MAX_LINK_BYTES: usize = 512;

/// A folder that is being filled.
pub(super) struct UnpackFolder<'a> {
    into: &'a Path,
    names: Names,
    links: Vec<(PathBuf, String)>,
    count: usize,
    bytes: u64,
}

impl<'a> UnpackFolder<'a> {
    pub(super) fn new(into: &'a Path) -> Self {
        Self { into, names: Names::default(), links: Vec::new(), count: 0, bytes: 0 }
    }

    /// The place of a name, which counts as one more file.
    fn claim_path(&mut self, name: &str) -> Result<PathBuf, PluginArchiveError> {
        let path = check_path(name).map_err(PluginTreeError::Path)?;
        if path.as_os_str().is_empty() {
            let flaw = ArchiveEntryFlaw::NoFileName;
            return Err(PluginArchiveError::Entry { name: name.to_owned(), flaw });
        }
        self.names.add_name(&path.to_string_lossy())?;
        self.count += 1;
        if self.count > MAX_FILES {
            return Err(PluginTreeError::TooManyFiles { limit: MAX_FILES }.into());
        }
        Ok(self.into.join(path))
    }

    /// Writes a file of these bytes.
    pub(super) fn write_file(
        &mut self,
        name: &str,
        bytes: &[u8],
        runs: bool,
    ) -> Result<(), PluginArchiveError> {
        self.bytes += bytes.len() as u64;
        if self.bytes > MAX_BYTES {
            return Err(PluginArchiveError::FilesTooLarge { limit_mib: MAX_BYTES >> 20 });
        }
        let path = self.claim_path(name)?;
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(path.parent().unwrap_or(self.into))?;
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
            file.write_all(bytes)?;
            file.set_permissions(Permissions::from_mode(if runs { 0o755 } else { 0o644 }))
        };
        let failed = |source| PluginArchiveError::NotWritten { name: name.to_owned(), source };
        write().map_err(failed)
    }

    /// Adds a link. It is made once all files are there, so that no file is written through it.
    pub(super) fn add_link(&mut self, name: &str, target: &[u8]) -> Result<(), PluginArchiveError> {
        let refused = |target| PluginTreeError::Link { name: name.to_owned(), target };
        let target = std::str::from_utf8(target).ok().filter(|it| it.len() <= MAX_LINK_BYTES);
        let target = target.ok_or_else(|| refused(RefusedLinkTarget::Missing))?;
        if Path::new(target).is_absolute() {
            return Err(refused(RefusedLinkTarget::Outside).into());
        }
        let place = self.claim_path(name)?;
        self.links.push((place, target.to_owned()));
        Ok(())
    }

    /// Makes the links. Their targets are checked with the whole content.
    pub(super) fn create_links(self) -> Result<(), PluginArchiveError> {
        for (place, target) in self.links {
            let make = || -> std::io::Result<()> {
                fs::create_dir_all(place.parent().unwrap_or(self.into))?;
                symlink(&target, &place)
            };
            make().map_err(|source| PluginArchiveError::NotLinked { target, source })?;
        }
        Ok(())
    }
}
