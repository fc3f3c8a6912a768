//! The silence time-out: a model that sends nothing is shown as waiting, then ended.
//!
//! Only content counts. A server that sends comments or empty pieces to keep the connection open is silent, however
//! often it sends them. One exception: a server elsewhere that has accepted the request has begun to answer, as its
//! model may think for minutes before the first word. A server of the user's own accepts it before it loads the model.

use std::time::Duration;

use gnoma_core::StreamEvent;
use tokio::time::Instant;

/// Silence after which a notice appears; the next follows after as long again, doubling.
const FIRST_WORD: Duration = Duration::from_secs(15);

/// The time that a call has been silent, and the time that it may be silent.
pub(super) struct Silence {
    /// The last sign of an answer, or the call's beginning.
    since: Instant,
    /// After so much silence the call is given up.
    limit: Duration,
    /// The same, once the server has begun to answer.
    limit_within: Duration,
    /// The silence after which the next notice appears.
    next_word: Duration,
    has_begun: bool,
    /// The server may have to load the model after it has accepted the request.
    loads_model: bool,
}

impl Silence {
    /// A call has begun; `first`: the longest silence before the first sign, `within` after it. `loads_model`: only
    /// content is a sign.
    pub(super) fn new(first: Duration, within: Duration, loads_model: bool) -> Self {
        Self {
            since: Instant::now(),
            limit: first,
            limit_within: within,
            next_word: FIRST_WORD,
            has_begun: false,
            loads_model,
        }
    }

    /// Takes in an event of the answer and restarts the wait, unless the event brings nothing.
    pub(super) fn reset_on_event(&mut self, event: &StreamEvent) {
        if (self.has_begun || self.loads_model) && says_nothing(event) {
            return;
        }
        let (within, loads_model) = (self.limit_within, self.loads_model);
        *self = Self { has_begun: true, ..Self::new(within, within, loads_model) };
    }

    /// Returns the time at which the silence has to be checked.
    pub(super) fn next_check_at(&self) -> Instant {
        self.since + self.next_word.min(self.limit)
    }

    /// Looks at it: how long it has lasted, and whether that is too long.
    pub(super) fn observe_silence(&mut self) -> ObservedSilence {
        let waited = self.since.elapsed();
        self.next_word = self.next_word.saturating_mul(2);
        ObservedSilence { waited, limit: self.limit, has_begun: self.has_begun }
    }
}

/// A silence, looked at.
pub(super) struct ObservedSilence {
    pub(super) waited: Duration,
    /// After so much the call is given up.
    pub(super) limit: Duration,
    /// The server had begun to answer.
    pub(super) has_begun: bool,
}

/// Reports whether an event brings nothing of an answer.
fn says_nothing(event: &StreamEvent) -> bool {
    match event {
        StreamEvent::TextDelta { text, .. }
        | StreamEvent::ThinkingDelta { text, .. }
        | StreamEvent::ToolCallDelta { fragment: text, .. } => text.is_empty(),
        // They come again and again from servers that count while they keep silent.
        StreamEvent::RateLimits { .. }
        | StreamEvent::Adapted { .. }
        | StreamEvent::Started { .. }
        | StreamEvent::Usage(_) => true,
        StreamEvent::Signature { .. }
        | StreamEvent::Item { .. }
        | StreamEvent::Redacted { .. }
        | StreamEvent::ToolCallStart { .. }
        | StreamEvent::ToolCallDone { .. }
        | StreamEvent::UnknownStop { .. }
        | StreamEvent::Stop(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_byte_timeout_applies_while_a_local_model_loads() {
        let (first, within) = (Duration::from_secs(2), Duration::from_secs(300));
        let event = |text: &str| StreamEvent::TextDelta { slot: 0, text: text.into() };
        for (loads_model, limit) in [(true, first), (false, within)] {
            let mut silence = Silence::new(first, within, loads_model);
            silence.reset_on_event(&event(""));
            let observed = silence.observe_silence();
            assert_eq!((observed.limit, observed.has_begun), (limit, !loads_model));
            silence.reset_on_event(&event("so"));
            let observed = silence.observe_silence();
            assert_eq!((observed.limit, observed.has_begun), (within, true));
        }
    }
}
