//! The last commit of the project's repository: which files differ from it, and what it has of them. Answered by git,
//! for a repository whose settings run nothing, without the person's own settings, filters and network.

use std::{
    ffi::OsStr,
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use gnoma_store::checkpoint::CommittedFile;

use crate::{HostError, Project, Result, repositories::harmless_repository};

/// How long one call of git may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of the names of files that differ.
const MAX_LIST_BYTES: u64 = 4 << 20;
/// Most bytes of a file of the commit.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Most files that are looked at.
const MAX_FILES: usize = 300;
/// Settings that would run something, or ask somebody, whatever the repository says.
const SETTINGS: [&str; 10] = [
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "protocol.allow=never",
    "-c",
    "core.quotePath=false",
    "--literal-pathspecs",
];
const DIFFERING: [&str; 9] = [
    "diff",
    "--raw",
    "-z",
    "--no-abbrev",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--ignore-submodules=all",
    "--relative",
];
const UNTRACKED: [&str; 4] = ["ls-files", "-z", "--others", "--exclude-standard"];
/// The modes that git has for files.
const MODES: [&str; 2] = ["100644", "100755"];
/// The mode of what is not there.
const MISSING: &str = "000000";

/// The repository around a project's workspace.
pub(crate) struct LastCommit {
    git: PathBuf,
    work_tree: PathBuf,
    root: PathBuf,
    path: String,
}

impl LastCommit {
    /// # Errors
    /// There is no repository, or its settings run a program.
    pub(crate) fn open(project: &Project) -> Result<Self> {
        let root = project.places.workspace.clone().unwrap_or_else(|| project.spec.folder.clone());
        let found = harmless_repository(&root).map_err(|program| {
            HostError::usage(format!(
                "cannot compare with the last commit: git would run {program}"
            ))
        })?;
        let missing = || HostError::usage("there is no git repository here");
        let (git, work_tree) = found.ok_or_else(missing)?;
        let path = project.spec.environment.get("PATH").unwrap_or_default().to_owned();
        Ok(Self { git, work_tree, root, path })
    }

    /// The files that differ from the commit, with what it has of them, and how many more there are.
    pub(crate) fn changed_files(&self) -> Result<(Vec<CommittedFile>, usize)> {
        let mut listed = self.listed()?;
        let more = listed.len().saturating_sub(MAX_FILES);
        listed.truncate(MAX_FILES);
        let files = listed.into_iter().filter_map(|file| self.read(file).transpose());
        Ok((files.collect::<Result<_>>()?, more))
    }

    /// The commit's version of the file that a diff calls `name`, if it differs.
    pub(crate) fn file(&self, name: &str) -> Result<Option<CommittedFile>> {
        let found = self.listed()?.into_iter().find(|file| file.path == Path::new(name));
        found.and_then(|file| self.read(file).transpose()).transpose()
    }

    fn listed(&self) -> Result<Vec<Listed>> {
        let changed = self.ask(&DIFFERING, &["HEAD"], MAX_LIST_BYTES)?;
        let new = self.ask(&UNTRACKED, &[], MAX_LIST_BYTES)?;
        let mut listed = parse_raw(&changed);
        listed.extend(new.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(|name| {
            Listed {
                path: OsStr::from_bytes(name).into(),
                mode: MISSING.into(),
                hash: String::new(),
            }
        }));
        gnoma_core::sort::sort_by(&mut listed, |one, other| one.path.cmp(&other.path));
        Ok(listed)
    }

    /// What the commit has of a file; `None` for links and submodules.
    fn read(&self, Listed { path, mode, hash }: Listed) -> Result<Option<CommittedFile>> {
        let is_executable = mode == MODES[1];
        let content = match mode.as_str() {
            MISSING => None,
            mode if MODES.contains(&mode) => {
                Some(self.ask(&["cat-file", "blob"], &[&hash], MAX_FILE_BYTES)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(CommittedFile { path, content, is_executable }))
    }

    fn ask(&self, words: &[&str], more: &[&str], max_bytes: u64) -> Result<Vec<u8>> {
        let failed = |why: &dyn std::fmt::Display| {
            HostError::failure(format!("git cannot compare with the last commit: {why}"))
        };
        let git = Command::new("git")
            .args(SETTINGS)
            .args(words)
            .args(more)
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", &self.path)
            .env("GIT_DIR", &self.git)
            .env("GIT_WORK_TREE", &self.work_tree)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| failed(&error))?;
        match read_within(git, max_bytes) {
            Some((bytes, true)) if (bytes.len() as u64) < max_bytes => Ok(bytes),
            Some((_, true)) => Err(failed(&"it is too large")),
            Some(_) => Err(failed(&"there is no commit yet, or it cannot be read")),
            None => Err(failed(&"it takes too long")),
        }
    }
}

/// What a program says, and whether it ended well; `None` if it takes too long.
fn read_within(mut git: Child, max_bytes: u64) -> Option<(Vec<u8>, bool)> {
    let output = git.stdout.take()?;
    let (said, heard) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        output.take(max_bytes).read_to_end(&mut bytes).ok();
        said.send(bytes).ok();
    });
    let bytes = heard.recv_timeout(PATIENCE).ok();
    let is_full = bytes.as_ref().is_none_or(|bytes| bytes.len() as u64 == max_bytes);
    if is_full {
        git.kill().ok();
    }
    let ended = git.wait();
    Some((bytes?, is_full || ended.is_ok_and(|ended| ended.success())))
}

/// A file of a list.
#[derive(Debug, PartialEq, Eq)]
struct Listed {
    path: PathBuf,
    mode: String,
    hash: String,
}

/// Parses `:MODE MODE HASH HASH STATUS\0PATH\0`, as `git diff --raw -z` prints it.
fn parse_raw(text: &[u8]) -> Vec<Listed> {
    let mut listed = Vec::new();
    let mut words = text.split(|byte| *byte == 0);
    while let (Some(facts), Some(path)) = (words.next(), words.next()) {
        let facts = String::from_utf8_lossy(facts);
        let mut facts = facts.trim_start_matches(':').split(' ');
        let (Some(mode), Some(hash)) = (facts.next(), facts.nth(1)) else { continue };
        let (mode, hash) = (mode.to_owned(), hash.to_owned());
        listed.push(Listed { path: OsStr::from_bytes(path).into(), mode, hash });
    }
    listed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_lines_name_the_old_mode_and_object() {
        let text = b":100755 100644 aa bb M\0a b.sh\0:000000 100644 00 cc A\0new\0";
        let file = |path: &str, mode: &str, hash: &str| Listed {
            path: path.into(),
            mode: mode.into(),
            hash: hash.into(),
        };
        let expected = [file("a b.sh", "100755", "aa"), file("new", MISSING, "00")];
        assert_eq!(parse_raw(text), expected);
        assert_eq!(parse_raw(b"nonsense"), []);
    }
}
