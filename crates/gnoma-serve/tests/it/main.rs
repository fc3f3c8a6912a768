//! Whole servers on real sockets, with a host that is a few lines.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests"
)]

mod corpus;
mod place;
mod socket;
mod support;
