//! The file names of a working folder in a short text, for the prompt of models that would otherwise guess them.
//!
//! Two levels deep. Hidden files and the output of builds and package managers are left out.

use std::{fs, path::Path};

/// Entries of a folder that are looked at.
const MAX_SEEN: usize = 400;
/// Names shown, of the folder and of each one in it.
const MAX_NAMES: usize = 24;
const MAX_NAMES_BELOW: usize = 12;
/// Bytes of the whole.
const MAX_BYTES: usize = 600;

/// Folders of generated files.
const GENERATED: [&str; 6] = ["__pycache__", "build", "dist", "node_modules", "target", "vendor"];

/// Returns the file names, such as `README.md, src/ (main.rs, lib.rs)`; empty if there are none.
pub(crate) fn file_names(folder: &Path) -> String {
    let mut text = String::new();
    let (entries, has_more) = first_entries(folder, MAX_NAMES);
    for (name, is_folder) in entries {
        let shown = if is_folder { format_subfolder(folder, &name) } else { name };
        if text.len() + shown.len() > MAX_BYTES {
            return text + ", …";
        }
        text.push_str(if text.is_empty() { "" } else { ", " });
        text.push_str(&shown);
    }
    if has_more { text + ", …" } else { text }
}

fn format_subfolder(folder: &Path, name: &str) -> String {
    let (entries, has_more) = first_entries(&folder.join(name), MAX_NAMES_BELOW);
    let mark = |(name, is_folder): (String, bool)| if is_folder { name + "/" } else { name };
    let mut names: Vec<String> = entries.into_iter().map(mark).collect();
    if has_more {
        names.push("…".to_owned());
    }
    if names.is_empty() { format!("{name}/") } else { format!("{name}/ ({})", names.join(", ")) }
}

/// Returns the first `most` names in order and whether each is a folder; and whether there are more. Links do not
/// count as folders: they may lead anywhere.
fn first_entries(folder: &Path, most: usize) -> (Vec<(String, bool)>, bool) {
    let Ok(read) = fs::read_dir(folder) else { return (Vec::new(), false) };
    let mut all: Vec<(String, bool)> = read
        .take(MAX_SEEN)
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let is_plain = !name.starts_with('.') && !name.contains(char::is_control);
            let is_folder = entry.file_type().ok()?.is_dir();
            (is_plain && !(is_folder && GENERATED.contains(&&*name))).then_some((name, is_folder))
        })
        .collect();
    gnoma_core::sort::by_key(&mut all, |(name, _)| name.clone());
    let has_more = all.len() > most;
    all.truncate(most);
    (all, has_more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_hint_lists_two_folder_levels_without_generated_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(file_names(root), "");
        for path in ["src/deep", "target/debug", ".git", "empty"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["src/b.rs", "src/a.rs", "README.md", ".env", "target/x", "od\nd"] {
            fs::write(root.join(path), "").unwrap();
        }
        assert_eq!(file_names(root), "README.md, empty/, src/ (a.rs, b.rs, deep/)");
        for nth in 0..MAX_NAMES {
            fs::write(root.join(format!("a{nth:02}")), "").unwrap();
        }
        assert!(file_names(root).ends_with(", …"));
        for nth in 0..MAX_NAMES {
            fs::write(root.join(format!("a{nth:02}-{}", "x".repeat(60))), "").unwrap();
        }
        assert!(file_names(root).len() < MAX_BYTES + 10, "{}", file_names(root));
    }
}
