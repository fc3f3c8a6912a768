//! Whole behaviour of the adapters: what they send, and what they make of servers good and bad.
//!
//! Recorded traffic is replayed by the `cassettes` target.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod corpus;
mod endpoints;
mod faults;
mod histories;
mod refusals;
mod requests;
mod rounds;
mod streams;
