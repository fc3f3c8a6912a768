//! How much of a text is read; what exceeds a limit is an error.

/// Longest text that is looked at, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// The deepest nesting of constructs.
pub const MAX_DEPTH: usize = 50;
/// The number of words, parts and commands that a text may have.
pub const MAX_NODES: usize = 200_000;
/// The number of braces and commas that may stand in a word with braces.
pub const MAX_BRACES: usize = 500;
/// The number of bytes that may be read again because their meaning shows only later.
pub const MAX_REREAD_BYTES: usize = 8 << 20;
