//! Arguments about the guard: permission modes, and what it checks by hand.

use std::path::PathBuf;

use clap::{
    Subcommand,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use gnoma_core::session::PermissionMode;

/// Reads a mode, and tells help and completions which there are.
pub(super) fn permission_mode() -> impl TypedValueParser<Value = PermissionMode> {
    let value = |mode: PermissionMode| match mode {
        PermissionMode::AcceptEdits => {
            PossibleValue::new(mode.name()).aliases(["acceptEdits", "accept-edits"])
        }
        PermissionMode::Default
        | PermissionMode::Auto
        | PermissionMode::Plan
        | PermissionMode::Deny
        | PermissionMode::Bypass => PossibleValue::new(mode.name()),
    };
    PossibleValuesParser::new(PermissionMode::ALL.map(value)).try_map(|name| name.parse())
}

/// Parts of the guard.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GuardSub {
    /// List the secrets in a text. Exits with 1 if there are any.
    Scan(GuardInput),
    /// Print a text without hidden characters. Exits with 1 if there were any.
    Clean(GuardInput),
    /// Show what mode accept_edits would do with shell commands, one per line. Exits with 1 unless all run.
    Shell(GuardInput),
    /// Run shell commands, one per line, as if a model had called them with nobody there to ask. Prints what
    /// happened to each and what the model would be told. Calls no model. Exits with 1 unless all ran.
    #[group(skip)]
    Run {
        /// The permission mode to use.
        #[arg(long, value_name = "MODE", value_parser = permission_mode())]
        mode: PermissionMode,
        /// The commands.
        #[command(flatten)]
        input: GuardInput,
    },
    /// Explain what a command does, and whether it would run, need approval or be denied.
    #[group(skip)]
    Explain {
        /// The command. Words are joined.
        #[arg(required = true, trailing_var_arg = true)]
        command: Vec<String>,
    },
}

/// What the guard checks.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct GuardInput {
    /// The file; `-` or none reads standard input.
    pub file: Option<PathBuf>,
    /// Read JSON lines with `id` and `text_b64` (or `command`), and print one for each.
    #[arg(long)]
    pub jsonl: bool,
}
