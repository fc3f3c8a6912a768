//! The change that is reviewed, as git tells it.
//!
//! Nothing that a repository says makes git run a program here.

use std::{path::Path, process::Stdio, time::Duration};

use gnoma_core::duration;

use anyhow::{Context as _, Result};
use gnoma_host::HostError;
use tokio::{io::AsyncReadExt as _, process::Command, time::timeout};

use crate::environment::ProcessEnvironment;

/// Largest change that is read.
const MAX_DIFF_BYTES: usize = 16 << 20;
/// The time that git may take for one answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Variables that git gets: those that name programs and settings of the user.
const VARIABLES: [&str; 3] = ["PATH", "HOME", "XDG_CONFIG_HOME"];
/// Options that keep git from running other programs and from waiting for input.
const QUIET: [&str; 8] = [
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.quotePath=false",
];
/// The form of a change, whatever settings say.
const FORM: [&str; 14] = [
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-relative",
    "--no-indent-heuristic",
    "--find-renames",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "-O/dev/null",
];

/// The change that is reviewed.
pub(super) struct ReviewedChange {
    /// The revision that the change is compared with, as people name it.
    pub base: String,
    /// The commit that was reviewed.
    pub commit: String,
    /// The difference, as git writes it.
    pub diff: Vec<u8>,
}

/// The change between `base`, or what the CI says in its place, and HEAD.
///
/// # Errors
/// There is no such base, no repository, or no git.
pub(super) async fn find_change(
    folder: &Path,
    base: Option<&str>,
    around: &ProcessEnvironment,
) -> Result<ReviewedChange> {
    let commit = resolve_commit(folder, "HEAD", around).await?.ok_or_else(|| {
        HostError::usage(format!(
            "{} is not a git repository, or has no commits yet",
            folder.display()
        ))
    })?;
    let base = base.map_or_else(|| usual_base(around), str::to_owned);
    let known = resolve_commit(folder, &base, around).await?.ok_or_else(|| {
        HostError::usage(format!(
            "git does not know `{base}`; fetch it, or name another branch or commit with --base"
        ))
    })?;
    let fork = single_line(run_git(folder, &["merge-base", &known, &commit], around).await?).ok_or_else(|| {
        HostError::usage(format!(
            "`{base}` and HEAD have no commit in common; fetch the whole history (`fetch-depth: 0` at GitHub, \
             `GIT_DEPTH: 0` at GitLab)"
        ))
    })?;
    let words: Vec<&str> = FORM.into_iter().chain([fork.as_str(), commit.as_str(), "--"]).collect();
    let diff = run_git(folder, &words, around).await?;
    let diff = diff.ok_or_else(|| HostError::failure("git cannot show what has changed"))?;
    Ok(ReviewedChange { base, commit, diff })
}

/// Returns the revision that the change is compared with by default.
fn usual_base(around: &ProcessEnvironment) -> String {
    if let Some(commit) = around.var("CI_MERGE_REQUEST_DIFF_BASE_SHA") {
        return commit.to_owned();
    }
    around
        .var("GITHUB_BASE_REF")
        .map_or_else(|| "origin/HEAD".to_owned(), |it| format!("origin/{it}"))
}

/// The commit that a name stands for.
async fn resolve_commit(
    folder: &Path,
    name: &str,
    around: &ProcessEnvironment,
) -> Result<Option<String>> {
    let name = format!("{name}^{{commit}}");
    let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
    Ok(single_line(run_git(folder, &words, around).await?))
}

/// One line of git's.
fn single_line(said: Option<Vec<u8>>) -> Option<String> {
    let said = String::from_utf8(said?).ok()?;
    Some(said.trim_end().to_owned()).filter(|line| !line.is_empty() && !line.contains('\n'))
}

/// Runs git and returns its output; `None` if it fails.
async fn run_git(
    folder: &Path,
    words: &[&str],
    around: &ProcessEnvironment,
) -> Result<Option<Vec<u8>>> {
    let variables = VARIABLES.iter().filter_map(|name| Some((name, around.var(name)?)));
    let mut child = Command::new("git")
        .args(QUIET)
        .args(words)
        .current_dir(folder)
        .env_clear()
        .envs(variables)
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| HostError::usage(format!("cannot start git: {error}")))?;
    let output = child.stdout.take().context("git has no output")?;
    let mut said = Vec::new();
    let ended = async {
        output.take(MAX_DIFF_BYTES as u64 + 1).read_to_end(&mut said).await?;
        if said.len() > MAX_DIFF_BYTES { Ok(None) } else { child.wait().await.map(Some) }
    };
    let ended: std::io::Result<_> = timeout(PATIENCE, ended).await.map_err(|_| {
        HostError::failure(format!("git took longer than {}", duration::format_duration(PATIENCE)))
    })?;
    let status = ended.context("cannot hear git")?.ok_or_else(|| {
        let most = MAX_DIFF_BYTES >> 20;
        HostError::usage(format!(
            "the change has more than {most} MiB; review it in parts with --base"
        ))
    })?;
    Ok(status.success().then_some(said))
}
