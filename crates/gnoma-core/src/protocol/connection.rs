//! How a provider is reached, as a client asks for it to be tried and stored.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A connection to try and store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Connection {
    /// The provider.
    pub provider: String,
    /// How to reach it.
    pub by: ConnectBy,
    /// The model to use, for a server that lists none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// How a provider is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConnectBy {
    /// With the key in this variable of the session's environment.
    Variable(String),
    /// At this address, without a key.
    Address(String),
    /// With a key that was typed.
    Key(TypedKey),
    /// At this address, with a key that was typed.
    AddressAndKey {
        /// The address.
        address: String,
        /// The key.
        key: TypedKey,
    },
}

/// A key as a person typed it, on its way to where it is stored. Debugging output does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct TypedKey(pub String);

impl fmt::Debug for TypedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
