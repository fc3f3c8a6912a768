//! `gnoma protocol`: what a server and its clients say to each other.

use anyhow::Result;
use gnoma_core::protocol::VERSION;

use super::common::{print, print_data};
use crate::report::Exit;

/// Made by `cargo xtask schema` from the types themselves; a test keeps it true.
const SCHEMA: &str = include_str!("../../protocol.schema.json");

pub(super) fn run(schema: bool) -> Result<Exit> {
    if schema {
        return print_data(SCHEMA);
    }
    print(&format!("version {VERSION}; `gnoma protocol --schema` prints the JSON Schema\n"))
}
