//! The trust store: project folders that the person trusts.
//!
//! Trust holds for a folder *and* the content of what would act on its behalf (see [`crate::pin`]):
//! when a byte of that changes, by an edit or by `git pull`, it has to be given again.
//! The store is one file only its owner can read and write, replaced as a whole.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use gnoma_core::private_file;

use crate::{finding::system_words, guard::FileTrust, paths, pin::compute_pin, text::quote_toml};

const FILE: &str = "trusted.toml";
const FOLDERS: &str = "folders";
const HEADER: &str =
    "# Folders whose .gnoma/config.toml may run programs; `gnoma trust` writes this.\n\n";

/// The reason why trust could not be read or written.
#[derive(thiserror::Error)]
pub enum TrustError {
    /// The store cannot be read.
    #[error("cannot read `{}`: {}", path.display(), system_words(cause))]
    Read {
        /// The path of the store's file.
        path: PathBuf,
        /// The cause of the failure.
        cause: io::Error,
    },
    /// The store is there but says nothing readable.
    #[error("`{}` is damaged; delete it and trust your folders again", path.display())]
    Damaged {
        /// The path of the store's file.
        path: PathBuf,
    },
    /// Others could have written the store.
    #[error("`{}` can be written by other users; if that is a mistake, run `chmod 600` on it", path.display())]
    Exposed {
        /// The path of the store's file.
        path: PathBuf,
    },
    /// The store cannot be written.
    #[error("cannot write `{}`: {}", path.display(), system_words(cause))]
    Write {
        /// The path of the store's file.
        path: PathBuf,
        /// The cause of the failure.
        cause: io::Error,
    },
    /// The folder cannot be trusted.
    #[error("cannot trust the folder `{}`: {why}", path.display())]
    Folder {
        /// The path of the folder.
        path: PathBuf,
        /// The reason why it cannot be trusted.
        why: String,
    },
}

gnoma_core::debug_as_display!(TrustError);

/// The folders that are trusted.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    /// Folder to its pin.
    folders: BTreeMap<String, String>,
}

impl Store {
    /// Reads the store in `state_dir`; a missing one is empty.
    ///
    /// # Errors
    /// When it is there and cannot be read or relied on.
    pub fn open(state_dir: &Path) -> Result<Self, TrustError> {
        let path = state_dir.join(FILE);
        let content = paths::read_config_file(&path)
            .map_err(|cause| TrustError::Read { path: path.clone(), cause })?;
        let Some(content) = content else {
            return Ok(Self { path, folders: BTreeMap::new() });
        };
        if is_exposed(&path) {
            return Err(TrustError::Exposed { path });
        }
        match parse_folders(&content) {
            Some(folders) => Ok(Self { path, folders }),
            None => Err(TrustError::Damaged { path }),
        }
    }

    /// Returns the trust in a folder whose `.gnoma/config.toml` has this content.
    #[must_use]
    pub fn file_trust(&self, folder: &Path, content: &[u8]) -> FileTrust {
        match folder_key(folder).ok().and_then(|key| self.folders.get(&key)) {
            // What cannot be pinned is not what was trusted.
            Some(pinned) if compute_pin(folder, content).is_ok_and(|now| now == *pinned) => {
                FileTrust::Trusted
            }
            Some(_) => FileTrust::Changed,
            None => FileTrust::Unknown,
        }
    }

    /// Reports whether a folder whose `.gnoma/config.toml` has this content is trusted.
    #[must_use]
    pub fn is_trusted(&self, folder: &Path, content: &[u8]) -> bool {
        self.file_trust(folder, content) == FileTrust::Trusted
    }

    /// Trusts `folder` while its `.gnoma/config.toml` has this content and its scripts stay as they
    /// are. Hand in what was shown to the user, not what may be there by now.
    ///
    /// # Errors
    /// When the folder is not there or the store cannot be written.
    pub fn trust(&mut self, folder: &Path, content: &[u8]) -> Result<(), TrustError> {
        let refuse = |cause: io::Error| TrustError::Folder {
            path: folder.to_path_buf(),
            why: cause.to_string(),
        };
        let key = folder_key(folder)?;
        self.folders.insert(key, compute_pin(folder, content).map_err(refuse)?);
        self.write()
    }

    /// Trusts `folder` no more. Says whether it was.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn revoke(&mut self, folder: &Path) -> Result<bool, TrustError> {
        // A folder that is gone can only be named as it was.
        let key = folder_key(folder).unwrap_or_else(|_| folder.to_string_lossy().into_owned());
        let was_trusted = self.folders.remove(&key).is_some();
        if was_trusted {
            self.write()?;
        }
        Ok(was_trusted)
    }

    /// Returns the trusted folders, sorted.
    pub fn list(&self) -> impl Iterator<Item = &Path> {
        self.folders.keys().map(Path::new)
    }

    fn write(&self) -> Result<(), TrustError> {
        private_file::replace(&self.path, self.render().as_bytes())
            .map_err(|cause| TrustError::Write { path: self.path.clone(), cause })
    }

    fn render(&self) -> String {
        let lines = self
            .folders
            .iter()
            .map(|(folder, hash)| format!("{} = {}\n", quote_toml(folder), quote_toml(hash)));
        format!("{HEADER}[{FOLDERS}]\n{}", lines.collect::<String>())
    }
}

fn parse_folders(content: &[u8]) -> Option<BTreeMap<String, String>> {
    let document: toml::Table = std::str::from_utf8(content).ok()?.parse().ok()?;
    let Some(folders) = document.get(FOLDERS) else {
        return Some(BTreeMap::new());
    };
    let pairs = folders.as_table()?.iter();
    let pairs = pairs.map(|(folder, hash)| Some((folder.clone(), hash.as_str()?.to_owned())));
    pairs.collect::<Option<Vec<_>>>().map(gnoma_core::sort::to_map)
}

/// The name under which a folder is kept: the place it really is.
fn folder_key(folder: &Path) -> Result<String, TrustError> {
    let refuse = |why: String| TrustError::Folder { path: folder.to_path_buf(), why };
    let real = folder.canonicalize().map_err(|error| refuse(error.to_string()))?;
    // Two different names could have the same text.
    real.into_os_string().into_string().map_err(|_| refuse("its name is not UTF-8".to_owned()))
}

fn is_exposed(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    const WRITABLE_BY_OTHERS: u32 = 0o022;
    fs::metadata(path).is_ok_and(|kind| kind.permissions().mode() & WRITABLE_BY_OTHERS != 0)
}
