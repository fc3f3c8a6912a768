//! Instructions for certain files only, which the model gets once, when such a file is touched: those of folders
//! below the working folder, and rules with `paths`.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
    sync::{Arc, OnceLock},
};

use gnoma_core::{ToolCall, sync::Mutex, text_truncation};
use serde_json::Value;

use crate::{
    ignored,
    places::{ExtendPlaces, ExtensionSource, instructions_in, read_text},
    rules::{self, ScopedRule},
};

/// Tools whose argument `path` is a file that is touched.
const TOUCHING: [&str; 3] = ["fs.read", "fs.write", "fs.edit"];
/// Most instructions for one file, in bytes.
const MAX_BYTES: usize = 32 << 10;
/// Most instructions at once.
const MAX_ALL_BYTES: usize = 64 << 10;

/// The files whose instructions were sent, and the rules, which are read when a file is first touched.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedFilesState {
    told: Mutex<HashSet<PathBuf>>,
    rules: OnceLock<Vec<ScopedRule>>,
}

/// The files that were told.
pub(crate) type AnnouncedFiles = Arc<AnnouncedFilesState>;

/// The file that a call touches, where it is in the working folder or in the project.
pub(crate) fn touched_file(places: &ExtendPlaces, call: &ToolCall) -> Option<PathBuf> {
    if !TOUCHING.contains(&&*call.name) {
        return None;
    }
    let arguments: Value = call.arguments.read().ok()?;
    let path = places.cwd.join(arguments.get("path")?.as_str()?);
    let below = path.strip_prefix(&places.cwd).or_else(|_| path.strip_prefix(&places.project));
    let is_below = below.ok()?.components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then_some(path)
}

/// Returns the instructions that apply to a file and were not sent yet, the farthest first. Where they are too
/// long, the farthest wait for the next time such a file is touched, and a note says so.
pub(crate) fn take_unannounced(
    places: &ExtendPlaces,
    state: &AnnouncedFiles,
    file: &Path,
) -> Vec<String> {
    let (mut texts, mut left, mut waiting) = (Vec::new(), MAX_ALL_BYTES, 0);
    let all = instructions_for(places, state, file);
    let mut told = state.told.lock();
    for (path, text) in all.into_iter().rev() {
        if told.contains(&path) {
            continue;
        }
        match left.checked_sub(text.len()) {
            Some(less) => {
                left = less;
                told.insert(path);
                texts.push(text);
            }
            None => waiting += 1,
        }
    }
    if waiting > 0 {
        texts.push(format!(
            "[{waiting} more files with instructions apply here; you get them when you next touch a file here]"
        ));
    }
    texts.reverse();
    texts
}

/// All that holds for a file, the farthest first.
fn instructions_for(
    places: &ExtendPlaces,
    state: &AnnouncedFiles,
    file: &Path,
) -> Vec<(PathBuf, String)> {
    let mut texts = Vec::new();
    if let Ok(below) = file.strip_prefix(&places.project) {
        let rules = state.rules.get_or_init(|| rules::load_scoped_rules(places));
        for rule in rules.iter().filter(|rule| rule.holds_for(below)) {
            let text = render_instructions(places, "Rule for such files", &rule.path, &rule.text);
            texts.push((rule.path.clone(), text));
        }
    }
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != places.cwd);
    let mut folders: Vec<&Path> =
        folders.filter(|folder| folder.starts_with(&places.cwd)).collect();
    folders.reverse();
    // Instructions of dependencies and build folders are not for people of this project.
    let own = folders.iter().take_while(|folder| !ignored::is_foreign(places, folder)).count();
    folders.truncate(own);
    for path in folders.into_iter().flat_map(instructions_in) {
        // A call that reads the instructions themselves has them.
        if path == file {
            state.told.lock().insert(path);
            continue;
        }
        if places.is_inside(ExtensionSource::Project, &path)
            && let Ok(text) = read_text(&path)
        {
            let text = render_instructions(places, "Instructions for this folder", &path, &text);
            texts.push((path, text));
        }
    }
    texts
}

fn render_instructions(places: &ExtendPlaces, what: &str, path: &Path, text: &str) -> String {
    let taken = text_truncation::word_prefix(text, MAX_BYTES);
    let mark = if taken.len() < text.len() { "\n[cut]" } else { "" };
    format!("{what}, from {}:\n{}{mark}", places.display_path(path), taken.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_md_of_dependencies_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let places =
            ExtendPlaces { project: root.clone(), cwd: root.clone(), ..Default::default() };
        let put = |folder: &str| {
            std::fs::create_dir_all(root.join(folder)).unwrap();
            std::fs::write(root.join(folder).join("AGENTS.md"), "obey").unwrap();
        };
        std::fs::write(root.join(".gitignore"), "fetched/\n").unwrap();
        for (folder, count) in [
            ("node_modules/left-pad", 0),
            ("web/node_modules/a/docs", 0),
            ("vendor/b", 0),
            ("target/package/c", 0),
            (".venv/lib/python3/site-packages/d", 0),
            ("fetched/e", 0),
            ("web", 1),
            ("src/api", 1),
        ] {
            put(folder);
            let file = root.join(folder).join("a.txt");
            let texts = take_unannounced(&places, &AnnouncedFiles::default(), &file);
            assert_eq!(texts.len(), count, "{folder}: {texts:?}");
        }
        // Where a person begins in a dependency, that is their project.
        let cwd = root.join("node_modules/left-pad");
        put("node_modules/left-pad/lib");
        let places = ExtendPlaces { cwd: cwd.clone(), ..places };
        let texts = take_unannounced(&places, &AnnouncedFiles::default(), &cwd.join("lib/a.js"));
        assert_eq!(texts.len(), 1, "{texts:?}");
    }

    #[test]
    fn nested_instruction_files_are_given_nearest_first_with_escaped_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let places =
            ExtendPlaces { project: root.clone(), cwd: root.clone(), ..Default::default() };
        let mut at = root;
        for depth in 0..6 {
            at = at.join(format!("d{depth}\nIgnore"));
            std::fs::create_dir(&at).unwrap();
            let text = format!("level {depth} {}", "x".repeat(20 << 10));
            std::fs::write(at.join("CLAUDE.md"), text).unwrap();
        }
        std::fs::create_dir(at.join(".claude")).unwrap();
        std::fs::write(at.join(".claude/CLAUDE.md"), "inner").unwrap();
        std::fs::write(at.join("CLAUDE.local.md"), "local").unwrap();
        let (state, file) = (AnnouncedFiles::default(), at.join("a.txt"));
        let first = take_unannounced(&places, &state, &file);
        let text = first.join("\n");
        for part in ["level 5", "level 4", "inner", "local", "3 more files"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(first[0].contains("3 more files") && first.last().unwrap().contains("local"));
        assert!(!text.contains("level 2") && !text.contains("\nIgnore"), "{text}");
        let second = take_unannounced(&places, &state, &file).join("\n");
        assert!(second.contains("level 2") && !second.contains("level 5"));
        assert!(take_unannounced(&places, &state, &file).is_empty());
    }
}
