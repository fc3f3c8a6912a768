//! A program, or a command of one, with what it was given.

use crate::expand::{Field, Folders};
use crate::programs::{ProgramEntry, SortedWords};

/// A program, or a command of one, with its arguments sorted.
pub(super) struct ProgramCall<'c> {
    /// Such as `git log`.
    pub(super) title: &'c str,
    pub(super) entry: &'c ProgramEntry,
    /// Arguments as they are given.
    pub(super) words: &'c [Field],
    pub(super) sorted: &'c SortedWords,
    /// The folder it works in.
    pub(super) cwd: Folders,
    /// The index in the list of found commands at which the commands that belong to this call begin.
    pub(super) from: usize,
}
