//! Commands that the build rules of a project (make, just, npm scripts) lead to.

/// The command lines that a project's rules, such as those of a Makefile, run for a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RuledCommands {
    /// The lines of those rules.
    pub(super) lines: Vec<String>,
    /// More may run than these.
    pub(super) is_open: bool,
}
