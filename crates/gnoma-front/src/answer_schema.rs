//! The form of an answer, as it is given on the command line: a file, or the schema itself.

use std::fs;

use gnoma_core::{RawJson, json::from_hand};
use gnoma_host::HostError;
use gnoma_schema::{MAX_SCHEMA_BYTES, Schema};

use crate::environment::ProcessEnvironment;

/// The JSON Schema that an answer must fit.
#[derive(Clone, Debug)]
pub struct AnswerSchema {
    /// The schema as it was given.
    pub text: RawJson,
    /// The schema as answers are checked against it.
    pub schema: Schema,
}

/// Reads the schema of `--json-schema`: what begins like one is one, all else names a file.
///
/// # Errors
/// There is no such file, or no schema in it that can be checked.
pub fn read_schema(given: &str, around: &ProcessEnvironment) -> Result<AnswerSchema, HostError> {
    let given = given.trim();
    if given.is_empty() {
        return Err(HostError::usage("--json-schema is empty; give a file, or the schema itself"));
    }
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
    let (text, schema) = parse_schema(&text)
        .map_err(|why| HostError::usage(format!("--json-schema: {why}{place}")))?;
    Ok(AnswerSchema { text, schema })
}

/// Parses a schema as people write it: with a byte order mark, comments, and commas behind the last item.
fn parse_schema(text: &str) -> Result<(RawJson, Schema), String> {
    let text: RawJson =
        from_hand(text).map_err(|error| format!("the schema is not JSON: {error}"))?;
    let schema = Schema::parse(text.get()).map_err(|error| error.to_string())?;
    Ok((text, schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_with_a_byte_order_mark_comments_and_last_commas_is_read() {
        for text in [
            "\u{feff}{\"type\": \"object\"}",
            "// the answer\n{\"type\": \"object\"}",
            "{\"type\": \"object\", /* more */ \"required\": [\"a\",],}",
        ] {
            let (plain, _) = parse_schema(text).unwrap();
            assert!(serde_json::from_str::<serde_json::Value>(plain.get()).is_ok(), "{text}");
        }
        for text in ["", "{", "{\"type\": 1}", "{\"type\" \"object\"}"] {
            assert!(parse_schema(text).is_err(), "{text}");
        }
    }
}
