//! How much of a text is read; what exceeds a limit is an error.

/// Longest text that is looked at, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// How deep constructs may stand in each other.
pub const MAX_DEPTH: usize = 50;
/// How many words, parts and commands a text may have.
pub const MAX_NODES: usize = 200_000;
/// How many braces and commas may stand in a word with braces.
pub const MAX_BRACES: usize = 500;
/// How many bytes may be read again because their meaning shows only later.
pub const MAX_REREAD_BYTES: usize = 8 << 20;
