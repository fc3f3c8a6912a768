//! Replacing a file in one step: whoever looks sees the old content or the new, never a part.
//!
//! The new content goes to a hidden file in the same folder, which is then renamed. A link is followed
//! and stays a link; permission bits stay; the owner stays where the system allows it. Not kept: hard
//! links. No `fsync`: a crash of the machine may lose the change, not the file system's order.

use std::{
    fs::{self, File, Metadata, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use tokio_util::sync::CancellationToken;

use super::{Refusal, target::Target};

/// Bits of a new file before the process's own mask.
const NEW_FILE_MODE: u32 = 0o666;
/// The part of a mode that is permission.
const PERMISSION_BITS: u32 = 0o7777;

/// Makes `content` the content of the file at `target`; makes the folders above it.
pub(super) fn replace(
    target: &Target,
    content: &[u8],
    stop: &CancellationToken,
) -> Result<(), Refusal> {
    let real = destination(target)?;
    let existing = match fs::metadata(&real) {
        Ok(metadata) => Some(metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(target.cannot("write", &error)),
    };
    if existing.as_ref().is_some_and(|metadata| metadata.permissions().readonly()) {
        return Err(Refusal::Failed(format!(
            "`{}` is write-protected; nothing was written. Change its mode first if it may be changed",
            target.name
        )));
    }
    let ready =
        prepare(&real, content, existing.as_ref()).map_err(|e| target.cannot("write", &e))?;
    if stop.is_cancelled() {
        return Err(Refusal::Stopped(format!("`{}` was not written", target.name)));
    }
    match ready.persist(&real) {
        Ok(_file) => Ok(()),
        Err(failed) => Err(target.cannot("write", &failed.error)),
    }
}

/// The file that is written: the target itself, or what its link leads to.
fn destination(target: &Target) -> Result<PathBuf, Refusal> {
    match fs::canonicalize(&target.path) {
        Ok(real) => Ok(real),
        Err(_) if target.path.is_symlink() => Err(Refusal::Failed(format!(
            "`{}` is a link that leads nowhere; nothing was written. Name the file it should lead to",
            target.name
        ))),
        Err(_) => Ok(target.path.clone()),
    }
}

/// A hidden file beside `real` that holds `content`; gone when dropped before it is renamed.
fn prepare(
    real: &Path,
    content: &[u8],
    existing: Option<&Metadata>,
) -> io::Result<tempfile::NamedTempFile> {
    let folder = real.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::Builder::new()
        .prefix(".gnoma-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(NEW_FILE_MODE))
        .tempfile_in(folder)?;
    file.write_all(content)?;
    if let Some(existing) = existing {
        keep_owner(file.as_file(), existing)?;
        // After the owner: a change of owner clears bits.
        let mode = existing.mode() & PERMISSION_BITS;
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    Ok(file)
}

/// Gives the new file the old one's owner; only the superuser may, so a refusal is no failure.
fn keep_owner(file: &File, existing: &Metadata) -> io::Result<()> {
    let made = file.metadata()?;
    if (made.uid(), made.gid()) == (existing.uid(), existing.gid()) {
        return Ok(());
    }
    match fchown(file, Some(existing.uid()), Some(existing.gid())) {
        Err(error) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::testing::Bench;

    fn replace_in(bench: &Bench, name: &str, content: &str) -> Result<(), Refusal> {
        let target = Target::of(&bench.cx(), name).unwrap();
        replace(&target, content.as_bytes(), &CancellationToken::new())
    }

    #[test]
    fn parents_are_made_and_nothing_else_is_left() {
        let bench = Bench::new();
        replace_in(&bench, "a/b/c.txt", "hello").unwrap();
        assert_eq!(bench.get("a/b/c.txt"), b"hello");
        assert_eq!(bench.names("a/b"), ["c.txt"]);
    }

    #[test]
    fn permission_bits_of_an_existing_file_stay() {
        let bench = Bench::new();
        for mode in [0o755, 0o640, 0o600] {
            bench.put("run.sh", "old");
            fs::set_permissions(bench.path("run.sh"), Permissions::from_mode(mode)).unwrap();
            replace_in(&bench, "run.sh", "new").unwrap();
            let now = fs::metadata(bench.path("run.sh")).unwrap().mode();
            assert_eq!(now & PERMISSION_BITS, mode);
        }
    }

    #[test]
    fn a_new_file_gets_the_bits_any_new_file_gets() {
        let bench = Bench::new();
        bench.put("plain", "");
        replace_in(&bench, "ours", "x").unwrap();
        let mode = |name: &str| fs::metadata(bench.path(name)).unwrap().mode();
        assert_eq!(mode("ours"), mode("plain"));
    }

    #[test]
    fn a_link_stays_a_link_and_its_target_is_written() {
        let bench = Bench::new();
        bench.put("real/file", "old");
        std::os::unix::fs::symlink("real/file", bench.path("link")).unwrap();
        replace_in(&bench, "link", "new").unwrap();
        assert!(bench.path("link").is_symlink());
        assert_eq!(bench.get("real/file"), b"new");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_refused() {
        let bench = Bench::new();
        std::os::unix::fs::symlink("/nowhere/at/all", bench.path("link")).unwrap();
        assert!(replace_in(&bench, "link", "new").is_err());
        assert!(bench.path("link").is_symlink());
    }

    #[test]
    fn a_write_protected_file_is_left_alone() {
        let bench = Bench::new();
        bench.put("fixed", "old");
        fs::set_permissions(bench.path("fixed"), Permissions::from_mode(0o444)).unwrap();
        assert!(replace_in(&bench, "fixed", "new").is_err());
        assert_eq!(bench.get("fixed"), b"old");
    }

    #[test]
    fn a_failed_rename_leaves_no_hidden_file() {
        let bench = Bench::new();
        bench.put("folder/inside", "x");
        assert!(replace_in(&bench, "folder", "new").is_err());
        assert_eq!(bench.names("."), ["folder"]);
    }

    #[test]
    fn a_folder_that_takes_no_files_is_reported() {
        let bench = Bench::new();
        assert!(replace_in(&bench, "/proc/gnoma-test", "x").is_err());
    }

    #[test]
    fn a_cancelled_write_changes_nothing() {
        let bench = Bench::new();
        bench.put("a", "old");
        let stop = CancellationToken::new();
        stop.cancel();
        let target = Target::of(&bench.cx(), "a").unwrap();
        let refusal = replace(&target, b"new", &stop).unwrap_err();
        assert!(matches!(refusal, Refusal::Stopped(_)));
        assert_eq!(bench.get("a"), b"old");
        assert_eq!(bench.names("."), ["a"]);
    }
}
