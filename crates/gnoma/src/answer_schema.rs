//! The form of an answer, as it is given on the command line: a file, or the schema itself.

use std::fs;

use gnoma_core::{RawJson, json};
use gnoma_host::HostError;
use gnoma_schema::{MAX_SCHEMA_BYTES, Schema};
use serde_json::Value;

use crate::environment::ProcessEnvironment;

/// The form that the answer must have.
#[derive(Clone, Debug)]
pub(crate) struct AnswerSchema {
    /// As it was given.
    pub text: RawJson,
    /// As answers are checked against it.
    pub schema: Schema,
}

/// Reads a schema: what begins like one is one, all else names a file.
///
/// # Errors
/// There is no such file, or no schema in it that can be checked.
pub(crate) fn read(given: &str, around: &ProcessEnvironment) -> Result<AnswerSchema, HostError> {
    let given = given.trim();
    let is_schema = given.starts_with(['{', '[', '"']) || matches!(given, "true" | "false");
    let (text, place) = if is_schema {
        (given.to_owned(), String::new())
    } else {
        let path = around.cwd.join(given);
        let place = format!(" in {}", path.display());
        let size = fs::metadata(&path).map(|facts| facts.len());
        let text = match size {
            Ok(size) if size > MAX_SCHEMA_BYTES as u64 => {
                let text = format!(
                    "--json-schema: the file has more than {MAX_SCHEMA_BYTES} bytes{place}"
                );
                return Err(HostError::usage(text));
            }
            Ok(_) => fs::read_to_string(&path),
            Err(error) => Err(error),
        };
        let unread = |error| {
            HostError::usage(format!(
                "--json-schema: cannot read {}: {error}; give a file, or the schema itself as `{{…}}`",
                path.display()
            ))
        };
        (text.map_err(unread)?, place)
    };
    // What is no JSON goes on as it is, so that the schema says where.
    let text = json::from_hand::<Value>(&text).map_or(text, |value| value.to_string());
    let schema = Schema::parse(&text)
        .map_err(|error| HostError::usage(format!("--json-schema: {error}{place}")))?;
    let text = RawJson::parse(&text)
        .map_err(|error| HostError::usage(format!("--json-schema: {error}{place}")))?;
    Ok(AnswerSchema { text, schema })
}
