//! The names on the disk, for [`gnoma_core::names`].

use std::path::Path;

use gnoma_core::names::FileNames;
use rustix::fs::Dir;

use super::open;

/// Names of a folder that are looked at.
const MAX_NAMES_COMPARED: usize = 5000;

/// The disk of this machine.
pub struct Disk;

impl FileNames for Disk {
    fn is_there(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn names_in(&self, folder: &Path) -> Vec<String> {
        let entries = open::resolve_links(folder).and_then(|real| open::open_folder(&real));
        let Ok(entries) = entries.and_then(|folder| Ok(Dir::new(folder)?)) else {
            return Vec::new();
        };
        entries
            .take(MAX_NAMES_COMPARED)
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| !matches!(name.as_str(), "." | ".."))
            .collect()
    }
}
