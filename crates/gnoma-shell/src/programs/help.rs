//! Whether words only ask a program for its help or version: `tables/help.list` says of which programs it is
//! known that they print it before they look at the project. Of every other program it is not known.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

const LIST: &str = include_str!("tables/help.list");

/// Words before the programs whose commands take `--help`.
const OF_COMMANDS: &str = "command --help";

/// Most words of a command, such as `providers schema`.
const MAX_COMMAND_WORDS: usize = 3;

/// Word to the programs that print and end for it.
static PROGRAMS: LazyLock<HashMap<&'static str, HashSet<&'static str>>> = LazyLock::new(|| {
    let mut programs: HashMap<_, HashSet<_>> = HashMap::new();
    for (words, names) in help_lines() {
        let words = if words == OF_COMMANDS { vec![words] } else { words.split(' ').collect() };
        for word in words {
            programs.entry(word).or_default().extend(names.split_whitespace());
        }
    }
    programs
});

fn help_lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(": "))
}

/// True if `program` with these words prints and ends, regardless of the project around it.
pub(crate) fn only_prints(program: &str, words: &[&str]) -> bool {
    let has = |words| PROGRAMS.get(words).is_some_and(|names| names.contains(program));
    match words {
        [word] => has(*word),
        [command @ .., "--help"] if command.len() <= MAX_COMMAND_WORDS => {
            let is_name = |word: &&str| {
                word.starts_with(|letter: char| letter.is_ascii_lowercase())
                    && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            };
            has(OF_COMMANDS) && command.iter().all(is_name)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_version_flags_are_read_only_for_listed_programs_only() {
        for (program, words, free) in [
            ("node", &["--version"][..], true),
            ("kubectl", &["api-resources", "--help"], true),
            ("terraform", &["providers", "schema", "--help"], true),
            ("pnpm", &["--version"], false),
            ("kubectl", &["get", "-f", "x", "--help"], false),
            ("kubectl", &["./x", "--help"], false),
            ("pytest", &["--help"], false),
            ("mvn", &["--version"], false),
            ("lerna", &["--version"], false),
            ("unheard-of", &["--help"], false),
            ("node", &["--version", "x.js"], false),
            ("npm", &["ls", "--help"], false),
        ] {
            assert_eq!(only_prints(program, words), free, "{program} {words:?}");
        }
    }

    #[test]
    fn every_help_table_line_names_flags_and_programs() {
        let all = LIST.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
        assert_eq!(help_lines().count(), all);
        let is_word = |word: &str| word.starts_with('-') && word.len() > 1;
        for (words, names) in help_lines() {
            assert!(words == OF_COMMANDS || words.split(' ').all(is_word), "{words}");
            assert!(names.split_whitespace().next().is_some(), "{words}");
        }
    }
}
