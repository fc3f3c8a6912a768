//! The numbers that a turn and its calls stay within.

use std::time::Duration;

use crate::context::Strategy;

/// Numbers a turn stays within.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Most model calls of one turn.
    pub rounds: u32,
    /// Most attempts at a model call that breaks or fails inside the provider.
    pub attempts: u32,
    /// Longest time that all waits before one model call take together. Within it, a provider that is
    /// overloaded or limits the rate is asked again and again; one that asks for more is not waited for.
    pub patience: Duration,
    /// Most times an answer that the output limit cut off is continued.
    pub continuations: u32,
    /// Most times the machine puts the model right before it gives up.
    pub corrections: u32,
    /// Most calls of one answer that are run; the rest is refused.
    pub calls_per_round: usize,
    /// Longest silence before the first sign of an answer, where the server is not this user's own.
    pub first_byte: Duration,
    /// Longest wait for the first byte of an answer of a server of the user's own, which may have to load a
    /// model first.
    pub local_first_byte: Duration,
    /// Longest time within an answer in which nothing of it comes.
    pub silence: Duration,
    /// The time that running tools get to stop by themselves.
    pub grace: Duration,
    /// Tool results of more tokens go into the result store, if there is one. Files of a few hundred lines are
    /// below the limit: a file that is read in order to work on it should not need a second call.
    pub result_tokens: usize,
    /// The way to make room in a window that is about to be full.
    pub compaction: Strategy,
    /// The seed for the jitter of waits.
    pub seed: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            rounds: 50,
            attempts: 8,
            patience: Duration::from_mins(5),
            continuations: 3,
            corrections: 3,
            calls_per_round: 128,
            first_byte: Duration::from_secs(120),
            local_first_byte: Duration::from_secs(300),
            silence: Duration::from_secs(300),
            grace: Duration::from_secs(3),
            result_tokens: 8_000,
            compaction: Strategy::default(),
            seed: 0x9E37_79B9_7F4A_7C15,
        }
    }
}
