//! Which paths a conversation is concerned with, as far as rules ask for them. What was spoken of or opened once stays
//! in the history that every model is sent, so it counts from then on. Text only: no path is looked up.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Rule, glob::fits_path};

/// Characters that part one path from the next in prose, code, logs and command lines.
const PARTING: &[char] = &[
    '"', '\'', '`', '(', ')', '[', ']', '{', '}', '<', '>', ',', ';', '|', '&', '=', '$', '“', '”',
    '‘', '’', '«', '»',
];
/// Parts of a path that are looked at; a deeper one is cut.
const MOST_PARTS: usize = 64;

/// The folders in which relative paths begin. Both absolute, with `/` between their parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathBase {
    /// The folder of the project.
    pub root: String,
    /// The folder that is worked in.
    pub folder: String,
}

/// The paths met so far that rules ask for: no more than rules have patterns.
#[derive(Clone, Debug, Default)]
pub struct MatchedPaths {
    globs: Vec<String>,
    ground: PathBase,
    met: BTreeSet<String>,
}

impl MatchedPaths {
    /// Creates the state in which nothing was met yet but the folder.
    #[must_use]
    pub fn new(rules: &[Rule], ground: PathBase) -> Self {
        let globs: BTreeSet<&String> =
            gnoma_core::sort::to_set(rules.iter().flat_map(|rule| &rule.when.paths));
        let globs = globs.into_iter().cloned().collect();
        let mut concern = Self { globs, ground, met: BTreeSet::new() };
        concern.add_path(".", true);
        concern
    }

