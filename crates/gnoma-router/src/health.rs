//! Which arms rest after errors, and until when. Pure: time comes in, nothing waits here.
//!
//! An error says whom it concerns: the arm, its whole provider, or every arm behind the same host.
//! That place rests, longer each time it fails again after a rest, and no less than the provider
//! asked for. When the rest is over, one call tries; the others wait for how it goes. A success
//! resets. Errors that only the request is to blame for rest nobody.
//!
//! Several calls that fail together are one failure: what fails during a rest had begun before it.
//! After a clock that went back, a rest counts as over: one early try is better than one that comes a
//! year late.

use std::collections::BTreeMap;

use gnoma_core::{
    ErrorKind, ModelRef, ProviderError,
    error_policy::{ErrorPolicy, FaultScope, RestRule},
};
use serde::{Deserialize, Serialize};

use crate::clock::{Zone, time_of};

const MINUTE_MS: i64 = 60 * 1000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// A provider's own wish is heard up to this length.
pub const MOST_TOLD_MS: i64 = 31 * 24 * HOUR_MS;

/// A call that tries whether a rest did good has this long, then another may.
pub const TRIAL_MS: i64 = 5 * MINUTE_MS;

/// Longest that a place can rest; nothing that is read from a file rests longer.
const MOST_REST_MS: i64 = MOST_TOLD_MS;

/// Most places that are remembered; beyond, the one whose rest ends first is forgotten.
const MOST_PLACES: usize = 1024;

/// A place that did not fail again for this long after its rest is no longer known as failing.
const STRIKES_KEPT_MS: i64 = 24 * HOUR_MS;

/// Doubled no more often than this: by then every rest is at its longest.
const MOST_STRIKES: u32 = 32;

/// The arm that is called, and the host where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthTarget<'t> {
    /// The arm that is called.
    pub arm: &'t ModelRef,
    /// The host its provider is reached at; several providers may share one.
    pub host: &'t str,
}

/// A rest after an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rest {
    /// Until when, in milliseconds since 1970.
    pub until_ms: i64,
    /// The reason for the rest and when it ends, for people.
    pub why: String,
}

/// A place that rests, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestingTarget {
    /// The arm, the provider or the host.
    pub name: String,
    /// The kind of error that the place failed with.
    pub kind: ErrorKind,
    /// Until when, in milliseconds since 1970.
    pub until_ms: i64,
    /// The number of times that the place failed again after a rest, the first time included.
    pub times: u32,
}

const REACHES: [FaultScope; 3] = [FaultScope::Arm, FaultScope::Provider, FaultScope::Host];

/// The facts about a place that failed and has not succeeded since.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FailureRecord {
    kind: ErrorKind,
    since_ms: i64,
    until_ms: i64,
    strikes: u32,
    /// A call tries since then.
    #[serde(skip)]
    trial_ms: Option<i64>,
}

impl FailureRecord {
    fn is_resting(&self, now_ms: i64) -> bool {
        self.since_ms <= now_ms && now_ms < self.until_ms
    }

    fn is_tried(&self, now_ms: i64) -> bool {
        self.trial_ms
            .is_some_and(|begun| begun <= now_ms && now_ms < begun.saturating_add(TRIAL_MS))
    }

    /// Returns when the place may be called, if that is later than now.
    fn free_ms(&self, now_ms: i64) -> Option<i64> {
        if self.is_resting(now_ms) {
            return Some(self.until_ms);
        }
        let begun = self.trial_ms.filter(|_| self.is_tried(now_ms))?;
        Some(begun.saturating_add(TRIAL_MS))
    }
}

/// A place that an error may concern.
type HealthKey = (FaultScope, String);

/// One row of the kept form.
#[derive(Serialize, Deserialize)]
struct HealthRow {
    reach: FaultScope,
    name: String,
    #[serde(flatten)]
    ailment: FailureRecord,
}

/// The health of all arms. To be kept from one start to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<HealthRow>", into = "Vec<HealthRow>")]
pub struct Health {
    places: BTreeMap<HealthKey, FailureRecord>,
}

impl From<Vec<HealthRow>> for Health {
    fn from(rows: Vec<HealthRow>) -> Self {
        let sound =
            rows.into_iter().take(MOST_PLACES).map(|HealthRow { reach, name, mut ailment }| {
                let longest = ailment.since_ms.saturating_add(MOST_REST_MS);
                ailment.until_ms = ailment.until_ms.min(longest);
                ailment.strikes = ailment.strikes.min(MOST_STRIKES);
                ((reach, name), ailment)
            });
        Self { places: gnoma_core::sort::to_map(sound) }
    }
}

