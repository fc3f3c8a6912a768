//! The JSON Schema of the protocol.

use schemars::{JsonSchema, schema_for};

use super::{ClientMessage, Greeting, Hello, ServerMessage, VERSION};

/// All messages of a connection, each a line of JSON.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema is wanted")]
struct SessionProtocol {
    /// A client's first line.
    hello: Hello,
    /// The server's first line.
    greeting: Greeting,
    /// Every further line of a client.
    client: ClientMessage,
    /// Every further line of the server.
    server: ServerMessage,
}

/// The schema of all messages, as JSON text with a line break at its end.
#[must_use]
pub fn protocol_schema() -> String {
    let mut schema = schema_for!(SessionProtocol);
    schema.insert("x-protocol-version".to_owned(), VERSION.into());
    let text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text + "\n"
}
