//! What a command must not leave behind and the sandbox cannot prevent, because an empty stand-in would itself do
//! harm. It is removed when the command has ended.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Sends git to another repository's configuration, which can name programs to run.
const STRAYS: [&str; 1] = [".git/commondir"];

/// Files that were not there before a command.
pub(super) struct StrayFiles(Vec<PathBuf>);

impl StrayFiles {
    /// Looks before a command runs in these folders.
    pub(super) fn from_roots(roots: &[PathBuf]) -> Self {
        let all = roots.iter().flat_map(|root| STRAYS.map(|name| root.join(name)));
        Self(all.filter(|path| path.symlink_metadata().is_err()).collect())
    }

    /// Removes what has appeared, and says so.
    pub(super) fn remove(&self) -> Option<String> {
        let removed = |path: &&PathBuf| fs::remove_file(path).is_ok();
        let names: Vec<_> = self.0.iter().filter(removed).map(|path| quote_path(path)).collect();
        (!names.is_empty()).then(|| {
            format!("[removed {}: it would send git to settings elsewhere]", names.join(", "))
        })
    }
}

fn quote_path(path: &Path) -> String {
    format!("`{}`", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_removed() {
        let (new, old) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let stray = |folder: &tempfile::TempDir| folder.path().join(".git/commondir");
        for folder in [&new, &old] {
            fs::create_dir(folder.path().join(".git")).unwrap();
        }
        fs::write(stray(&old), "..").unwrap();
        let roots = [new.path().to_owned(), old.path().to_owned()];
        let strays = StrayFiles::from_roots(&roots);
        assert_eq!(strays.remove(), None);
        fs::write(stray(&new), "../evil").unwrap();
        assert!(strays.remove().unwrap().contains("commondir"));
        assert!(!stray(&new).exists() && stray(&old).exists());
    }
}
