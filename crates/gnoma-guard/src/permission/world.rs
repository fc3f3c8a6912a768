//! What a judgement depends on besides rules and mode, and how its reasons show a text.

use std::path::{Path, PathBuf};

use gnoma_core::cut;

use crate::git::Repositories;

/// The situation of a session. The caller gathers it before each judgement.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// Folder that relative paths start from; absolute.
    pub cwd: &'a Path,
    /// The user's home.
    pub home: Option<&'a Path>,
    /// Folders of the workspace, links resolved.
    pub roots: &'a [PathBuf],
    /// Folders of gnoma's own configuration, state and data.
    pub config_dirs: &'a [PathBuf],
    /// The user trusts the project's files.
    pub trusted: bool,
    /// Commands run behind walls.
    pub sandboxed: bool,
    /// A path with its links followed as far as it exists; of what does not, the rest as it is.
    pub resolve: &'a dyn Fn(&Path) -> PathBuf,
    /// What is known of repositories of git.
    pub repositories: &'a dyn Repositories,
}

/// `text` on one line without control characters, cut between two words to `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = cut::head_chars(&words, most);
    let plain =
        |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut shown: String = kept.chars().map(plain).collect();
    if kept.len() < words.len() {
        shown.push('…');
    }
    shown
}
