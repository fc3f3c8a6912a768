//! Trials where the sandbox cannot report which secret files a command tried to open, because `/dev/fuse` cannot be used.
//! What such a trial made may be incomplete without a word: an archive of a folder with a secret in it lacks the secret.
//! Decides by what the command names and what it made.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use gnoma_sandbox::layer::{ChangeKind, Changes, Layer, LayerChange, NodeKind};

/// Files of which the beginning is read to tell an archive.
const MAX_READ: usize = 200;
/// Entries of a folder that are compared with what a command made.
const MAX_ENTRIES: usize = 2_000;
/// Bytes at the beginning of a file that tell an archive.
const HEAD_BYTES: u64 = 512;
/// The first bytes of archives and packed files, each with the place of these bytes.
const ARCHIVES: [(usize, &[u8]); 11] = [
    (0, b"\x1f\x8b"),
    (0, b"PK\x03\x04"),
    (0, b"PK\x05\x06"),
    (0, b"\xfd7zXZ\x00"),
    (0, b"BZh"),
    (0, b"\x28\xb5\x2f\xfd"),
    (0, b"7z\xbc\xaf\x27\x1c"),
    (0, b"Rar!"),
    (0, b"07070"),
    (0, b"\xc7\x71"),
    (257, b"ustar"),
];

/// The secret files that a command may have met, by what it names and what it made; empty where nothing suggests it.
pub(super) fn possibly_met(
    command: &str,
    cwd: &Path,
    (layer, changes): (&Layer, &Changes),
    sealed: &[PathBuf],
    roots: &[PathBuf],
) -> Vec<PathBuf> {
    let made: Vec<_> = changes.list.iter().filter(|change| is_made(change)).collect();
    if sealed.is_empty() || made.is_empty() {
        return Vec::new();
    }
    let named = below_named_folders(command, cwd, sealed, roots);
    if !named.is_empty() {
        return named;
    }
    if made.iter().take(MAX_READ).any(|change| is_archive(layer, change)) {
        return sealed.to_vec();
    }
    let copies = |secret: &&PathBuf| secret.parent().is_some_and(|folder| is_copied(folder, &made));
    sealed.iter().filter(copies).cloned().collect()
}

fn is_made(change: &LayerChange) -> bool {
    let is_file = change.node() == NodeKind::File;
    is_file && matches!(change.kind(), ChangeKind::Created | ChangeKind::Changed)
}

/// Secret files in folders below the workspace's own that a command names, or of which it names all files.
fn below_named_folders(
    command: &str,
    cwd: &Path,
    sealed: &[PathBuf],
    roots: &[PathBuf],
) -> Vec<PathBuf> {
    let is_border = |letter: char| letter.is_whitespace() || "'\"<>|&;()=`,{}".contains(letter);
    let words: BTreeSet<PathBuf> = gnoma_core::sort::to_set(
        command
            .split(is_border)
            .filter(|word| !word.is_empty() && !word.starts_with('-'))
            .map(|word| without_dots(&cwd.join(word.trim_end_matches("/*")))),
    );
    let is_named = |secret: &&PathBuf| {
        let inside =
            |folder: &&Path| roots.iter().any(|root| folder.starts_with(root) && *folder != root);
        secret.ancestors().skip(1).take_while(inside).any(|folder| words.contains(folder))
    };
    sealed.iter().filter(is_named).cloned().collect()
}

/// A path without `.` and `..`, by its letters.
pub(super) fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

fn is_archive(layer: &Layer, change: &LayerChange) -> bool {
    let mut head = Vec::new();
    let read = layer.open_after(change).map(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    let begins =
        |(at, bytes): &(usize, &[u8])| head.get(*at..).is_some_and(|rest| rest.starts_with(bytes));
    matches!(read, Some(Ok(_))) && ARCHIVES.iter().any(begins)
}

/// Reports whether a command made files elsewhere with the names of files in a folder.
fn is_copied(folder: &Path, made: &[&LayerChange]) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let names: BTreeSet<OsString> = gnoma_core::sort::to_set(files.map(|entry| entry.file_name()));
    made.iter().any(|change| {
        let name = change.path().file_name().unwrap_or_else(|| OsStr::new(""));
        change.kind() == ChangeKind::Created
            && change.path().parent() != Some(folder)
            && names.contains(name)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gnoma_sandbox::layer::Site;

    use super::*;

    /// What may have been met by a command that left these files in a workspace with secrets.
    fn met_by(command: &str, left: &[(&str, &[u8])]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().canonicalize().unwrap();
        let root = at.join("work");
        for name in ["sub/a.txt", "sub/.env", "README.md", "key.pem"] {
            fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "x").unwrap();
        }
        let sealed = [root.join("sub/.env"), root.join("key.pem")];
        let layer = Site::in_folder(at.join("layers")).create_layer(vec![root.clone()]).unwrap();
        let upper = layer.overlays()[0].upper.clone();
        for (name, content) in left {
            fs::create_dir_all(upper.join(name).parent().unwrap()).unwrap();
            fs::write(upper.join(name), content).unwrap();
        }
        let changes = layer.changes_but(&|_| false).unwrap();
        let roots = std::slice::from_ref(&root);
        let met = possibly_met(command, &root, (&layer, &changes), &sealed, roots);
        met.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect()
    }

    #[test]
    fn archive_or_copy_of_a_folder_with_secrets_may_contain_them() {
        let zip: &[u8] = b"PK\x03\x04";
        for (command, left) in [
            ("tar czf s.tgz sub >/dev/null 2>&1 || true", ("s.tgz", &b"\x1f\x8b"[..])),
            ("cp -r ./sub/ sub2 2>/dev/null || true", ("sub2/a.txt", b"x")),
            ("cat sub/* > all 2>/dev/null", ("all", b"x")),
            ("make copy", ("sub2/a.txt", b"x")),
        ] {
            assert_eq!(met_by(command, &[left]), ["sub/.env"], "{command}");
        }
        assert_eq!(met_by("python3 pack.py", &[("o.zip", zip)]), ["sub/.env", "key.pem"]);
        assert_eq!(
            met_by("tar cf all.tar .", &[("all.tar", &[&[0; 257][..], b"ustar"].concat())]).len(),
            2
        );
    }

    #[test]
    fn written_files_are_not_suspected_to_contain_secrets() {
        for (command, left) in [
            ("make", ("main.o", &b"\x7fELF"[..])),
            ("black .", ("README.md", b"new")),
            ("echo x > notes.txt", ("notes.txt", b"x")),
            ("npm run gen", ("gen/types.ts", b"x")),
        ] {
            assert!(met_by(command, &[left]).is_empty(), "{command}");
        }
        assert!(met_by("ls sub", &[]).is_empty());
    }
}
