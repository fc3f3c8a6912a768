//! Names beside the workspace of which a command on trial says that they are not there, although they are. They are not
//! served to it, so nobody reports that it looked for them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    policy::{MOUNT_PLACE, MOUNTS},
    unreported_trials::without_dots,
};

/// Most names that are returned.
const MAX_NAMES: usize = 128;
/// Messages that programs print when a path is not there.
const ABSENCES: [&str; 4] = ["no such file or directory", "enoent", "os error 2)", "errno 2]"];
/// Characters around a path in a message.
const AROUND_PATHS: &str = "'\"`‘’“”:,;()[]<>=";

/// Lists the names in the folders above these roots of which a command says that they are not there, although they are.
/// `known` are the places that the command finds or that are hidden from it.
pub(super) fn names_said_absent(
    output: &str,
    (cwd, roots): (&Path, &[PathBuf]),
    known: &[PathBuf],
) -> Vec<PathBuf> {
    let is_absence = |line: &&str| {
        let line = line.to_ascii_lowercase();
        ABSENCES.iter().any(|words| line.contains(words))
    };
    let is_around = |letter: char| letter.is_whitespace() || AROUND_PATHS.contains(letter);
    let words = output.lines().filter(is_absence).flat_map(|line| line.split(is_around));
    let paths = words.filter(|word| word.contains('/')).map(|word| without_dots(&cwd.join(word)));
    let names: BTreeSet<PathBuf> =
        gnoma_core::sort::to_set(paths.filter_map(|path| name_above(&path, roots)));
    if names.is_empty() {
        return Vec::new();
    }
    let mounts = fs::read_to_string(MOUNTS).unwrap_or_default();
    let is_mounted = |name: &Path| {
        let mut places = mounts.lines().filter_map(|line| line.split(' ').nth(MOUNT_PLACE));
        places.any(|place| Path::new(place) == name)
    };
    let is_known =
        |name: &Path| known.iter().any(|place| place.starts_with(name) || name.starts_with(place));
    let is_there = |name: &PathBuf| {
        // A mount whose server does not answer would hold up the command.
        !is_known(name)
            && !is_mounted(name)
            && fs::symlink_metadata(name).is_ok_and(|facts| !facts.is_symlink())
    };
    names.into_iter().filter(is_there).take(MAX_NAMES).collect()
}

/// Returns the name in a folder above a root that a path is or lies below; `None` for what is inside, for settings, and
/// for what only the root of the machine leads to.
fn name_above(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    if roots.iter().any(|root| path.starts_with(root) || root.starts_with(path)) {
        return None;
    }
    let mut folders = roots.iter().flat_map(|root| root.ancestors().skip(1));
    let folder = folders.find(|folder| folder.parent().is_some() && path.starts_with(folder))?;
    let name = path.strip_prefix(folder).ok()?.iter().next()?;
    (!name.as_encoded_bytes().starts_with(b".")).then(|| folder.join(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn names_that_are_there_and_said_to_be_absent_are_found_in_messages() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["work/src", "other", ".config", "tools"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        fs::write(at("notes"), "").unwrap();
        symlink(at("other"), at("link")).unwrap();
        let said = "cat: ../hidden: No such file or directory\nls: ../other/x: No such file or directory
[Errno 2] No such file or directory: '../notes'\n../work/x: No such file or directory\n../none/x: ENOENT
node: ENOENT: no such file or directory, open '../.config/a'\n../tools/x: ENOENT\n../link/x: ENOENT\nnotes: ENOENT";
        let work = at("work");
        let absent =
            names_said_absent(said, (&work, std::slice::from_ref(&work)), &[at("tools/bin")]);
        assert_eq!(absent, [at("notes"), at("other")]);
    }
}
