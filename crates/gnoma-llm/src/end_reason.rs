//! Maps the finish reasons of all vendors to stop reasons. Pure.
//!
//! Each wire has a list of reasons, and servers add to it: gateways pass on the words of others, and vendors name
//! their own failures. So a word is read by its parts: `network_error`, `aborted` and `REQUEST_CANCELLED` all say that
//! the answer was broken off. A word that says nothing known is handed on, so that people read it.

use gnoma_core::{ProviderError, StopReason, StreamEvent};

use crate::{Profile, dialect::Events, errors};

/// The meaning of a server's reason for the end of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EndReason {
    /// The model stopped for this reason.
    Stop(StopReason),
    /// The model's window was full before the answer was complete.
    WindowFull,
    /// The server broke the answer off, with this word.
    BrokenOff(String),
    /// A word that gnoma does not know.
    Unknown(String),
}

/// Beginnings of words for a failure of the server.
const FAILURES: &[&str] = &[
    "error",
    "fail",
    "abort",
    "cancel",
    "interrupt",
    "network",
    "connection",
    "disconnect",
    "resource",
    "overload",
    "unavailable",
    "timeout",
    "timed",
    "time",
    "rate",
    "quota",
    "capacity",
    "busy",
    "internal",
    "exception",
    "crash",
    "kill",
    "preempt",
    "evict",
    "unload",
    "shutdown",
];
/// The same for what is wrong with what the model wrote, whatever else the word names: the answer is as it is.
const ODDITIES: &[&str] = &["malformed", "invalid", "unexpected", "missing", "many"];
/// The same for a filter of the provider.
const FILTERS: &[&str] = &[
    "filter",
    "safety",
    "unsafe",
    "sensitive",
    "blocked",
    "blocklist",
    "toxic",
    "prohibit",
    "moderat",
    "spii",
    "harm",
    "policy",
    "guardrail",
    "recitation",
];
/// The same for the limit of an answer.
const LIMITS: &[&str] = &["length", "limit", "truncat", "max"];
/// The same for calls of tools.
const CALLS: &[&str] = &["tool", "function", "call"];
/// Words for an end that the model meant.
const ENDS: &[&str] = &[
    "stop",
    "stopped",
    "eos",
    "eot",
    "eom",
    "end",
    "ended",
    "endoftext",
    "complete",
    "completed",
    "finish",
    "finished",
    "final",
    "normal",
    "done",
    "success",
    "succeeded",
    "natural",
];

impl EndReason {
    /// Reads a server's word; `None` where it says nothing, as some do in every record before the last.
    pub(crate) fn from_word(word: &str) -> Option<Self> {
        if word.is_empty() {
            return None;
        }
        let parts = split_name(word);
        let lower = word.to_ascii_lowercase();
        let begins = |stems: &[&str]| {
            parts.iter().any(|part| stems.iter().any(|stem| part.starts_with(stem)))
        };
        let is = |words: &[&str]| parts.iter().any(|part| words.contains(&part.as_str()));
        Some(if parts.is_empty() || ["null", "none"].contains(&lower.as_str()) {
            return None;
        } else if errors::is_window_word(&lower) {
            Self::WindowFull
        } else if begins(ODDITIES) || is(&["not", "unspecified", "unknown"]) {
            Self::Unknown(errors::quote_text(word))
        } else if begins(FILTERS) {
            Self::Stop(StopReason::ContentFilter)
        } else if begins(FAILURES) {
            Self::BrokenOff(errors::quote_text(word))
        } else if begins(&["refus"]) {
            Self::Stop(StopReason::Refusal)
        } else if begins(&["pause"]) {
            Self::Stop(StopReason::Pause)
        } else if is(&["context", "window"]) {
            Self::WindowFull
        } else if begins(LIMITS) && !begins(CALLS) {
            Self::Stop(StopReason::MaxTokens)
        } else if begins(CALLS) && !begins(LIMITS) {
            Self::Stop(StopReason::ToolUse)
        } else if is(&["sequence"]) && is(ENDS) {
            Self::Stop(StopReason::StopSequence)
        } else if is(ENDS) {
            Self::Stop(StopReason::EndTurn)
        } else {
            Self::Unknown(errors::quote_text(word))
        })
    }

