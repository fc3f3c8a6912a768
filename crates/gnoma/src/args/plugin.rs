//! The part of the command line that is about plugins.

use clap::Subcommand;

/// What can be done with plugins.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PluginSub {
    /// Install a plugin for yourself, and approve its content as it is.
    ///
    /// A source is a folder, an archive (.tar, .tar.gz, .tgz, .zip) or a git repository (https://, ssh://,
    /// git@, file://; `#TAG` behind it chooses a branch or tag). `NAME@SOURCE` installs a plugin of a
    /// marketplace.
    Install {
        /// Where it comes from.
        source: String,
    },
    /// List the plugins found: where they are from, and whether they are loaded.
    #[command(alias = "ls")]
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Fetch plugins again from where they came from, and show what changed. One that changed is not loaded
    /// until you trust it.
    Update {
        /// The plugin; without one, all that you installed.
        name: Option<String>,
    },
    /// Show what a plugin would let act and what changed, and approve its content.
    Trust {
        /// The plugin.
        name: String,
        /// Take approval back.
        #[arg(long)]
        revoke: bool,
    },
    /// Remove a plugin of yours.
    Remove {
        /// The plugin.
        name: String,
    },
    /// Check a plugin or a marketplace. Exit code 1 when something is wrong with it.
    Validate {
        /// Its folder.
        folder: std::path::PathBuf,
    },
}
