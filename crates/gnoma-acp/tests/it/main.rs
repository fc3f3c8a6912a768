//! The agent with bytes of somebody who may send anything.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "these are tests"
)]

mod busy;
mod corpus;
mod wire;
