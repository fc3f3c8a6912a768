//! Errors of reading or writing stored sessions.

use serde::{Deserialize, Serialize};

use super::holder::Holder;

/// What kind of failure, for branching.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StoreErrorKind {
    /// The disk or the quota is full.
    Full,
    /// The place cannot be written to.
    ReadOnly,
    /// Another process writes this session.
    Held {
        /// The process that writes it.
        by: Holder,
    },
    /// What is stored cannot be read.
    Damaged,
    /// No such session or entry.
    NotFound,
    /// A session with this id was begun before.
    Exists,
    /// The text is not a session id.
    InvalidId,
    /// A newer gnoma wrote it.
    TooNew,
    /// The file is not gnoma's.
    Foreign,
    /// Other processes kept it locked for too long.
    Busy,
    /// Anything else between the store and its disk.
    Io,
}

/// A store's failure. Nothing stored before is harmed by it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[error("{sentence}")]
pub struct StoreError {
    /// For branching.
    pub kind: StoreErrorKind,
    /// For people: what happened, and what to do about it.
    pub sentence: String,
}

impl StoreError {
    /// An error of `kind`.
    pub fn new(kind: StoreErrorKind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into() }
    }
}
