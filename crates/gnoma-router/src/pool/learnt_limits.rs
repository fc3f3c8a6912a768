//! What providers told of their limits, by arm.

use std::collections::BTreeMap;

use gnoma_core::{
    ModelRef,
    ledger::{Amount, Limit, Window},
};
use serde::{Deserialize, Serialize};

use super::{headers::ReportedLimit, limit_status, tiers};
use crate::clock::{Zone, time_of};

const DAY_MS: i64 = 86_400_000;

/// Most arms that are remembered; of more, the one that told longest ago is forgotten.
const MOST_ARMS: usize = 512;

/// Most limits of an arm that are remembered.
const MOST_OF_AN_ARM: usize = 16;

/// A limit that was not told again for this long may have changed.
const FRESH_MS: i64 = 7 * DAY_MS;

/// A limit, and when it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownLimit {
    /// The limit as told.
    pub seen: ReportedLimit,
    /// The time at which the limit was told, in milliseconds since 1970.
    pub at_ms: i64,
}

/// The limits that were told, with the arms they were told for; to be kept from one start to the
/// next. What was told to one process holds for the next calls of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(ModelRef, Vec<KnownLimit>)>", into = "Vec<(ModelRef, Vec<KnownLimit>)>")]
pub struct LearntLimits {
    arms: BTreeMap<(String, String), Vec<KnownLimit>>,
}

impl From<Vec<(ModelRef, Vec<KnownLimit>)>> for LearntLimits {
    fn from(list: Vec<(ModelRef, Vec<KnownLimit>)>) -> Self {
        let mut learnt = Self::default();
        for (arm, known) in list {
            for known in known {
                learnt.record_limits(&arm, &[known.seen], known.at_ms);
            }
        }
        learnt
    }
}

impl From<LearntLimits> for Vec<(ModelRef, Vec<KnownLimit>)> {
    fn from(learnt: LearntLimits) -> Self {
        learnt
            .arms
            .into_iter()
            .map(|((provider, model), known)| (ModelRef { provider, model }, known))
            .collect()
    }
}

impl LearntLimits {
    /// Takes in what an answer of `arm` told. The same limit told anew replaces what was known; what was
    /// told before that, and is heard of late, does not.
    pub fn record_limits(&mut self, arm: &ModelRef, told: &[ReportedLimit], at_ms: i64) {
        if told.is_empty() {
            return;
        }
        let limits = self.arms.entry(arm_key(arm)).or_default();
        for seen in told {
            let same = |known: &KnownLimit| {
                (known.seen.unit, known.seen.window) == (seen.unit, seen.window)
            };
            if limits.iter().any(|known| same(known) && known.at_ms > at_ms) {
                continue;
            }
            limits.retain(|known| !same(known));
            if limits.len() < MOST_OF_AN_ARM {
                limits.push(KnownLimit { seen: *seen, at_ms });
            }
        }
        self.make_room();
    }

    /// Returns the known limits of `arm`.
    #[must_use]
    pub fn known_limits(&self, arm: &ModelRef) -> &[KnownLimit] {
        self.arms.get(&arm_key(arm)).map_or(&[], Vec::as_slice)
    }

    /// The limits of `arm` for a ledger.
    #[must_use]
    pub fn limits(&self, arm: &ModelRef) -> Vec<Limit> {
        self.known_limits(arm)
            .iter()
            .filter_map(|known| known.vendor_limit(&arm.provider))
            .collect()
    }

    /// Reports whether the provider has said, not longer ago than the limit counts, that there is room for `need`:
    /// the provider knows better than any count of ours.
    #[must_use]
    pub fn has_room(&self, arm: &ModelRef, limit: &Limit, need: &Amount, now_ms: i64) -> bool {
        self.known_limits(arm)
            .iter()
            .filter(|known| known.vendor_limit(&arm.provider).as_ref() == Some(limit))
            .filter(|known| known.is_recent(limit.window, now_ms))
            .any(|known| known.seen.remaining.is_some_and(|left| need.in_unit(limit.unit) <= left))
    }

    /// Returns why `arm` had better not be called at `now_ms`, and until when: its provider told that nothing is
    /// left.
    #[must_use]
    pub fn refusal_reason(&self, arm: &ModelRef, now_ms: i64, zone: Zone) -> Option<(String, i64)> {
        let (known, free_ms) = self
            .known_limits(arm)
            .iter()
            .filter(|known| known.seen.remaining == Some(0))
            .filter_map(|known| Some((known, resets_at(known, now_ms)?)))
            .max_by_key(|(_, free_ms)| *free_ms)?;
        let limit = match known.seen.limit {
            Some(most) => limit_status::amount_of(known.seen.unit, most),
            None => limit_status::unit_noun(known.seen.unit).to_owned(),
        };
        let over = match known.seen.window {
            Some(window @ Window::Rolling { .. }) => {
                format!(" {}", limit_status::per_window(window))
            }
            Some(Window::Day | Window::Month | Window::Ever) | None => String::new(),
        };
        let (provider, at) = (&arm.provider, time_of(free_ms, now_ms, zone));
        let why = format!(
            "{provider} said that its limit of {limit}{over} is used up; it resets at {at}"
        );
        Some((why, free_ms))
    }

    /// Forgets what was told too long ago to rely on, or later than now by a clock that was ahead.
    pub fn forget_stale(&mut self, now_ms: i64) {
        for limits in self.arms.values_mut() {
            limits.retain(|known| (0..FRESH_MS).contains(&now_ms.saturating_sub(known.at_ms)));
        }
        self.arms.retain(|_, limits| !limits.is_empty());
    }

