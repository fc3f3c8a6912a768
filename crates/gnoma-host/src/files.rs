//! Reading small files of a person's.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

/// A file's text; `None` if there is no such file.
///
/// # Errors
/// It cannot be read, is not UTF-8, or has more than `max_bytes`.
pub fn read(path: &Path, max_bytes: u64) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    file.take(max_bytes + 1).read_to_string(&mut text)?;
    if text.len() as u64 > max_bytes {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large"));
    }
    Ok(Some(text))
}
