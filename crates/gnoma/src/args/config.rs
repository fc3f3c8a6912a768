//! Arguments about the configuration and the providers in it.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Views of the configuration, and changes of it.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ConfigSub {
    /// Print every value in effect.
    #[group(skip)]
    Show {
        /// Say which layer set each value.
        #[arg(long)]
        origin: bool,
    },
    /// Print where the configuration files are.
    Path,
    /// Print the value of a setting. Exits with 1 if it has none.
    #[group(skip)]
    Get {
        /// The setting, such as `tui.theme`, or a section.
        key: String,
    },
    /// Change a setting in your own configuration file. The rest of the file stays as it is.
    #[group(skip)]
    Set {
        /// The setting, such as `tui.theme`.
        key: String,
        /// Its value.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Explain a setting: what it does, its value, which layer set it, and what would override it.
    #[group(skip)]
    Explain {
        /// The setting, such as `tui.theme`; a section lists its settings.
        key: String,
    },
    /// Print the JSON Schema of the configuration file, for editors.
    Schema,
    /// Write a configuration file with every setting as a comment, and its schema next to it.
    Init,
}

/// What can be done with providers.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum ProvidersSub {
    /// List providers: which are configured, which respond, and their models.
    #[command(alias = "ls")]
    List,
    /// Test a provider and add it to your configuration file.
    Add(NewProviderArgs),
    /// Remove a provider from your configuration, with its key.
    #[command(aliases = ["rm", "delete"])]
    #[group(skip)]
    Remove {
        /// Its name.
        name: String,
    },
}

/// A provider that is to be set up. What is left out is asked for at a terminal.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct NewProviderArgs {
    /// A known name (`gnoma providers` lists them), or one of yours for another server.
    pub name: Option<String>,
    /// Its address, such as http://localhost:8080/v1.
    #[arg(long, value_name = "URL")]
    pub address: Option<String>,
    /// Its protocol; `compatible` (OpenAI Chat Completions) for a server of your own.
    #[arg(long, value_name = "WIRE")]
    pub protocol: Option<String>,
    /// The environment variable with the key.
    #[arg(long, value_name = "VARIABLE", conflicts_with_all = ["key_command", "key_stdin"])]
    pub key_env: Option<String>,
    /// The command that prints the key, such as `pass show mistral`; it runs when gnoma starts.
    #[arg(long, value_name = "COMMAND", conflicts_with = "key_stdin")]
    pub key_command: Option<String>,
    /// Read the key from standard input, and save it in the configuration file.
    #[arg(long)]
    pub key_stdin: bool,
    /// The model to use with it, one of those that it lists.
    #[arg(short, long, value_name = "ID")]
    pub model: Option<String>,
    /// Make it the default provider. The first one always is.
    #[arg(long)]
    pub default: bool,
    /// Add it without testing it.
    #[arg(long)]
    pub untested: bool,
}

/// The folder that is trusted or not.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct TrustArgs {
    /// The folder [default: the current project].
    pub folder: Option<PathBuf>,
    /// Trust it without a question.
    #[arg(long, short, conflicts_with_all = ["revoke", "list"])]
    pub yes: bool,
    /// Revoke trust.
    #[arg(long)]
    pub revoke: bool,
    /// List trusted folders.
    #[arg(long, conflicts_with_all = ["folder", "revoke"])]
    pub list: bool,
}
