//! Hooks of git that a command would have run, had the project been trusted.

/// Hooks, and the commands of git that run them; see githooks(5).
const RUN_BY: [(&str, &[&str]); 13] = [
    ("pre-commit", &["commit"]),
    ("prepare-commit-msg", &["commit", "merge", "revert", "cherry-pick"]),
    ("commit-msg", &["commit", "merge", "revert", "cherry-pick"]),
    ("post-commit", &["commit", "revert", "cherry-pick"]),
    ("pre-merge-commit", &["merge", "pull"]),
    ("post-merge", &["merge", "pull"]),
    ("pre-rebase", &["rebase"]),
    ("post-rewrite", &["rebase", "commit"]),
    ("pre-push", &["push"]),
    ("post-checkout", &["checkout", "switch", "clone", "worktree"]),
    ("applypatch-msg", &["am"]),
    ("pre-applypatch", &["am"]),
    ("post-applypatch", &["am"]),
];

/// The reason why hooks of git do not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SkipReason {
    /// The project is not trusted.
    Untrusted,
    /// git writes files under every name, which a program that it starts must not.
    WritesTree,
}

/// Describes which of a repository's hooks a command did not run; `None` if it would have run none.
pub(super) fn describe_skipped(
    command: &str,
    reason: SkipReason,
    hooks: impl FnOnce() -> Vec<String>,
) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || "-_./".contains(c);
    let words: Vec<&str> = command.split(|c: char| !is_word(c)).collect();
    if !words.iter().any(|word| *word == "git" || word.ends_with("/git")) {
        return None;
    }
    let hooks = hooks();
    let would_run = |hook: &&String| {
        let commands = RUN_BY.iter().find(|(name, _)| name == hook);
        commands.is_some_and(|(_, commands)| words.iter().any(|word| commands.contains(word)))
    };
    let skipped: Vec<&str> = hooks.iter().filter(would_run).map(String::as_str).collect();
    (!skipped.is_empty()).then(|| {
        let skipped = skipped.join(", ");
        match reason {
            SkipReason::Untrusted => format!(
                "[hooks of git that did not run, since this project is not trusted: {skipped}; `gnoma trust` lets them run]"
            ),
            SkipReason::WritesTree => format!(
                "[hooks of git that did not run, since git may write every file in this command: {skipped}]"
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{SkipReason, describe_skipped};

    #[test]
    fn skipped_git_hooks_note_names_only_hooks_of_that_git_command() {
        let hooks = ["pre-commit", "pre-push", "my-script"].map(str::to_owned);
        let named =
            |command: &str| describe_skipped(command, SkipReason::Untrusted, || hooks.to_vec());
        assert!(named("cd x && git add a && git commit -m n").unwrap().contains(": pre-commit;"));
        assert!(named("/usr/bin/git push").unwrap().contains(": pre-push;"));
        for command in ["git status", "commit git-lfs", "git stash", "git log --grep x"] {
            assert_eq!(named(command), None, "{command}");
        }
        assert_eq!(describe_skipped("git commit", SkipReason::WritesTree, Vec::new), None);
    }
}
