//! Finds secret files in the history of a repository. Git itself answers, for a repository whose settings run nothing.

use std::{
    collections::BTreeSet,
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::ChildStdout,
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use gnoma_core::places::{self, RuledPaths};

use super::{git_command::git_command, index, repository_location::FoundRepository};

/// The time git may take. What it has not told by then is not known: it begins with what is newest.
const PATIENCE: Duration = Duration::from_millis(1_500);
/// Most secret files that are named.
const MAX_SECRETS: usize = 256;
/// Longest name of a file that is looked at.
const MAX_NAME_BYTES: u64 = 8 << 10;
/// Names that wait to be looked at.
const MAX_WAITING: usize = 1_024;

/// Every commit that a branch, a tag, a stash or a reflog leads to, with the names of what it changed.
const WORDS: [&str; 19] = [
    "--no-pager",
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "log.showSignature=false",
    "log",
    "--all",
    "--reflog",
    "--no-show-signature",
    "--format=",
    "--name-only",
    "-z",
    "-c",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--diff-filter=AMT",
];

/// Files that are secret by their names or limited by a rule, where they are or would be in the work tree.
pub(super) fn secret_files(
    found: &FoundRepository,
    path: &str,
    rules: Option<&dyn RuledPaths>,
) -> Vec<PathBuf> {
    let mut secrets = BTreeSet::new();
    let mut keep = |name: &Path| {
        let file = found.work_tree.join(name);
        let is_ruled = || rules.is_some_and(|rules| rules.limits_reading(&file));
        if secrets.len() < MAX_SECRETS && (places::find_secret(name).is_some() || is_ruled()) {
            secrets.insert(file);
        }
        secrets.len() < MAX_SECRETS
    };
    for entry in index::read_entries(found) {
        keep(&entry.path);
    }
    let Some(names) = list_file_names(found, path) else { return secrets.into_iter().collect() };
    let until = Instant::now() + PATIENCE;
    while let Ok(name) = names.recv_timeout(until.saturating_duration_since(Instant::now())) {
        if !keep(Path::new(&name)) {
            break;
        }
    }
    secrets.into_iter().collect()
}

/// Sends the names of files as git lists them; ends when the receiver is dropped.
fn list_file_names(found: &FoundRepository, path: &str) -> Option<mpsc::Receiver<String>> {
    let mut git = git_command(path);
    git.arg("--git-dir").arg(&found.git).args(WORDS).current_dir("/");
    let mut git = git.spawn().ok()?;
    let output = git.stdout.take()?;
    let (said, hears) = mpsc::sync_channel(MAX_WAITING);
    thread::spawn(move || {
        send_names(output, &said);
        git.kill().ok();
        git.wait().ok();
    });
    Some(hears)
}

fn send_names(output: ChildStdout, said: &mpsc::SyncSender<String>) {
    let mut output = BufReader::new(output);
    loop {
        let mut name = Vec::new();
        match output.by_ref().take(MAX_NAME_BYTES).read_until(0, &mut name) {
            Ok(1..) => {}
            Ok(0) | Err(_) => return,
        }
        let name = String::from_utf8_lossy(&name);
        let name = name.trim_matches(['\0', '\n']).to_owned();
        if said.send(name).is_err() {
            return;
        }
    }
}
