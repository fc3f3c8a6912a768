//! Instructions that hold for some files only, told once, when such a file is touched: those of folders
//! below the working folder, and rules with `paths`.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use gnoma_core::{ToolCall, cut};
use serde_json::Value;

use crate::{
    places::{BroughtBy, ExtendPlaces, read_text},
    rules::{self, ScopedRule},
};

/// Names of which the first that is there counts, in each folder.
const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];
/// Tools whose argument `path` is a file that is touched.
const TOUCHING: [&str; 3] = ["fs.read", "fs.write", "fs.edit"];
/// Most that is told of one file, in bytes.
const MAX_BYTES: usize = 32 << 10;
/// Most folders between the working folder and a file.
const MAX_FOLDERS: usize = 32;

/// What was told, and the rules, read when a file is first touched.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedState {
    told: Mutex<HashSet<PathBuf>>,
    rules: OnceLock<Vec<ScopedRule>>,
}

/// The files that were told.
pub(crate) type Announced = Arc<AnnouncedState>;

/// The file that a call touches, where it lies in the working folder or in the project.
pub(crate) fn touched(places: &ExtendPlaces, call: &ToolCall) -> Option<PathBuf> {
    if !TOUCHING.contains(&&*call.name) {
        return None;
    }
    let arguments: Value = call.arguments.read().ok()?;
    let path = places.cwd.join(arguments.get("path")?.as_str()?);
    let below = path.strip_prefix(&places.cwd).or_else(|_| path.strip_prefix(&places.project));
    let is_below = below.ok()?.components().all(|part| matches!(part, Component::Normal(_)));
    is_below.then_some(path)
}

/// What holds for a file and was not told yet, the farthest first.
pub(crate) fn unannounced(places: &ExtendPlaces, state: &Announced, file: &Path) -> Vec<String> {
    let is_new =
        |path: &Path| state.told.lock().unwrap_or_else(PoisonError::into_inner).insert(path.into());
    let mut texts = Vec::new();
    if let Ok(below) = file.strip_prefix(&places.project) {
        let rules = state.rules.get_or_init(|| rules::scoped(places));
        for rule in rules.iter().filter(|rule| rule.holds_for(below)) {
            if is_new(&rule.path) {
                texts.push(told(places, "Rule for such files", &rule.path, &rule.text));
            }
        }
    }
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != places.cwd);
    let mut folders: Vec<&Path> =
        folders.take(MAX_FOLDERS).filter(|folder| folder.starts_with(&places.cwd)).collect();
    folders.reverse();
    for folder in folders {
        let found = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        let Some(path) = found else { continue };
        // Whoever reads the instructions themselves has them.
        if !is_new(&path) || path == file || !places.is_inside(BroughtBy::Project, &path) {
            continue;
        }
        if let Ok(text) = read_text(&path) {
            texts.push(told(places, "Instructions for this folder", &path, &text));
        }
    }
    texts
}

fn told(places: &ExtendPlaces, what: &str, path: &Path, text: &str) -> String {
    let taken = cut::head(text, MAX_BYTES);
    let mark = if taken.len() < text.len() { "\n[cut]" } else { "" };
    format!("{what}, from {}:\n{}{mark}", places.shown(path), taken.trim_end())
}
