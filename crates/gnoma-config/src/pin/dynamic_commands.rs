//! Detects shell commands whose program is known only at run time.

use std::collections::BTreeSet;

use super::file_name_candidates::as_a_shell_reads;

/// Variables that whoever runs hooks sets to folders that are pinned or nobody's of the project.
const KNOWN: [&str; 9] = [
    "CLAUDE_PROJECT_DIR",
    "CLAUDE_PLUGIN_ROOT",
    "CLAUDE_PLUGIN_DATA",
    "CLAUDE_SKILL_DIR",
    "CLAUDE_SESSION_ID",
    "GNOMA_PROJECT_DIR",
    "HOME",
    "PWD",
    "PATH",
];
/// Programs that run what their input or other programs name.
const OPEN: [&str; 5] = ["eval", "xargs", "parallel", "find", "fd"];

/// Reports whether the files that `command` runs are only known when it runs, where the values of `variables` are
/// known.
pub(super) fn shows_when_it_runs(command: &str, variables: &BTreeSet<String>) -> bool {
    let words = as_a_shell_reads(command);
    let sets = |name: &str| {
        let named = words.iter().zip(words.iter().skip(1));
        // `for x in …` and `x=…` give a value that stands in the command itself.
        let mut looped =
            named.filter(|(before, _)| *before == "for").map(|(_, name)| name.as_str());
        looped.any(|given| given == name) || command.contains(&format!("{name}="))
    };
    command.contains('`')
        || command.contains("$(")
        || words.iter().any(|word| OPEN.contains(&word.as_str()) || has_alternatives(word))
        || variable_names(command)
            .any(|name| !KNOWN.contains(&name) && !variables.contains(name) && !sets(name))
}

/// Reports whether a shell turns a word into several, such as `{a,b}.sh`.
fn has_alternatives(word: &str) -> bool {
    word.find('{').is_some_and(|open| word.get(open..).is_some_and(|rest| rest.contains(',')))
}

/// The names behind `$` and `${`; not those of arguments, such as `$1`.
fn variable_names(command: &str) -> impl Iterator<Item = &str> {
    command.split('$').skip(1).filter_map(|rest| {
        let rest = rest.trim_start_matches(['{', '!', '#']);
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c: char| !is_of_name(c)).unwrap_or(rest.len());
        let name = rest.get(..end)?;
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_').then_some(name)
    })
}
