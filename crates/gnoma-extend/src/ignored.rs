//! Folders whose files are not the project's own: dependencies, and what version control ignores.

use std::path::Path;

use gnoma_core::places::REBUILT_FOLDERS;
use ignore::{Match, gitignore::Gitignore};

use crate::places::ExtendPlaces;

/// Folders in which package managers and people put what others wrote, besides those that a tool fills.
const DEPENDENCIES: [&str; 9] = [
    "vendor",
    "third_party",
    "third-party",
    "Pods",
    "Carthage",
    "site-packages",
    "dist-packages",
    "jspm_packages",
    "deps",
];
/// The file in which git keeps the patterns that a person ignores in one checkout.
const EXCLUDES: &str = ".git/info/exclude";

/// Reports whether a folder below the working folder holds dependencies, or is ignored by version control.
pub(crate) fn is_foreign(places: &ExtendPlaces, folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_named = REBUILT_FOLDERS.iter().chain(&DEPENDENCIES).any(|known| *known == name);
    is_named || is_ignored(places, folder)
}

/// The nearest rule about a folder decides.
fn is_ignored(places: &ExtendPlaces, folder: &Path) -> bool {
    let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(&places.project));
    let files = above.map(|above| (above, above.join(".gitignore")));
    let excludes = (places.project.as_path(), places.project.join(EXCLUDES));
    for (root, file) in files.chain([excludes]).filter(|(_, file)| file.is_file()) {
        let mut rules = ignore::gitignore::GitignoreBuilder::new(root);
        // A rule that cannot be read says nothing.
        let _unreadable = rules.add(file);
        let rules = rules.build().unwrap_or_else(|_| Gitignore::empty());
        match rules.matched(folder, true) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn gitignored_files_and_dependencies_do_not_belong_to_the_project() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(".git/info")).unwrap();
        fs::create_dir_all(root.join("app")).unwrap();
        fs::write(root.join(".gitignore"), "downloads/\n/cache\n").unwrap();
        fs::write(root.join(".git/info/exclude"), "mine\n").unwrap();
        fs::write(root.join("app/.gitignore"), "fetched\n!downloads\n").unwrap();
        let places =
            ExtendPlaces { project: root.clone(), cwd: root.clone(), ..Default::default() };
        for (path, is_other) in [
            ("node_modules", true),
            ("app/vendor", true),
            ("target", true),
            ("downloads", true),
            ("cache", true),
            ("mine", true),
            ("app/fetched", true),
            ("app/downloads", false),
            ("app/cache", false),
            ("app", false),
            ("src", false),
        ] {
            assert_eq!(is_foreign(&places, &root.join(path)), is_other, "{path}");
        }
    }
}
