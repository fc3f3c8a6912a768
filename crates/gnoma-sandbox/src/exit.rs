//! Exit codes of a launcher that are not the command's own.

/// Exit code when the walls could not be built, and the command was not run.
pub const NOT_BUILT: u8 = 125;
