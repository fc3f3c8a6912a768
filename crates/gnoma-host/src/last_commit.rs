//! The last commit of the project's repository: which files differ from it, and what it has of them. Answered by git,
//! for a repository whose settings run nothing, without the person's own settings, filters and network.

use std::{
    ffi::OsStr,
    io::Read as _,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::{Child, Command},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use gnoma_core::protocol::Environment;
use gnoma_store::checkpoint::CommittedFile;

use crate::{
    Folders as _, HostError, Project, Result,
    repositories::{git_command, harmless_repository},
};

/// The time that one call of git may take, and all calls for one list.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most bytes of the names of files that differ.
const MAX_LIST_BYTES: u64 = 4 << 20;
/// Most bytes of a file of the commit, and of all files of one list.
const MAX_FILE_BYTES: u64 = 8 << 20;
const MAX_TOTAL_BYTES: usize = 16 << 20;
/// Most files that are looked at.
const MAX_FILES: usize = 300;
/// Settings that keep git from running programs and from asking, whatever the repository says.
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
/// Attributes with which a file on the disk differs from what git stores; reading alone cannot convert it.
const CONVERTING: [&str; 6] =
    ["check-attr", "-z", "filter", "working-tree-encoding", "ident", "eol"];
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
    environment: Environment,
}

impl LastCommit {
    /// # Errors
    /// There is no repository, or its settings run a program.
    pub(crate) fn open(project: &Project) -> Result<Self> {
        let root = project.places.workspace.clone().unwrap_or_else(|| project.spec.folder.clone());
        let found = harmless_repository(&root).map_err(|error| {
            HostError::usage(format!("cannot compare with the last commit: {error}"))
        })?;
        let missing = || HostError::usage("there is no git repository here");
        let (git, work_tree) = found.ok_or_else(missing)?;
        let path = project.spec.environment.get("PATH").unwrap_or_default().to_owned();
        let environment = project.spec.environment.clone();
        Ok(Self { git, work_tree, root, path, environment })
    }

    /// Returns the files that differ from the commit, with what it has of them, and the number of those that were not
    /// read: too many, too large, too slow, or converted by git on their way to the disk.
    pub(crate) fn changed_files(&self) -> Result<(Vec<CommittedFile>, usize)> {
        let until = Instant::now() + PATIENCE;
        let mut listed = self.list_changed()?;
        let mut more = listed.len().saturating_sub(MAX_FILES);
        listed.truncate(MAX_FILES);
        let converted = self.converted_paths(&listed)?;
        let (mut files, mut bytes) = (Vec::new(), 0);
        for file in listed {
            let is_skipped = bytes >= MAX_TOTAL_BYTES
                || Instant::now() >= until
                || converted.contains(&file.path);
            match if is_skipped { Err(()) } else { self.read(file).map_err(drop) } {
                Ok(Some(file)) => {
                    bytes += file.content.as_ref().map_or(0, Vec::len);
                    files.push(file);
                }
                Ok(None) => {}
                Err(()) => more += 1,
            }
        }
        Ok((files, more))
    }

    /// Returns the commit's version of the file that a diff calls `name`, if it differs.
    ///
    /// # Errors
    /// Git converts the file on its way to the disk, so what the commit has may not be written as it is.
    pub(crate) fn changed_file(&self, name: &str) -> Result<Option<CommittedFile>> {
        let listed = self.list_changed()?;
        let Some(file) = listed.into_iter().find(|file| file.path == Path::new(name)) else {
            return Ok(None);
        };
        if !self.converted_paths(std::slice::from_ref(&file))?.is_empty() {
            return Err(HostError::usage(
                "git converts this file when it checks it out, by a filter or an encoding; `git checkout` reverts it",
            ));
        }
        self.read(file)
    }

    /// Returns the paths of files that git converts between what it stores and the disk.
    fn converted_paths(&self, files: &[Listed]) -> Result<Vec<PathBuf>> {
        let paths: Vec<&OsStr> = files.iter().map(|file| file.path.as_os_str()).collect();
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let words: Vec<&OsStr> = [OsStr::new("--")].into_iter().chain(paths).collect();
        let said = self.ask(&CONVERTING, &words, MAX_LIST_BYTES)?;
        let mut words = said.split(|byte| *byte == 0);
        let mut converted = Vec::new();
        while let (Some(path), Some(_attribute), Some(value)) =
            (words.next(), words.next(), words.next())
        {
            if !matches!(value, b"unspecified" | b"unset" | b"lf") {
                converted.push(PathBuf::from(OsStr::from_bytes(path)));
            }
        }
        Ok(converted)
    }

