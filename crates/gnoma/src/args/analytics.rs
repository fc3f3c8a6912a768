//! Arguments about a person's own statistics.

use clap::Subcommand;

/// What can be done with the statistics.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum AnalyticsSub {
    /// Show what was counted, and the file that it is in.
    #[group(skip)]
    Show {
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Remove everything that was counted.
    Clear,
}
