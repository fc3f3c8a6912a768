//! Skipped tests: what each recorded, and whether this machine really lacks what it says.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::error::TestRunError;

/// A test that could not run.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Skip {
    /// The test with its program.
    pub(super) test: String,
    /// The reason for the skip: what is missing, such as `tmux is not installed`.
    pub(super) reason: String,
}

/// Reads what the tests of all programs recorded below `folder` (see `gnoma_testkit::skip`).
pub(super) fn read_all(folder: &Path) -> Result<BTreeSet<Skip>, TestRunError> {
    let entries = fs::read_dir(folder)
        .map_err(|cause| TestRunError::File { path: folder.to_owned(), cause })?;
    let mut skips = BTreeSet::new();
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.extension().is_some_and(|extension| extension == "skips") {
            let text = fs::read_to_string(&path)
                .map_err(|cause| TestRunError::File { path: path.clone(), cause })?;
            let program = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            skips.extend(text.lines().map(|line| {
                let (test, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
                Skip { test: format!("{program} {test}"), reason: reason.to_owned() }
            }));
        }
    }
    Ok(skips)
}

impl Skip {
    /// Returns whether this machine lacks what the test needs, as far as it can be looked up; a reason that
    /// is not understood is believed.
    pub(super) fn is_confirmed(&self) -> bool {
        if let Some(program) = self.reason.strip_suffix(" is not installed") {
            return !is_installed(program.trim_matches('`'));
        }
        !(self.reason.starts_with("no sandbox") && has_namespaces())
    }
}

fn is_installed(program: &str) -> bool {
    let shell = Command::new("sh")
        .args(["-c", "command -v \"$0\"", program])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    shell.is_ok_and(|status| status.success())
}

/// Returns whether a user namespace with a mount namespace can be made, as every wall needs.
fn has_namespaces() -> bool {
    let unshare = ["--user", "--map-root-user", "--mount", "true"];
    let status =
        Command::new("unshare").args(unshare).stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_reason_of_a_missing_program_is_verified() {
        let skip = |reason: &str| Skip { test: "t".to_owned(), reason: reason.to_owned() };
        assert!(!skip("`sh` is not installed").is_confirmed());
        assert!(skip("`no-such-program-here` is not installed").is_confirmed());
        assert!(skip("recordings are not part of the project").is_confirmed());
    }
}
