//! The paths that a shell's pattern stands for on this machine.

use std::path::{Path, PathBuf};

use super::{
    judged_path::JudgedPath,
    name::{Name, NameKind},
};
use crate::permission::{JudgementContext, pattern_overlap::Dialect};

/// Most paths that one pattern is followed to.
const MAX_PATHS: usize = 64;
/// Marks of patterns that other programs than a shell expand, or that stand for more than one name.
const UNUSUAL: [&str; 6] = ["**", "{", "}", "(", ")", "\\"];

/// The paths that are there and fit a pattern; `None` for a path that is no pattern, and for a pattern that fits too
/// much or whose matches cannot be told.
pub(super) fn matching_paths(
    spot: &JudgedPath,
    world: &JudgementContext<'_>,
) -> Option<Vec<PathBuf>> {
    at_most_matching(MAX_PATHS, spot, world)
}

/// The same, for a pattern that fits no more than `most` paths.
pub(super) fn at_most_matching(
    most: usize,
    spot: &JudgedPath,
    world: &JudgementContext<'_>,
) -> Option<Vec<PathBuf>> {
    if !spot.is_pattern() {
        return None;
    }
    let mut paths = vec![PathBuf::from("/")];
    for (part, name) in spot.real_form().named_parts() {
        let text = part.to_string_lossy();
        if UNUSUAL.iter().any(|mark| text.contains(mark)) {
            return None;
        }
        paths = match name.kind {
            NameKind::Literal => paths.iter().map(|folder| folder.join(part)).collect(),
            NameKind::Telling | NameKind::ByEnding | NameKind::Anything => {
                matching_entries(most, &paths, name, world)?
            }
        };
    }
    Some(paths)
}

fn matching_entries(
    most: usize,
    folders: &[PathBuf],
    name: &Name,
    world: &JudgementContext<'_>,
) -> Option<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in folders {
        let entries = (world.list)(&(world.resolve)(folder))?;
        let fits = |entry: &&std::ffi::OsString| {
            name.overlaps_name(&Name::new(&entry.to_string_lossy(), Dialect::Plain))
        };
        paths.extend(entries.iter().filter(fits).map(|entry| folder.join(Path::new(entry))));
        if paths.len() > most {
            return None;
        }
    }
    Some(paths)
}
