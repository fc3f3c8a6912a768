//! Archives of plugins: `.tar`, `.tar.gz` and `.zip`, unpacked within limits and into their own folder.

mod inflated;
mod tar;
mod unpacked;
mod zip;

use std::{fs::File, io::Read as _, path::Path};

use self::{inflated::gunzip_bytes, unpacked::UnpackFolder};
use super::content_error::PluginArchiveError;

/// Most bytes of an archive.
const MAX_ARCHIVE_BYTES: u64 = 64 << 20;

/// Reports whether a file is an archive, by its name.
pub(super) fn is_archive(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    [".tar", ".tar.gz", ".tgz", ".zip"].iter().any(|ending| name.ends_with(ending))
}

/// Unpacks an archive into an empty folder.
///
/// # Errors
/// The archive is damaged or too large, or an entry is refused.
pub(super) fn unpack_archive(archive: &Path, into: &Path) -> Result<(), PluginArchiveError> {
    let bytes = read_archive(archive)
        .map_err(|source| PluginArchiveError::Unreadable { path: archive.to_owned(), source })?;
    let mut unpacked = UnpackFolder::new(into);
    match bytes.get(..4) {
        Some([0x1f, 0x8b, ..]) => tar::unpack_tar(&gunzip_bytes(&bytes)?, &mut unpacked)?,
        Some([b'P', b'K', 3 | 5, _]) => zip::unpack_zip(&bytes, &mut unpacked)?,
        _ => tar::unpack_tar(&bytes, &mut unpacked)?,
    }
    unpacked.create_links()
}

fn read_archive(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_ARCHIVE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_ARCHIVE_BYTES {
        let text = format!("it is larger than {} MiB", MAX_ARCHIVE_BYTES >> 20);
        return Err(std::io::Error::other(text));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
