//! Whole servers on real sockets, with a host that is a few lines.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "these are tests"
)]

mod corpus;
mod fold;
mod limits;
mod refusals;
mod rubbish;
mod stream;
mod support;
