//! Texts that the program carries compressed: tables that are read once, on first use.
//!
//! A build script calls [`pack`]; the code that needs a text writes `unpack(packed!("name"))` inside a
//! `LazyLock`. A text costs a third of its bytes in the program, and half a millisecond for 100 KB when it is
//! first needed, so what every start reads is kept small.

#![expect(clippy::print_stdout, reason = "build scripts speak to cargo on standard output")]
#![expect(clippy::disallowed_methods, reason = "a build script is told its folders by variables")]

use std::{env, fs, io, path::Path};

use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec_with_limit};

/// Small rather than quick: it is done once.
const COMPRESSION_LEVEL: u8 = 10;
/// No text is larger.
const MAX_TEXT_BYTES: usize = 4 << 20;

/// The compressed bytes of a file that [`pack`] was given, by its name without folders.
#[macro_export]
macro_rules! packed {
    ($name:literal) => {
        include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".packed"))
    };
}

/// Compresses files of a crate into its `OUT_DIR`. For build scripts.
///
/// # Errors
/// A file cannot be read or written, or it is no text of at most 4 MiB; the message names it.
pub fn pack<'p>(files: impl IntoIterator<Item = &'p str>) -> io::Result<()> {
    for file in files {
        println!("cargo::rerun-if-changed={file}");
        let name = file.rsplit('/').next().unwrap_or(file);
        let text = fs::read_to_string(file).map_err(|error| error_for_file(file, &error))?;
        pack_text(name, &text)?;
    }
    Ok(())
}

/// Compresses a text that a build script has made; `name` is what [`packed!`] calls it.
///
/// # Errors
/// The text is longer than 4 MiB, or its file cannot be written; the message names it.
pub fn pack_text(name: &str, text: &str) -> io::Result<()> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(error_for_file(name, &io::ErrorKind::FileTooLarge.into()));
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    let packed = Path::new(&out).join(format!("{name}.packed"));
    fs::write(packed, compress_text(text)).map_err(|error| error_for_file(name, &error))
}

fn compress_text(text: &str) -> Vec<u8> {
    compress_to_vec(text.as_bytes(), COMPRESSION_LEVEL)
}

fn error_for_file(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// The text behind [`packed!`]. Other bytes than those that [`pack`] writes give an empty one.
#[must_use]
pub fn unpack(packed: &[u8]) -> String {
    let bytes = decompress_to_vec_with_limit(packed, MAX_TEXT_BYTES).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_text_is_unpacked_as_it_was() {
        for text in [String::new(), "ä\tb\n".repeat(10_000), "x".repeat(MAX_TEXT_BYTES)] {
            assert_eq!(unpack(&compress_text(&text)), text);
        }
        assert_eq!(unpack(b"rubbish"), "");
    }

    #[test]
    fn text_that_is_too_long_is_refused_by_name() {
        let error = pack_text("big.table", &"x".repeat(MAX_TEXT_BYTES + 1)).unwrap_err();
        assert!(error.to_string().contains("big.table"), "{error}");
    }
}
