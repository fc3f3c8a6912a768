//! Arguments about the choice of models.

use std::path::PathBuf;

use clap::Subcommand;

use super::number;

/// A task that is only looked at.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct RouteArgs {
    /// The task. Words are joined.
    #[arg(value_name = "TASK", required = true)]
    pub words: Vec<String>,
    /// Seed for choosing between equals [default: random].
    #[arg(long, value_name = "N", value_parser = number::parse_seed, allow_negative_numbers = true)]
    pub seed: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Views of the router, and what can be done with what it learned.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RouterSub {
    /// Show model scores by type of task, and spending.
    #[group(skip)]
    Stats {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List available models, including those of local servers.
    #[group(skip)]
    Arms {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show limits, how much of each is used, and which models rest after an error.
    #[group(skip)]
    Pools {
        /// Count spending dated in the future as spent now. For after a clock was wrongly ahead.
        #[arg(long)]
        redate: bool,
        /// Accept the totals shown here after a damaged ledger could not be recovered completely.
        #[arg(long)]
        accept_loss: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Delete scores, rests, speeds and limits that providers reported. Spending stays.
    #[group(skip)]
    Reset {
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Export scores as JSON.
    #[group(skip)]
    Export {
        /// Accepted for consistency; the output is always JSON.
        #[arg(long)]
        json: bool,
    },
    /// Import the output of `export`, or `quality.json` of the Go gnoma.
    #[group(skip)]
    Import {
        /// The file; `-` is standard input.
        file: PathBuf,
        /// Replace existing scores.
        #[arg(long)]
        replace: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Answer recorded tasks on standard input, one JSON line each (`router-replay/1`).
    Replay,
}
