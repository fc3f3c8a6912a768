//! The verbs that command lines use, whatever they are about, and which of them mean the same.

use clap::Command;

/// Other programs' commands that answer one prompt.
pub(super) const EXEC: &str = "exec";
pub(super) const RUN: &str = "run";
/// Verbs that mean the same, each list in the order in which one is suggested for another.
const SYNONYMS: [&[&str]; 21] = [
    &["list", "ls", "lst", "all", "show", "stats"],
    &[
        "show", "get", "view", "info", "describe", "details", "inspect", "cat", "print", "explain",
        "list",
    ],
    &["remove", "rm", "delete", "del", "uninstall", "unset", "drop", "destroy", "forget", "purge"],
    &["add", "create", "new", "install", "register", "init"],
    &["install", "add"],
    &["set", "edit", "change", "modify", "configure", "put"],
    &["rename", "mv", "move"],
    &["validate", "check", "verify", "lint", "test", "scan"],
    &["test", "check", "ping", "status", "validate"],
    &["update", "upgrade", "refresh", "pull"],
    &["export", "dump", "backup"],
    &["import", "load", "restore"],
    &["search", "find", "grep"],
    &["fork", "copy", "cp", "clone", "duplicate"],
    &["trust", "approve", "allow", "enable"],
    &["revoke", "disable", "deny"],
    &["login", "logout", "auth", "signin"],
    &["reset", "clear", "prune"],
    &["serve", "run", "start", "exec", "restart"],
    &["stop", "kill"],
    &["stats", "status", "usage", "list"],
];
/// Words that, alone behind a command's name, are no sentence together with it.
const LONE_WORDS: [&str; 27] = [
    "list",
    "ls",
    "show",
    "get",
    "set",
    "add",
    "remove",
    "rm",
    "delete",
    "install",
    "uninstall",
    "enable",
    "disable",
    "edit",
    "check",
    "start",
    "stop",
    "status",
    "now",
    "today",
    "yesterday",
    "latest",
    "help",
    "on",
    "off",
    "caps",
    "limits",
];
/// More words than these after a verb are a sentence.
const MAX_ARGUMENTS: usize = 3;
/// Words that make a sentence of those around them.
const SENTENCE_WORDS: [&str; 72] = [
    "a", "about", "again", "all", "an", "and", "any", "are", "as", "at", "be", "broken", "but",
    "by", "can", "could", "crashes", "do", "does", "every", "failed", "fails", "first", "for",
    "from", "hangs", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me",
    "missing", "my", "no", "not", "of", "on", "or", "our", "please", "should", "slow", "so",
    "some", "than", "that", "the", "their", "then", "there", "these", "this", "those", "to", "us",
    "was", "we", "what", "when", "where", "which", "why", "with", "works", "wrong", "you",
];

/// True if a word is a verb of command lines.
pub(super) fn is_verb(word: &str) -> bool {
    let word = word.to_lowercase();
    SYNONYMS.iter().any(|verbs| verbs.contains(&word.as_str()))
}

/// True if a word that stands alone behind the name of a command or of a thing means a command: `doctor check`
/// does, `web search` does not.
pub(super) fn is_lone_word(word: &str) -> bool {
    LONE_WORDS.contains(&word.to_lowercase().as_str())
}

/// True if words have the form of arguments, as `2026`, `a.txt` and `tui.vim` have it. A plain word has not: what
/// stands behind `config remove` in `config remove dead code` continues a sentence.
pub(super) fn look_like_arguments<'a>(words: impl IntoIterator<Item = &'a str>) -> bool {
    let marks = |c: char| c.is_ascii_digit() || "./=_:".contains(c);
    words.into_iter().all(|word| word.trim_end_matches(['.', ':']).contains(marks))
}

/// True if words can be the arguments of a command: they are few, and none of them occurs only in sentences.
pub(super) fn are_arguments<'a>(words: impl IntoIterator<Item = &'a str>) -> bool {
    let is_argument = |word: &str| {
        !word.contains(char::is_whitespace)
            && !SENTENCE_WORDS.contains(&word.to_lowercase().trim_end_matches(['?', '.', ',', '!']))
    };
    let mut words = words.into_iter();
    words.by_ref().take(MAX_ARGUMENTS).all(is_argument) && words.next().is_none()
}

/// The subcommand of `command` that means what `verb` means.
pub(super) fn find_synonym<'a>(verb: &str, command: &'a Command) -> Option<&'a Command> {
    let verb = verb.to_lowercase();
    let lists = SYNONYMS.iter().filter(|verbs| verbs.contains(&verb.as_str()));
    let shown = lists.flat_map(|verbs| verbs.iter()).find_map(|name| command.find_subcommand(name));
    shown.filter(|found| !found.is_hide_set())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Args;

    #[test]
    fn unknown_verb_maps_to_a_synonymous_subcommand() {
        let root = Args::command();
        for (command, verb, meant) in [
            ("config", "list", Some("show")),
            ("config", "edit", Some("set")),
            ("config", "view", Some("show")),
            ("config", "unset", None),
            ("sessions", "find", Some("search")),
            ("sessions", "info", Some("show")),
            ("sessions", "Del", Some("delete")),
            ("plugin", "uninstall", Some("remove")),
            ("plugin", "add", Some("install")),
            ("plugin", "show", Some("list")),
            ("mcp", "get", Some("list")),
            ("mcp", "create", Some("add")),
            ("mcp", "check", Some("test")),
            ("agents", "show", Some("list")),
            ("skills", "check", Some("validate")),
            ("guard", "check", Some("scan")),
            ("router", "clear", Some("reset")),
        ] {
            let command = root.find_subcommand(command).unwrap();
            let found = find_synonym(verb, command).map(Command::get_name);
            assert_eq!(found, meant, "{} {verb}", command.get_name());
        }
    }

    #[test]
    fn a_few_words_without_those_of_a_sentence_are_arguments() {
        for words in ["", "2026", "tui.vim", "a.txt b.txt", "x true now"] {
            assert!(are_arguments(words.split_whitespace()), "{words}");
        }
        for words in
            ["the file", "of tokio", "fails often", "one two three four", "it", "tests, please?"]
        {
            assert!(!are_arguments(words.split_whitespace()), "{words}");
        }
        assert!(!are_arguments(["two words"]));
    }

    /// Holds for commands that are added later, too.
    #[test]
    fn remove_and_list_subcommands_have_all_usual_aliases() {
        for command in Args::command().get_subcommands() {
            for names in [&["remove", "rm", "delete"][..], &["list", "ls"]] {
                let is_there = |name: &&&str| command.find_subcommand(name).is_some();
                let found = names.iter().filter(is_there).count();
                let command = command.get_name();
                assert!(found == 0 || found == names.len(), "`{command}`: one of {names:?}");
            }
        }
    }
}
