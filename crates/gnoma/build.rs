//! Compresses the protocol's schema and the description of the HTTP API, which few people print and every program
//! carries.

#[path = "src/commands/protocol/integer_limits.rs"]
mod integer_limits;
#[path = "build/openapi.rs"]
mod openapi;

use std::{fs, io};

use gnoma_packed::pack_text;
use serde_json::Value;

const SCHEMA: &str = "protocol.schema.json";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build/openapi.rs");
    println!("cargo::rerun-if-changed=src/commands/protocol/integer_limits.rs");
    println!("cargo::rerun-if-changed={SCHEMA}");
    let schema = fs::read_to_string(SCHEMA)
        .map_err(|error| io::Error::other(format!("{SCHEMA}: {error}")))?;
    let schema: Value = serde_json::from_str(&schema)?;
    let mut api = openapi::openapi_document(&schema, env!("CARGO_PKG_VERSION"));
    // The program takes the types out of the schema.
    if let Some(types) = api.pointer_mut("/components/schemas") {
        types.take();
    }
    pack_text("schema", &schema.to_string())?;
    pack_text("openapi", &api.to_string())
}