impl From<Health> for Vec<HealthRow> {
    fn from(health: Health) -> Self {
        let rows = health.places.into_iter();
        rows.map(|((reach, name), ailment)| HealthRow { reach, name, ailment }).collect()
    }
}

impl Health {
    /// Returns the rest because of which `target` had better not be called at `now_ms`; `None` if it may be called.
    #[must_use]
    pub fn current_rest(&self, target: HealthTarget<'_>, now_ms: i64, zone: Zone) -> Option<Rest> {
        let resting = REACHES.into_iter().filter_map(|reach| {
            let place = health_key(reach, target);
            let ailment = self.places.get(&place)?;
            Some((ailment.free_ms(now_ms)?, reach, ailment))
        });
        let (until_ms, reach, ailment) = resting.max_by_key(|(until_ms, ..)| *until_ms)?;
        Some(Rest {
            until_ms,
            why: describe_rest(reach, target, ailment, until_ms, (now_ms, zone)),
        })
    }

    /// Reports whether a rest is known that began after `at_ms`: news of that time that arrives now is older than
    /// the rest.
    #[must_use]
    pub fn has_later(&self, target: HealthTarget<'_>, at_ms: i64) -> bool {
        let began =
            |reach| self.places.get(&health_key(reach, target)).map(|ailment| ailment.since_ms);
        REACHES.into_iter().filter_map(began).any(|since_ms| since_ms > at_ms)
    }

    /// A call to `target` begins. Where a rest has just ended it is the one that tries, and the
    /// others wait for its end.
    pub fn begin_call(&mut self, target: HealthTarget<'_>, now_ms: i64) {
        for reach in REACHES {
            if let Some(ailment) = self.places.get_mut(&health_key(reach, target)) {
                ailment.trial_ms = Some(now_ms);
            }
        }
    }

    /// A call to `target` failed.
    pub fn record_failure(&mut self, target: HealthTarget<'_>, error: &ProviderError, now_ms: i64) {
        // It said nothing of places other than the one it concerns: another call may try those.
        self.end_trials(target);
        let ErrorPolicy { scope, rest: Some(rest), .. } = error.kind.policy() else { return };
        let told_ms = error
            .retry_after
            .map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX).min(MOST_TOLD_MS));
        let place = health_key(scope, target);
        let before = self.places.get(&place).copied();
        let next = match before {
            Some(before) if before.is_resting(now_ms) => prolong_rest(before, told_ms, now_ms),
            Some(_) | None => {
                let strikes = before.map_or(1, |before| before.strikes.saturating_add(1));
                new_rest(error.kind, rest, strikes.min(MOST_STRIKES), told_ms, now_ms)
            }
        };
        self.places.insert(place, next);
        self.make_room();
    }

    /// A call to `target` succeeded. During a rest that was a call begun before it, unless it was one
    /// that [`begin_call`](Self::begin_call) told of since. Says whether it ended what was known against it.
    pub fn record_success(&mut self, target: HealthTarget<'_>, now_ms: i64) -> bool {
        let mut has_cured = false;
        for reach in REACHES {
            let place = health_key(reach, target);
            let is_over =
                |ailment: &FailureRecord| !ailment.is_resting(now_ms) || ailment.trial_ms.is_some();
            if self.places.get(&place).is_some_and(is_over) {
                self.places.remove(&place);
                has_cured = true;
            }
        }
        has_cured
    }

    /// Takes over what all processes know. What only this one may know, and which of its calls are
    /// trying, stays.
    pub fn adopt_shared(&mut self, shared: Self) {
        let own = std::mem::replace(&mut self.places, shared.places);
        for (place, ailment) in own {
            match self.places.get_mut(&place) {
                Some(known) => known.trial_ms = ailment.trial_ms,
                None if !ailment.kind.policy().is_shared => {
                    self.places.insert(place, ailment);
                }
                None => (),
            }
        }
    }

    /// Forgets what is long over, and what a clock that was ahead dated later than now.
    pub fn forget_stale(&mut self, now_ms: i64) {
        self.places.retain(|_, ailment| {
            let over_ms = ailment.until_ms.saturating_add(STRIKES_KEPT_MS);
            ailment.since_ms <= now_ms && now_ms < over_ms
        });
    }

    /// Returns the places that rest at `now_ms`, the longest rest last.
    #[must_use]
    pub fn resting_targets(&self, now_ms: i64) -> Vec<RestingTarget> {
        let resting = self.places.iter().filter(|(_, ailment)| ailment.is_resting(now_ms));
        let mut all: Vec<RestingTarget> = resting
            .map(|((_, name), ailment)| {
                let FailureRecord { kind, until_ms, strikes, .. } = *ailment;
                RestingTarget { name: name.clone(), kind, until_ms, times: strikes }
            })
            .collect();
        gnoma_core::sort::by_key(&mut all, |rest| rest.until_ms);
        all
    }

    /// A call to `target` was given up before it told anything: if it was the one that tries, another may.
    pub fn abandon_call(&mut self, target: HealthTarget<'_>) {
        self.end_trials(target);
    }

    fn end_trials(&mut self, target: HealthTarget<'_>) {
        for reach in REACHES {
            if let Some(ailment) = self.places.get_mut(&health_key(reach, target)) {
                ailment.trial_ms = None;
            }
        }
    }

    fn make_room(&mut self) {
        if self.places.len() <= MOST_PLACES {
            return;
        }
        let first = self.places.iter().min_by_key(|(_, ailment)| ailment.until_ms);
        if let Some(place) = first.map(|(place, _)| place.clone()) {
            self.places.remove(&place);
        }
    }
}

