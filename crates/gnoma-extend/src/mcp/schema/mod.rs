//! The schema of a tool's arguments, as every provider takes it. Servers write all drafts of JSON Schema, and some write
//! none; a provider that meets one it does not know refuses the whole request. So the root becomes an object with its
//! arguments, and in the rest what is no schema is dropped. What a keyword meant in an older draft is kept where the
//! newest has a word for it.
//!
//! This is for models. What a person approves is the schema as the server wrote it.

mod keywords;
mod names;
mod root;

use serde_json::Value;

/// A schema for providers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProviderSchema {
    /// The schema that providers accept.
    pub(super) schema: Value,
    /// Arguments that have another name for models than for the server: that name, and the server's.
    pub(super) renamed: Vec<(String, String)>,
}

/// Makes a schema that every provider takes.
pub(super) fn normalize_schema(schema: &Value) -> ProviderSchema {
    let root = root::to_object(schema);
    let mut cleaned = keywords::SchemaCleaner::new(schema).clean_root(root);
    let renamed = names::rename_arguments(&mut cleaned);
    ProviderSchema { schema: Value::Object(cleaned), renamed }
}

#[cfg(test)]
mod tests;
