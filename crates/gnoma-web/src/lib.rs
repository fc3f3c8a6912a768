//! Carries the session protocol over HTTP, and serves a page that shows it.
//!
//! The page is a view like the terminal's: its state is the fold of a session's events, in JavaScript
//! (`page/fold.js`), and everything it does is a request of the protocol. The host knows what sessions are;
//! the caller passes a [`Site`] that connects clients to one. This crate decides who may connect ([`Access`])
//! and limits what anybody may send.
//!
//! Deliberately absent: TLS. It listens on loopback addresses only; people on other machines connect through
//! an encrypted tunnel (`ssh -L`).

mod access;
mod answer;
mod assets;
mod body;
mod call;
mod carried;
mod events;
mod handle;
mod limits;
mod route;
mod server;
mod stall;

pub use self::{
    access::{Access, Rights, Token, TokenSource},
    body::ResponseBody,
    carried::SETTINGS,
    handle::{Handler, Site},
    server::serve_site,
};
