//! Arguments about the configuration.

use clap::Subcommand;

/// Views of the configuration, and changes of it.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigSub {
    /// Every value in force.
    Show {
        /// Say which layer set each value.
        #[arg(long)]
        origin: bool,
    },
    /// The files that are read.
    Path,
    /// Print the value of a setting. Exit code 1 when it has none.
    Get {
        /// The setting, such as `tui.theme`; a section prints all that is set in it.
        key: String,
    },
    /// Change a setting in your own configuration file. All else in the file stays as it is.
    Set {
        /// The setting, such as `tui.theme`.
        key: String,
        /// Its value.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Say what a setting does, its value, which layer set it, and what would override it.
    Explain {
        /// The setting, such as `tui.theme`; a section lists its settings.
        key: String,
    },
    /// Print the JSON Schema of the configuration file, by which editors complete and check it.
    Schema,
    /// Write a configuration file with every setting as a comment, and its schema beside it.
    Init,
}
