//! Files with rules: `package.json`, `Makefile`, `justfile`.

use std::{collections::BTreeMap, path::Path};

use gnoma_core::bounded_file;
use serde_json::Value;

/// Most bytes of a file with rules.
const MAX_BYTES: u64 = 1 << 20;
pub(super) const PACKAGE_FILES: &[&str] = &["package.json"];
pub(super) const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
pub(super) const JUSTFILES: &[&str] = &["justfile", "Justfile", ".justfile"];
/// Words of rules that bring in others, and what makes up rules, runs when they are read or sets the shell.
const INCLUDES: [&str; 3] = ["include", "-include", "sinclude"];
const MAKING_UP: [&str; 7] = ["import", "import?", "mod", "mod?", "set", "define", "load"];
const DYNAMIC: [&str; 8] =
    ["shell", "SHELL", "$(eval", "${eval", "!=", "%", "RECIPEPREFIX", "MAKEFILES"];
/// Names of rules that stand for settings.
const SETTINGS: [&str; 4] = [".PHONY", ".SILENT", ".NOTPARALLEL", ".DELETE_ON_ERROR"];

/// The rules of one file.
#[derive(Default)]
pub(super) struct RuleBook {
    pub(super) is_there: bool,
    pub(super) rules: Vec<MakeRule>,
    pub(super) named: BTreeMap<String, Vec<usize>>,
    /// More may run than these.
    pub(super) is_open: bool,
}

/// A rule of a file for `make` or `just`, or a script.
pub(super) struct MakeRule {
    pub(super) needs: Vec<String>,
    pub(super) lines: Vec<String>,
}

impl RuleBook {
    fn add_rule(&mut self, names: Vec<String>, rule: MakeRule) {
        for name in names {
            self.named.entry(name).or_default().push(self.rules.len());
        }
        self.rules.push(rule);
    }
}

/// The first of these files there, and its length.
pub(super) fn read_rule_book(folder: &Path, files: &[&str]) -> (RuleBook, usize) {
    let text = files.iter().find_map(|name| {
        String::from_utf8(bounded_file::read_start(&folder.join(name), MAX_BYTES).ok()?).ok()
    });
    let Some(text) = text else { return (RuleBook::default(), 0) };
    let mut book = if files == PACKAGE_FILES {
        parse_package(&text)
    } else {
        parse_recipes(&text, files == JUSTFILES)
    };
    book.is_there = true;
    // What is cut off is not known.
    book.is_open |= text.len() as u64 == MAX_BYTES;
    (book, text.len())
}

fn parse_package(text: &str) -> RuleBook {
    let mut book = RuleBook::default();
    let package: Value = gnoma_core::json::from_str(text).unwrap_or_default();
    let scripts = package.get("scripts").and_then(Value::as_object);
    for (name, script) in scripts.into_iter().flatten() {
        let lines = script.as_str().map(str::to_owned).into_iter().collect();
        book.add_rule(vec![name.clone()], MakeRule { needs: Vec::new(), lines });
    }
    book
}

/// Rules as both write them: names, a colon, what they need; then lines that are indented.
fn parse_recipes(text: &str, is_just: bool) -> RuleBook {
    let text = text.replace("\\\n", " ");
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut book = RuleBook::default();
    for line in text.lines() {
        let first = line.split_whitespace().next().unwrap_or_default();
        book.is_open |= INCLUDES.contains(&first);
        if line.starts_with('\t') || is_just && line.starts_with(' ') {
            let line = line.trim().trim_start_matches(['@', '-', '+']);
            if let Some(rule) = book.rules.last_mut().filter(|_| !line.is_empty()) {
                rule.lines.push(line.to_owned());
            }
            continue;
        }
        let line = line.trim().split('#').next().unwrap_or_default();
        book.is_open |= line.starts_with('$')
            || MAKING_UP.contains(&first)
            || DYNAMIC.iter().any(|sign| line.contains(sign));
        let Some((names, rest)) = line.split_once(':') else { continue };
        if rest.starts_with('=') || (names.contains('=') && !is_just) {
            continue;
        }
        // Behind the name of a rule of `just` stand its parameters.
        let names = if is_just { words(names).into_iter().take(1).collect() } else { words(names) };
        let is_made_up = |name: &String| {
            name.contains('$') || name.starts_with('.') && !SETTINGS.contains(&name.as_str())
        };
        book.is_open |= names.iter().any(is_made_up);
        let (needs, own) = rest.trim_start_matches(':').split_once(';').unwrap_or((rest, ""));
        let own = Some(own.trim()).filter(|own| !own.is_empty()).map(str::to_owned);
        let mut needs = words(needs);
        needs.retain(|need| need != "|");
        book.add_rule(names, MakeRule { needs, lines: own.into_iter().collect() });
    }
    book
}
