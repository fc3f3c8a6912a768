//! Chores of the project that are not part of what is shipped, and its rules as tests. [`catalogue`]
//! makes the list of models and prices, [`structure`] measures how the crates are built inside,
//! [`runner`] runs the tests.

pub mod catalogue;
pub mod runner;
pub mod structure;

/// The file that holds the JSON Schema of the session protocol, seen from this crate.
pub const SCHEMA: &str = "../gnoma/protocol.schema.json";