    /// Reports whether any rule asks for paths.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        !self.globs.is_empty()
    }

    /// Returns the paths that were met, relative to the project.
    #[must_use]
    pub fn matched_paths(&self) -> Vec<String> {
        self.met.iter().cloned().collect()
    }

    /// Somebody speaks of things: the paths among them.
    pub fn add_mentioned_paths(&mut self, text: &str) {
        for piece in path_candidates(text).filter(|piece| is_path(piece)) {
            self.add_path(piece, piece.ends_with(['/', '\\']));
        }
    }

    /// Arguments of a tool call: any word of a command can be a folder, and so can what is called a path.
    pub fn open(&mut self, arguments: &Value) {
        self.open_named("", arguments);
    }

    fn open_named(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) if name.contains("command") || name.contains("path") => {
                self.add_path(text, true);
                for piece in path_candidates(text) {
                    self.add_path(piece, true);
                }
            }
            Value::String(text) => self.add_mentioned_paths(text),
            Value::Array(values) => {
                for value in values {
                    self.open_named(name, value);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.open_named(name, value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn add_path(&mut self, path: &str, may_be_folder: bool) {
        if self.globs.is_empty() {
            return;
        }
        let path = self.ground.in_project(path);
        let folder = format!("{path}/");
        let forms = [path, folder];
        let forms = forms.iter().take(if may_be_folder { 2 } else { 1 });
        for form in forms {
            let fits = |glob: &&String| fits_path(glob, form);
            let is_known = |glob: &String| self.met.iter().any(|met| fits_path(glob, met));
            if self.globs.iter().filter(fits).any(|glob| !is_known(glob)) {
                self.met.insert(form.clone());
            }
        }
    }
}

impl PathBase {
    /// A path as rules name it: relative to the project where it lies in it, else absolute.
    fn in_project(&self, path: &str) -> String {
        let path = path.replace('\\', "/");
        let whole = if path.starts_with(['/', '~']) || path.get(1..3) == Some(":/") {
            path
        } else {
            format!("{}/{path}", self.folder)
        };
        let whole = normalise_path(&whole);
        let root = normalise_path(&self.root.replace('\\', "/"));
        match whole.strip_prefix(&root) {
            Some("") => String::new(),
            Some(rest) if root.ends_with('/') || root.is_empty() => {
                rest.trim_start_matches('/').to_owned()
            }
            Some(rest) => rest.strip_prefix('/').map_or_else(|| whole.clone(), str::to_owned),
            None => whole,
        }
    }
}

/// Without `.`, `..` and doubled separators.
fn normalise_path(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').take(MOST_PARTS) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let begin = if path.starts_with('/') { "/" } else { "" };
    format!("{begin}{}", parts.join("/"))
}

/// The parts of a text that could be paths, without the marks around them and the place in the file behind them.
fn path_candidates(text: &str) -> impl Iterator<Item = &str> {
    let parts = |char: char| char.is_whitespace() || PARTING.contains(&char);
    text.split(parts).map(trim_marks).filter(|piece| !piece.is_empty())
}

fn trim_marks(piece: &str) -> &str {
    let piece = piece.trim_start_matches(['@', '#', '*', '!', ':']);
    let piece = piece.trim_end_matches(['.', ':', '!', '?', '*', '…']);
    let place = |char: char| char.is_ascii_digit() || matches!(char, ':' | '-');
    match piece.split_once(':') {
        Some((path, rest)) if !path.is_empty() && rest.chars().all(place) => path,
        _ => piece,
    }
}

/// Reports whether a piece of text looks like a path: it has folders, or a name with an ending.
fn is_path(piece: &str) -> bool {
    if piece.contains("://") {
        return false;
    }
    let ends = |(stem, ending): (&str, &str)| {
        (1..=8).contains(&ending.len())
            && ending.chars().all(char::is_alphanumeric)
            && (stem.is_empty() || ending.chars().any(char::is_alphabetic))
    };
    piece.contains(['/', '\\']) || piece.rsplit_once('.').is_some_and(ends)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::rules::{RuleConditions, RuleEffect};

    fn concern(globs: &[&str], folder: &str) -> MatchedPaths {
        let rule = Rule {
            name: "r".to_owned(),
            origin: "here".to_owned(),
            when: RuleConditions {
                paths: globs.iter().map(|glob| (*glob).to_owned()).collect(),
                ..RuleConditions::default()
            },
            then: vec![RuleEffect::Pin("ollama/*".to_owned())],
        };
        let ground =
            PathBase { root: "/home/me/shop".to_owned(), folder: format!("/home/me/shop{folder}") };
        MatchedPaths::new(&[rule], ground)
    }

    #[test]
    fn routing_rule_path_is_found_in_any_spelling_in_a_prompt() {
        for text in [
            "read secrets/key.txt",
            "read ./secrets/key.txt.",
            "read src/../secrets/key.txt",
            "read /home/me/shop/secrets/key.txt",
            "read @secrets/key.txt please",
            "read Secrets/Key.txt",
            r"read secrets\key.txt",
            "```\ncat secrets/key.txt\n```",
            "error in secrets/key.txt:3: bad line",
            "secrets/key.txt:3:14",
            "see [the key](secrets/key.txt), it",
            "open(\"secrets/key.txt\")",
            "look into secrets/",
            "> secrets/a/b/c",
        ] {
            let mut concern = concern(&["secrets/**"], "");
            concern.add_mentioned_paths(text);
            assert_eq!(concern.matched_paths().len(), 1, "{text}");
        }
        for text in [
            "read src/secrets/key.txt",
            "keep secrets",
            "https://a.b/secrets/key.txt",
            "../secrets/x",
        ] {
            let mut concern = concern(&["secrets/**"], "");
            concern.add_mentioned_paths(text);
            assert!(concern.matched_paths().is_empty(), "{text}");
        }
    }

    #[test]
    fn routing_rule_paths_are_relative_to_the_working_folder() {
        assert_eq!(concern(&["secrets/**"], "/secrets/a").matched_paths(), ["secrets/a"]);
        let mut inside = concern(&["src/**/*.sql"], "/src/db");
        inside.add_mentioned_paths("read up.sql");
        assert_eq!(inside.matched_paths(), ["src/db/up.sql"]);
        let mut above = concern(&["secrets/**"], "/src");
        above.add_mentioned_paths("and ../secrets/key.txt");
        assert_eq!(above.matched_paths(), ["secrets/key.txt"]);
    }

    #[test]
    fn tool_call_arguments_match_routing_rule_paths() {
        for call in [
            json!({"path": "secrets/key.txt"}),
            json!({"path": "secrets"}),
            json!({"path": "\u{73}ecrets/key.txt", "limit": 3}),
            json!({"paths": ["src", {"path": "secrets"}]}),
            json!({"command": "cd secrets && cat key.txt"}),
            json!({"command": "cat secrets/*"}),
            json!({"pattern": "x", "glob": "secrets/**/*.txt"}),
        ] {
            let mut concern = concern(&["secrets/**"], "");
            concern.open(&call);
            assert!(!concern.matched_paths().is_empty(), "{call}");
        }
        let mut other = concern(&["secrets/**"], "");
        other.open(&json!({"pattern": "secrets", "path": "src"}));
        assert!(other.matched_paths().is_empty());
    }

    proptest! {
        #[test]
        fn matched_routing_paths_are_at_most_one_per_glob(text in "[a-c/. \"]{0,400}") {
            let globs = ["a/**", "*.b", "**/c/*"];
            let mut concern = concern(&globs, "");
            concern.add_mentioned_paths(&text);
            prop_assert!(concern.matched_paths().len() <= globs.len());
        }

        #[test]
        fn routing_path_detection_never_panics_on_any_text(text in "\\PC{0,200}") {
            let mut concern = concern(&["**"], "");
            concern.add_mentioned_paths(&text);
            concern.open(&json!({ "path": text, "command": text }));
        }
    }
}
