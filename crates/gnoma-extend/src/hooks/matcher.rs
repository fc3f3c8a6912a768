//! Matchers of hooks: the tools for which a hook runs.

use gnoma_core::glob;
use regex_automata::meta::Regex;

use crate::{
    claude::our_name,
    names::{to_claude_name, to_gnoma_name},
};

/// The condition of a hook on the name of a tool or another word.
#[derive(Clone, Debug)]
pub(crate) enum Matcher {
    /// No condition: every name matches.
    All,
    /// One of these names, exactly.
    Names(Vec<String>),
    /// A regular expression, anywhere in the name.
    Regex(Box<Regex>),
    /// Names of ours, or of servers, that are regular expressions too.
    Either(Vec<String>, Box<Regex>),
    /// A glob of gnoma's own names.
    Glob(String),
    /// A condition that cannot be read, so that it matches nothing.
    Broken,
}

impl Matcher {
    /// As other programs read it: `*` and nothing are all; letters, `|` and commas are lists of names; with
    /// any other sign it is a regular expression.
    pub(crate) fn from_pattern(text: &str) -> Self {
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
    pub(crate) fn from_glob(text: &str) -> Self {
        if text.is_empty() || text == "*" { Self::All } else { Self::Glob(text.to_owned()) }
    }

    /// Reports whether the hook applies to `name`: a tool by gnoma's name, or any other word.
    pub(crate) fn matches_name(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|it| is_named(it, name)),
            Self::Regex(regex) => regex.is_match(to_claude_name(name)),
            Self::Either(names, regex) => {
                names.iter().any(|it| is_named(it, name)) || regex.is_match(to_claude_name(name))
            }
            Self::Glob(glob) => glob.split('|').any(|glob| glob::glob_matches(glob, name)),
            Self::Broken => false,
        }
    }
}

/// Reports whether `written` means the tool `name`: by its other name, if it has one, else by gnoma's.
fn is_named(written: &str, name: &str) -> bool {
    // `bash` is not `Bash` to programs that write so; ours with a dot can only be ours.
    let is_theirs =
        written != name && (to_gnoma_name(written) == name || our_name(written) == name);
    is_theirs || written == to_claude_name(name) || (written == name && name.contains('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_glob_of_many_stars_is_matched_in_few_steps() {
        let (glob, name) = ("a*".repeat(1_000) + "b", "a".repeat(20_000));
        // Trying everything would not end.
        assert!(!Matcher::from_glob(&glob).matches_name(&name));
        assert!(Matcher::from_glob(&("a*".repeat(1_000))).matches_name(&name));
    }

    #[test]
    fn hook_matchers_match_tool_names_like_claude_code() {
        let fits = |matcher: &str, tool: &str| Matcher::from_pattern(matcher).matches_name(tool);
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
        assert!(
            Matcher::from_glob("fs.*").matches_name("fs.edit")
                && !Matcher::from_glob("fs.*").matches_name("bash")
        );
    }
}
