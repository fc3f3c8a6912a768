//! The contents of a working folder, for models that would otherwise guess: the file names in a short text, and the
//! file that a question is probably about.
//!
//! Two levels deep. Hidden files and the output of builds and package managers are left out.

use std::{collections::BTreeSet, fs, path::Path};

/// Entries of a folder that are looked at.
const MAX_SEEN: usize = 400;
/// Names shown, of the folder and of each one in it.
const MAX_NAMES: usize = 24;
const MAX_NAMES_BELOW: usize = 12;
/// Bytes of the whole.
const MAX_BYTES: usize = 600;

/// Larger files are for the model to look into: they would fill its window.
pub(crate) const MAX_FILE_BYTES: u64 = 8 * 1024;
/// Files that are looked through for the words of a question.
const MAX_FILES: usize = 40;
/// Shorter words are in every text.
const MIN_WORD_CHARS: usize = 3;
/// Words of questions and orders that say nothing of a file.
const EMPTY: [&str; 48] = [
    "after", "all", "and", "any", "are", "can", "change", "code", "could", "did", "does",
    "explain", "file", "files", "fix", "for", "from", "give", "had", "has", "have", "how", "into",
    "its", "make", "many", "much", "now", "often", "please", "should", "tell", "that", "the",
    "then", "there", "this", "was", "what", "when", "where", "which", "who", "why", "will", "with",
    "would", "you",
];
/// So many words must be in a file, or all that there are.
const MIN_FOUND: usize = 2;

/// Words in front of a name that is defined.
const DEFINING: [&str; 18] = [
    "async",
    "class",
    "const",
    "def",
    "enum",
    "export",
    "fn",
    "func",
    "function",
    "interface",
    "let",
    "local",
    "pub",
    "static",
    "struct",
    "trait",
    "type",
    "var",
];

/// Folders that nobody wrote.
const MADE: [&str; 6] = ["__pycache__", "build", "dist", "node_modules", "target", "vendor"];

/// The file names, such as `README.md, src/ (main.rs, lib.rs)`; empty if there are none.
#[must_use]
pub fn names(folder: &Path) -> String {
    let mut text = String::new();
    let (entries, has_more) = entries(folder, MAX_NAMES);
    for (name, is_folder) in entries {
        let shown = if is_folder { below(folder, &name) } else { name };
        if text.len() + shown.len() > MAX_BYTES {
            return text + ", …";
        }
        text.push_str(if text.is_empty() { "" } else { ", " });
        text.push_str(&shown);
    }
    if has_more { text + ", …" } else { text }
}

fn below(folder: &Path, name: &str) -> String {
    let (entries, has_more) = entries(&folder.join(name), MAX_NAMES_BELOW);
    let mark = |(name, is_folder): (String, bool)| if is_folder { name + "/" } else { name };
    let mut names: Vec<String> = entries.into_iter().map(mark).collect();
    if has_more {
        names.push("…".to_owned());
    }
    if names.is_empty() { format!("{name}/") } else { format!("{name}/ ({})", names.join(", ")) }
}

/// The first `most` names in order and whether each is a folder; and whether there are more. Links are no
/// folders: they may lead anywhere.
fn entries(folder: &Path, most: usize) -> (Vec<(String, bool)>, bool) {
    let Ok(read) = fs::read_dir(folder) else { return (Vec::new(), false) };
    let mut all: Vec<(String, bool)> = read
        .take(MAX_SEEN)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_plain = !name.starts_with('.') && !name.contains(char::is_control);
            let is_folder = entry.file_type().ok()?.is_dir();
            (is_plain && !(is_folder && MADE.contains(&&*name))).then_some((name, is_folder))
        })
        .collect();
    gnoma_core::sort::by_key(&mut all, |(name, _)| name.clone());
    let has_more = all.len() > most;
    all.truncate(most);
    (all, has_more)
}

/// The small file that `text` is about, if that is one file: the one that defines the most of its words, or
/// else holds the most of them, two at least or the only one there is.
pub(crate) fn about(folder: &Path, text: &str) -> Option<String> {
    let wanted = words(text);
    let least = MIN_FOUND.min(wanted.len()).max(1);
    let found = files(folder).into_iter().filter_map(|path| {
        let text = fs::read_to_string(folder.join(&path)).ok()?;
        let here: BTreeSet<String> =
            gnoma_core::sort::set(words(&text).into_iter().chain(words(&path)));
        let is_here = |word: &&String| {
            // "How often does it ring?" is about what rings.
            let stem =
                word.strip_suffix('s').filter(|it| it.len() > MIN_WORD_CHARS).unwrap_or(word);
            here.range(stem.to_owned()..).next().is_some_and(|it| it.starts_with(stem))
        };
        let count = wanted.iter().filter(is_here).count();
        let defined: BTreeSet<String> = gnoma_core::sort::set(text.lines().filter_map(defines));
        let defines = wanted.iter().filter(|word| defined.contains(*word)).count();
        (defines > 0 || count >= least).then_some(((defines, count), path))
    });
    let mut found: Vec<_> = found.collect();
    let most = found.iter().map(|(count, _)| *count).max()?;
    found.retain(|(count, _)| *count == most);
    if let [(_, path)] = &*found { Some(path.clone()) } else { None }
}

