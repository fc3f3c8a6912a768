//! Reads which git branch is checked out. Does not start git, which takes long.
//!
//! Anybody may have written the files of a repository: an archive can bring them. So only regular files of limited size
//! are read, links are not followed, and everything but the forms that git writes counts as unknown.

use std::{
    fs::{self, OpenOptions},
    io::Read as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use gnoma_core::branch_name;
use gnoma_guard::firewall::Firewall;
use rustix::fs::OFlags;

/// Most bytes of the files that are read.
const MAX_FILE_BYTES: u64 = 4096;

/// Digits of a commit's id that are shown.
const SHOWN_DIGITS: usize = 8;

/// Returns the name of the branch that is checked out in `folder` or above, or the start of the commit's id if there is
/// no branch. Secrets that the firewall knows are redacted; a name that git does not accept is left out.
pub(crate) fn current_branch(folder: &Path, firewall: &Firewall) -> Option<String> {
    let name = read_branch(folder)?;
    Some(firewall.redact_text(&name).into_owned())
}

fn read_branch(folder: &Path) -> Option<String> {
    let mut places = folder.ancestors().map(|folder| folder.join(".git"));
    let git = places.find(|git| git.symlink_metadata().is_ok())?;
    let head = read_line(&repository_folder(git)?.join("HEAD"))?;
    match head.strip_prefix("ref: refs/heads/") {
        Some(name) => branch_name::is_valid(name).then(|| name.to_owned()),
        None => is_commit_id(&head).then(|| head.chars().take(SHOWN_DIGITS).collect()),
    }
}

/// Returns the folder with `HEAD`. That of a worktree or submodule is named by a file in place of the folder.
fn repository_folder(git: PathBuf) -> Option<PathBuf> {
    if is_folder(&git) {
        return Some(git);
    }
    let line = read_line(&git)?;
    let folder = git.parent()?.join(line.strip_prefix("gitdir: ")?);
    is_folder(&folder).then_some(folder)
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}

/// Returns the only line of a small regular file; `None` if it is anything else.
fn read_line(path: &Path) -> Option<String> {
    // Without NONBLOCK, opening a named pipe waits for its writer.
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let facts = file.metadata().ok()?;
    if !facts.is_file() || facts.len() > MAX_FILE_BYTES {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).ok()?;
    if text.ends_with('\n') {
        text.pop();
    }
    (!text.contains(char::is_control)).then_some(text)
}

fn is_commit_id(text: &str) -> bool {
    [40, 64].contains(&text.len())
        && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const MAIN: &str = "ref: refs/heads/main\n";

    /// The branch of a repository whose `HEAD` has this content.
    fn branch_of(head: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".git")).unwrap();
        fs::write(folder.path().join(".git/HEAD"), head).unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        read_branch(&inner)
    }

    #[test]
    fn git_branch_or_detached_commit_is_read_from_head() {
        assert_eq!(branch_of(MAIN).as_deref(), Some("main"));
        assert_eq!(branch_of("ref: refs/heads/a/b").as_deref(), Some("a/b"));
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(branch_of(&format!("{id}\n")).as_deref(), Some("01234567"));
    }

    #[test]
    fn malformed_git_head_gives_no_branch() {
        let long = format!("ref: refs/heads/{}\n", "x".repeat(5_000));
        for head in [
            "",
            "main\n",
            "ref: refs/heads/\n",
            "ref: refs/heads/.invalid\n",
            "ref: refs/tags/v1\n",
            "ref: refs/heads/a\nref: refs/heads/b\n",
            "ref: refs/heads/a\r\n",
            "ref: refs/heads/a\u{1b}[31m\n",
            "ref: refs/heads/a\u{202e}b\n",
            "0123456789\n",
            "g123456789abcdef0123456789abcdef01234567\n",
            &long,
        ] {
            assert_eq!(branch_of(head), None, "{head:?}");
        }
    }

    #[test]
    fn git_head_that_is_a_symlink_pipe_or_folder_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let git = folder.path().join(".git");
        fs::create_dir(&git).unwrap();
        let elsewhere = folder.path().join("elsewhere");
        fs::write(&elsewhere, MAIN).unwrap();
        let head = git.join("HEAD");
        symlink(&elsewhere, &head).unwrap();
        assert_eq!(read_branch(folder.path()), None, "a link");
        fs::remove_file(&head).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&head).status().unwrap().success());
        assert_eq!(read_branch(folder.path()), None, "a pipe");
        fs::remove_file(&head).unwrap();
        fs::create_dir(&head).unwrap();
        assert_eq!(read_branch(folder.path()), None, "a folder");
        fs::remove_dir_all(&git).unwrap();
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join("HEAD"), MAIN).unwrap();
        symlink(other.path(), &git).unwrap();
        assert_eq!(read_branch(folder.path()), None, "a link to a repository");
    }

    #[test]
    fn git_branch_of_a_worktree_or_submodule_is_read_via_its_gitdir_file() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join(".git/worktrees/fix");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("HEAD"), "ref: refs/heads/fix\n").unwrap();
        let worktree = folder.path().join("fix");
        fs::create_dir(&worktree).unwrap();
        for line in [format!("gitdir: {}\n", own.display()), "gitdir: ../.git/worktrees/fix".into()]
        {
            fs::write(worktree.join(".git"), &line).unwrap();
            assert_eq!(read_branch(&worktree).as_deref(), Some("fix"), "{line}");
        }
        for line in ["gitdir: ../nowhere\n", "gitdir: ../.git\nmore\n", "../.git/worktrees/fix\n"] {
            fs::write(worktree.join(".git"), line).unwrap();
            assert_eq!(read_branch(&worktree), None, "{line}");
        }
    }
}
