//! Rules for certain files: Markdown in `.claude/rules` whose field `paths` names them. The model gets them once,
//! when such a file is touched.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{
    front_matter::{FieldValue, FrontMatter, split_list},
    places::{ExtendPlaces, ExtensionSource, read_text},
};

/// The folder of rules, in the home and in the project.
const FOLDER: &str = ".claude/rules";
/// Most files, how deep they may be, and most entries that are looked at: a link may lead around.
const MAX_FILES: usize = 200;
const MAX_DEPTH: usize = 4;
const MAX_ENTRIES: usize = 2_000;
/// Most patterns of a rule.
const MAX_PATTERNS: usize = 50;

/// A rule for certain files.
#[derive(Debug)]
pub(crate) struct ScopedRule {
    /// The path of the file that contains the rule.
    pub(crate) path: PathBuf,
    files: GlobSet,
    /// The text of the rule.
    pub(crate) text: String,
}

impl ScopedRule {
    /// Reports whether the rule applies to a file, whose path is relative to the project.
    pub(crate) fn holds_for(&self, file: &Path) -> bool {
        self.files.is_match(file)
    }
}

/// The rules for certain files, the person's first.
pub(crate) fn load_scoped_rules(places: &ExtendPlaces) -> Vec<ScopedRule> {
    let mut all = Vec::new();
    let mut folders = vec![(ExtensionSource::Project, places.project.join(FOLDER))];
    if let Some(home) = places.home.as_deref().filter(|home| *home != places.project) {
        folders.insert(0, (ExtensionSource::User, home.join(FOLDER)));
    }
    for (by, folder) in folders {
        let inside = rule_files(&folder).into_iter().filter(|path| places.is_inside(by, path));
        all.extend(inside.filter_map(read_rule));
    }
    all
}

fn read_rule(path: PathBuf) -> Option<ScopedRule> {
    let text = read_text(&path).ok()?;
    let (fields, body) = FrontMatter::split(&text)?;
    let patterns = match fields.get("paths")? {
        FieldValue::Text(text) => split_list(text),
        FieldValue::List(items) => items.clone(),
        FieldValue::Map(_) => return None,
    };
    let mut files = GlobSetBuilder::new();
    for pattern in patterns.iter().take(MAX_PATTERNS) {
        let pattern = pattern.trim().trim_start_matches("./").trim_start_matches('/');
        files.add(GlobBuilder::new(pattern).literal_separator(true).build().ok()?);
    }
    let text = body.trim().to_owned();
    (!text.is_empty()).then_some(ScopedRule { path, files: files.build().ok()?, text })
}

/// The files of rules in a folder and below it, sorted.
#[must_use]
pub fn rule_files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut left) = (Vec::new(), MAX_ENTRIES);
    collect_rule_files(folder, 0, &mut files, &mut left);
    gnoma_core::sort::sort_items(&mut files);
    files
}

fn collect_rule_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>, left: &mut usize) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Some(fewer) = left.checked_sub(1) else { return };
        *left = fewer;
        let path = entry.path();
        if path.is_dir() {
            if depth < MAX_DEPTH {
                collect_rule_files(&path, depth + 1, files, left);
            }
        } else if files.len() < MAX_FILES && path.extension().is_some_and(|it| it == "md") {
            files.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_files_search_ends_with_symlink_loops() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.md"), "a").unwrap();
        for name in 0..60 {
            std::os::unix::fs::symlink(".", folder.path().join(format!("l{name}"))).unwrap();
        }
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("sub/b.md"), "b").unwrap();
        let found = rule_files(folder.path());
        assert!(!found.is_empty() && found.len() <= MAX_FILES, "{}", found.len());
    }
}
