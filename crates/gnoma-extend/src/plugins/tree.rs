//! The whole content of a plugin: every file with its hash, and what must not be among them.
//!
//! A plugin is a folder of plain files with plain names below it. What could lead elsewhere, or be another
//! file on another system, is refused and never left out: a plugin is whole or not there.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
};

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization as _;

use super::content_error::{PluginPathError, PluginPathFlaw, PluginTreeError, RefusedLinkTarget};

/// Most files of a plugin.
pub(super) const MAX_FILES: usize = 2_000;
/// Most bytes of all files of a plugin.
pub(super) const MAX_BYTES: u64 = 64 << 20;
/// The largest depth to which folders may be nested.
const MAX_DEPTH: usize = 16;
/// Longest path of a file, in bytes.
const MAX_PATH_BYTES: usize = 512;
/// Bits of a mode that make a file a program.
const EXECUTABLE: u32 = 0o111;

/// The files of a plugin by their paths, each with what identifies it.
pub type PluginFiles = BTreeMap<String, String>;

/// The content of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginTree {
    /// The files of the plugin.
    pub files: PluginFiles,
    /// The hash of all of them, names and rights to run included.
    pub hash: String,
}

/// Returns the path of a file within a plugin, in its plain form.
///
/// # Errors
/// No file of a plugin may have the path.
pub(super) fn check_path(path: &str) -> Result<PathBuf, PluginPathError> {
    let flaw = if path.is_empty() || path.len() > MAX_PATH_BYTES {
        PluginPathFlaw::Length
    } else if Path::new(path).is_absolute() || path.starts_with('~') {
        PluginPathFlaw::Absolute
    } else if path.contains('\\') || path.chars().any(char::is_control) {
        PluginPathFlaw::Character
    } else if path.split('/').any(|part| part == "..") {
        PluginPathFlaw::Outside
    } else if path.split('/').any(|part| part.ends_with(['.', ' ']) && part != ".") {
        PluginPathFlaw::PartEnd
    } else {
        let parts = Path::new(path).components();
        return Ok(parts.filter(|part| matches!(part, Component::Normal(_))).collect());
    };
    Err(PluginPathError { path: path.to_owned(), flaw })
}

/// Names that are one on a system that does not tell cases or spellings apart.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, String>);

impl Names {
    /// Adds the name of a file and of the folders above it.
    ///
    /// # Errors
    /// One of them is a known name in another case.
    pub(super) fn add_name(&mut self, path: &str) -> Result<(), PluginTreeError> {
        let mut end = 0;
        for part in path.split('/') {
            end += part.len() + usize::from(end > 0);
            let whole = path.get(..end).unwrap_or(path);
            let folded: String = whole.nfkc().flat_map(char::to_lowercase).collect();
            let known = self.0.entry(folded).or_insert_with(|| whole.to_owned());
            if known != whole {
                let (name, other) = (whole.to_owned(), known.clone());
                return Err(PluginTreeError::SameName { name, other });
            }
        }
        Ok(())
    }
}

/// Reads the content of a folder. `.git` at its root is no part of it.
///
/// # Errors
/// A file or folder in it cannot be read, or is refused.
pub fn read_tree(root: &Path) -> Result<PluginTree, PluginTreeError> {
    let mut files = PluginFiles::new();
    let mut names = Names::default();
    let mut left = MAX_BYTES;
    for (name, path) in list_files(root)? {
        check_path(&name)?;
        names.add_name(&name)?;
        let (hash, length) = hash_file(&path, left).map_err(unreadable(&name))?;
        left -= length;
        files.insert(name, hash);
    }
    let mut whole = Sha256::new();
    for (name, hash) in &files {
        whole.update((name.len() as u64).to_le_bytes());
        whole.update(name);
        whole.update(hash);
    }
    let hash = format!("sha256:{}", to_hex(&whole.finalize()));
    Ok(PluginTree { files, hash })
}

/// Converts an error of the system to that of the file or folder of this name.
fn unreadable(name: &str) -> impl Fn(io::Error) -> PluginTreeError {
    move |source| PluginTreeError::Unreadable { name: name.to_owned(), source }
}

/// All files below a folder with their names. A link leads to a file inside, or is refused.
pub(super) fn list_files(root: &Path) -> Result<Vec<(String, PathBuf)>, PluginTreeError> {
    let real = root.canonicalize().map_err(unreadable(&root.display().to_string()))?;
    let (mut files, mut folders) = (Vec::new(), vec![(String::new(), real.clone(), 0)]);
    while let Some((prefix, folder, depth)) = folders.pop() {
        if depth > MAX_DEPTH {
            return Err(PluginTreeError::TooDeep { name: prefix, limit: MAX_DEPTH });
        }
        for entry in fs::read_dir(&folder).map_err(unreadable(&prefix))? {
            let entry = entry.map_err(unreadable(&prefix))?;
            let Ok(part) = entry.file_name().into_string() else {
                return Err(PluginTreeError::NameNotUtf8 { folder: prefix });
            };
            if prefix.is_empty() && part == ".git" {
                continue;
            }
            let name = if prefix.is_empty() { part } else { format!("{prefix}/{part}") };
            let kind = entry.file_type().map_err(unreadable(&name))?;
            if kind.is_dir() {
                folders.push((name, entry.path(), depth + 1));
            } else if kind.is_file() {
                files.push((name, entry.path()));
            } else if kind.is_symlink() {
                files.push((name.clone(), link_target(&real, &entry.path(), &name)?));
            } else {
                return Err(PluginTreeError::NotRegular { name });
            }
            if files.len() > MAX_FILES || folders.len() > MAX_FILES {
                return Err(PluginTreeError::TooManyFiles { limit: MAX_FILES });
            }
        }
    }
    gnoma_core::sort::sort_items(&mut files);
    Ok(files)
}