    fn list_changed(&self) -> Result<Vec<Listed>> {
        let changed = self.ask(&DIFFERING, &[OsStr::new("HEAD")], MAX_LIST_BYTES)?;
        let ignoring = self.ignoring_setting();
        let ignoring = ignoring.iter().flat_map(|setting| ["-c", setting.as_str()]);
        let untracked: Vec<&str> = ignoring.chain(UNTRACKED).collect();
        let new = self.ask(&untracked, &[], MAX_LIST_BYTES)?;
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

    /// Reads what the commit has of a file; `None` for links and submodules.
    fn read(&self, Listed { path, mode, hash }: Listed) -> Result<Option<CommittedFile>> {
        let is_executable = mode == MODES[1];
        let content = match mode.as_str() {
            MISSING => None,
            mode if MODES.contains(&mode) => {
                Some(self.ask(&["cat-file", "blob"], &[OsStr::new(&hash)], MAX_FILE_BYTES)?)
            }
            _ => return Ok(None),
        };
        Ok(Some(CommittedFile { path, content, is_executable }))
    }

    fn git(&self) -> Command {
        let mut git = git_command(&self.path);
        git.args(SETTINGS)
            .current_dir(&self.root)
            .env("GIT_DIR", &self.git)
            .env("GIT_WORK_TREE", &self.work_tree);
        git
    }

    /// Returns the setting by which git ignores the person's own files, such as those of their editor.
    fn ignoring_setting(&self) -> Option<String> {
        let home = self.environment.home()?;
        let config = self.environment.get("XDG_CONFIG_HOME").filter(|it| it.starts_with('/'));
        let config = config.map_or_else(|| home.join(".config"), PathBuf::from);
        let mut git = self.git();
        git.args(["config", "--global", "--type=path", "--get", "core.excludesFile"])
            .env_remove("GIT_CONFIG_GLOBAL")
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", &config);
        let said = read_within(git.spawn().ok()?, MAX_LIST_BYTES)?;
        let own = said.1.then(|| String::from_utf8_lossy(&said.0).trim_end().to_owned());
        let own = own.filter(|path| !path.is_empty());
        let file = own.unwrap_or_else(|| config.join("git/ignore").display().to_string());
        Some(format!("core.excludesFile={file}"))
    }

    fn ask(&self, words: &[&str], more: &[&OsStr], max_bytes: u64) -> Result<Vec<u8>> {
        let failed = |why: &dyn std::fmt::Display| {
            HostError::failure(format!("git cannot compare with the last commit: {why}"))
        };
        let mut git = self.git();
        let git = git.args(words).args(more).spawn().map_err(|error| failed(&error))?;
        match read_within(git, max_bytes) {
            Some((bytes, true)) if (bytes.len() as u64) < max_bytes => Ok(bytes),
            Some((_, true)) => Err(failed(&"it is too large")),
            Some(_) => Err(failed(&"there is no commit yet, or it cannot be read")),
            None => Err(failed(&"it takes too long")),
        }
    }
}

/// Returns the output of a program and whether it ended well; `None` if it takes too long.
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
    fn last_commit_skips_filtered_binary_and_too_large_files() {
        let folder = tempfile::tempdir().unwrap();
        let (home, root) = (folder.path().join("home"), folder.path().join("project"));
        std::fs::create_dir_all(home.join(".config/git")).unwrap();
        std::fs::create_dir(&root).unwrap();
        let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
        let run = |words: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=n", "-c", "user.email=e"]).args(words);
            assert!(git.current_dir(&root).output().unwrap().status.success(), "{words:?}");
        };
        run(&["init", "-q"]);
        let large = "x".repeat(MAX_FILE_BYTES as usize + 1);
        for (name, text) in [("a.txt", "old"), ("large.txt", &large), ("b.bin", "pointer")] {
            write(name, text);
        }
        run(&["add", "."]);
        run(&["commit", "-qm", "one"]);
        for name in ["a.txt", "large.txt", "b.bin", "own.secret", "new.txt"] {
            write(name, "new");
        }
        write(".gitattributes", "*.bin filter=lfs\n");
        std::fs::write(home.join(".config/git/ignore"), "*.secret\n").unwrap();
        let home = ("HOME".to_owned(), home.display().to_string());
        let commit = LastCommit {
            git: root.join(".git"),
            work_tree: root.clone(),
            root: root.clone(),
            path: "/usr/local/bin:/usr/bin:/bin".to_owned(),
            environment: Environment::new(gnoma_core::sort::to_map([home])),
        };
        let (files, more) = commit.changed_files().unwrap();
        let names: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
        assert_eq!(
            (names, more),
            (vec![".gitattributes".into(), "a.txt".into(), "new.txt".into()], 2)
        );
        assert_eq!(files[1].content.as_deref(), Some(&b"old"[..]));
        assert!(commit.changed_file("b.bin").is_err() && commit.changed_file("large.txt").is_err());
        assert!(commit.changed_file("a.txt").unwrap().is_some());
        assert!(commit.changed_file("own.secret").unwrap().is_none());
    }

    #[test]
    fn git_diff_raw_output_is_parsed_to_old_mode_and_object() {
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
