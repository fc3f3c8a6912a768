//! Whole hosts: clients that do anything, over sessions of scripted providers.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "these are tests"
)]

mod asking;
mod children;
mod elfs;
mod life;
mod measure;
mod obedient;
mod support;
mod totals;
mod two;
mod walks;
