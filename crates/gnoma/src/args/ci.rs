//! Arguments about reviews and templates for continuous integration.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use gnoma_front::code_review;

use super::error::ArgumentError;

/// Work in continuous integration.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum CiSub {
    /// Review the change between a base and HEAD: comments on its lines, and a summary.
    ///
    /// The model can read the repository but changes nothing. Comments on lines outside the change are dropped
    /// and counted. If GITHUB_STEP_SUMMARY is set, the report is added to that file as well.
    ///
    /// Exits with 9 if a comment has the level of --fail-on or a higher one.
    Review(ReviewArgs),
    /// Write a template that reviews pull or merge requests.
    Init(InitArgs),
}

/// A review.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct ReviewArgs {
    /// What to compare with: a branch, tag or commit [default: what the CI says, else origin/HEAD].
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Report format.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Write the report to this file instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Exit with 9 if a comment has this level or a higher one.
    #[arg(long, value_name = "LEVEL", value_enum)]
    pub fail_on: Option<CommentLevel>,
}

/// Forms of the report on a review.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people; the model's HTML, links and mentions are shown as text.
    #[default]
    Markdown,
    /// Everything.
    Json,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// GitLab's code quality report.
    Codequality,
    /// What GitHub's API takes as a review of a pull request.
    Github,
}

/// Levels of comments, the lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommentLevel {
    /// Worth knowing.
    Note,
    /// Probably wrong.
    Warning,
    /// Must be fixed before merging.
    Error,
}

impl From<CommentLevel> for code_review::CommentLevel {
    fn from(level: CommentLevel) -> Self {
        match level {
            CommentLevel::Note => Self::Note,
            CommentLevel::Warning => Self::Warning,
            CommentLevel::Error => Self::Error,
        }
    }
}

/// A template.
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub(crate) struct InitArgs {
    /// What it is for.
    pub template: Template,
    /// Print it and write nothing.
    #[arg(long)]
    pub print: bool,
    /// Replace the file if there is one.
    #[arg(long)]
    pub force: bool,
    /// GitHub: also post the comments to the pull request, from a separate job that can write there.
    #[arg(long)]
    pub comments: bool,
    /// The variable with the provider's key, in the CI's secrets and in gnoma's environment.
    #[arg(long, value_name = "NAME", default_value = "MISTRAL_API_KEY", value_parser = parse_variable_name)]
    pub key_env: String,
}

/// Where reviews run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Template {
    /// .github/workflows/gnoma-review.yml
    Github,
    /// .gitlab/gnoma-review.yml, to be included in .gitlab-ci.yml
    Gitlab,
    /// Containerfile of an image with gnoma and git
    Container,
}

/// Parses the name of a variable that can stand in a template.
fn parse_variable_name(name: &str) -> Result<String, ArgumentError> {
    let fits = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let begins = name.bytes().next().is_some_and(|byte| byte.is_ascii_uppercase());
    if begins && name.len() <= 100 && name.bytes().all(fits) {
        return Ok(name.to_owned());
    }
    Err(ArgumentError::NotAVariable)
}
