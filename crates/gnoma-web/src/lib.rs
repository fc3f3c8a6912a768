//! Carries the session protocol over HTTP, and serves a page that shows it.
//!
//! The page is a view like the terminal's: its state is the fold of a session's events, in JavaScript
//! (`page/fold.js`), and all that it does is a request of the protocol. What sessions are is the host's
//! business; whoever wires this crate hands in a [`Site`] that connects clients to one. This crate decides
//! who is let in ([`Access`]) and bounds what anybody may send.
//!
//! Deliberately absent: TLS. It listens on loopback addresses only; from elsewhere people come through
//! a tunnel that has a certificate already (`ssh -L`).

mod access;
mod answer;
mod assets;
mod body;
mod call;
mod carried;
mod events;
mod handle;
mod limits;
pub mod openapi;
mod route;
mod server;
mod stall;

pub use self::{
    access::{Access, Rights, Token, TokenSource},
    body::Outgoing,
    carried::SETTINGS,
    handle::{Handler, Site},
    server::serve,
};
