//! The usage of a call: as its provider reports it, completed by gnoma's own count. Pure.
//!
//! A stream that breaks off has been paid for up to that point, but no longer reports it. The missing part is
//! estimated, and rather too high than too low (no cache counts as warm), so that calls that break off cannot
//! exceed a cap. Reported numbers are never changed: those that the bytes of the call cannot explain are not believed,
//! and gnoma's own count takes their place.

use gnoma_core::{ErrorKind, StopReason, StreamEvent, Usage};
use gnoma_router::{Arm, Wire};

use crate::tokens;

/// A prompt that has more than this many times as many tokens as gnoma counts is not the one that was sent.
const MOST_TIMES_COUNTED: u64 = 32;
/// Reported tokens up to this are believed in any case: gnoma counts pictures and tools only roughly, and a model thinks
/// unseen.
const MOST_UNEXPLAINED: u64 = 1_000_000;
/// The same for an agent of another program, which calls models many times within one call of gnoma's.
const MOST_UNEXPLAINED_OF_AGENT: u64 = 1_000_000_000;

/// A call under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    /// Tokens of the request, roughly.
    prompt_tokens: u64,
    told: Option<Usage>,
    /// Tokens that were written since the provider last told.
    untold: u64,
    /// The report about the whole answer is not believed.
    is_disbelieved: bool,
    is_heard: bool,
    is_refused: bool,
    /// The error that ended the call.
    failure: Option<ErrorKind>,
    /// The reason why the answer ended.
    stop: Option<StopReason>,
    /// The answer is that of another program's agent.
    is_of_agent: bool,
}

impl Meter {
    /// A call of an arm whose request has about so many tokens.
    pub(crate) fn for_arm(arm: &Arm, prompt_tokens: u64) -> Self {
        Self { is_of_agent: arm.wire == Wire::Agent, ..Self::new(prompt_tokens) }
    }

    /// A call of a model whose request has about so many tokens.
    pub(crate) fn new(prompt_tokens: u64) -> Self {
        Self { prompt_tokens, ..Self::default() }
    }

    /// Reports whether the bytes that were sent and received cannot explain the usage that a provider reports.
    pub(crate) fn is_implausible(&self, reported: &Usage) -> bool {
        let most = if self.is_of_agent { MOST_UNEXPLAINED_OF_AGENT } else { MOST_UNEXPLAINED };
        let is_beyond = |reported: u64, counted: u64| {
            reported > most.max(counted.saturating_mul(MOST_TIMES_COUNTED))
        };
        is_beyond(reported.prompt_tokens(), self.prompt_tokens)
            || is_beyond(reported.output, self.untold)
    }

    /// Takes in one event of the answer. A usage report that cannot be true is not believed: what was counted stays
    /// counted.
    pub(crate) fn record_event(&mut self, event: &StreamEvent) {
        let is_of_answer =
            !matches!(event, StreamEvent::RateLimits { .. } | StreamEvent::Adapted { .. });
        self.is_heard |= is_of_answer;
        if let StreamEvent::Stop(stop) = event {
            self.stop = Some(*stop);
        }
        match event {
            StreamEvent::Usage(usage) if self.is_implausible(usage) => self.is_disbelieved = true,
            StreamEvent::Usage(usage) => {
                self.told = Some(*usage);
                self.untold = 0;
            }
            StreamEvent::TextDelta { text, .. }
            | StreamEvent::ThinkingDelta { text, .. }
            | StreamEvent::ToolCallDelta { fragment: text, .. } => {
                self.untold = self.untold.saturating_add(tokens::estimate(text) as u64);
            }
            // What was told of a whole answer is the truth, whenever it was told.
            StreamEvent::Stop(_) if self.told.is_some() && !self.is_disbelieved => self.untold = 0,
            StreamEvent::RateLimits { .. }
            | StreamEvent::Adapted { .. }
            | StreamEvent::Started { .. }
            | StreamEvent::Signature { .. }
            | StreamEvent::Item { .. }
            | StreamEvent::Redacted { .. }
            | StreamEvent::ToolCallStart { .. }
            | StreamEvent::ToolCallDone { .. }
            | StreamEvent::UnknownStop { .. }
            | StreamEvent::Stop(_) => (),
        }
    }

    /// The call has failed. An error that comes before anything else is a refusal, which nobody is
    /// charged for; a silence that lasts too long is none.
    pub(crate) fn record_failure(&mut self, kind: ErrorKind) {
        self.is_refused |= !self.is_heard && kind != ErrorKind::Timeout;
        self.failure = Some(kind);
    }

    /// The call was given up because its time was over. What it took stays as it was counted.
    pub(crate) fn time_out(&mut self) {
        self.failure = Some(ErrorKind::Timeout);
    }

