//! `gnoma protocol`: what a server and its clients say to each other.

use anyhow::Result;
use gnoma_core::protocol::VERSION;
use gnoma_host::HostError;
use gnoma_web::openapi::openapi;
use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::common::{print, print_data};
use crate::report::Exit;

/// Made by `cargo xtask schema` from the types themselves; a test keeps it true. Compressed when the program
/// is built.
const SCHEMA: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schema"));
/// More than the schema has.
const MAX_SCHEMA_BYTES: usize = 4 << 20;

pub(super) fn run(schema: bool, api: bool) -> Result<Exit> {
    if schema {
        return print_data(&text()?);
    }
    if api {
        return print_data(&openapi(&text()?, env!("CARGO_PKG_VERSION"))?);
    }
    print(&format!(
        "version {VERSION}; `gnoma protocol --schema` prints the JSON Schema, `--openapi` the HTTP API\n"
    ))
}

fn text() -> Result<String, HostError> {
    let broken = || HostError::failure("the schema in this program is broken");
    let bytes = decompress_to_vec_with_limit(SCHEMA, MAX_SCHEMA_BYTES).map_err(|_| broken())?;
    String::from_utf8(bytes).map_err(|_| broken())
}
