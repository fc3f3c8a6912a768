//! A folder in memory, for what a session must not write to a disk.

use std::{
    any::Any,
    io,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use crate::{error::MemoryFolderError, scratch::Scratch};

/// A folder in memory that is made when it is first needed. Nothing of it is left when its owner has ended, however
/// that ends, and no path of the machine leads there for others.
#[derive(Debug)]
pub struct MemoryFolder {
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "there are no such folders"))]
    launcher: PathBuf,
    made: OnceLock<Result<MemoryMount, Arc<MemoryFolderError>>>,
}

#[cfg(target_os = "linux")]
type MemoryMount = std::os::fd::OwnedFd;
#[cfg(not(target_os = "linux"))]
type MemoryMount = std::convert::Infallible;

impl MemoryFolder {
    /// A folder that `launcher` will make, see [`crate::launcher`].
    #[must_use]
    pub fn new(launcher: PathBuf) -> Self {
        Self { launcher, made: OnceLock::new() }
    }

    /// Returns the path of the folder for this process and its [`crate::Walls`], for as long as this value lives.
    ///
    /// # Errors
    /// The machine permits no namespaces, or the launcher did not hand over the folder.
    #[cfg(target_os = "linux")]
    pub fn path(&self) -> Result<PathBuf, Arc<MemoryFolderError>> {
        use std::os::fd::AsRawFd as _;
        let made = self.made.get_or_init(|| {
            let support = crate::Support::detect();
            if !support.has_namespaces() {
                return Err(MemoryFolderError::NoNamespaces.into());
            }
            let walls = crate::SessionSandbox::new(self.launcher.clone(), &support);
            walls.open_memory_folder().map_err(|error| Arc::new(error.into()))
        });
        let folder = made.as_ref().map_err(Arc::clone)?;
        Ok(format!("/proc/{}/fd/{}", std::process::id(), folder.as_raw_fd()).into())
    }

    /// Makes the folders for temporary files of a session in it.
    ///
    /// # Errors
    /// There is no folder in memory.
    pub fn create_scratch(self: &Arc<Self>) -> io::Result<Scratch> {
        let base = self.path().map_err(io::Error::other)?;
        let held: Arc<dyn Any + Send + Sync> = self.clone();
        Scratch::create_unique(&base, Some(&held))
    }

    /// There are none here.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub fn path(&self) -> Result<PathBuf, Arc<MemoryFolderError>> {
        match self.made.get_or_init(|| Err(MemoryFolderError::OtherSystem.into())) {
            Ok(never) => match *never {},
            Err(why) => Err(Arc::clone(why)),
        }
    }
}

impl PartialEq for MemoryFolder {
    /// Each is its own.
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for MemoryFolder {}
