//! Where the temporary files of a session are.

use std::{io, path::PathBuf, sync::Arc};

use gnoma_sandbox::{MemoryFolder, Scratch};

/// The place of the temporary files of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScratchPlace {
    /// In a folder below this one, until the session ends.
    Below(PathBuf),
    /// In memory, where nothing may be saved.
    Memory(Arc<MemoryFolder>),
}

impl ScratchPlace {
    /// Makes the folders of one session.
    ///
    /// # Errors
    /// They cannot be made there.
    pub(crate) fn create_scratch(&self) -> io::Result<Scratch> {
        match self {
            Self::Below(folder) => Scratch::create_in(folder),
            Self::Memory(memory) => memory.create_scratch(),
        }
    }
}

impl Default for ScratchPlace {
    fn default() -> Self {
        Self::Below(PathBuf::new())
    }
}
