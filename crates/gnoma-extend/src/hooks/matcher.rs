//! For which tools a hook runs, as it was written beside it.

use regex_automata::meta::Regex;

use crate::{
    claude::our_name,
    names::{ours, theirs},
};

/// A hook's condition.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    /// None.
    All,
    /// One of these names, exactly.
    Names(Vec<String>),
    /// A regular expression, anywhere in the name.
    Regex(Box<Regex>),
    /// Names of ours, or of servers, that are regular expressions too.
    Either(Vec<String>, Box<Regex>),
    /// A glob of gnoma's own names.
    Glob(String),
    /// It cannot be read, so that it fits nothing.
    Broken,
}

impl Matcher {
    /// As other programs read it: `*` and nothing are all; letters, `|` and commas are lists of names; with
    /// any other sign it is a regular expression.
    pub(crate) fn read(text: &str) -> Self {
        let text = text.trim();
        if text.is_empty() || text == "*" {
            return Self::All;
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '|' | ',' | ' ');
        // Names hold these too, though there they make an expression.
        let is_either = |c: char| is_word(c) || matches!(c, '-' | '.');
        let names = || {
            let names = text.split(['|', ',']).map(|name| name.trim().to_owned());
            names.filter(|name| !name.is_empty()).collect::<Vec<_>>()
        };
        if text.chars().all(is_word) {
            return Self::Names(names());
        }
        match Regex::new(text) {
            Ok(regex) if text.chars().all(is_either) => Self::Either(names(), Box::new(regex)),
            Ok(regex) => Self::Regex(Box::new(regex)),
            Err(_) => Self::Broken,
        }
    }

    /// A glob of tool names; nothing is all.
    pub(crate) fn glob(text: &str) -> Self {
        if text.is_empty() || text == "*" { Self::All } else { Self::Glob(text.to_owned()) }
    }

    /// Whether the hook is for what is called so: a tool by our name, or any other word.
    pub(crate) fn fits(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|it| is_named(it, name)),
            Self::Regex(regex) => regex.is_match(theirs(name)),
            Self::Either(names, regex) => {
                names.iter().any(|it| is_named(it, name)) || regex.is_match(theirs(name))
            }
            Self::Glob(glob) => glob.split('|').any(|glob| fits(glob.as_bytes(), name.as_bytes())),
            Self::Broken => false,
        }
    }
}

/// Whether a tool is meant: by its other name, if it has one, else by ours.
fn is_named(written: &str, name: &str) -> bool {
    // `bash` is not `Bash` to programs that write so; ours with a dot can only be ours.
    let is_theirs = written != name && (ours(written) == name || our_name(written) == name);
    is_theirs || written == theirs(name) || (written == name && name.contains('.'))
}

/// Whether a glob of `*` and `?` fits. It goes back to the last `*` alone, so that its steps are bounded by the product
/// of the two lengths.
fn fits(glob: &[u8], name: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    // Behind the last star, and what that star has not taken yet.
    let mut last_star = None;
    while let Some(letter) = name.get(read) {
        match glob.get(at) {
            Some(b'*') => {
                at += 1;
                last_star = Some((at, read));
            }
            Some(sign) if *sign == b'?' || sign == letter => (at, read) = (at + 1, read + 1),
            _ => match &mut last_star {
                Some((behind, taken)) => {
                    *taken += 1;
                    (at, read) = (*behind, *taken);
                }
                None => return false,
            },
        }
    }
    glob.get(at..).unwrap_or_default().iter().all(|sign| *sign == b'*')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a glob means, by trying everything.
    fn tried(glob: &[u8], name: &[u8]) -> bool {
        match (glob.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) if tried(rest, name) => true,
            (Some((b'*', _)), Some((_, after))) => tried(glob, after),
            (Some((b'?', rest)), Some((_, after))) => tried(rest, after),
            (Some((one, rest)), Some((other, after))) if one == other => tried(rest, after),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn hook_globs_mean_what_trying_everything_says(glob in "[ab*?]{0,7}", name in "[ab]{0,8}") {
            prop_assert_eq!(fits(glob.as_bytes(), name.as_bytes()), tried(glob.as_bytes(), name.as_bytes()));
        }
    }

    #[test]
    fn a_hook_glob_of_many_stars_is_matched_in_few_steps() {
        let (glob, name) = ("a*".repeat(1_000) + "b", "a".repeat(20_000));
        // Trying everything would not end.
        assert!(!Matcher::glob(&glob).fits(&name));
        assert!(Matcher::glob(&("a*".repeat(1_000))).fits(&name));
    }

    #[test]
    fn matchers_are_read_as_measured() {
        let fits = |matcher: &str, tool: &str| Matcher::read(matcher).fits(tool);
        for all in ["", "*", " "] {
            assert!(fits(all, "bash") && fits(all, "fs.read"));
        }
        assert!(fits("Bash", "bash") && fits("Edit|Write", "fs.write"));
        assert!(
            fits("Bash, Write", "fs.write") && fits("^Ba.*", "bash") && fits("fs.edit", "fs.edit")
        );
        assert!(
            !fits("Bas", "bash")
                && !fits("bash", "bash")
                && !fits("BASH", "bash")
                && !fits("Read", "fs.write")
        );
        assert!(fits("mcp__.*__write", "mcp__a__write") && !fits("(", "bash"));
        assert!(Matcher::glob("fs.*").fits("fs.edit") && !Matcher::glob("fs.*").fits("bash"));
    }
}
