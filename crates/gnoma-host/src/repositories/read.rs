//! Reading the small files of a repository.

use std::{fs::File, io::Read as _, path::Path};

/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// What stands for a file that is longer: no file of settings begins like this.
const UNREADABLE: &str = "[";

/// A file's text; `None` where there is none.
pub(super) fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 == MAX_BYTES {
        return Some(UNREADABLE.to_owned());
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
