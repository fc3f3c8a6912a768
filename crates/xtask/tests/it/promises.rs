//! Each promise of `docs/security.md` names tests that exist, in a comment behind it. That they pass is seen elsewhere.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Parts of the page that promise nothing; neither does the text before the first part.
const FREE: [&str; 2] = ["What is not promised", "Known attacks on other agents"];

/// A paragraph, an entry of a list or a table, with the comment behind it.
struct Block {
    /// The heading above it, without the signs.
    part: String,
    lines: Vec<String>,
}

impl Block {
    /// What people read of it, without code.
    fn text(&self) -> String {
        let (mut text, mut is_hidden, mut is_code) = (String::new(), false, false);
        for line in self.lines.iter().map(|line| line.trim()) {
            is_hidden |= line.starts_with("<!--");
            if line.starts_with("```") {
                is_code = !is_code;
            } else if !is_hidden && !is_code && !line.starts_with('#') {
                text.push_str(line);
                text.push('\n');
            }
            is_hidden &= !line.ends_with("-->");
        }
        text.trim().to_owned()
    }

    /// Tests named in its comment: `crate::file::name`.
    fn tests(&self) -> Vec<&str> {
        let lines = self.lines.iter().map(|line| line.trim());
        let behind = lines.skip_while(|line| *line != "<!-- tests:").skip(1);
        behind.take_while(|line| *line != "-->").collect()
    }

    /// Whether it says something that has to be true. What ends in a colon leads to what does.
    fn promises(&self) -> bool {
        let text = self.text();
        let is_free = self.part.is_empty() || FREE.contains(&self.part.as_str());
        !is_free && !text.is_empty() && !text.ends_with(':')
    }
}

fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut part, mut is_code, mut is_new) = (String::new(), false, true);
    for line in page.lines() {
        if !is_code && let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut part);
        }
        is_new |= !is_code && (line.trim().is_empty() || line.starts_with("- "));
        if is_new {
            blocks.push(Block { part: part.clone(), lines: Vec::new() });
        }
        is_new = false;
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        blocks.last_mut().unwrap().lines.push(line.to_owned());
    }
    blocks
}

/// The tests of a file, by name: functions, those that `attempts!` makes, and that of a program with a `main` of its own.
fn tests_of(source: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        let is_other = |letter: char| letter != '_' && !letter.is_alphanumeric();
        let function = line.split_once("fn ").map(|(_, rest)| rest);
        let attempt = line.strip_prefix("holds ").or_else(|| line.strip_prefix("refuses "));
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = function.filter(|_| is_test).or(attempt) {
            found.extend(rest.split(is_other).next());
            is_test = false;
        } else if let Some(rest) = line.strip_prefix("const NAME: &str = \"") {
            found.extend(rest.split('"').next());
        }
    }
    found
}

/// All tests of the crates, as `crate::file::name`; a file named `mod`, `main` or `lib` goes by its folder.
fn all_tests(crates: &Path) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    let mut folders: Vec<PathBuf> = vec![crates.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let below = path.strip_prefix(crates).unwrap();
                let home = below.iter().next().unwrap().to_string_lossy().replace('-', "_");
                let named = match path.file_stem().unwrap().to_str().unwrap() {
                    "mod" | "main" | "lib" => path.parent().unwrap().file_name(),
                    _ => path.file_stem(),
                };
                let file = named.unwrap().to_string_lossy();
                let source = fs::read_to_string(&path).unwrap();
                tests
                    .extend(tests_of(&source).iter().map(|test| format!("{home}::{file}::{test}")));
            }
        }
    }
    tests
}

#[test]
fn each_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let known = all_tests(&root.join("crates"));
    let blocks = blocks(&page);
    let bare = blocks.iter().filter(|block| block.promises() && block.tests().is_empty());
    let bare: Vec<_> = bare.map(Block::text).collect();
    assert!(bare.is_empty(), "promised without a test:\n\n{}", bare.join("\n\n"));
    let named = blocks.iter().flat_map(Block::tests);
    let unknown: Vec<_> = named.clone().filter(|test| !known.contains(*test)).collect();
    assert!(unknown.is_empty(), "there are no such tests:\n{}", unknown.join("\n"));
    assert!(named.count() > 100, "the comments of docs/security.md are not read");
}

#[test]
fn a_promise_without_a_test_is_seen() {
    let page = "# Page\n\nIntroduction.\n\n## What holds\n\nIt holds.\n<!-- tests:\na::b::c\n-->\n\nSo it goes:\n\n\
                - One.\n  <!-- tests:\n  a::b::d\n  -->\n- Two.\n\n```sh\ncode\n\ncode\n```\n\n## What is not promised\n\nMore.\n";
    let blocks = blocks(page);
    let bare = blocks.iter().filter(|block| block.promises() && block.tests().is_empty());
    assert_eq!(bare.map(Block::text).collect::<Vec<_>>(), ["- Two."]);
    assert_eq!(blocks.iter().flat_map(Block::tests).collect::<Vec<_>>(), ["a::b::c", "a::b::d"]);
    let source = "#[test]\nfn one() {}\nfn two() {}\nholds three: \"x\";\n#[tokio::test(x)]\n#[cfg(y)]\nasync fn four() {}";
    assert_eq!(tests_of(source), ["one", "three", "four"]);
}
