//! Whole behaviour of the adapters: what they send, and what they make of servers good and bad.
//!
//! Recorded traffic is replayed by the `cassettes` target.

#![expect(clippy::unwrap_used, reason = "these are tests")]

#[path = "../mutate/mod.rs"]
mod mutate;

mod corpus;
mod endings;
mod endpoints;
mod faults;
mod histories;
mod pictures;
mod refusals;
mod requests;
mod rounds;
mod sentences;
mod streams;
