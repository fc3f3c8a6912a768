//! The limits of integers in a JSON Schema. The build script describes the HTTP API with them, and the program puts them
//! into the types that it takes out of the protocol's schema.

use serde_json::{Value, json};

/// Adds to each integer the largest value that its format implies: tools do not know the formats.
pub(crate) fn add_integer_limits(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let most = match fields.get("format").and_then(Value::as_str) {
                Some("uint8") => u64::from(u8::MAX),
                Some("uint16") => u64::from(u16::MAX),
                Some("uint32") => u64::from(u32::MAX),
                Some("uint" | "uint64") => u64::MAX,
                _ => 0,
            };
            if most > 0 {
                fields.insert("maximum".to_owned(), json!(most));
            }
            fields.values_mut().for_each(add_integer_limits);
        }
        Value::Array(items) => items.iter_mut().for_each(add_integer_limits),
        _ => (),
    }
}