/// One more call of those that failed together.
fn prolong_rest(before: FailureRecord, told_ms: Option<i64>, now_ms: i64) -> FailureRecord {
    match told_ms.map(|told| now_ms.saturating_add(told)) {
        // Counted from now, so that no rest is longer than the longest.
        Some(until_ms) if until_ms > before.until_ms => {
            FailureRecord { since_ms: now_ms, until_ms, ..before }
        }
        Some(_) | None => before,
    }
}

/// The first time the provider's own wish is followed to the letter; after that it is the least.
fn new_rest(
    kind: ErrorKind,
    rest: RestRule,
    strikes: u32,
    told_ms: Option<i64>,
    now_ms: i64,
) -> FailureRecord {
    let [first_ms, most_ms] =
        [rest.first, rest.most].map(|rest| i64::try_from(rest.as_millis()).unwrap_or(i64::MAX));
    let doubled = 1_i64
        .checked_shl(strikes.saturating_sub(1))
        .and_then(|times| first_ms.checked_mul(times))
        .map_or(most_ms, |ms| ms.min(most_ms));
    let rest_ms = match told_ms {
        Some(told) if strikes <= 1 => told,
        Some(told) => told.max(doubled),
        None => doubled,
    };
    FailureRecord {
        kind,
        since_ms: now_ms,
        until_ms: now_ms.saturating_add(rest_ms),
        strikes,
        trial_ms: None,
    }
}

fn health_key(reach: FaultScope, target: HealthTarget<'_>) -> HealthKey {
    let name = match reach {
        FaultScope::Arm => target.arm.to_string(),
        FaultScope::Provider => target.arm.provider.clone(),
        FaultScope::Host => target.host.to_owned(),
    };
    (reach, name)
}

