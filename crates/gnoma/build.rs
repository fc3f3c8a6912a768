//! Compresses the protocol's schema and the description of the HTTP API, which few people print and every program
//! carries.

#![expect(clippy::expect_used, reason = "a build without its files has to stop")]
#![expect(clippy::disallowed_methods, reason = "a build script is told its folders by variables")]

#[path = "build/openapi.rs"]
mod openapi;

use std::{env, fs, path::Path};

use miniz_oxide::deflate::compress_to_vec;
use serde_json::Value;

/// Small rather than quick: it is done once.
const LEVEL: u8 = 10;
const SCHEMA: &str = "protocol.schema.json";

fn main() {
    println!("cargo::rerun-if-changed=build/openapi.rs");
    println!("cargo::rerun-if-changed={SCHEMA}");
    let schema = fs::read(SCHEMA).expect("the schema can be read");
    let schema: Value = serde_json::from_slice(&schema).expect("the schema is JSON");
    let version = env::var("CARGO_PKG_VERSION").expect("cargo says which");
    let mut api = openapi::openapi(&schema, &version);
    // The program takes the types out of the schema.
    if let Some(types) = api.pointer_mut("/components/schemas") {
        types.take();
    }
    let out = env::var("OUT_DIR").expect("cargo says where");
    for (name, document) in [("schema", schema), ("openapi", api)] {
        let bytes = compress_to_vec(document.to_string().as_bytes(), LEVEL);
        fs::write(Path::new(&out).join(name), bytes).expect("the folder takes files");
    }
}
