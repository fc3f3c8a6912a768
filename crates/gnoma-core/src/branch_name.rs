//! Names of git branches.

use crate::names::is_unseen;

/// Most bytes of a branch's name. Git's own limit is that of a file's name with `.lock` behind it.
const MAX_BYTES: usize = 250;

/// Returns whether git accepts this as the name of a branch, by the rules of `git check-ref-format --branch`. Names
/// with blanks or letters that a screen does not show, and names that are too long for a file, are not accepted either.
#[must_use]
pub fn is_valid(name: &str) -> bool {
    let is_forbidden = |c: char| c == ' ' || is_unseen(c) || "~^:?*[\\".contains(c);
    let is_component = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
    };
    name.len() <= MAX_BYTES
        && !name.contains(is_forbidden)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.starts_with('-')
        && name != "@"
        && name != "HEAD"
        && name.split('/').all(is_component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_git_accepts_are_valid() {
        let long = "x".repeat(MAX_BYTES);
        for name in ["main", "feature/a-1", "fix_#12", "=1+1", "a@b", "zweig/ä", "v1.2", &long] {
            assert!(is_valid(name), "{name}");
        }
    }

    #[test]
    fn names_that_git_refuses_are_not_valid() {
        for name in [
            "",
            ".invalid",
            "a/.b",
            "a..b",
            "a.lock",
            "a.lock/b",
            "a.",
            "/a",
            "a/",
            "a//b",
            "a b",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "a[",
            "a\\b",
            "a@{1}",
            "-a",
            "HEAD",
            "@",
            "a\nb",
            "a\tb",
            "a\u{1b}[31m",
            "a\u{7f}",
            "a\u{85}b",
            "a\u{202e}b",
            "a\u{200b}",
            "a\u{a0}b",
        ] {
            assert!(!is_valid(name), "{name:?}");
        }
        assert!(!is_valid(&"x".repeat(MAX_BYTES + 1)));
    }
}
