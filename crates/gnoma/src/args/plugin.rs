//! The part of the command line that is about plugins.

use clap::Subcommand;

/// What can be done with plugins.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum PluginSub {
    /// Install a plugin for yourself, and approve its content as it is.
    ///
    /// A source is a folder, an archive (.tar, .tar.gz, .tgz, .zip) or a git repository (https://, ssh://,
    /// git@, file://; add `#TAG` for a branch or tag). `NAME@SOURCE` installs a plugin of a
    /// marketplace.
    #[group(skip)]
    Install {
        /// Where it comes from.
        source: String,
    },
    /// List plugins: where they come from, and whether they are loaded.
    #[command(alias = "ls")]
    #[group(skip)]
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Download plugins again and show what changed. A plugin that changed is not loaded until you trust it.
    #[group(skip)]
    Update {
        /// The plugin [default: all that you installed].
        name: Option<String>,
    },
    /// Show what a plugin can do and what changed, and approve its content after a yes.
    #[group(skip)]
    Trust {
        /// The plugin.
        name: String,
        /// Revoke approval.
        #[arg(long, conflicts_with = "yes")]
        revoke: bool,
        /// Approve without a question.
        #[arg(long, short)]
        yes: bool,
    },
    /// Remove a plugin that you installed.
    #[command(aliases = ["rm", "delete"])]
    #[group(skip)]
    Remove {
        /// The plugin.
        name: String,
    },
    /// Check a plugin or a marketplace. Exits with 1 if something is wrong.
    #[group(skip)]
    Validate {
        /// Its folder.
        folder: std::path::PathBuf,
    },
}
