//! Files that a checkpoint skips, and why.

use std::{fmt, path::PathBuf};

/// The reason why something was not kept, or not as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SkipCause {
    /// The system refuses to read it.
    Unreadable,
    /// Neither file, folder nor link.
    Special,
    /// Version control ignores it and it is large.
    Ignored,
    /// Above the limit for any file.
    TooLarge,
    /// On another file system.
    Mounted,
    /// Folders nested too deeply.
    TooDeep,
    /// A file that changed while it was read; what was saved may be a mixture.
    Unsteady,
    /// A folder whose contents a tool makes, and makes again.
    Rebuilt,
}

impl SkipCause {
    const ALL: [Self; 8] = [
        Self::Unreadable,
        Self::Special,
        Self::Ignored,
        Self::TooLarge,
        Self::Mounted,
        Self::TooDeep,
        Self::Unsteady,
        Self::Rebuilt,
    ];

    pub(super) fn code(self) -> u8 {
        Self::ALL.iter().position(|why| *why == self).unwrap_or(0) as u8
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

impl fmt::Display for SkipCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreadable => "cannot be read",
            Self::Special => "is not a file, folder or link",
            Self::Ignored => "is large and ignored by version control",
            Self::TooLarge => "is above the size limit",
            Self::Mounted => "is on another file system",
            Self::TooDeep => "is nested too deeply",
            Self::Unsteady => "changed while it was read",
            Self::Rebuilt => "is made by a tool, which can make it again",
        })
    }
}

/// A path that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedPath {
    /// The path, relative to the workspace.
    pub path: PathBuf,
    /// The reason why the path was not kept.
    pub why: SkipCause,
}
