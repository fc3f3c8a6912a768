//! Instructions of folders below the working folder: told once, when a file there is touched.

use std::{
    collections::HashSet,
    path::{Component, Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use gnoma_core::{ToolCall, cut};
use serde_json::Value;

use crate::places::{BroughtBy, ExtendPlaces, read_text};

/// Names of which the first that is there counts, in each folder.
const NAMES: [&str; 3] = ["AGENTS.override.md", "AGENTS.md", "CLAUDE.md"];
/// Tools whose argument `path` is a file that is touched.
const TOUCHING: [&str; 3] = ["fs.read", "fs.write", "fs.edit"];
/// Most that is told of one file, in bytes.
const MAX_BYTES: usize = 32 << 10;
/// Most folders between the working folder and a file.
const MAX_FOLDERS: usize = 32;

/// The files that were told.
pub(crate) type Announced = Arc<Mutex<HashSet<PathBuf>>>;

/// The file that a call touches below the working folder.
pub(crate) fn touched(places: &ExtendPlaces, call: &ToolCall) -> Option<PathBuf> {
    if !TOUCHING.contains(&&*call.name) {
        return None;
    }
    let arguments: Value = call.arguments.read().ok()?;
    let path = Path::new(arguments.get("path")?.as_str()?);
    let below = path.strip_prefix(&places.cwd).unwrap_or(path);
    let is_below = below.components().all(|part| matches!(part, Component::Normal(_)));
    (is_below && below.components().nth(1).is_some()).then(|| places.cwd.join(below))
}

/// What holds for a file and was not told yet, the farthest folder first.
pub(crate) fn unannounced(places: &ExtendPlaces, told: &Announced, file: &Path) -> Vec<String> {
    let folders = file.ancestors().skip(1).take_while(|folder| *folder != places.cwd);
    let mut folders: Vec<&Path> = folders.take(MAX_FOLDERS).collect();
    folders.reverse();
    let mut texts = Vec::new();
    for folder in folders {
        let found = NAMES.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        let Some(path) = found else { continue };
        let is_new = told.lock().unwrap_or_else(PoisonError::into_inner).insert(path.clone());
        // Whoever reads the instructions themselves has them.
        if !is_new || path == file || !places.is_inside(BroughtBy::Project, &path) {
            continue;
        }
        let Ok(text) = read_text(&path) else { continue };
        let taken = cut::head(&text, MAX_BYTES);
        let mark = if taken.len() < text.len() { "\n[cut]" } else { "" };
        let shown = places.shown(&path);
        texts.push(format!(
            "Instructions for this folder, from {shown}:\n{}{mark}",
            taken.trim_end()
        ));
    }
    texts
}
