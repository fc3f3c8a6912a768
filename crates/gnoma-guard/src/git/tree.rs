//! Which git commands write files of the work tree, or the settings of the repository, by themselves.

/// Commands that put files of commits, patches or the stash into the work tree, or take files out of it, whatever the
/// names of these files are.
const WRITING: [&str; 18] = [
    "am",
    "apply",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "merge",
    "mv",
    "pull",
    "read-tree",
    "rebase",
    "reset",
    "restore",
    "revert",
    "rm",
    "sparse-checkout",
    "stash",
    "switch",
];
/// Commands that write the repository's settings, most of them beside what they do: which branch follows which, and its
/// remotes.
const SETTING: [&str; 12] = [
    "branch",
    "checkout",
    "config",
    "fetch",
    "maintenance",
    "pull",
    "push",
    "remote",
    "sparse-checkout",
    "submodule",
    "switch",
    "worktree",
];
/// Words behind `git submodule` with which it runs no program of the line.
const OF_SUBMODULES: [&str; 7] =
    ["add", "deinit", "init", "set-branch", "set-url", "sync", "update"];
/// First words behind such a command with which it leaves the work tree as it is.
const LOOKING: [&str; 9] =
    ["list", "show", "drop", "clear", "create", "store", "--check", "--stat", "--cached"];
/// Commands that take the lock of git's index even if they only say what they would do.
const LOCKING: [&str; 3] = ["add", "mv", "rm"];
/// Options of git itself that change nothing about what a command does.
const PLAIN_OPTIONS: [&str; 3] = ["--no-pager", "-P", "--no-optional-locks"];
/// Beginnings of options that have git run a program of the line.
const RUNNING: [&str; 4] = ["-x", "--exec", "--receive-pack", "--upload-pack"];

/// Reports whether a command line that begins with `git` may write the repository's settings besides what it does,
/// and runs nothing else that the line names.
pub(crate) fn writes_settings(words: &[Option<String>]) -> bool {
    let Some((command, words)) = find_subcommand(words) else { return false };
    let is_limited = command != "submodule"
        || words.clone().next().flatten().is_some_and(|word| OF_SUBMODULES.contains(&word));
    SETTING.contains(&command) && is_limited && runs_nothing_else(command, words)
}

/// Reports whether a command line that begins with `git` takes the lock of git's index, whatever its options are.
pub(crate) fn takes_lock(words: &[Option<String>]) -> bool {
    find_subcommand(words).is_some_and(|(command, _)| LOCKING.contains(&command))
}

/// The command of git's that a line calls, and the words behind it.
fn find_subcommand(
    words: &[Option<String>],
) -> Option<(&str, impl Iterator<Item = Option<&str>> + Clone)> {
    let mut words = words.iter().skip(1).map(Option::as_deref);
    loop {
        match words.next()? {
            Some("-C") => {
                words.next();
            }
            Some(option) if PLAIN_OPTIONS.contains(&option) => {}
            word => return Some((word?, words)),
        }
    }
}

/// Reports whether a command line that begins with `git` writes the work tree and runs nothing else that the line
/// names. Words that are not constant may be anything but options.
pub(crate) fn writes_tree(words: &[Option<String>]) -> bool {
    let Some((command, words)) = find_subcommand(words) else { return false };
    if !WRITING.contains(&command) {
        return false;
    }
    let mut words = words.peekable();
    let may_look = matches!(command, "apply" | "sparse-checkout" | "stash");
    let looks = |word: &Option<&str>| word.is_none_or(|word| LOOKING.contains(&word));
    if may_look && words.peek().is_some_and(looks) {
        return false;
    }
    runs_nothing_else(command, words)
}

fn runs_nothing_else<'a>(command: &str, mut words: impl Iterator<Item = Option<&'a str>>) -> bool {
    words.all(|word| match word {
        Some(word) => {
            // Long options may be written short.
            let may_run = |option: &&str| {
                word.starts_with(*option) || word.len() > "--".len() && option.starts_with(word)
            };
            // `-x` of these means something else.
            let is_plain = word == "-x" && matches!(command, "clean" | "cherry-pick");
            is_plain || command == "clean" || !RUNNING.iter().any(may_run)
        }
        None => !matches!(command, "rebase" | "pull"),
    })
}

#[cfg(test)]
mod tests {
    use super::{writes_settings, writes_tree};

    fn words(line: &str) -> Vec<Option<String>> {
        line.split(' ').map(|word| (!word.starts_with('$')).then(|| word.to_owned())).collect()
    }

    #[test]
    fn git_commands_that_only_write_the_worktree_are_recognized() {
        for line in [
            "git stash -u",
            "git stash pop",
            "git -C sub checkout -b new origin/main",
            "git --no-pager merge --no-edit feat",
            "git checkout $branch",
            "git rebase --onto main~1 main",
            "git clean -fdx",
            "git cherry-pick -x abc",
        ] {
            assert!(writes_tree(&words(line)), "{line}");
        }
        for line in [
            "git status",
            "git commit -m x",
            "git -c core.fsmonitor=./x checkout main",
            "git rebase -x ./run main",
            "git rebase --exe ./run main",
            "git rebase $options",
            "git pull --upload-pack=./x",
            "git bisect run ./x",
            "git stash list",
            "git stash $what",
            "git apply --check p",
            "git submodule foreach ./x",
            "git config a b",
            "git",
            "git -C",
        ] {
            assert!(!writes_tree(&words(line)), "{line}");
        }
    }

    #[test]
    fn git_branch_tracking_remote_and_config_commands_write_git_config() {
        for line in [
            "git branch -D old",
            "git -C sub switch -c t --track main",
            "git remote add o .",
            "git config user.name Bob",
            "git sparse-checkout set src",
            "git maintenance register",
            "git submodule update --init",
        ] {
            assert!(writes_settings(&words(line)), "{line}");
        }
        for line in [
            "git log",
            "git commit -m x",
            "git pull --exec=x",
            "git $sub",
            "git submodule foreach ./x",
            "git submodule $what",
        ] {
            assert!(!writes_settings(&words(line)), "{line}");
        }
    }
}
