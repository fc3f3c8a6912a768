//! The state of the arms, as their calls have shown it: which of them rest and until when, which limits their
//! providers reported, and how fast they answer. Pure.
//!
//! All processes share one text of it, which one process at a time reads and replaces. A process applies its own
//! observations at once, and notes them as [`ArmObservation`]s until it adds them to the shared text. No observation is
//! lost, and none counts twice. An unreadable text counts as empty; what it said will be observed again.

mod speed;

use std::time::Duration;

use gnoma_core::{ModelRef, ProviderError};
use serde::{Deserialize, Serialize};

pub use self::speed::{Speed, Speeds};
use crate::{
    health::{Health, HealthTarget},
    pool::{self, LearntLimits},
};

/// The form of the text.
const FORM: u32 = 1;
/// Sights that wait to be shared; beyond, the earliest are kept to oneself.
const MOST_NEWS: usize = 256;

/// An observation of an arm during a call.
#[derive(Clone, Debug)]
pub struct ArmObservation {
    /// The arm that was called.
    pub arm: ModelRef,
    /// The host at which the arm was called.
    pub host: String,
    /// The time of the call, in milliseconds since 1970.
    pub at_ms: i64,
    /// The event that the call showed.
    pub seen: ObservationKind,
}

/// The event that a [`ArmObservation`] reports.
#[derive(Clone, Debug)]
pub enum ObservationKind {
    /// The call failed with this error.
    Failed(ProviderError),
    /// The arm answered the call.
    Worked {
        /// Until the first token, and until the last.
        took: [Duration; 2],
        /// The number of tokens that the arm wrote.
        tokens: u64,
        /// True if the arm was tried although something was known against it.
        was_trial: bool,
    },
    /// The limits that the arm's provider reported.
    Limits(Vec<pool::ReportedLimit>),
}

/// The state of the arms: which of them rest, which limits their providers reported, and how fast they answer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Vitals {
    form: u32,
    /// The rests of arms, providers and hosts.
    pub health: Health,
    /// The limits that providers reported.
    pub limits: LearntLimits,
    /// The speeds that arms have shown.
    pub speeds: Speeds,
}

impl Vitals {
    /// Parses the stored text and drops what no longer holds.
    fn from_text(text: Option<&str>, now_ms: i64) -> Self {
        let read: Option<Self> = text.and_then(|text| gnoma_core::json::from_str(text).ok());
        let mut vitals = read.filter(|vitals| vitals.form == FORM).unwrap_or_default();
        vitals.health.forget_stale(now_ms);
        vitals.limits.forget_stale(now_ms);
        vitals.speeds.forget_stale(now_ms);
        Self { form: FORM, ..vitals }
    }

    /// Takes in what a call showed; says whether it ended what was known against the arm.
    fn take_in(&mut self, sight: &ArmObservation) -> bool {
        let ArmObservation { arm, host, at_ms, seen } = sight;
        let target = HealthTarget { arm, host };
        // Another process may have seen a rest begin since: that is what holds.
        let is_late = self.health.has_later(target, *at_ms);
        match seen {
            ObservationKind::Failed(_) if is_late => false,
            ObservationKind::Failed(error) => {
                self.health.record_failure(target, error, *at_ms);
                false
            }
            ObservationKind::Worked { took, tokens, was_trial } => {
                if *was_trial && !is_late {
                    self.health.begin_call(target, *at_ms);
                }
                self.speeds.record_answer(arm, *took, *tokens, *at_ms);
                !is_late && self.health.record_success(target, *at_ms)
            }
            ObservationKind::Limits(limits) => {
                self.limits.record_limits(arm, limits, *at_ms);
                false
            }
        }
    }
}

/// The state that this process knows, and the part of it that other processes do not know yet.
#[derive(Debug, Default)]
pub struct VitalsTracker {
    /// The state of the arms, as this process knows it.
    pub vitals: Vitals,
    news: Vec<ArmObservation>,
}

impl VitalsTracker {
    /// Takes in what a call showed. `is_shared`: there is a text to bring it to.
    pub fn record_sight(&mut self, mut sight: ArmObservation, is_shared: bool) {
        let has_cured = self.vitals.take_in(&sight);
        match &mut sight.seen {
            ObservationKind::Failed(error) if !error.kind.policy().is_shared => return,
            ObservationKind::Worked { was_trial, .. } => *was_trial = has_cured,
            ObservationKind::Failed(_) | ObservationKind::Limits(_) => (),
        }
        if is_shared && self.news.len() < MOST_NEWS {
            self.news.push(sight);
        }
    }

