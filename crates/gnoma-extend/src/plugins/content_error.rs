//! Why files cannot be the content of a plugin: by their paths, in a folder, and in an archive.

use std::{io, path::PathBuf};

/// A path that no file of a plugin may have.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is refused: {flaw}", .path.escape_debug())]
pub struct PluginPathError {
    /// The path as it is written.
    pub path: String,
    /// The flaw of the path.
    pub flaw: PluginPathFlaw,
}

/// The flaw of a path that no file of a plugin may have.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PluginPathFlaw {
    /// The path is empty or too long.
    #[error("its length is not valid for a file")]
    Length,
    /// The path does not begin in the plugin.
    #[error("it is an absolute path")]
    Absolute,
    /// A character means something else on another system.
    #[error("it has a backslash or a control character")]
    Character,
    /// The path leads out of the plugin.
    #[error("it leads outside with `..`")]
    Outside,
    /// Another system leaves out the end of a part of the path.
    #[error("a part of it ends with a dot or a space")]
    PartEnd,
}

/// The reason why a folder cannot be the content of a plugin.
#[derive(thiserror::Error)]
pub enum PluginTreeError {
    /// A file has a path that no file of a plugin may have.
    #[error(transparent)]
    Path(#[from] PluginPathError),
    /// Two names are one where a file system does not tell cases apart.
    #[error("`{name}` and `{other}` are the same name on file systems that ignore case")]
    SameName {
        /// The later name.
        name: String,
        /// The name that was there before.
        other: String,
    },
    /// A file or folder cannot be read.
    #[error("`{name}`: {source}")]
    Unreadable {
        /// The path of the file or folder.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A folder is nested too deep.
    #[error("`{name}` is nested more than {limit} folders deep")]
    TooDeep {
        /// The path of the folder.
        name: String,
        /// The largest depth.
        limit: usize,
    },
    /// The name of a file is not UTF-8.
    #[error("a name in `{folder}/` is not UTF-8")]
    NameNotUtf8 {
        /// The path of the folder that the file is in.
        folder: String,
    },
    /// An entry is neither a file nor a folder nor a link.
    #[error("`{name}` is not a regular file")]
    NotRegular {
        /// The path of the entry.
        name: String,
    },
    /// There are too many files.
    #[error("it has more than {limit} files")]
    TooManyFiles {
        /// The largest number of files.
        limit: usize,
    },
    /// A link leads to something that it may not lead to.
    #[error("the link `{name}` leads {target}")]
    Link {
        /// The path of the link.
        name: String,
        /// The kind of target that the link has.
        target: RefusedLinkTarget,
    },
    /// A file cannot be copied.
    #[error("`{name}` cannot be copied: {source}")]
    NotCopied {
        /// The path of the file.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The copy differs from what was read before.
    #[error("it was changed while it was read")]
    ChangedMeanwhile,
}

/// The kind of target that a link of a plugin may not have.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RefusedLinkTarget {
    /// The target does not exist.
    #[error("nowhere")]
    Missing,
    /// The target is not in the plugin.
    #[error("outside the plugin")]
    Outside,
    /// The target is a folder.
    #[error("to a folder; only files may be linked")]
    Folder,
}

/// The reason why an archive cannot be unpacked to a plugin.
#[derive(thiserror::Error)]
pub enum PluginArchiveError {
    /// The unpacked files cannot be the content of a plugin.
    #[error(transparent)]
    Content(#[from] PluginTreeError),
    /// The archive cannot be read.
    #[error("`{}`: {source}", .path.display())]
    Unreadable {
        /// The path of the archive.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The archive contradicts itself or its format.
    #[error("the archive is damaged")]
    Damaged,
    /// The archive contradicts its format, or is of none that gnoma reads.
    #[error("the archive is damaged, or not an archive that gnoma reads (tar, tar.gz, zip)")]
    NotReadable,
    /// The archive has too many entries.
    #[error("the archive has too many entries")]
    TooManyEntries,
    /// More than the allowed bytes come out of the archive.
    #[error("it unpacks to more than {limit_mib} MiB")]
    UnpacksToMore {
        /// The most that may come out, in MiB.
        limit_mib: usize,
    },
    /// The list of the archive names more bytes than are allowed.
    #[error("the archive unpacks to too much")]
    ListedTooLarge,
    /// A file has its length in a note, as only files of gigabytes need.
    #[error("the archive has a file that is too large")]
    FileTooLarge,
    /// All files together are too large.
    #[error("its files are larger than {limit_mib} MiB in total")]
    FilesTooLarge {
        /// The most that files may have, in MiB.
        limit_mib: u64,
    },
    /// The name of an entry is not UTF-8.
    #[error("a name in the archive is not UTF-8")]
    NameNotUtf8,
    /// An entry is of a kind that plugins do not have.
    #[error("`{name}` {flaw}")]
    Entry {
        /// The name of the entry.
        name: String,
        /// The flaw of the entry.
        flaw: ArchiveEntryFlaw,
    },
    /// A file cannot be written.
    #[error("`{name}` cannot be unpacked: {source}")]
    NotWritten {
        /// The name of the file.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A link cannot be made.
    #[error("a link to `{target}` cannot be made: {source}")]
    NotLinked {
        /// The target of the link.
        target: String,
        /// The error of the system.
        source: io::Error,
    },
}

/// The flaw of an entry in an archive, as what follows its name.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveEntryFlaw {
    /// The name of the entry is empty.
    #[error("does not name a file")]
    NoFileName,
    /// The entry needs a password.
    #[error("is encrypted")]
    Encrypted,
    /// The entry is packed by another method than gnoma reads.
    #[error("is packed in a way that gnoma does not read")]
    PackingMethod,
    /// The entry is a second name of another file.
    #[error("is a hard link, which plugins may not contain")]
    HardLink,
    /// The entry is neither a file nor a folder nor a link.
    #[error("is not a regular file")]
    NotRegular,
}

gnoma_core::debug_as_display!(
    PluginPathError,
    PluginPathFlaw,
    PluginTreeError,
    RefusedLinkTarget,
    PluginArchiveError,
    ArchiveEntryFlaw
);
