//! Arguments about usage.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gnoma_core::ModelRef;
use gnoma_host::usage::{Dimension, DimensionError, UsageStart};

use super::error::ArgumentError;

/// The usage to show, and how.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct UsageArgs {
    /// Without one, usage is shown.
    #[command(subcommand)]
    pub what: Option<UsageSub>,

    /// Show usage from this time on: 24h, 7d (today and the 6 days before), 4w, a date such as 2026-11-30, or all.
    #[arg(long, value_name = "TIME", default_value = "30d", allow_hyphen_values = true)]
    pub since: UsageStart,

    /// Sum up by day, week, month, project, branch, session, elf, model, provider, task, account, agent, skill or mcp;
    /// several nest. `tool` alone shows how often tools of the project's saved sessions ran, failed, were approved and
    /// denied.
    #[arg(
        long,
        value_name = "WHAT",
        default_value = "day",
        value_delimiter = ',',
        value_parser = parse_dimension
    )]
    pub by: Vec<UsageBy>,

    /// Also say what the same calls would have cost on this model.
    #[arg(long = "as", value_name = "PROVIDER/MODEL", value_parser = parse_model, conflicts_with = "csv")]
    pub repriced_as: Option<ModelRef>,

    /// Print a JSON object.
    #[arg(long, conflicts_with_all = ["csv", "html"])]
    pub json: bool,

    /// Print comma-separated values: a line for each innermost group.
    #[arg(long, conflicts_with = "html")]
    pub csv: bool,

    /// Write a page with bars, which needs no other file, into this file. Never overwrites one.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The dimension by which usage is summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageBy {
    /// A property of model calls.
    Calls(Dimension),
    /// The tool, of tool calls.
    Tool,
}

/// The actions on recorded usage.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum UsageSub {
    /// Remove the details of calls: project, branch, session, elf, turn, task, account, agent, skill, MCP servers and
    /// time. The sums of each day and model stay, and what limits need: single calls of the last days, and ids of
    /// sessions for 90 days.
    #[group(skip)]
    Forget {
        /// Only of calls before this time, such as 90d or 2026-01-01 [default: all].
        #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
        older_than: Option<UsageStart>,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
}

fn parse_dimension(text: &str) -> Result<UsageBy, DimensionError> {
    if text == "tool" { Ok(UsageBy::Tool) } else { text.parse().map(UsageBy::Calls) }
}

fn parse_model(text: &str) -> Result<ModelRef, ArgumentError> {
    let named =
        text.split_once('/').filter(|(provider, model)| !provider.is_empty() && !model.is_empty());
    let (provider, model) = named.ok_or(ArgumentError::NotAModel)?;
    Ok(ModelRef { provider: provider.to_owned(), model: model.to_owned() })
}