/// The file that a link leads to.
fn link_target(root: &Path, link: &Path, name: &str) -> Result<PathBuf, PluginTreeError> {
    let refused = |target| PluginTreeError::Link { name: name.to_owned(), target };
    let target = link.canonicalize().map_err(|_| refused(RefusedLinkTarget::Missing))?;
    if !target.starts_with(root) || target.starts_with(root.join(".git")) {
        return Err(refused(RefusedLinkTarget::Outside));
    }
    if !target.is_file() {
        return Err(refused(RefusedLinkTarget::Folder));
    }
    Ok(target)
}

/// Returns the text that identifies a file, and the file's length.
fn hash_file(path: &Path, most: u64) -> io::Result<(String, u64)> {
    let file = File::open(path)?;
    let mark = if is_program(&file.metadata()?) { 'x' } else { '-' };
    let (mut hash, mut reader) = (Sha256::new(), file.take(most + 1));
    let length = io::copy(&mut reader, &mut hash)?;
    if length > most {
        let text = format!("its files are larger than {} MiB in total", MAX_BYTES >> 20);
        return Err(io::Error::other(text));
    }
    Ok((format!("{mark}{}", to_hex(&hash.finalize())), length))
}

fn is_program(facts: &fs::Metadata) -> bool {
    facts.permissions().mode() & EXECUTABLE != 0
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Copies a plugin into a folder that is not there yet, as plain files.
///
/// # Errors
/// A file in it is refused, or cannot be copied.
pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<PluginTree, PluginTreeError> {
    let tree = read_tree(from)?;
    for (name, path) in list_files(from)? {
        let target = to.join(check_path(&name)?);
        let put = || -> io::Result<()> {
            fs::create_dir_all(target.parent().unwrap_or(to))?;
            let mode = if is_program(&fs::metadata(&path)?) { 0o755 } else { 0o644 };
            fs::copy(&path, &target)?;
            fs::set_permissions(&target, fs::Permissions::from_mode(mode))
        };
        put().map_err(|source| PluginTreeError::NotCopied { name, source })?;
    }
    // Another program may have changed the source since it was read: the copy counts.
    let copied = read_tree(to)?;
    if copied == tree { Ok(copied) } else { Err(PluginTreeError::ChangedMeanwhile) }
}

/// The difference between two contents of a plugin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeChange {
    /// Files that are new.
    pub added: Vec<String>,
    /// Files that are gone.
    pub removed: Vec<String>,
    /// Files whose content or rights are others.
    pub changed: Vec<String>,
}

impl TreeChange {
    /// Returns the changes that lead from one content to another.
    #[must_use]
    pub fn from_trees(before: &PluginFiles, now: &PluginFiles) -> Self {
        let missing = |here: &PluginFiles, there: &PluginFiles| {
            here.keys().filter(|name| !there.contains_key(*name)).cloned().collect()
        };
        let is_other = |(name, hash): &(&String, &String)| {
            before.get(*name).is_some_and(|known| known != *hash)
        };
        Self {
            added: missing(now, before),
            removed: missing(before, now),
            changed: now.iter().filter(is_other).map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Reports whether there is no difference.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_file_names_with_traversal_or_case_collisions_are_refused() {
        for name in ["/etc/passwd", "../x", "a/../../x", "~/x", "a\\b", "a\nb", "", "a/b.", "c /d"]
        {
            assert!(check_path(name).is_err(), "{name:?}");
        }
        assert_eq!(check_path("./a//b.md").unwrap(), Path::new("a/b.md"));
        let mut names = Names::default();
        names.add_name("hooks/a.sh").unwrap();
        names.add_name("hooks/b.sh").unwrap();
        assert!(names.add_name("Hooks/c.sh").is_err());
        assert!(names.add_name("hooks/A.sh").is_err());
    }

    #[test]
    fn plugin_hash_covers_content_and_permissions_and_outside_symlinks_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("hooks")).unwrap();
        fs::write(at("hooks/a.sh"), "one").unwrap();
        let first = read_tree(folder.path()).unwrap();
        fs::write(at("hooks/a.sh"), "two").unwrap();
        let second = read_tree(folder.path()).unwrap();
        assert_ne!(first.hash, second.hash);
        fs::set_permissions(at("hooks/a.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_ne!(read_tree(folder.path()).unwrap().hash, second.hash);
        assert_eq!(TreeChange::from_trees(&first.files, &second.files).changed, ["hooks/a.sh"]);
        std::os::unix::fs::symlink("hooks/a.sh", at("inside")).unwrap();
        let copy_at = tempfile::tempdir().unwrap();
        let copied = copy_tree(folder.path(), &copy_at.path().join("p")).unwrap();
        assert!(copy_at.path().join("p/inside").symlink_metadata().unwrap().is_file());
        assert_eq!(copied.hash, read_tree(folder.path()).unwrap().hash);
        std::os::unix::fs::symlink("/etc/passwd", at("out")).unwrap();
        assert!(read_tree(folder.path()).unwrap_err().to_string().contains("leads out"));
    }
}
