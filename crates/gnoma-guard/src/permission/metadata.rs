//! Which commands show names, sizes, dates and states of the files that they are given, and nothing that is in them.

use gnoma_shell::Invocation;

use super::command_words::program_of;

/// Programs that show no content whatever their options are.
const SHOWING_METADATA: [&str; 4] = ["dir", "ls", "stat", "vdir"];
/// Programs that show or take a link itself, unless an option says otherwise.
const TAKING_LINKS: [&str; 9] = ["cpio", "du", "file", "find", "git", "mv", "rsync", "stat", "tar"];
/// Commands of git that name files, each with the options that keep it so.
const NAMING_OF_GIT: [(&str, &[&str]); 3] = [
    ("check-ignore", &["-q", "-v", "-n", "--quiet", "--verbose", "--non-matching", "--no-index"]),
    (
        "ls-files",
        &[
            "-c",
            "-d",
            "-i",
            "-m",
            "-o",
            "-s",
            "-t",
            "-u",
            "-z",
            "--cached",
            "--deleted",
            "--error-unmatch",
            "--exclude-standard",
            "--ignored",
            "--modified",
            "--others",
            "--stage",
            "--unmerged",
        ],
    ),
    (
        "status",
        &[
            "-b",
            "-s",
            "-sb",
            "-z",
            "--branch",
            "--ignored",
            "--long",
            "--porcelain",
            "--short",
            "-uall",
            "-uno",
        ],
    ),
];

/// Reports whether a command looks at the files that it names from outside alone.
pub(super) fn is_all(command: &Invocation) -> bool {
    let words: Option<Vec<&str>> = command.words.iter().map(Option::as_deref).collect();
    let rest = words.as_deref().and_then(<[_]>::split_first).map(|(_, rest)| rest);
    let options = |rest: &[&str], is_known: &dyn Fn(&str) -> bool| {
        let before_dashes = rest.iter().take_while(|word| **word != "--");
        before_dashes.filter(|word| word.starts_with('-')).all(|word| is_known(word))
    };
    match (program_of(command), rest) {
        // A pattern is known to expand to names alone.
        (program, _) if SHOWING_METADATA.contains(&program) => true,
        ("du", Some(rest)) => {
            // Names are read from a file by `-X`, `--exclude-from` and `--files0-from`, however they are shortened.
            options(rest, &|word| match word.strip_prefix("--") {
                Some(long) => !long.starts_with('f') && !long.starts_with("exclude-"),
                None => !word.contains('X'),
            })
        }
        ("git", Some([name, rest @ ..])) => NAMING_OF_GIT
            .iter()
            .find(|(known, _)| known == name)
            .is_some_and(|(_, known)| options(rest, &|word| known.contains(&word))),
        _ => false,
    }
}

/// Reports whether a command shows or takes the links that it is given, and not where they lead.
pub(super) fn shows_links(command: &Invocation) -> bool {
    let program = program_of(command);
    let options = || command.words.iter().flatten().filter(|word| word.starts_with('-'));
    // Letters by which a program follows links, beside `-H` and `-L`.
    let letters: &[char] = match program {
        "du" => &['D'],
        "rsync" => &['k'],
        "tar" => &['h'],
        _ => &[],
    };
    let is_following = |word: &String| match word.strip_prefix("--") {
        Some(long) => {
            long.starts_with("deref") || (long.starts_with("copy-") && long.ends_with("links"))
        }
        None => word.contains(['H', 'L']) || word.contains(letters) || word == "-follow",
    };
    // tar's first word can be letters without a dash.
    let first = command.words.get(1).and_then(Option::as_ref).filter(|_| program == "tar");
    if options().chain(first).any(is_following) {
        return false;
    }
    match program {
        // Without one of these a copy has what a link leads to.
        "cp" => options().any(|word| match word.strip_prefix("--") {
            Some(long) => ["archive", "no-dereference", "recursive"].contains(&long),
            None => word.contains(['a', 'd', 'P', 'r', 'R']),
        }),
        "dir" | "ls" => options().any(|word| {
            let long = word.strip_prefix("--");
            long.map_or(word.contains(['d', 'F', 'g', 'l', 'n', 'o']), |long| long == "directory")
        }),
        program => TAKING_LINKS.contains(&program),
    }
}

#[cfg(test)]
mod tests {
    use gnoma_shell::Risk;

    use super::*;

    #[test]
    fn ls_stat_and_git_status_read_only_metadata_and_cat_and_git_diff_do_not() {
        let is_all = |text: &str| {
            is_all(&Invocation {
                text: text.to_owned(),
                words: text.split(' ').map(|word| Some(word.to_owned())).collect(),
                cwd: None,
                effects: Vec::new(),
                risk: Risk::None,
            })
        };
        for text in [
            "ls -la .env",
            "/bin/ls .env",
            "stat -c %s .env",
            "du -sh .env",
            "git check-ignore -v .env",
            "git ls-files --error-unmatch .env",
            "git status --short -- .env",
            "git status -- -v",
        ] {
            assert!(is_all(text), "{text}");
        }
        for text in [
            "cat .env",
            "du -X .env",
            "du --files0-from=.env",
            "du --files0-f=.env",
            "du -sX .env",
            "git status -v .env",
            "git ls-files -X .env",
            "git -C x ls-files .env",
            "git diff .env",
            "git",
            "file .env",
        ] {
            assert!(!is_all(text), "{text}");
        }
    }
}
