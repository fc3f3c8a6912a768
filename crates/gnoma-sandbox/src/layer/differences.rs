//! What a layer does otherwise than a plain folder. Whoever meets one throws the trial away and asks
//! before the command runs in its place.

use std::{fmt, path::PathBuf};

/// One thing that is otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// A file with several names was changed, moved, or given another: in a layer each name is a file of its own.
    HardLink(PathBuf),
    /// A file of an owner or a group that does not exist in the sandbox cannot be changed.
    ForeignOwner,
    /// A folder that lies in the workspace cannot be renamed by one call.
    FolderRename,
    /// Another file system is mounted in the workspace; in a layer its folder looks empty.
    SubMount(PathBuf),
    /// A device or a socket was made.
    Special(PathBuf),
    /// A folder whose own owner may not look into it any more, so that nobody sees what changed in it.
    Closed(PathBuf),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HardLink(path) => {
                write!(
                    f,
                    "`{}` has other names (hard links), which would become files of their own",
                    path.display()
                )
            }
            Self::ForeignOwner => {
                f.write_str("it changes a file whose owner or group is unknown in a trial run")
            }
            Self::FolderRename => {
                f.write_str("it renames a folder, which a trial run cannot do in one step")
            }
            Self::SubMount(path) => {
                write!(f, "another file system is mounted at `{}`", path.display())
            }
            Self::Special(path) => {
                write!(f, "`{}` is a device or a socket and cannot be saved", path.display())
            }
            Self::Closed(path) => {
                write!(f, "`{}` is a folder that cannot be looked into any more", path.display())
            }
        }
    }
}

/// Most bytes at the end of an output that are read.
const TAIL_BYTES: usize = 8 * 1024;

/// The messages of programs that could not rename a folder of the workspace.
const RENAME: [&str; 4] = ["cross-device link", "exdev", "(os error 18)", "errno 18"];
/// The messages of programs that could not write a file of a foreign owner.
const OWNER: [&str; 4] =
    ["value too large for defined data type", "eoverflow", "(os error 75)", "errno 75"];

/// The texts that stand in the same line if it was a rename that failed.
const OF_RENAME: [&str; 5] = ["->", "rename", "renaming", "move", "code: 18"];

/// Tells from the output of a command which difference it seems to have met. One that ended well must say it in the
/// words of a rename: the last of its programs may have gone well, and others print what they read.
#[must_use]
pub fn known_difference(output: &str, exit_code: Option<i32>) -> Option<Difference> {
    let from = output.len().saturating_sub(TAIL_BYTES);
    let tail = output.get(output.ceil_char_boundary(from)..).unwrap_or_default().to_lowercase();
    let has_one = |text: &str, words: &[&str]| words.iter().any(|word| text.contains(word));
    if exit_code == Some(0) {
        let is_rename = |line: &str| has_one(line, &RENAME) && has_one(line, &OF_RENAME);
        return tail.lines().any(is_rename).then_some(Difference::FolderRename);
    }
    if has_one(&tail, &RENAME) {
        return Some(Difference::FolderRename);
    }
    has_one(&tail, &OWNER).then_some(Difference::ForeignOwner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlay_exdev_error_is_recognized_as_a_trial_difference() {
        for output in [
            "fatal: renaming 'dir' failed: Invalid cross-device link",
            "Error: EXDEV: cross-device link not permitted, rename 'a' -> 'b'",
            "thread 'main' panicked: Os { code: 18 } (os error 18)",
            "OSError: [Errno 18] Invalid cross-device link: 'a' -> 'b'",
        ] {
            assert_eq!(
                known_difference(output, Some(1)),
                Some(Difference::FolderRename),
                "{output}"
            );
            assert_eq!(known_difference(output, Some(0)), Some(Difference::FolderRename));
        }
        for output in ["errno.h: #define EXDEV 18", "src: Value too large for defined data type"] {
            assert_eq!(known_difference(output, Some(0)), None);
        }
        let owner = "sh: 1: cannot create a: Value too large for defined data type";
        assert_eq!(known_difference(owner, Some(2)), Some(Difference::ForeignOwner));
        assert_eq!(known_difference("error: mismatched types", Some(1)), None);
    }
}
