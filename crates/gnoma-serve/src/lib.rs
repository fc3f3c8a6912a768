//! Carries the session protocol over a Unix socket: one JSON object per line.
//!
//! A connection begins with a handshake: the client sends [`Hello`](gnoma_core::protocol::Hello), the
//! server answers with a [`Greeting`](gnoma_core::protocol::Greeting). After that the client sends
//! [`ClientMessage`](gnoma_core::protocol::ClientMessage)s and gets
//! [`ServerMessage`](gnoma_core::protocol::ServerMessage)s. The host knows what sessions are; this crate knows
//! where the socket is, who may use it, and how to read lines from somebody who may send anything.

pub mod codec;
mod connect;
pub mod place;
mod server;

pub use gnoma_core::lines::{Line, LineReader, MAX_LINE_BYTES};

pub use self::{
    connect::{ConnectError, connect_to_server},
    place::{Place, PlaceError},
    server::{Server, serve_clients},
};
