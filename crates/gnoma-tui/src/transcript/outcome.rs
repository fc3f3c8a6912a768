//! How a turn ended, in words.

use std::time::Duration;

use gnoma_core::{ErrorKind, StopReason, Usage, duration, session::Outcome};

use super::layout::format_count;
use crate::{
    remedies::in_window,
    text::{Style, TextRole},
};

/// Describes the end of a turn that took so long; empty after a plain answer.
pub(super) fn describe_outcome(
    outcome: &Outcome,
    rounds: u32,
    usage: &Usage,
    took: Option<Duration>,
) -> Vec<(String, Style)> {
    let warning = |text: String| vec![(text, Style::with_ink(TextRole::Warning))];
    match outcome {
        Outcome::Complete { stop } => match cut_off(*stop) {
            Some(why) => warning(why.to_owned()),
            None if rounds > 1 => {
                vec![(describe_usage(rounds, usage, took), Style::with_ink(TextRole::Dim))]
            }
            None => Vec::new(),
        },
        Outcome::Cancelled => warning("stopped; work done so far is kept".to_owned()),
        Outcome::RoundLimit { rounds } => warning(format!(
            "stopped at the limit of {rounds} model calls for one turn; say `go on` to continue"
        )),
        Outcome::Stuck { what } => warning(format!("stopped: no progress ({what})")),
        Outcome::Unfit { why, .. } => {
            warning(format!("stopped: no answer fits the schema ({why})"))
        }
        Outcome::Failed { error, kept_partial } => {
            let error_text = format!("error: {error}");
            let mut lines =
                vec![(in_window(&error_text).into_owned(), Style::with_ink(TextRole::Bad))];
            if let Some(hint) = &error.hint {
                lines.push((format!("hint: {}", in_window(hint)), Style::default()));
            }
            let is_about_key = matches!(error.kind, ErrorKind::Auth | ErrorKind::Forbidden);
            if is_about_key && !error.provider.is_empty() {
                // A variable of the shell cannot be changed from here.
                let way = format!("hint: `/login {}` enters another key", error.provider);
                lines.push((way, Style::default()));
            }
            if *kept_partial {
                let kept = "the partial answer is kept";
                lines.push((kept.to_owned(), Style::with_ink(TextRole::Dim)));
            }
            lines
        }
    }
}

fn cut_off(stop: StopReason) -> Option<&'static str> {
    match stop {
        StopReason::MaxTokens => {
            Some("the answer hit the model's output limit; say `go on` for the rest")
        }
        StopReason::Refusal => Some("the model refused to answer"),
        StopReason::ContentFilter => Some("the provider's content filter stopped the answer"),
        StopReason::EndTurn
        | StopReason::ToolUse
        | StopReason::StopSequence
        | StopReason::Pause
        | StopReason::Other => None,
    }
}

fn describe_usage(rounds: u32, usage: &Usage, took: Option<Duration>) -> String {
    let mut text = format!("{rounds} model calls");
    if let Some(took) = took.filter(|took| took.as_secs() > 0) {
        text.push_str(&format!(" · {}", duration::format_duration(took)));
    }
    text.push_str(&format!(" · {} tokens in", format_count(usage.prompt_tokens())));
    if let Some(percent) = (usage.cache_read * 100).checked_div(usage.prompt_tokens())
        && percent > 0
    {
        text.push_str(&format!(" ({percent}% cached)"));
    }
    text.push_str(&format!(" · {} out", format_count(usage.output)));
    text
}
