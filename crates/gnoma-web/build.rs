//! Compresses the page, so that the program carries it as it is sent.

#![expect(clippy::expect_used, reason = "a build without its files has to stop")]
#![expect(clippy::disallowed_methods, reason = "a build script is told its folders by variables")]

use std::{env, fmt::Write as _, fs, path::Path};

use miniz_oxide::deflate::compress_to_vec_zlib;
use sha2::{Digest as _, Sha256};

/// Small rather than quick: it is done once.
const LEVEL: u8 = 10;
/// Hexadecimal digits of the name of a build.
const BUILD_DIGITS: usize = 12;

fn main() {
    let page = Path::new("page");
    println!("cargo::rerun-if-changed=page");
    let out = env::var("OUT_DIR").expect("cargo says where");
    let out = Path::new(&out);
    let mut names: Vec<String> = fs::read_dir(page)
        .expect("the page has a folder")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let mut hash = Sha256::new();
    let files: Vec<(String, Vec<u8>)> = names
        .into_iter()
        .map(|name| {
            let bytes = fs::read(page.join(&name)).expect("a file of the page can be read");
            hash.update(&bytes);
            (name, bytes)
        })
        .collect();
    let mut build = String::new();
    for byte in hash.finalize() {
        write!(build, "{byte:02x}").expect("a string takes everything");
    }
    build.truncate(BUILD_DIGITS);
    let mut table = format!("pub(crate) const BUILD: &str = \"{build}\";\n");
    table += "pub(crate) const FILES: &[(&str, &[u8])] = &[\n";
    for (name, bytes) in files {
        let text = String::from_utf8(bytes).expect("files of the page are text");
        // The page knows which build it is of, so that it notices a newer server.
        let text = without_comments(&name, &text).replace("{{build}}", &build);
        fs::write(out.join(&name), compress_to_vec_zlib(text.as_bytes(), LEVEL))
            .expect("the folder takes files");
        let path = out.join(&name);
        writeln!(table, "    ({name:?}, include_bytes!({path:?})),")
            .expect("a string takes everything");
    }
    table += "];\n";
    fs::write(out.join("files.rs"), table).expect("the folder takes files");
}

/// A script or style without lines that are comments alone, and without indentation: what the program carries.
fn without_comments(name: &str, text: &str) -> String {
    if !name.ends_with(".js") && !name.ends_with(".css") {
        return text.to_owned();
    }
    let mut is_inside = false;
    let mut kept = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        let opens = line.starts_with("/*");
        let is_comment = is_inside || opens || line.starts_with("//");
        is_inside = (is_inside || opens) && !line.ends_with("*/");
        if !is_comment && !line.is_empty() {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}
