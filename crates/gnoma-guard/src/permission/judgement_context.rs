//! What a judgement depends on besides rules and mode, and how its reasons show a text.

use std::{
    cell::RefCell,
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
};

use gnoma_core::text_truncation;

use crate::git::Repositories;

/// The situation of a session. The caller gathers it before each judgement.
#[derive(Clone, Copy)]
pub struct JudgementContext<'a> {
    /// Folder that relative paths start from; absolute.
    pub cwd: &'a Path,
    /// The home folder of the user.
    pub home: Option<&'a Path>,
    /// Folders of the workspace, links resolved.
    pub roots: &'a [PathBuf],
    /// Folders of gnoma's own configuration, state and data.
    pub config_dirs: &'a [PathBuf],
    /// Folders in which programs are searched for.
    pub programs: &'a [PathBuf],
    /// Folders that stand for others, each with the other one: a file of a copy is judged as that of the original.
    pub copies: &'a [(PathBuf, PathBuf)],
    /// The user trusts the project's files.
    pub trusted: bool,
    /// Commands run behind walls.
    pub sandboxed: bool,
    /// The sandbox gives the network to a command that was granted it.
    pub network_on_grant: bool,
    /// A path with its links followed as far as it exists; of what does not, the rest as it is.
    pub resolve: &'a dyn Fn(&Path) -> PathBuf,
    /// The names in a folder; `None` where they cannot be told or are too many. A folder that is not there has none.
    pub list: &'a dyn Fn(&Path) -> Option<Vec<OsString>>,
    /// The known facts about git repositories.
    pub repositories: &'a dyn Repositories,
}

/// The places to which paths lead at the moment of one judgement. Each path is looked up once, so that the verdict
/// and what it grants are about the same file, whatever another program puts in its place between two looks.
pub(super) struct PathSnapshot<'a> {
    resolve: &'a dyn Fn(&Path) -> PathBuf,
    known: RefCell<HashMap<PathBuf, PathBuf>>,
}

impl<'a> PathSnapshot<'a> {
    pub(super) fn new(resolve: &'a dyn Fn(&Path) -> PathBuf) -> Self {
        Self { resolve, known: RefCell::default() }
    }

    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let real = (self.resolve)(path);
        self.known.borrow_mut().insert(path.to_owned(), real.clone());
        real
    }
}

/// `text` on one line without control characters, cut between two words to `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let kept = text_truncation::head_chars(&words, most);
    let plain =
        |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut shown: String = kept.chars().map(plain).collect();
    if kept.len() < words.len() {
        shown.push('…');
    }
    shown
}
