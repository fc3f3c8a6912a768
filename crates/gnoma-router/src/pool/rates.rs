//! Rates as people and plans state them, and the limits they mean.

use gnoma_core::ledger::{Limit, Unit, Window};
use serde::{Deserialize, Serialize};

pub(super) const SECOND_MS: u64 = 1000;
pub(super) const MINUTE_MS: u64 = 60_000;
pub(super) const DAY_MS: u64 = 86_400_000;

/// The slowest rate that is kept: one request a day.
const LEAST_RPS: f64 = 1.0 / 86_400.0;

/// A faster rate than this is none.
const MOST_RPS: f64 = 1e9;

/// Limits of one pool; what is `None` is not limited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rates {
    /// Requests a second; may be less than one.
    pub rps: Option<f64>,
    /// Requests a minute.
    pub rpm: Option<u64>,
    /// Requests a day.
    pub rpd: Option<u64>,
    /// Tokens a minute.
    pub tpm: Option<u64>,
    /// Prompt tokens a minute.
    pub itpm: Option<u64>,
    /// Written tokens a minute.
    pub otpm: Option<u64>,
    /// Tokens a month.
    pub tokens_month: Option<u64>,
    /// Micro-dollars that may be spent a day.
    pub spend_day_micro_usd: Option<u64>,
    /// Micro-dollars that may be spent a month.
    pub spend_month_micro_usd: Option<u64>,
    /// The plan's own units that one request takes.
    pub custom: Option<u64>,
    /// The plan's own units a month.
    pub custom_month: Option<u64>,
}

impl Rates {
    /// The limits. Per second, minute and for requests a day the window rolls: vendors refill
    /// steadily. Money, and what is sold by the month, goes by the calendar. Units of a plan are as many
    /// requests: each takes the same number of them.
    #[must_use]
    pub fn limits(&self) -> Vec<Limit> {
        let minute = Window::Rolling { ms: MINUTE_MS };
        let day = Window::Rolling { ms: DAY_MS };
        let stated = [
            (self.rpm, Unit::Requests, minute),
            (self.rpd, Unit::Requests, day),
            (self.tpm, Unit::Tokens, minute),
            (self.itpm, Unit::Input, minute),
            (self.otpm, Unit::Output, minute),
            (self.tokens_month, Unit::Tokens, Window::Month),
            (self.spend_day_micro_usd, Unit::MicroUsd, Window::Day),
            (self.spend_month_micro_usd, Unit::MicroUsd, Window::Month),
            (self.requests_month(), Unit::Requests, Window::Month),
        ];
        let stated = stated
            .into_iter()
            .filter_map(|(most, unit, window)| Some(Limit { unit, window, most: most? }));
        self.rps.and_then(a_second).into_iter().chain(stated).collect()
    }

    /// Requests a month that the plan's own units allow, where requests take any.
    fn requests_month(&self) -> Option<u64> {
        self.custom_month?.checked_div(self.custom?)
    }

    /// These rates as a person states them: a 0 lifts what the plan says, except that 0 micro-dollars are none to spend.
    /// Without a plan there is nothing to lift.
    #[must_use]
    pub(super) fn with_zeros_lifted(self, has_plan: bool) -> Self {
        let lifted = |rate: Option<u64>| match rate {
            Some(0) => has_plan.then_some(u64::MAX),
            rate => rate,
        };
        Self {
            rps: match self.rps {
                Some(rps) if rps <= 0.0 => has_plan.then_some(f64::INFINITY),
                rps => rps,
            },
            rpm: lifted(self.rpm),
            rpd: lifted(self.rpd),
            tpm: lifted(self.tpm),
            itpm: lifted(self.itpm),
            otpm: lifted(self.otpm),
            tokens_month: lifted(self.tokens_month),
            custom_month: lifted(self.custom_month),
            ..self
        }
    }

    /// Each rate of `self`, and where there is none, that of `below`.
    #[must_use]
    pub fn with_fallback(&self, below: &Self) -> Self {
        Self {
            rps: self.rps.or(below.rps),
            rpm: self.rpm.or(below.rpm),
            rpd: self.rpd.or(below.rpd),
            tpm: self.tpm.or(below.tpm),
            itpm: self.itpm.or(below.itpm),
            otpm: self.otpm.or(below.otpm),
            tokens_month: self.tokens_month.or(below.tokens_month),
            spend_day_micro_usd: self.spend_day_micro_usd.or(below.spend_day_micro_usd),
            spend_month_micro_usd: self.spend_month_micro_usd.or(below.spend_month_micro_usd),
            custom: self.custom.or(below.custom),
            custom_month: self.custom_month.or(below.custom_month),
        }
    }
}

/// Whole requests in a window that makes up the rate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "both are within the bounds above"
)]
fn a_second(rps: f64) -> Option<Limit> {
    if !(LEAST_RPS..=MOST_RPS).contains(&rps) {
        return (0.0..LEAST_RPS).contains(&rps).then_some(Limit {
            unit: Unit::Requests,
            window: Window::Rolling { ms: DAY_MS },
            most: u64::from(rps > 0.0),
        });
    }
    let whole = rps.floor().max(1.0);
    let ms = (whole * 1000.0 / rps).ceil() as u64;
    let window = Window::Rolling { ms: ms.max(SECOND_MS) };
    Some(Limit { unit: Unit::Requests, window, most: whole as u64 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_rate_limit_window_allows_more_than_the_rate(rps in 0.000_02_f64..5000.0) {
            let rates = Rates { rps: Some(rps), ..Rates::default() };
            let limits = rates.limits();
            prop_assert_eq!(limits.len(), 1);
            let Window::Rolling { ms } = limits[0].window else { unreachable!() };
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let allowed = limits[0].most as f64 / (ms as f64 / 1000.0);
            prop_assert!(allowed <= rps * 1.000_001, "{allowed} > {rps}");
            prop_assert!(limits[0].most >= 1 && ms >= 1000);
        }
    }

    #[test]
    fn zero_rate_limit_lifts_only_the_limit_of_the_tier() {
        let stated = Rates { rpm: Some(0), tpm: Some(5), ..Rates::default() };
        assert_eq!(stated.clone().with_zeros_lifted(false).rpm, None);
        let planned = stated.with_zeros_lifted(true);
        assert_eq!((planned.rpm, planned.tpm), (Some(u64::MAX), Some(5)));
    }

    #[test]
    fn custom_plan_units_limit_the_number_of_requests() {
        let requests = |custom, custom_month| {
            let rates = Rates { custom, custom_month, ..Rates::default() };
            rates.limits().first().map(|limit| (limit.unit, limit.window, limit.most))
        };
        let month = |most| Some((Unit::Requests, Window::Month, most));
        assert_eq!(requests(Some(7), Some(1_500)), month(214));
        assert_eq!(requests(Some(2), Some(1)), month(0));
        assert_eq!(requests(Some(0), Some(9)), None, "requests take none");
        assert_eq!((requests(None, Some(9)), requests(Some(9), None)), (None, None));
    }

    #[test]
    fn zero_nan_or_infinite_request_rates_are_handled() {
        for (rps, most) in [(0.0, Some(0)), (1e-9, Some(1)), (f64::NAN, None), (-1.0, None)] {
            let limits = Rates { rps: Some(rps), ..Rates::default() }.limits();
            assert_eq!(limits.first().map(|limit| limit.most), most, "{rps}");
        }
        assert_eq!(Rates { rps: Some(f64::INFINITY), ..Rates::default() }.limits(), []);
    }
}
