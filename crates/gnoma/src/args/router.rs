//! Arguments about the choice of models.

use std::path::PathBuf;

use clap::Subcommand;

/// A task that is only looked at.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RouteArgs {
    /// The task. Words are joined.
    #[arg(value_name = "TASK", required = true)]
    pub words: Vec<String>,
    /// What parts equals; another one every time by default.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Views of the router, and what can be done with what it learnt.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum RouterSub {
    /// Show what is believed of models by type of task, and what was spent.
    Stats {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the models to choose from; servers on this machine are asked for theirs.
    Arms {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show limits, where they stand, and who rests.
    Pools {
        /// Count what is dated in the future as taken now: the clock was wrongly ahead, and is right again.
        #[arg(long)]
        redate: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Forget what was learnt, who rests, speeds and limits that providers told. What was spent stays.
    Reset {
        /// Do not ask.
        #[arg(long)]
        yes: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Print what was learnt, as JSON.
    Export {
        /// As without: it is JSON anyway.
        #[arg(long)]
        json: bool,
    },
    /// Take over what `export` printed, or `quality.json` of the Go gnoma.
    Import {
        /// The file; `-` is standard input.
        file: PathBuf,
        /// Put it in place of what was learnt here.
        #[arg(long)]
        replace: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Answer recorded tasks on standard input, one JSON line each (`router-replay/1`).
    Replay,
}
