//! The forms in which a front end without a screen writes.

/// The form of what a front end writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Text: at a terminal as it arrives, otherwise each part once it is complete.
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object per line, as events happen.
    StreamJson,
}