    /// The reason to stop, as far as it is one.
    pub(crate) fn stop_reason(&self) -> StopReason {
        match self {
            Self::Stop(stop) => *stop,
            Self::WindowFull => StopReason::MaxTokens,
            Self::BrokenOff(_) | Self::Unknown(_) => StopReason::Other,
        }
    }

    /// Ends the answer: hands out a word that is not known, and returns the reason to stop.
    ///
    /// # Errors
    /// When the reason is a failure.
    pub(crate) fn resolve_stop(
        &self,
        profile: &Profile,
        out: &mut Events,
    ) -> Result<StopReason, ProviderError> {
        match self {
            Self::Stop(_) => (),
            Self::WindowFull => return Err(errors::window_full(profile)),
            Self::BrokenOff(word) => return Err(errors::broken_off(profile, word)),
            Self::Unknown(word) => {
                out.push_back(StreamEvent::UnknownStop { word: word.clone() });
            }
        }
        Ok(self.stop_reason())
    }
}

/// The parts of a name in any of the usual spellings, in small letters.
fn split_name(word: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_small = false;
    for c in word.chars() {
        if !c.is_alphanumeric() || (was_small && c.is_uppercase()) {
            parts.push(String::new());
        }
        was_small = c.is_lowercase();
        if c.is_alphanumeric()
            && let Some(part) = parts.last_mut()
        {
            part.extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finish_reason_words_of_failures_are_errors() {
        for word in [
            "error",
            "network_error",
            "insufficient_system_resource",
            "abort",
            "aborted",
            "cancelled",
            "canceled",
            "unload",
            "timeout",
            "time_limit",
            "server_overloaded",
            "upstreamDisconnected",
            "rate_limit_exceeded",
        ] {
            assert_eq!(EndReason::from_word(word), Some(EndReason::BrokenOff(word.to_owned())));
        }
        for word in [
            "OTHER",
            "LANGUAGE",
            "repetition",
            "load",
            "FINISH_REASON_UNSPECIFIED",
            "MALFORMED_FUNCTION_CALL",
            "MALFORMED_RESPONSE",
            "UNEXPECTED_TOOL_CALL",
            "TOO_MANY_TOOL_CALLS",
            "MISSING_THOUGHT_SIGNATURE",
        ] {
            assert_eq!(EndReason::from_word(word), Some(EndReason::Unknown(word.to_owned())));
        }
        for word in ["", "null", "None", "_"] {
            assert_eq!(EndReason::from_word(word), None);
        }
    }

    #[test]
    fn finish_reason_spellings_of_all_vendors_are_mapped() {
        for (words, stop) in [
            (
                &["stop", "STOP", "end_turn", "eos", "eos_token", "completed", "stop_token"][..],
                StopReason::EndTurn,
            ),
            (&["tool_calls", "function_call", "tool_use", "toolUse"], StopReason::ToolUse),
            (
                &[
                    "length",
                    "max_tokens",
                    "MAX_TOKENS",
                    "maxTokens",
                    "limit",
                    "token_limit",
                    "max_output_tokens",
                    "truncated",
                ],
                StopReason::MaxTokens,
            ),
            (&["stop_sequence"], StopReason::StopSequence),
            (
                &[
                    "content_filter",
                    "sensitive",
                    "safety",
                    "SAFETY",
                    "BLOCKLIST",
                    "SPII",
                    "guardrail_intervened",
                    "contentFiltered",
                ],
                StopReason::ContentFilter,
            ),
            (&["refusal"], StopReason::Refusal),
            (&["pause_turn"], StopReason::Pause),
        ] {
            for word in words {
                assert_eq!(EndReason::from_word(word), Some(EndReason::Stop(stop)), "{word}");
            }
        }
        for word in
            ["model_length", "model_context_window_exceeded", "context_length", "window_full"]
        {
            assert_eq!(EndReason::from_word(word), Some(EndReason::WindowFull), "{word}");
        }
    }
}
