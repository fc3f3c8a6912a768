//! Git commands that show file contents of commits, and of which files.

/// The way a git command looks at a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GitInspection<'w> {
    /// Folders that `-C` names, one after the other.
    pub(crate) folders: Vec<Option<&'w str>>,
    /// True if the command shows contents of files as they were committed.
    pub(crate) shows: bool,
    /// The files or folders that this is limited to; `None` where any may be shown.
    pub(crate) only: Option<Vec<&'w str>>,
}

/// Commands that show contents whatever their options are. `git show --stat` of a file's own object too
/// shows it.
const SHOWING: [&str; 8] = [
    "archive",
    "cat-file",
    "diff-pairs",
    "format-patch",
    "merge-tree",
    "range-diff",
    "show",
    "stash show",
];
/// Commands to which what stands behind `--` is a revision as well.
const WITHOUT_PATHS: [&str; 3] = ["archive", "cat-file", "merge-tree"];
/// Commands that show contents when asked for a patch.
const LISTING: [&str; 5] = ["log", "whatchanged", "reflog", "stash list", "rev-list"];
/// Commands that show contents unless asked for something else.
const COMPARING: [&str; 4] = ["diff", "diff-tree", "diff-index", "diff-files"];
/// Commands with a second word.
const TWO_WORDS: [&str; 2] = ["stash", "reflog"];
/// Options of git itself that take the next word.
const TAKING: [&str; 5] = ["-c", "--git-dir", "--work-tree", "--namespace", "--exec-path"];
/// Options of `git cat-file` that show no contents.
const ONLY_FACTS: [&str; 3] = ["-t", "-s", "-e"];
/// Starts of long options that ask for a patch, or let it be guessed what one holds.
const PATCHES: [&str; 12] = [
    "--patch",
    "--unified",
    "--cc",
    "--remerge-diff",
    "--dd",
    "--word-diff",
    "--color-words",
    "--function-context",
    "--binary",
    "--diff-merges",
    "--submodule",
    "--pickaxe",
];
/// Letters of short options that do.
const PATCH_LETTERS: [char; 8] = ['p', 'u', 'U', 'c', 'W', 'L', 'G', 'S'];
/// Options that ask for something else than a patch.
const SUMMARIES: [&str; 11] = [
    "--stat",
    "--numstat",
    "--shortstat",
    "--dirstat",
    "--name-only",
    "--name-status",
    "--summary",
    "--raw",
    "--compact-summary",
    "--quiet",
    "--no-patch",
];
/// Options that show other files than those named: all of a commit, and what a file was before it was renamed.
const BEYOND_PATHS: [&str; 2] = ["--full-diff", "--follow"];
/// The characters that make a path a pattern.
const PATTERN: [char; 5] = [':', '*', '?', '[', '\\'];

/// Returns what a command line that begins with `git` looks at; `None` without a command. A word that is not
/// constant is `None`.
pub(crate) fn parse_look(words: &[Option<String>]) -> Option<GitInspection<'_>> {
    let words: Vec<Option<&str>> = words.iter().skip(1).map(Option::as_deref).collect();
    let (folders, command) = own_options(&words);
    let (first, rest) = command.split_first()?;
    let first = first.unwrap_or_default();
    let second = rest.first().copied().flatten().unwrap_or_default();
    let name = if TWO_WORDS.contains(&first) && !second.starts_with('-') {
        format!("{first} {second}")
    } else {
        first.to_owned()
    };
    let dashes = rest.iter().position(|word| *word == Some("--"));
    let (before, after) = rest.split_at(dashes.unwrap_or(rest.len()));
    let is_plain = |word: &Option<&str>| word.is_some_and(|text| !text.contains(PATTERN));
    let paths = after.get(1..).unwrap_or_default();
    let only = (!paths.is_empty() && paths.iter().all(is_plain))
        .then(|| paths.iter().copied().flatten().collect());
    // An object of a file is shown whatever paths stand behind it.
    let is_whole = WITHOUT_PATHS.contains(&first) || before.iter().any(reaches_further);
    let only = if is_whole { None } else { only };
    Some(GitInspection { folders, shows: shows_contents(&name, before), only })
}

/// Reports whether an option shows more than the given paths, or may be the beginning of an option that does.
fn reaches_further(word: &Option<&str>) -> bool {
    word.is_none_or(|word| {
        BEYOND_PATHS.iter().any(|option| {
            word.starts_with(option) || word.len() > "--".len() && option.starts_with(word)
        })
    })
}

