//! The person's own themes, as files in the configuration folder.

use std::{fs, path::Path};

use gnoma_core::sort;
use gnoma_host::{Folders as _, Project, files, setting::THEMES_FOLDER};
use gnoma_tui::own_themes::ThemeSet;

/// Most themes that are read.
const MAX_THEMES: usize = 50;
/// Most bytes of a theme's file.
const MAX_BYTES: u64 = 64 << 10;

/// Reads the themes of the person.
pub(super) fn load_themes(project: &Project) -> ThemeSet {
    let folder = project.environment().config_dir().join(THEMES_FOLDER);
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let themes = entries.map(|entry| entry.path()).filter(|file| is_theme_file(file));
    let mut files: Vec<_> = themes.take(MAX_THEMES).collect();
    sort::sort_items(&mut files);
    ThemeSet::from_files(files.into_iter().filter_map(|file| {
        let name = file.file_stem()?.to_str()?.to_owned();
        let text = files::read(&file, MAX_BYTES);
        Some((name, text.map(Option::unwrap_or_default)))
    }))
}

fn is_theme_file(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "toml")
}
