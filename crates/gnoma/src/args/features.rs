//! Arguments about features that can be turned on and off.

use clap::{Args, Subcommand};

/// What can be done with features.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum FeaturesSub {
    /// List features: their stage, and whether they are on.
    #[command(alias = "ls")]
    #[group(skip)]
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Turn a feature on: in your own settings, or with --profile in those of that profile.
    Enable(FeatureArgs),
    /// Turn a feature off: in your own settings, or with --profile in those of that profile.
    Disable(FeatureArgs),
}

/// The feature, and where its switch is written.
#[derive(Clone, Debug, Args)]
#[group(skip)]
pub(crate) struct FeatureArgs {
    /// Its name, as `gnoma features` lists it.
    pub name: String,
    /// Write it into the settings of the project, which must be trusted if they exist.
    #[arg(long, conflicts_with = "profile")]
    pub project: bool,
}
