//! JSON that is carried, not understood.
//!
//! Tool schemas and tool arguments pass between provider and tool byte for byte: re-serialising
//! them would reorder keys, change numbers and break prompt caches.

use std::fmt;

use serde::{Deserialize, Serialize, de::Error};
use serde_json::value::RawValue;

/// Reads a value from the bytes of a JSON document.
///
/// `serde_json::from_slice` does the same through a second copy of every reader of `T`: the program is
/// a quarter of a megabyte smaller where all documents are read as text.
///
/// # Errors
/// When the bytes are not UTF-8, not JSON, or not a `T`.
pub fn from_bytes<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, serde_json::Error> {
    serde_json::from_str(std::str::from_utf8(bytes).map_err(Error::custom)?)
}

/// One valid JSON value, kept as the text it arrived as.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawJson(Box<RawValue>);

#[cfg(feature = "schema")]
impl schemars::JsonSchema for RawJson {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RawJson".into()
    }

    fn json_schema(_generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "description": "Any JSON value, kept as the text it arrived as." })
    }
}

impl RawJson {
    /// Takes `text` if it is one JSON value (white space around it is dropped).
    ///
    /// # Errors
    /// The parser's complaint when `text` is not JSON.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        let text: String = text.into();
        let trimmed = text.trim();
        let owned = if trimmed.len() == text.len() { text } else { trimmed.to_owned() };
        RawValue::from_string(owned).map(Self)
    }

    /// The empty object, what a call without arguments carries.
    #[must_use]
    pub fn empty_object() -> Self {
        Self(RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// Serialises `value`.
    ///
    /// # Errors
    /// When `value` cannot be JSON (a map with non-string keys).
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The value as `serde_json` raw value, for splicing into a larger document.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads the value into `T`.
    ///
    /// # Errors
    /// When the value does not have the shape of `T`; the message names the field.
    pub fn read<'de, T: Deserialize<'de>>(&'de self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.0.get())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl fmt::Display for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl PartialEq for RawJson {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for RawJson {}