fn describe_rest(
    reach: FaultScope,
    target: HealthTarget<'_>,
    ailment: &FailureRecord,
    until_ms: i64,
    (now_ms, zone): (i64, Zone),
) -> String {
    let (_, name) = health_key(reach, target);
    let times =
        if ailment.strikes > 1 { format!(", {} times", ailment.strikes) } else { String::new() };
    let kind = ailment.kind;
    let until = time_of(until_ms, now_ms, zone);
    if ailment.is_resting(now_ms) {
        format!("{name} rests until {until} ({kind}{times})")
    } else {
        format!("{name} is being retried after it failed ({kind}{times})")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const UTC: Zone = || jiff::tz::TimeZone::UTC;

    const NOW_MS: i64 = 1_800_014_400_000;

    /// Some hundred thousand years.
    const FAR_MS: i64 = 10_000_000_000_000_000;

    fn arm(number: usize) -> ModelRef {
        ModelRef { provider: format!("p{}", number / 2), model: format!("m{number}") }
    }

    /// Four arms of two providers each; all providers but the last share a host.
    fn host(number: usize) -> &'static str {
        if number / 2 == 3 { "other" } else { "shared" }
    }

    fn error(kind: ErrorKind, wait_ms: Option<u64>) -> ProviderError {
        let mut error = ProviderError::new(kind, "p", "no");
        error.retry_after = wait_ms.map(Duration::from_millis);
        error
    }

    fn until(health: &Health, number: usize, now_ms: i64) -> Option<i64> {
        let arm = arm(number);
        health
            .current_rest(HealthTarget { arm: &arm, host: host(number) }, now_ms, UTC)
            .map(|rest| rest.until_ms)
    }

    fn fail(health: &mut Health, number: usize, error: &ProviderError, now_ms: i64) {
        let arm = arm(number);
        health.record_failure(HealthTarget { arm: &arm, host: host(number) }, error, now_ms);
    }

    fn begin(health: &mut Health, number: usize, now_ms: i64) {
        let arm = arm(number);
        health.begin_call(HealthTarget { arm: &arm, host: host(number) }, now_ms);
    }

    fn succeed(health: &mut Health, number: usize, now_ms: i64) {
        let arm = arm(number);
        health.record_success(HealthTarget { arm: &arm, host: host(number) }, now_ms);
    }

    fn any_kind() -> impl Strategy<Value = ErrorKind> {
        prop::sample::select(&ErrorKind::ALL[..])
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin(usize),
        Fail(usize, ErrorKind, Option<u64>),
        Succeed(usize),
        Wait(i64),
    }

    fn any_step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0..8_usize).prop_map(Step::Begin),
            (0..8_usize, any_kind(), proptest::option::of(any::<u64>()))
                .prop_map(|(arm, kind, wait)| Step::Fail(arm, kind, wait)),
            (0..8_usize).prop_map(Step::Succeed),
            prop_oneof![0..600_000_i64, -FAR_MS..FAR_MS].prop_map(Step::Wait),
        ]
    }

    fn after(steps: &[Step]) -> (Health, i64) {
        let (mut health, mut now) = (Health::default(), NOW_MS);
        for step in steps {
            match step {
                Step::Begin(arm) => begin(&mut health, *arm, now),
                Step::Fail(arm, kind, wait) => fail(&mut health, *arm, &error(*kind, *wait), now),
                Step::Succeed(arm) => succeed(&mut health, *arm, now),
                Step::Wait(ms) => now = now.saturating_add(*ms),
            }
        }
        (health, now)
    }

    #[test]
    fn provider_cooldown_reason_names_the_error_and_its_end() {
        let mut health = Health::default();
        let arm = arm(0);
        let target = HealthTarget { arm: &arm, host: "h" };
        health.record_failure(target, &error(ErrorKind::RateLimited, Some(150_000)), NOW_MS);
        let why = |health: &Health, now| health.current_rest(target, now, UTC).unwrap().why;
        assert_eq!(why(&health, NOW_MS), "p0/m0 rests until 12:02:30 (rate limited)");
        let later = NOW_MS + 150_000;
        assert_eq!(health.current_rest(target, later, UTC), None);
        health.begin_call(target, later);
        assert_eq!(why(&health, later), "p0/m0 is being retried after it failed (rate limited)");
        health.record_failure(target, &error(ErrorKind::Quota, None), later);
        assert_eq!(why(&health, later), "p0 rests until 12:17:30 (quota used up)");
    }

    #[test]
    fn provider_backoff_doubles_up_to_a_maximum_and_resets_on_success() {
        let (mut health, mut now) = (Health::default(), NOW_MS);
        let mut rests = Vec::new();
        for _ in 0..40 {
            begin(&mut health, 0, now);
            fail(&mut health, 0, &error(ErrorKind::Overloaded, None), now);
            let end = until(&health, 0, now).unwrap();
            rests.push(end - now);
            now = end;
        }
        assert_eq!(&rests[..4], [15_000, 30_000, 60_000, 120_000]);
        assert_eq!(rests.last(), Some(&(10 * MINUTE_MS)));
        begin(&mut health, 0, now);
        succeed(&mut health, 0, now);
        assert_eq!(health, Health::default());
    }

    #[test]
    fn only_one_call_probes_a_provider_after_its_cooldown() {
        let mut health = Health::default();
        fail(&mut health, 0, &error(ErrorKind::Auth, None), NOW_MS);
        let later = until(&health, 1, NOW_MS).unwrap();
        assert_eq!(until(&health, 1, later), None);
        begin(&mut health, 1, later);
        assert_eq!(until(&health, 0, later + 1), Some(later + TRIAL_MS));
        assert_eq!(until(&health, 0, later + TRIAL_MS), None, "the one that tried is gone");
        assert_eq!(until(&health, 0, later - HOUR_MS), None, "the clock went back");
        fail(&mut health, 1, &error(ErrorKind::BadRequest, None), later + 1);
        assert_eq!(until(&health, 0, later + 1), None, "the trial told nothing");
    }

    #[test]
    fn late_retry_after_is_counted_from_its_arrival_and_capped() {
        let mut health = Health::default();
        fail(&mut health, 0, &error(ErrorKind::NotFound, None), NOW_MS);
        let later = NOW_MS + 5 * MINUTE_MS;
        fail(&mut health, 0, &error(ErrorKind::NotFound, Some(u64::MAX)), later);
        assert_eq!(until(&health, 0, later), Some(later + MOST_TOLD_MS));
        assert_eq!(until(&health, 0, later - MINUTE_MS), None, "the clock went back");
    }

    #[test]
    fn shared_health_replaces_own_cooldowns_except_wrong_api_keys() {
        let (mut own, mut shared) = (Health::default(), Health::default());
        fail(&mut own, 0, &error(ErrorKind::RateLimited, None), NOW_MS);
        fail(&mut own, 2, &error(ErrorKind::Auth, None), NOW_MS);
        fail(&mut shared, 4, &error(ErrorKind::RateLimited, Some(600_000)), NOW_MS);
        own.adopt_shared(shared);
        assert_eq!(until(&own, 0, NOW_MS), None, "another process found it well");
        assert!(until(&own, 2, NOW_MS).is_some(), "the key is still wrong");
        assert_eq!(until(&own, 4, NOW_MS), Some(NOW_MS + 600_000));
    }

    #[test]
    fn cooldowns_dated_ahead_by_a_wrong_clock_are_dropped() {
        let mut health = Health::default();
        fail(&mut health, 0, &error(ErrorKind::RateLimited, None), NOW_MS + HOUR_MS);
        health.forget_stale(NOW_MS);
        assert_eq!(health, Health::default());
        fail(&mut health, 0, &error(ErrorKind::RateLimited, None), NOW_MS);
        health.forget_stale(NOW_MS + HOUR_MS);
        assert_ne!(health, Health::default(), "it counts when it fails again");
        health.forget_stale(NOW_MS + 2 * STRIKES_KEPT_MS);
        assert_eq!(health, Health::default());
    }

    proptest! {
        #[test]
        fn error_cools_down_only_the_model_provider_or_host_in_its_scope(kind in any_kind(), failed in 0..8_usize) {
            let mut health = Health::default();
            fail(&mut health, failed, &error(kind, None), NOW_MS);
            for other in 0..8 {
                let policy = kind.policy();
                let is_concerned = policy.rest.is_some()
                    && match policy.scope {
                        FaultScope::Arm => other == failed,
                        FaultScope::Provider => other / 2 == failed / 2,
                        FaultScope::Host => host(other) == host(failed),
                    };
                prop_assert_eq!(until(&health, other, NOW_MS).is_some(), is_concerned);
            }
        }

        #[test]
        fn no_call_is_made_before_retry_after_has_passed(
            steps in prop::collection::vec(any_step(), 0..20),
            kind in any_kind(), wait in 1..40 * 86_400_000_u64, part in 0.0..0.999_f64,
        ) {
            let (mut health, now) = after(&steps);
            fail(&mut health, 0, &error(kind, Some(wait)), now);
            if kind.policy().rest.is_some() {
                let wait = i64::try_from(wait).unwrap().min(MOST_TOLD_MS);
                prop_assert!(until(&health, 0, now).is_some_and(|end| end >= now + wait));
                #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "a part")]
                let within = now + (part * wait as f64) as i64;
                prop_assert!(until(&health, 0, within).is_some());
            }
        }

        #[test]
        fn concurrent_failures_count_once_for_backoff(count in 2..30_usize, apart in 0..400_i64) {
            let mut health = Health::default();
            for number in 0..count {
                let at = NOW_MS + i64::try_from(number).unwrap() * apart;
                fail(&mut health, 0, &error(ErrorKind::RateLimited, None), at);
            }
            prop_assert_eq!(until(&health, 0, NOW_MS), Some(NOW_MS + 30_000));
        }

        #[test]
        fn provider_cooldown_is_bounded_and_ends_on_success(
            steps in prop::collection::vec(any_step(), 0..60),
        ) {
            let (mut health, now) = after(&steps);
            for number in 0..8 {
                if let Some(end) = until(&health, number, now) {
                    prop_assert!(end > now && end <= now.saturating_add(MOST_REST_MS));
                }
            }
            begin(&mut health, 0, now);
            succeed(&mut health, 0, now);
            prop_assert_eq!(until(&health, 0, now), None);
        }

        #[test]
        fn provider_health_round_trips_through_json(steps in prop::collection::vec(any_step(), 0..60)) {
            let (health, now) = after(&steps);
            let text = serde_json::to_string(&health).unwrap();
            let read: Health = serde_json::from_str(&text).unwrap();
            for number in 0..8 {
                // Calls that were trying ended with their process.
                let before = until(&health, number, now);
                let after = until(&read, number, now);
                prop_assert!(after == before || after.is_none_or(|end| Some(end) <= before));
            }
        }
    }
}
