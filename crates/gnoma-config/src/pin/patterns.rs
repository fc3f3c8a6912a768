//! Glob patterns in commands, resolved to the project's files that a shell would put in their place.
//!
//! They come from a repository that nobody may have looked at: matching takes time in proportion to pattern and
//! name, all is counted, folders behind links and outside of the project are not entered, and a pattern that says
//! nothing about names pins nothing.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

use gnoma_core::glob::{self, Token};

use super::file_name_candidates::as_a_shell_reads;

/// Patterns of all settings that are looked at, and the longest.
const MAX_PATTERNS: usize = 128;
const MAX_PATTERN_BYTES: usize = 128;
/// Files that one may stand for.
const MAX_FILES: usize = 64;
/// Entries of folders that are looked at for all of them.
const MAX_ENTRIES: usize = 8_000;

/// The variables that stand for the project's own folder at the start of a path.
const PROJECT: [&str; 2] = ["$CLAUDE_PROJECT_DIR/", "${CLAUDE_PROJECT_DIR}/"];

/// The number of patterns and folder entries that may still be looked at.
#[derive(Debug)]
pub(super) struct Budget {
    patterns: usize,
    entries: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self { patterns: MAX_PATTERNS, entries: MAX_ENTRIES }
    }
}

/// The files that match the patterns of a command.
#[derive(Debug, Default)]
pub(super) struct PatternMatches {
    /// Seen from the project's folder.
    pub(super) found: Vec<PathBuf>,
    /// They may stand for more than was found.
    pub(super) is_cut: bool,
}

/// The files in `folder` that the patterns of a command stand for.
pub(super) fn match_files(folder: &Path, command: &str, left: &mut Budget) -> PatternMatches {
    let words = as_a_shell_reads(command);
    let is_pattern = |word: &&String| word.contains(['*', '?', '[']) && !word.contains("://");
    let patterns: Vec<&String> = words.iter().filter(is_pattern).collect();
    let mut matched =
        PatternMatches { is_cut: patterns.len() > left.patterns, ..PatternMatches::default() };
    for pattern in patterns.into_iter().take(left.patterns) {
        left.patterns -= 1;
        match of_one(folder, pattern, &mut left.entries) {
            Some(found) => matched.found.extend(found),
            None => matched.is_cut = true,
        }
    }
    matched
}

/// The files that one pattern stands for; `None` where that is more than is looked at.
fn of_one(folder: &Path, pattern: &str, entries_left: &mut usize) -> Option<Vec<PathBuf>> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return None;
    }
    let below = PROJECT.iter().find_map(|start| pattern.strip_prefix(start));
    let path = Path::new(below.unwrap_or(pattern));
    let below = path.strip_prefix(folder).unwrap_or(path);
    let mut names = Vec::new();
    for part in below.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(name) => names.push(name.to_str()?),
            // Nothing outside of the project is looked at, or pinned.
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    let says_nothing = |name: &&str| name.chars().all(|letter| "*?[]!^-".contains(letter));
    if names.last().is_none_or(says_nothing) {
        return None;
    }
    let mut level = vec![PathBuf::new()];
    for (number, name) in names.iter().enumerate() {
        let is_last = number + 1 == names.len();
        level = next_level(folder, &level, name, is_last, entries_left)?;
    }
    (level.len() <= MAX_FILES).then_some(level)
}

/// Returns the paths in the folders `level` whose names match `name`; `None` where too many entries must be looked
/// at.
fn next_level(
    folder: &Path,
    level: &[PathBuf],
    name: &str,
    is_last: bool,
    entries_left: &mut usize,
) -> Option<Vec<PathBuf>> {
    let mut next = Vec::new();
    for below in level {
        let fitting = if name.contains(['*', '?', '[']) {
            let entries = fs::read_dir(folder.join(below)).into_iter().flatten().flatten();
            let mut fitting = Vec::new();
            for entry in entries {
                *entries_left = entries_left.checked_sub(1)?;
                let entry = entry.file_name();
                fitting.extend(
                    entry.to_str().filter(|entry| name_matches(name, entry)).map(str::to_owned),
                );
            }
            gnoma_core::sort::sort_items(&mut fitting);
            fitting
        } else {
            vec![name.to_owned()]
        };
        for path in fitting.into_iter().map(|name| below.join(name)) {
            let place = folder.join(&path);
            let facts = place.symlink_metadata();
            let goes_on =
                if is_last { place.is_file() } else { facts.is_ok_and(|facts| facts.is_dir()) };
            next.extend(goes_on.then_some(path));
        }
    }
    Some(next)
}

/// Reports whether a name matches a pattern; brackets match any one letter. A pattern matches a hidden name only if
/// it starts with the dot itself.
fn name_matches(pattern: &str, name: &str) -> bool {
    (!name.starts_with('.') || pattern.starts_with('.'))
        && glob::tokens_match(&parse_pattern(pattern), name)
}

fn parse_pattern(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars();
    while let Some(letter) = rest.next() {
        tokens.push(match letter {
            '*' => Token::Any,
            '?' => Token::One,
            '[' => {
                // A bracket that begins the list does not end it.
                let inside = rest.as_str();
                let first = inside.trim_start_matches(['!', '^']);
                let from = inside.len() - first.len() + usize::from(first.starts_with(']'));
                match inside.get(from..).and_then(|list| list.find(']')) {
                    Some(end) => {
                        rest = inside.get(from + end + 1..).unwrap_or_default().chars();
                        Token::One
                    }
                    None => Token::Char('['),
                }
            }
            other => Token::Char(other),
        });
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glob_patterns_match_like_in_a_shell() {
        for (pattern, name, expected) in [
            ("*.sh", "a.sh", true),
            ("*.sh", ".sh", false),
            (".*", ".x", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("?", "ab", false),
            ("[ab]1", "b1", true),
            ("[]x]1", "]1", true),
            ("[!a]", "b", true),
            ("[a", "[a", true),
            ("**", "x", true),
            ("é?", "éa", true),
        ] {
            assert_eq!(name_matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
