//! What the rules of a project say that a command names.

/// What the rules say that a command names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ruled {
    /// Their lines.
    pub(super) lines: Vec<String>,
    /// More may run than these.
    pub(super) is_open: bool,
}
