//! Empties a layer but for some paths. Nobody else works in it: paths are enough.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{files, stamp::FileTime};

/// Most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// Takes away all below `upper` but what stays. `lower` is the real folder it lies over.
pub(super) fn reset_upper(
    upper: &Path,
    lower: &Path,
    stays: &dyn Fn(&Path) -> bool,
    stayed: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for entry in fs::read_dir(upper)? {
        let entry = entry?;
        let (over, real) = (entry.path(), lower.join(entry.file_name()));
        if stays(&real) {
            stayed.push(real);
            continue;
        }
        let facts = over.symlink_metadata()?;
        let real_facts = real.symlink_metadata().ok().filter(fs::Metadata::is_dir);
        let Some(real_facts) = real_facts.filter(|_| facts.is_dir()) else {
            remove_entry(&over)?;
            continue;
        };
        let name = entry.file_name();
        if files::is_opaque(&files::open_root_folder(upper)?, &name) {
            remove_entry(&over)?;
            continue;
        }
        fs::set_permissions(&over, fs::Permissions::from_mode(0o700))?;
        let before = stayed.len();
        reset_upper(&over, &real, stays, stayed)?;
        if stayed.len() == before {
            remove_entry(&over)?;
        } else {
            fs::set_permissions(&over, real_facts.permissions())?;
        }
    }
    Ok(())
}

/// Removes whatever is at a path of a layer.
pub(super) fn remove_entry(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(facts) if facts.is_dir() => files::remove_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Counts what is deleted at a path of a layer and below it.
///
/// # Errors
/// Something new is there, there are more than [`MAX_ENTRIES`] entries, or a folder cannot be read.
pub(super) fn count_deletions(path: &Path) -> io::Result<usize> {
    count_below(path, &mut 0)
}

fn count_below(path: &Path, seen: &mut usize) -> io::Result<usize> {
    *seen += 1;
    if *seen > MAX_ENTRIES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let (parent, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
    let folder = files::open_root_folder(parent)?;
    let stamp = files::stat_entry(&folder, name)?.ok_or(io::ErrorKind::NotFound)?;
    if files::is_whiteout(&folder, name, &stamp) {
        return Ok(1);
    }
    if !stamp.is_folder() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let mut deletions = usize::from(files::is_opaque(&folder, name));
    drop(folder);
    for entry in fs::read_dir(path)? {
        deletions += count_below(&entry?.path(), seen)?;
    }
    Ok(deletions)
}

/// True if anything at a path of a layer or below it was changed after a moment. Files that cannot be looked at
/// count as changed.
pub(super) fn is_newer(path: &Path, than: FileTime) -> bool {
    let Ok(facts) = path.symlink_metadata() else { return false };
    let changed = (facts.ctime(), u64::try_from(facts.ctime_nsec()).unwrap_or(0));
    let entries = || {
        let entries = fs::read_dir(path).map(|all| all.map(|it| it.map(|it| it.path())));
        entries.map_or(true, |mut all| all.any(|it| it.map_or(true, |it| is_newer(&it, than))))
    };
    changed > than || (facts.is_dir() && entries())
}
