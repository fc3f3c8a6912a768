//! Random bits from the operating system, for tokens and ids.

use std::{
    fs::File,
    io::{self, Read as _},
};

/// Returns 256 bits of the system's random source, for tokens and the like.
///
/// # Errors
/// `/dev/urandom` cannot be read; the message names it.
pub fn random_bytes() -> io::Result<[u8; 32]> {
    const SOURCE: &str = "/dev/urandom";
    let mut bytes = [0; 32];
    let read = File::open(SOURCE).and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| {
        io::Error::new(error.kind(), format!("{SOURCE} cannot be read: {error}"))
    })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_differ_each_time() {
        assert_ne!(random_bytes().unwrap(), random_bytes().unwrap());
    }
}
