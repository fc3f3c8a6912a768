//! JSON Schema: says whether a JSON value matches a schema, and if not, what is wrong with it.
//!
//! Draft 2020-12, and what older drafts wrote differently (`definitions`, a list in `items`,
//! `dependencies`, `exclusiveMinimum: true`). A schema that this cannot check exactly is refused when it
//! is read, never partly checked: one with a `$ref` to another document (none is fetched), `$dynamicRef`, or
//! regular expressions with look-around, back references or scripts of Unicode. `format` and `content…` are
//! annotations, as in the standard.
//!
//! Tests compare every verdict with the crate `boon`, which would cost the program 0.3 MB.

mod assertions;
mod check;
mod compile;
mod error;
mod find;
mod keywords;
mod node;
mod number;
mod pattern;
mod read;
mod refs;

use self::node::SchemaNode;
pub use self::{
    error::{SchemaError, SchemaMismatch},
    find::Misfit,
};

/// Longest schema that is taken, in bytes: it is part of every request.
pub const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// A schema that was read and can be checked against.
#[derive(Clone, Debug)]
pub struct Schema {
    nodes: Vec<SchemaNode>,
    /// Some part of it asks what others have looked at.
    tracks: bool,
}

impl Schema {
    /// Parses a JSON schema from text.
    ///
    /// # Errors
    /// It is no JSON Schema, or one that cannot be checked exactly.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        if text.len() > MAX_SCHEMA_BYTES {
            let text = format!("it has {} bytes, more than {MAX_SCHEMA_BYTES}", text.len());
            return Err(SchemaError::TooLarge(text));
        }
        let document =
            serde_json::from_str(text).map_err(|error| SchemaError::NoJson(error.to_string()))?;
        let (nodes, tracks) = read::read_schema(&document)?;
        Ok(Self { nodes, tracks })
    }

    /// Checks that a value fits the schema.
    ///
    /// # Errors
    /// The value does not fit.
    pub fn check(&self, value: &serde_json::Value) -> Result<(), SchemaMismatch> {
        check::check_value(&self.nodes, self.tracks, value)
    }

    /// Finds the value in an answer that fits: the whole text, else what stands in a fenced block, else
    /// any object or list in it, the last first. Gives it as compact JSON.
    ///
    /// # Errors
    /// There is no JSON in it, or none that fits.
    pub fn find_value(&self, text: &str) -> Result<String, Misfit> {
        find::find_value(&|value| self.check(value), text)
    }
}
