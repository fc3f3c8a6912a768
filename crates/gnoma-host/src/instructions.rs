//! The project's own instructions for assistants: `AGENTS.md`, else `CLAUDE.md`, from the project's
//! root down to the working folder; the nearest comes last and so weighs most.

use std::{io::Read as _, path::Path};

use gnoma_config::project_root;
use gnoma_core::cut;

/// Most that is taken of all files together.
const MAX_BYTES: usize = 32 << 10;

/// What was found, and whether something did not fit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The texts, each under the name of its file.
    pub text: String,
    /// Something was left out at the end.
    pub cut: bool,
}

/// Reads the instructions that hold in `cwd`.
pub fn find(cwd: &Path, config_dir: &Path) -> Instructions {
    let root = project_root(cwd, config_dir).unwrap_or_else(|| cwd.to_owned());
    let Ok(real_root) = root.canonicalize() else { return Instructions::default() };
    let mut folders: Vec<_> =
        cwd.ancestors().take_while(|folder| folder.starts_with(&root)).collect();
    folders.reverse();
    let mut found = Instructions::default();
    for folder in folders {
        let names = ["AGENTS.md", "CLAUDE.md"];
        let file =
            names.iter().find_map(|name| Some((*name, read(&folder.join(name), &real_root)?)));
        if let Some((name, text)) = file {
            let place = folder.strip_prefix(&root).unwrap_or(folder).join(name);
            found.text.push_str(&format!("--- {}\n{}\n", place.display(), text.trim_end()));
        }
    }
    found.cut = found.text.len() > MAX_BYTES;
    if found.cut {
        found.text.truncate(cut::head(&found.text, MAX_BYTES).len());
    }
    found
}

/// A repository is not believed: a link must not bring in a file from outside, and what is no file
/// might never end.
fn read(path: &Path, real_root: &Path) -> Option<String> {
    let real = path.canonicalize().ok()?;
    if !real.starts_with(real_root) || !real.is_file() {
        return None;
    }
    let file = std::fs::File::open(real).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (!text.trim().is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_comes_last_and_too_much_is_cut() {
        let project = tempfile::tempdir().unwrap();
        let inner = project.path().join("a/b");
        std::fs::create_dir_all(&inner).unwrap();
        std::fs::create_dir(project.path().join(".git")).unwrap();
        std::fs::write(project.path().join("AGENTS.md"), "root rules").unwrap();
        std::fs::write(project.path().join("CLAUDE.md"), "not read").unwrap();
        std::fs::write(inner.join("CLAUDE.md"), "inner rules").unwrap();
        let found = find(&inner, Path::new("/nowhere"));
        assert_eq!(found.text, "--- AGENTS.md\nroot rules\n--- a/b/CLAUDE.md\ninner rules\n");
        std::fs::write(inner.join("CLAUDE.md"), "x".repeat(MAX_BYTES)).unwrap();
        assert!(find(&inner, Path::new("/nowhere")).cut);
    }

    #[test]
    fn a_link_does_not_bring_in_what_lies_outside() {
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("id_rsa");
        std::fs::write(&secret, "PRIVATE KEY").unwrap();
        let project = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(&secret, project.path().join("AGENTS.md")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", project.path().join("CLAUDE.md")).unwrap();
        assert_eq!(find(project.path(), Path::new("/nowhere")), Instructions::default());
    }
}
