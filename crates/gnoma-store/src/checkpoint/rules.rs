//! Ignore rules of version control (`.gitignore`), checked only where it matters: for large files, and for folders
//! that usually contain what can be built again.
//!
//! Rules are read when they are first needed. A `.gitignore` counts outside repositories, too. The caller provides
//! the person's own list of excludes.

use std::{
    ffi::OsStr,
    fs::File,
    io::Read,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::OnceLock,
};

use gnoma_core::{
    bounded_file,
    places::{CACHE_MARK, REBUILT_FOLDERS},
};
use ignore::{
    Match,
    gitignore::{Gitignore, GitignoreBuilder},
};
use rustix::fs::{Mode, OFlags, openat};

use super::folder::FOLDER_FLAGS;

/// Name of the files with rules.
pub(super) const RULES_NAME: &[u8] = b".gitignore";

/// Largest file of rules that is read.
const MAX_RULES_BYTES: u64 = 1 << 20;

/// The number of folders upwards in which the repository's own folder is searched for.
const MAX_PARENTS: usize = 64;

/// The beginning of the file by which builders mark a folder as theirs.
const MARK: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Reports whether the builder of the folder `name` has marked it.
pub(super) fn is_marked(parent: &OwnedFd, name: &[u8]) -> bool {
    let Ok(folder) = openat(parent, name, FOLDER_FLAGS, Mode::empty()) else { return false };
    let Some(file) = open_file(&folder, CACHE_MARK.as_bytes()) else { return false };
    let mut begins = Vec::new();
    file.take(MARK.len() as u64).read_to_end(&mut begins).is_ok() && begins == MARK
}

/// Opens a regular file; no link is followed, and nothing waited for.
fn open_file(folder: &OwnedFd, name: &[u8]) -> Option<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty()).ok()?);
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(file)
}

/// Reports whether a folder of this name is left out when it is ignored or marked.
pub(super) fn is_rebuilt(name: &[u8]) -> bool {
    REBUILT_FOLDERS.iter().any(|known| known.as_bytes() == name)
}

/// Rules from outside the workspace: its parents in the same repository, and excludes.
#[derive(Default)]
pub(super) struct OuterRules(Vec<(Gitignore, PathBuf)>);

impl OuterRules {
    /// Reads them; `excludes` is the person's own list.
    pub(super) fn read(root: &Path, excludes: Option<&Path>) -> Self {
        let Some(top) = root.ancestors().take(MAX_PARENTS).find(|up| up.join(".git").exists())
        else {
            return Self(
                excludes.map(|list| (list, root)).into_iter().filter_map(read_at).collect(),
            );
        };
        let exclude = top.join(".git/info/exclude");
        let mut lists = vec![(exclude, top)];
        if let Some(list) = excludes {
            lists.push((list.to_owned(), top));
        }
        let parents = root.ancestors().skip(1).take_while(|up| up.starts_with(top));
        let mut rules: Vec<_> =
            parents.filter_map(|up| read_at((&up.join(".gitignore"), up))).collect();
        rules.extend(lists.iter().filter_map(|(list, base)| read_at((list, base))));
        // Each knows the workspace by its path from where the rules stand.
        for (_, base) in &mut rules {
            *base = root.strip_prefix(&*base).map(Path::to_owned).unwrap_or_default();
        }
        Self(rules)
    }

    fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        for (rules, prefix) in &self.0 {
            match rules.matched_path_or_any_parents(prefix.join(path), is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        false
    }
}

fn read_at((list, base): (&Path, &Path)) -> Option<(Gitignore, PathBuf)> {
    Some((parse_rules(bounded_file::open(list).ok()?)?, base.to_owned()))
}

fn parse_rules(file: File) -> Option<Gitignore> {
    let mut bytes = Vec::new();
    file.take(MAX_RULES_BYTES).read_to_end(&mut bytes).ok()?;
    let mut builder = GitignoreBuilder::new("");
    for line in String::from_utf8_lossy(&bytes).lines() {
        // A line that is no pattern is passed over, as git does.
        drop(builder.add_line(None, line).map(|_| ()));
    }
    builder.build().ok()
}

/// One folder on the way down, with the rules that stand in it.
pub(super) struct Frame<'a> {
    pub(super) parent: Option<&'a Self>,
    pub(super) outer: &'a OuterRules,
    pub(super) folder: &'a OwnedFd,
    /// The folder's path relative to the workspace; empty for the workspace itself.
    pub(super) path: &'a [u8],
    own: OnceLock<Option<Gitignore>>,
    is_ignored: OnceLock<bool>,
}

impl<'a> Frame<'a> {
    pub(super) fn new(
        parent: Option<&'a Self>,
        outer: &'a OuterRules,
        folder: &'a OwnedFd,
        path: &'a [u8],
    ) -> Self {
        Self { parent, outer, folder, path, own: OnceLock::new(), is_ignored: OnceLock::new() }
    }

    /// Reports whether version control ignores what is at `path`, which is right in this folder.
    pub(super) fn ignores(&self, path: &[u8], is_folder: bool) -> bool {
        if self.is_ignored() {
            return true;
        }
        let mut frame = Some(self);
        while let Some(here) = frame {
            let start = if here.path.is_empty() { 0 } else { here.path.len() + 1 };
            let below = Path::new(OsStr::from_bytes(path.get(start..).unwrap_or_default()));
            match here.rules().map(|rules| rules.matched(below, is_folder)) {
                Some(Match::Ignore(_)) => return true,
                Some(Match::Whitelist(_)) => return false,
                Some(Match::None) | None => frame = here.parent,
            }
        }
        self.outer.is_ignored(path, is_folder)
    }

    fn is_ignored(&self) -> bool {
        *self
            .is_ignored
            .get_or_init(|| self.parent.is_some_and(|parent| parent.ignores(self.path, true)))
    }

    fn rules(&self) -> Option<&Gitignore> {
        self.own.get_or_init(|| parse_rules(open_file(self.folder, RULES_NAME)?)).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_pipe_in_place_of_gitignore_does_not_block() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("inner");
        std::fs::create_dir_all(folder.path().join(".git/info")).unwrap();
        std::fs::create_dir(&root).unwrap();
        let pipes =
            [".gitignore", ".git/info/exclude", "excludes"].map(|it| folder.path().join(it));
        for pipe in &pipes {
            assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        assert!(OuterRules::read(&root, Some(&pipes[2])).0.is_empty());
    }
}