    /// The error that ended the call, if one did.
    pub(crate) fn failure(&self) -> Option<ErrorKind> {
        self.failure
    }

    /// Returns the reason why the answer ended, if it ended by itself.
    pub(crate) fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// Tokens that the provider told.
    pub(crate) fn reported_usage(&self) -> Option<Usage> {
        self.told
    }

    /// Tokens that it did not tell, roughly.
    pub(crate) fn unreported_usage(&self) -> Usage {
        let is_paid = self.told.is_none() && !self.is_refused;
        let input = if is_paid { self.prompt_tokens } else { 0 };
        Usage { input, output: self.untold, ..Usage::default() }
    }

    /// Returns all tokens: those that the provider reported, and gnoma's count of the rest.
    pub(crate) fn total_usage(&self) -> Usage {
        let mut all = self.told.unwrap_or_default();
        all += self.unreported_usage();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: u64 = 100;

    fn text(text: &str) -> StreamEvent {
        StreamEvent::TextDelta { slot: 0, text: text.to_owned() }
    }

    fn told(input: u64, output: u64) -> StreamEvent {
        StreamEvent::Usage(Usage { input, output, ..Usage::default() })
    }

    fn untold(events: &[StreamEvent]) -> (u64, u64) {
        let mut meter = Meter::new(PROMPT);
        events.iter().for_each(|event| meter.record_event(event));
        let Usage { input, output, .. } = meter.unreported_usage();
        (input, output)
    }

    #[test]
    fn token_meter_estimates_only_usage_the_provider_did_not_report() {
        assert_eq!(untold(&[]), (PROMPT, 0), "given up while it was silent");
        assert_eq!(untold(&[text("a word")]), (PROMPT, 2));
        assert_eq!(untold(&[text("a word"), told(90, 2)]), (0, 0), "the provider knows better");
        assert_eq!(
            untold(&[told(90, 1), text("a word")]),
            (0, 2),
            "it died after the first report"
        );
        let whole = [told(90, 1), text("a word"), StreamEvent::Stop(StopReason::EndTurn)];
        assert_eq!(untold(&whole), (0, 0), "nothing is missing of a whole answer");
    }

    #[test]
    fn token_usage_far_above_the_streamed_bytes_is_implausible() {
        let mut meter = Meter::new(PROMPT);
        meter.record_event(&text("a word"));
        for (input, output, is_doubted) in [
            (PROMPT, 2, false),
            (40 * PROMPT, 50_000, false),
            (100_000_000_000, 2, true),
            (2_000_000, 2, true),
            (PROMPT, 100_000_000_000, true),
        ] {
            let reported = Usage { input, output, ..Usage::default() };
            assert_eq!(meter.is_implausible(&reported), is_doubted, "{input} {output}");
        }
        let cached = Usage { cache_read: u64::MAX, ..Usage::default() };
        assert!(meter.is_implausible(&cached));
        let long = Meter::new(500_000);
        assert!(!long.is_implausible(&Usage { input: 2_000_000, ..Usage::default() }));
    }

    #[test]
    fn implausible_token_usage_report_is_replaced_by_an_estimate() {
        let absurd =
            [text("a word"), told(100_000_000_000, 2), StreamEvent::Stop(StopReason::EndTurn)];
        assert_eq!(untold(&absurd), (PROMPT, 2), "gnoma's own count takes its place");
        let late = [told(90, 1), text("a word"), told(90, u64::MAX)];
        assert_eq!(untold(&late), (0, 2), "what was reported before stays");
        // An agent calls models many times within one call of gnoma's.
        let agent = Meter { is_of_agent: true, ..Meter::new(PROMPT) };
        assert!(!agent.is_implausible(&Usage { cache_read: 30_000_000, ..Usage::default() }));
        assert!(agent.is_implausible(&Usage { input: 100_000_000_000, ..Usage::default() }));
    }

    #[test]
    fn rejected_request_costs_no_tokens_and_a_broken_stream_does() {
        let mut refused = Meter::new(PROMPT);
        refused.record_failure(ErrorKind::Overloaded);
        assert_eq!(refused.total_usage(), Usage::default());
        let mut late = Meter::new(PROMPT);
        late.record_failure(ErrorKind::Timeout);
        assert_eq!(late.total_usage().input, PROMPT, "nobody knows what it did all the time");
        let mut broken = Meter::new(PROMPT);
        broken.record_event(&text("half"));
        broken.record_failure(ErrorKind::Network);
        assert_eq!((broken.total_usage().input, broken.total_usage().output), (PROMPT, 1));
    }
}