    fn make_room(&mut self) {
        if self.arms.len() <= MOST_ARMS {
            return;
        }
        let newest = |limits: &Vec<KnownLimit>| limits.iter().map(|known| known.at_ms).max();
        let oldest = self.arms.iter().min_by_key(|(_, limits)| newest(limits));
        if let Some(key) = oldest.map(|(key, _)| key.clone()) {
            self.arms.remove(&key);
        }
    }
}

impl KnownLimit {
    /// The limit as it is counted at that vendor.
    fn vendor_limit(&self, vendor: &str) -> Option<Limit> {
        let limit = self.seen.as_limit()?;
        Some(Limit { unit: tiers::counted_unit(limit.unit, vendor), ..limit })
    }

    /// Reports whether the amount that was left then says something about now.
    fn is_recent(&self, window: Window, now_ms: i64) -> bool {
        let length_ms = match window {
            Window::Rolling { ms } => i64::try_from(ms).unwrap_or(i64::MAX),
            Window::Day | Window::Month | Window::Ever => DAY_MS,
        };
        (0..length_ms).contains(&now_ms.saturating_sub(self.at_ms))
    }
}

/// Returns when a limit has all of its room again, where that is still to come. A clock that has gone back since
/// the limit was told says nothing about that.
fn resets_at(known: &KnownLimit, now_ms: i64) -> Option<i64> {
    let wait = i64::try_from(known.seen.reset_ms?).ok()?;
    let at_ms = known.at_ms.saturating_add(wait);
    (known.at_ms <= now_ms && now_ms < at_ms).then_some(at_ms)
}

fn arm_key(arm: &ModelRef) -> (String, String) {
    (arm.provider.clone(), arm.model.clone())
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::Unit;

    use super::*;

    const UTC: Zone = || jiff::tz::TimeZone::UTC;

    fn arm(number: usize) -> ModelRef {
        ModelRef { provider: "acme".into(), model: format!("m{number}") }
    }

    fn told(remaining: u64, reset_ms: u64) -> ReportedLimit {
        ReportedLimit {
            unit: Unit::Requests,
            window: None,
            limit: Some(50),
            remaining: Some(remaining),
            reset_ms: Some(reset_ms),
        }
    }

    #[test]
    fn used_up_rate_limit_of_a_header_bars_the_model_until_its_reset() {
        let now = 1_800_000_000_000;
        let mut learnt = LearntLimits::default();
        learnt.record_limits(&arm(0), &[told(0, 60_000)], now);
        let (why, until_ms) = learnt.refusal_reason(&arm(0), now, UTC).unwrap();
        assert!(until_ms > now);
        assert_eq!(why, "acme said that its limit of 50 requests is used up; it resets at 08:01");
        assert_eq!(learnt.refusal_reason(&arm(0), now + 60_000, UTC), None);
        assert_eq!(learnt.refusal_reason(&arm(0), now - 1, UTC), None, "the clock went back");
        assert_eq!(learnt.refusal_reason(&arm(1), now, UTC), None);
        learnt.record_limits(&arm(0), &[told(7, 60_000)], now);
        assert_eq!(learnt.refusal_reason(&arm(0), now, UTC), None);
        assert_eq!(learnt.limits(&arm(0)).len(), 1);
    }

    #[test]
    fn remaining_rate_limit_reported_by_the_provider_expires() {
        let now = 1_800_000_000_000;
        let mut learnt = LearntLimits::default();
        let told = ReportedLimit { unit: Unit::Input, remaining: Some(900), ..told(0, 60_000) };
        learnt.record_limits(&arm(0), &[told], now);
        let [limit] = learnt.limits(&arm(0))[..] else { unreachable!() };
        let room = |input, at_ms| {
            let need = Amount { requests: 1, input, cached: 5_000, ..Amount::default() };
            learnt.has_room(&arm(0), &limit, &need, at_ms)
        };
        assert!(room(5_900, now) && room(5_900, now + 59_999), "cached tokens do not count");
        assert!(!room(5_901, now), "there is too little");
        assert!(!room(5_900, now + 60_000) && !room(5_900, now - 1), "nobody knows");
        let other = Limit { most: 7, ..limit };
        assert!(!learnt.has_room(&arm(0), &other, &Amount::default(), now));
    }

    #[test]
    fn learnt_rate_limits_are_bounded_and_round_trip_through_json() {
        let mut learnt = LearntLimits::default();
        for number in 0..MOST_ARMS + 20 {
            let at_ms = i64::try_from(number).unwrap();
            learnt.record_limits(&arm(number), &[told(1, 1)], at_ms);
        }
        assert_eq!(learnt.arms.len(), MOST_ARMS);
        assert!(
            learnt.known_limits(&arm(0)).is_empty()
                && learnt.known_limits(&arm(MOST_ARMS)).len() == 1
        );
        let text = serde_json::to_string(&learnt).unwrap();
        assert_eq!(serde_json::from_str::<LearntLimits>(&text).unwrap(), learnt);
        let mut early = learnt.clone();
        early.forget_stale(100);
        assert_eq!(early.arms.len(), 81, "the others are of a clock that was ahead");
        learnt.forget_stale(FRESH_MS * 2);
        assert_eq!(learnt, LearntLimits::default());
    }
}