    /// Reports whether there is anything that other processes do not know yet.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Takes over the shared state and adds what only this process knows: the new text, if anything is new.
    pub fn merge_shared(&mut self, text: Option<&str>, now_ms: i64) -> Option<String> {
        let news = std::mem::take(&mut self.news);
        let mut shared = Vitals::from_text(text, now_ms);
        for sight in &news {
            shared.take_in(sight);
        }
        let text = if news.is_empty() { None } else { serde_json::to_string(&shared).ok() };
        let Vitals { health, limits, speeds, .. } = shared;
        self.vitals.health.adopt_shared(health);
        (self.vitals.limits, self.vitals.speeds) = (limits, speeds);
        text
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{ErrorKind, ledger::Unit};
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;

    fn arm(number: u8) -> ModelRef {
        ModelRef { provider: format!("p{number}"), model: "m".into() }
    }

    fn sight(number: u8, at_ms: i64, seen: ObservationKind) -> ArmObservation {
        ArmObservation { arm: arm(number), host: "h".into(), at_ms, seen }
    }

    fn failed(kind: ErrorKind, wait_s: Option<u64>) -> ObservationKind {
        let mut error = ProviderError::new(kind, "p", "no");
        error.retry_after = wait_s.map(Duration::from_secs);
        ObservationKind::Failed(error)
    }

    fn worked() -> ObservationKind {
        let took = [Duration::from_millis(500), Duration::from_millis(1_500)];
        ObservationKind::Worked { took, tokens: 100, was_trial: false }
    }

    fn rests(watch: &VitalsTracker, number: u8, at_ms: i64) -> bool {
        let arm = arm(number);
        watch
            .vitals
            .health
            .current_rest(HealthTarget { arm: &arm, host: "h" }, at_ms, || jiff::tz::TimeZone::UTC)
            .is_some()
    }

    #[test]
    fn provider_health_is_shared_between_processes() {
        let (mut one, mut two) = (VitalsTracker::default(), VitalsTracker::default());
        one.record_sight(sight(1, NOW_MS, failed(ErrorKind::RateLimited, Some(600))), true);
        one.record_sight(sight(1, NOW_MS, failed(ErrorKind::Auth, None)), true);
        let told = pool::ReportedLimit {
            unit: Unit::Requests,
            window: None,
            limit: Some(50),
            remaining: Some(7),
            reset_ms: None,
        };
        two.record_sight(sight(2, NOW_MS, ObservationKind::Limits(vec![told])), true);
        two.record_sight(sight(2, NOW_MS, worked()), true);
        let first = one.merge_shared(None, NOW_MS);
        let both = two.merge_shared(first.as_deref(), NOW_MS);
        assert_eq!(one.merge_shared(both.as_deref(), NOW_MS), None, "nothing is new");
        for watch in [&one, &two] {
            assert!(rests(watch, 1, NOW_MS + 599_000) && !rests(watch, 1, NOW_MS + 600_000));
            assert_eq!(watch.vitals.limits.limits(&arm(2)).len(), 1);
            assert_eq!(watch.vitals.speeds.for_arm(&arm(2)).map(|speed| speed.answers), Some(1));
        }
        assert!(!both.unwrap().contains("auth"), "a key may be mended by the next start");
    }

    #[test]
    fn provider_success_in_one_process_ends_its_cooldown_in_all() {
        let (mut one, mut two) = (VitalsTracker::default(), VitalsTracker::default());
        one.record_sight(sight(1, NOW_MS, failed(ErrorKind::Quota, Some(600))), true);
        let text = one.merge_shared(None, NOW_MS);
        two.merge_shared(text.as_deref(), NOW_MS);
        // Asked for by name in the middle of its rest.
        two.vitals.health.begin_call(HealthTarget { arm: &arm(1), host: "h" }, NOW_MS + 1);
        two.record_sight(sight(1, NOW_MS + 2, worked()), true);
        let text = two.merge_shared(text.as_deref(), NOW_MS + 2);
        one.merge_shared(text.as_deref(), NOW_MS + 3);
        assert!(!rests(&one, 1, NOW_MS + 3) && !rests(&two, 1, NOW_MS + 3));
    }

    #[test]
    fn late_success_report_does_not_end_a_newer_cooldown() {
        let (mut one, mut two) = (VitalsTracker::default(), VitalsTracker::default());
        one.record_sight(sight(1, NOW_MS, worked()), true);
        two.record_sight(sight(1, NOW_MS + 5, failed(ErrorKind::RateLimited, Some(600))), true);
        let text = two.merge_shared(None, NOW_MS + 5);
        one.merge_shared(text.as_deref(), NOW_MS + 10);
        assert!(rests(&one, 1, NOW_MS + 599_000));
    }

    #[test]
    fn unreadable_shared_provider_health_is_replaced() {
        for odd in ["", "{", "[]", "{\"form\":2,\"health\":[]}", "{\"form\":1,\"health\":7}"] {
            let mut watch = VitalsTracker::default();
            assert_eq!(watch.merge_shared(Some(odd), NOW_MS), None, "{odd}");
            watch.record_sight(sight(1, NOW_MS, worked()), true);
            assert!(watch.merge_shared(Some(odd), NOW_MS).is_some_and(|text| text.contains("p1")));
        }
    }

    #[test]
    fn provider_health_queue_is_bounded_and_empty_without_sharing() {
        let mut watch = VitalsTracker::default();
        watch.record_sight(sight(1, NOW_MS, worked()), false);
        assert!(!watch.has_news() && watch.vitals.speeds.for_arm(&arm(1)).is_some());
        for _ in 0..2 * MOST_NEWS {
            watch.record_sight(sight(1, NOW_MS, worked()), true);
        }
        assert_eq!(watch.news.len(), MOST_NEWS);
    }

    proptest! {
        #[test]
        fn merging_shared_provider_health_loses_no_observation_in_any_order(order in prop::collection::vec((0..3_usize, 0..4_u8), 1..40)) {
            let mut watches = [VitalsTracker::default(), VitalsTracker::default(), VitalsTracker::default()];
            let mut text: Option<String> = None;
            for (who, arm) in &order {
                watches[*who].record_sight(sight(*arm, NOW_MS, worked()), true);
                if arm % 2 == 0 {
                    text = watches[*who].merge_shared(text.as_deref(), NOW_MS).or(text);
                }
            }
            for watch in &mut watches {
                text = watch.merge_shared(text.as_deref(), NOW_MS).or(text);
            }
            let known = Vitals::from_text(text.as_deref(), NOW_MS);
            for number in 0..4 {
                let seen = order.iter().filter(|(_, arm)| *arm == number).count();
                let answers = known.speeds.for_arm(&arm(number)).map_or(0, |speed| speed.answers);
                prop_assert_eq!(usize::try_from(answers).unwrap(), seen);
            }
        }
    }
}
