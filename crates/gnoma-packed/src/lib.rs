//! Texts that the program carries compressed: tables that are read once, on first use.
//!
//! A build script calls [`pack`]; the code that needs a text writes `unpack(packed!("name"))` inside a
//! `LazyLock`. A text costs a third of its bytes in the program, and half a millisecond for 100 KB when it is
//! first needed, so what every start reads stays as it is.

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
/// A file cannot be read or written.
pub fn pack<'p>(files: impl IntoIterator<Item = &'p str>) -> io::Result<()> {
    for file in files {
        println!("cargo::rerun-if-changed={file}");
        let name = file.rsplit('/').next().unwrap_or(file);
        pack_text(name, &fs::read(file)?)?;
    }
    Ok(())
}

/// Compresses a text that a build script has made; `name` is what [`packed!`] calls it.
///
/// # Errors
/// The file cannot be written.
pub fn pack_text(name: &str, text: &[u8]) -> io::Result<()> {
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let packed = Path::new(&out).join(format!("{name}.packed"));
    fs::write(packed, compress_to_vec(text, COMPRESSION_LEVEL))
}

/// The text behind [`packed!`]. Bytes that are not such a text, which a build excludes, give an empty one.
#[must_use]
pub fn unpack(packed: &[u8]) -> String {
    let bytes = decompress_to_vec_with_limit(packed, MAX_TEXT_BYTES).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}
