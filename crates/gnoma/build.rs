//! Compresses the protocol's schema, which few people print and every program carries.

#![expect(clippy::expect_used, reason = "a build without its files has to stop")]
#![expect(clippy::disallowed_methods, reason = "a build script is told its folders by variables")]

use std::{env, fs, path::Path};

use miniz_oxide::deflate::compress_to_vec;

/// Small rather than quick: it is done once.
const LEVEL: u8 = 10;

fn main() {
    println!("cargo::rerun-if-changed=protocol.schema.json");
    let schema = fs::read("protocol.schema.json").expect("the schema can be read");
    let out = env::var("OUT_DIR").expect("cargo says where");
    fs::write(Path::new(&out).join("schema"), compress_to_vec(&schema, LEVEL))
        .expect("the folder takes files");
}
