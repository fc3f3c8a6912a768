//! Lines about what happens around an answer: retries, waits, notices, other models, checks and compactions.

use std::time::Duration;

use gnoma_core::{
    Event, duration,
    session::{self, NoticeLevel},
};

/// So many attempts at one call are each told of; of more only some.
const MAX_TOLD_ATTEMPTS: u32 = 4;

/// True if a retry gets a line of its own: each of the first attempts does, then fewer and fewer.
pub(super) fn has_own_line(attempt: u32) -> bool {
    attempt <= MAX_TOLD_ATTEMPTS || attempt.is_power_of_two()
}

/// Returns the line about an event around the answer. `is_above` is true if the answer's text stands above that
/// line, and false if it was not written.
pub(super) fn notice_line(event: &Event, is_above: bool) -> Option<String> {
    Some(match event {
        Event::Retrying { error, attempt, wait_ms, retracted, limit } => {
            let is_discarded = *retracted && is_above;
            let rest = if is_discarded { "; what it wrote above is discarded" } else { "" };
            let wait = duration::format_duration(Duration::from_secs(wait_ms.div_ceil(1000)));
            let attempt = session::describe_attempt(*attempt, *limit);
            format!("{error}{rest}; retrying in {wait} ({attempt})")
        }
        Event::Waiting { arm, waited_ms, limit_ms } => {
            let [waited, limit] = [waited_ms, limit_ms]
                .map(|ms| duration::format_duration(Duration::from_secs(ms / 1000)));
            format!("{arm}: no answer for {waited}; times out after {limit}")
        }
        Event::Notice { level, text } => {
            let kind = match level {
                NoticeLevel::Info => "note",
                NoticeLevel::Warning => "warning",
            };
            format!("{kind}: {text}")
        }
        Event::ArmChanged { from, to, why, retracted } => {
            let rest = match (*retracted, is_above) {
                (false, _) => "",
                (true, true) => "; its text above is discarded",
                (true, false) => "; its text is discarded",
            };
            format!("{from}: {why}{rest}; switching to {to}")
        }
        Event::Conferred { members, chair, author } => {
            let count = members.len();
            let by = chair.as_ref().map(|chair| format!(", chosen by {chair}"));
            let by = by.unwrap_or_default();
            format!("{count} models answered; using {author}'s answer{by}")
        }
        Event::Checked { arm, by, passed, evidence } => {
            let verdict = if *passed { "it holds" } else { evidence.as_str() };
            format!("the work of {arm}, checked by {by}: {verdict}")
        }
        Event::Compacted { messages, .. } => format!("Compacted {messages} messages"),
        Event::Uncompacted { .. } => "Undid the last compaction".to_owned(),
        _ => return None,
    })
}