/// The folders of `-C`, and the words from the command on.
fn own_options<'a, 'w>(
    words: &'a [Option<&'w str>],
) -> (Vec<Option<&'w str>>, &'a [Option<&'w str>]) {
    let (mut folders, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at) {
        match word {
            Some("-C") => {
                folders.push(words.get(at + 1).copied().flatten());
                at += 2;
            }
            Some(option) if TAKING.contains(option) => at += 2,
            Some(option) if option.starts_with('-') => at += 1,
            _ => break,
        }
    }
    (folders, words.get(at..).unwrap_or_default())
}

fn shows_contents(name: &str, words: &[Option<&str>]) -> bool {
    let first = name.split(' ').next().unwrap_or_default();
    let options =
        || words.iter().map(|word| word.unwrap_or("-p")).filter(|word| word.starts_with('-'));
    match name {
        "cat-file" => {
            let only_checks = options().any(|word| word.starts_with("--batch-check"))
                && !options().any(|word| {
                    word.starts_with("--batch=")
                        || word == "--batch"
                        || word.starts_with("--batch-command")
                });
            !only_checks && !options().any(|word| ONLY_FACTS.contains(&word))
        }
        "grep" => options().any(|word| word == "--cached") || searches_commits(words),
        _ if SHOWING.contains(&name) => true,
        _ if COMPARING.contains(&name) => {
            let is_summary =
                |word: &str| word == "-s" || SUMMARIES.iter().any(|start| word.starts_with(start));
            !options().any(is_summary) || options().any(asks_for_patch)
        }
        _ if LISTING.contains(&name) || first == "reflog" => options().any(asks_for_patch),
        _ => false,
    }
}

/// Reports whether a search has words besides the text that it looks for, so that these may name commits.
fn searches_commits(words: &[Option<&str>]) -> bool {
    let (mut texts, mut others, mut rest) = (0, 0, words.iter());
    while let Some(word) = rest.next() {
        match word {
            Some("-e" | "-f") => {
                rest.next();
                texts += 1;
            }
            Some(word) if word.starts_with("-e") || word.starts_with("-f") => texts += 1,
            Some("-A" | "-B" | "-C" | "-m") => drop(rest.next()),
            Some(word) if word.starts_with('-') => {}
            _ => others += 1,
        }
    }
    others > usize::from(texts == 0)
}

fn asks_for_patch(word: &str) -> bool {
    if word.starts_with("--") {
        return PATCHES.iter().any(|start| word.starts_with(start));
    }
    word.contains(PATCH_LETTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(text: &str) -> (bool, bool) {
        let words: Vec<_> = text.split(' ').map(|word| Some(word.to_owned())).collect();
        parse_look(&words).map_or((false, false), |look| (look.shows, look.only.is_some()))
    }

    #[test]
    fn git_commands_that_print_file_contents_differ_from_those_that_list_names() {
        for text in [
            "git show",
            "git show HEAD",
            "git -C a show abc",
            "git show --stat HEAD",
            "git log -p",
            "git log -3p",
            "git log --patch-with-stat",
            "git log -S x",
            "git log -Gx",
            "git log -L1,2:a",
            "git whatchanged -p",
            "git stash show",
            "git stash show -p stash@{1}",
            "git stash list -p",
            "git reflog -p",
            "git reflog show -p",
            "git cat-file -p HEAD",
            "git cat-file blob abc",
            "git cat-file --batch",
            "git diff",
            "git diff HEAD~1",
            "git diff --stat -p",
            "git diff-tree -p HEAD",
            "git diff-pairs",
            "git grep x HEAD",
            "git grep --cached x",
            "git grep -e x HEAD",
            "git range-diff a b",
            "git archive HEAD",
            "git format-patch -1 --stdout",
            "git merge-tree --trivial-merge a b c",
            "git -c color.ui=false log -p",
            "git log --remerge-diff",
        ] {
            assert!(looked(text).0, "{text}");
        }
        for text in [
            "git status",
            "git log",
            "git log --oneline -5",
            "git log --stat",
            "git diff --stat",
            "git diff --name-only HEAD",
            "git diff -s",
            "git ls-files",
            "git grep x",
            "git grep -n -e x",
            "git grep x -- src",
            "git cat-file -t HEAD",
            "git cat-file --batch-check",
            "git branch",
            "git stash list",
            "git reflog",
            "git rev-parse HEAD",
            "git blame a",
            "git fsck",
            "git apply --check p",
            "git shortlog -sn",
            "git",
        ] {
            assert!(!looked(text).0, "{text}");
        }
    }

    #[test]
    fn git_pathspec_limits_shown_contents_only_if_it_is_a_plain_path() {
        for (text, is_limited) in [
            ("git log -p -- src", true),
            ("git show HEAD -- a b/c", true),
            ("git log -p", false),
            ("git log -p --", false),
            ("git log -p -- :/", false),
            ("git log -p -- *.rs", false),
            ("git cat-file -p abc -- a", false),
            ("git archive -- HEAD", false),
            ("git archive HEAD -- src", false),
            ("git log -p --full-diff -- src", false),
            ("git show --full-d HEAD -- a", false),
            ("git log -p --follow -- a", false),
            ("git log -p --format=%h -- a", true),
        ] {
            assert_eq!(looked(text).1, is_limited, "{text}");
        }
    }
}