/// The name that a line of code or of settings gives to something, in lower case.
fn defines(line: &str) -> Option<String> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = line.trim_start();
    let mut is_marked = false;
    loop {
        let quoted = rest.trim_start_matches(['"', '\'']);
        let end = quoted.find(|c| !is_name(c)).unwrap_or(quoted.len());
        let (name, after) = quoted.split_at(end);
        if DEFINING.contains(&name) {
            is_marked |= name != "pub" && name != "export";
            rest = after.trim_start();
            continue;
        }
        let after = after.trim_start_matches(['"', '\'']).trim_start();
        let is_set =
            after.starts_with([':', '=']) && !after.starts_with("==") || after.starts_with("() {");
        return (!name.is_empty() && (is_marked || is_set)).then(|| name.to_lowercase());
    }
}

/// The small files of two levels.
fn files(folder: &Path) -> Vec<String> {
    let (here, _) = entries(folder, MAX_NAMES);
    let below = here.iter().filter(|(_, is_folder)| *is_folder).flat_map(|(name, _)| {
        let (entries, _) = entries(&folder.join(name), MAX_NAMES_BELOW);
        let files = entries.into_iter().filter(|(_, is_folder)| !is_folder);
        files.map(move |(file, _)| format!("{name}/{file}"))
    });
    let here = here.iter().filter(|(_, is_folder)| !is_folder).map(|(name, _)| name.clone());
    let all = here.chain(below).take(MAX_FILES);
    // Nobody is to be asked about a file that nobody asked for.
    let all = all.filter(|path| gnoma_core::places::secret(Path::new(path)).is_none());
    all.filter(|path| is_small_file(&folder.join(path))).collect()
}

/// Whether it is a folder of the project, and no link.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|facts| facts.is_dir())
}

/// Whether it is a file, no link, and small enough to be read unasked.
pub(crate) fn is_small_file(path: &Path) -> bool {
    let facts = path.symlink_metadata();
    facts.is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_FILE_BYTES)
}

/// The words of a text that may tell what it is about, in lower case.
fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase);
    words
        .filter(|word| word.chars().count() >= MIN_WORD_CHARS && !EMPTY.contains(&&**word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_found_that_a_question_is_about() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join("src")).unwrap();
        let long = "bell ".repeat(2_000);
        for (path, text) in [
            ("README.md", "Bell rings every hour.\n"),
            ("package.json", r#"{"name": "kite", "author": "Ines", "version": "1"}"#),
            ("src/text.py", "def shout(words):\n    return words.upper()\n"),
            ("src/list.py", "def first(words):\n    return words[0]\n"),
            ("long.txt", &*long),
            (".env", "bell rings\n"),
            ("terraform.tfvars", "bell_rings = \"often\"\n"),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        for (text, path) in [
            ("How often does Bell ring?", Some("README.md")),
            ("Who is the author of this package?", Some("package.json")),
            ("shout() returns lower case words", Some("src/text.py")),
            ("What does first return?", Some("src/list.py")),
            ("In which file is the function shout defined?", Some("src/text.py")),
            ("What version is it?", Some("package.json")),
            ("What do the words return?", None),
            ("What is a monad?", None),
            ("hi", None),
        ] {
            assert_eq!(about(root, text).as_deref(), path, "{text}");
        }
    }

    #[test]
    fn a_definition_is_told_from_a_use() {
        for (line, name) in [
            ("    def parse_date(text):", Some("parse_date")),
            ("export async function Load() {", Some("load")),
            ("pub fn words(text: &str) -> usize {", Some("words")),
            ("const maxUsers = 25", Some("maxusers")),
            ("  \"author\": \"Ines\",", Some("author")),
            ("port = 8471", Some("port")),
            ("start() {", Some("start")),
            ("print(parse_date('2020-01-02'))", None),
            ("if a == b:", None),
            ("", None),
        ] {
            assert_eq!(defines(line).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn two_levels_are_named_in_order_without_what_nobody_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(names(root), "");
        for path in ["src/deep", "target/debug", ".git", "empty"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["src/b.rs", "src/a.rs", "README.md", ".env", "target/x", "od\nd"] {
            fs::write(root.join(path), "").unwrap();
        }
        assert_eq!(names(root), "README.md, empty/, src/ (a.rs, b.rs, deep/)");
        for nth in 0..MAX_NAMES {
            fs::write(root.join(format!("a{nth:02}")), "").unwrap();
        }
        assert!(names(root).ends_with(", …"));
        for nth in 0..MAX_NAMES {
            fs::write(root.join(format!("a{nth:02}-{}", "x".repeat(60))), "").unwrap();
        }
        assert!(names(root).len() < MAX_BYTES + 10, "{}", names(root));
    }
}
