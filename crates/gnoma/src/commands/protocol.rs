//! `gnoma protocol`: what a server and its clients say to each other.

use anyhow::Result;
use gnoma_core::protocol::VERSION;
use gnoma_host::HostError;
use gnoma_packed::packed;
use serde_json::Value;

use super::common::{print_raw_data, print_safe_text};
use crate::report::Exit;

mod integer_limits;

/// Made by `cargo xtask schema` from the types themselves; a test keeps it true. Compressed when the program
/// is built.
const SCHEMA: &[u8] = packed!("schema");
/// Made of the schema when the program is built; the types are null here.
const OPENAPI: &[u8] = packed!("openapi");

pub(super) fn run(schema: bool, api: bool) -> Result<Exit> {
    if schema {
        return print_raw_data(&to_pretty_json(&unpack_json(SCHEMA)?)?);
    }
    if api {
        return print_raw_data(&openapi_text()?);
    }
    print_safe_text(&format!(
        "version {VERSION}; `gnoma protocol --schema` prints the JSON Schema, `--openapi` the HTTP API\n"
    ))
}

/// The description of the HTTP API.
pub(crate) fn openapi_text() -> Result<String> {
    let (mut api, mut schema) = (unpack_json(OPENAPI)?, unpack_json(SCHEMA)?);
    if let (Some(into), Some(types)) =
        (api.pointer_mut("/components/schemas"), schema.get_mut("$defs"))
    {
        *into = types.take();
        integer_limits::add_integer_limits(into);
    }
    Ok(to_pretty_json(&api)?.replace("#/$defs/", "#/components/schemas/"))
}

fn to_pretty_json(document: &Value) -> serde_json::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}

fn unpack_json(document: &[u8]) -> Result<Value, HostError> {
    gnoma_core::json::from_str(&gnoma_packed::unpack(document))
        .map_err(|_| HostError::failure("the schema in this program is broken"))
}

#[cfg(test)]
#[path = "../../build/openapi.rs"]
mod description;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_protocol_schema_and_openapi_match_their_sources() {
        let file = include_str!("../../protocol.schema.json");
        assert!(to_pretty_json(&unpack_json(SCHEMA).unwrap()).unwrap() == file);
        let made =
            description::openapi_document(&unpack_json(SCHEMA).unwrap(), env!("CARGO_PKG_VERSION"));
        let text = to_pretty_json(&made).unwrap().replace("#/$defs/", "#/components/schemas/");
        assert!(openapi_text().unwrap() == text);
    }
}
