//! Compresses the list of models.

#![expect(clippy::expect_used, reason = "a build without its files has to stop")]
#![expect(clippy::disallowed_methods, reason = "a build script is told its folders by variables")]

use std::{env, fs, path::Path};

use miniz_oxide::deflate::compress_to_vec;

/// Small rather than quick: it is done once.
const LEVEL: u8 = 10;

fn main() {
    println!("cargo::rerun-if-changed=src/catalogue/models.tsv");
    let list = fs::read("src/catalogue/models.tsv").expect("the list can be read");
    let out = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("models"), compress_to_vec(&list, LEVEL))
        .expect("the folder takes files");
}
