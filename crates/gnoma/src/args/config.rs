//! Arguments about the configuration and the providers in it.

use clap::{Args, Subcommand};

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

/// What can be done with providers.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ProvidersSub {
    /// List providers: which are configured, which respond, and their models.
    List,
    /// Set a provider up: try it, and write it into your configuration file.
    Add(NewProviderArgs),
}

/// A provider that is to be set up. What is left out is asked for at a terminal.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewProviderArgs {
    /// A known name (`gnoma providers` lists them), or one of yours for another server.
    pub name: Option<String>,
    /// Its address, such as http://localhost:8080/v1.
    #[arg(long, value_name = "URL")]
    pub address: Option<String>,
    /// What it speaks; `compatible` (OpenAI Chat Completions) for a server of yours.
    #[arg(long, value_name = "WIRE")]
    pub protocol: Option<String>,
    /// The variable of the environment that holds the key.
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["key_command", "key_stdin"])]
    pub key_env: Option<String>,
    /// The command that prints the key, such as `pass show mistral`; it runs when gnoma starts.
    #[arg(long, value_name = "COMMAND", conflicts_with = "key_stdin")]
    pub key_command: Option<String>,
    /// Read the key from standard input, and keep it in the configuration file.
    #[arg(long)]
    pub key_stdin: bool,
    /// Ask it by default from now on; the first provider is so anyway.
    #[arg(long)]
    pub default: bool,
    /// Write it without trying whether it answers.
    #[arg(long)]
    pub untested: bool,
}
