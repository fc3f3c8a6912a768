//! Forecasts the use of a cap at the end of its period from the spending so far. Pure.

use gnoma_core::ledger::{Level, Unit, Window};
use gnoma_router::pool::Pool;
use gnoma_store::calendar::{DAY_MS, begin_ms, day_of, month_start};

/// Before this part of a period is over, nothing is forecast: one call would decide it.
const LEAST_ELAPSED_PARTS: i64 = 24;

/// The state of a spending cap, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapForecast {
    /// Whose cap it is.
    pub pool: Pool,
    /// The period: a UTC day or month.
    pub window: Window,
    /// The cap in micro-dollars.
    pub most: u64,
    /// The used and reserved amount, in micro-dollars.
    pub used: u64,
    /// The end of the period, in milliseconds since 1970.
    pub ends_at_ms: i64,
    /// The expected use at its end, in micro-dollars; `None` while it is too early to say.
    pub expected: Option<u64>,
    /// The time at which the cap will be met, in milliseconds since 1970, if that is before the period ends.
    pub met_at_ms: Option<i64>,
}

/// Forecasts a cap on the money of a day or month; `None` for other limits.
#[must_use]
pub fn forecast_cap(level: &Level, now_ms: i64) -> Option<CapForecast> {
    let (Unit::MicroUsd, Some(ends_at_ms)) = (level.limit.unit, level.resets_at_ms) else {
        return None;
    };
    let period_begin_ms = match level.limit.window {
        Window::Day => ends_at_ms.saturating_sub(DAY_MS),
        Window::Month => begin_ms(month_start(day_of(ends_at_ms.saturating_sub(1)))),
        Window::Rolling { .. } | Window::Ever => return None,
    };
    let (used, most) = (level.used.saturating_add(level.held), level.limit.most);
    let length = ends_at_ms.saturating_sub(period_begin_ms).max(1);
    let elapsed = now_ms.saturating_sub(period_begin_ms).clamp(0, length);
    let is_early = elapsed < length / LEAST_ELAPSED_PARTS;
    let expected = (!is_early).then(|| scale_ratio(used, length, elapsed.max(1)));
    let is_met_later = used < most && expected.is_some_and(|expected| expected > most);
    let met_at_ms = is_met_later.then(|| {
        let begun = scale_ratio(elapsed.unsigned_abs(), i64::try_from(most).unwrap_or(i64::MAX), {
            i64::try_from(used).unwrap_or(i64::MAX).max(1)
        });
        period_begin_ms.saturating_add(i64::try_from(begun).unwrap_or(i64::MAX)).min(ends_at_ms)
    });
    let pool = Pool::parse(&level.pool)?;
    let window = level.limit.window;
    Some(CapForecast { pool, window, most, used, ends_at_ms, expected, met_at_ms })
}

/// `value · by / of`, at most [`u64::MAX`].
fn scale_ratio(value: u64, by: i64, of: i64) -> u64 {
    let product = u128::from(value) * u128::from(by.unsigned_abs());
    let scaled = product.checked_div(u128::from(of.unsigned_abs())).unwrap_or(u128::MAX);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use gnoma_core::ledger::Limit;
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 20_785;
    const HOUR_MS: i64 = 3_600_000;

    fn level(window: Window, used: u64, most: u64, ends_at_ms: i64) -> Level {
        let limit = Limit { unit: Unit::MicroUsd, window, most };
        Level { pool: "all".into(), limit, used, held: 0, resets_at_ms: Some(ends_at_ms) }
    }

    #[test]
    fn cap_forecast_extrapolates_spending_over_the_day() {
        let level = level(Window::Day, 3_000_000, 5_000_000, (DAY + 1) * DAY_MS);
        let cap = forecast_cap(&level, DAY * DAY_MS + 12 * HOUR_MS).unwrap();
        assert_eq!(cap.expected, Some(6_000_000));
        assert_eq!(cap.met_at_ms, Some(DAY * DAY_MS + 20 * HOUR_MS));
        let early = forecast_cap(&level, DAY * DAY_MS + HOUR_MS / 2).unwrap();
        assert_eq!((early.expected, early.met_at_ms), (None, None));
    }

    #[test]
    fn cap_forecast_uses_the_length_of_the_month() {
        // November 2026 begins with day 20,758 and has 30 days.
        let level = level(Window::Month, 10, 1_000, 20_788 * DAY_MS);
        let cap = forecast_cap(&level, 20_768 * DAY_MS).unwrap();
        assert_eq!((cap.expected, cap.met_at_ms), (Some(30), None));
    }

    #[test]
    fn rate_limits_and_session_caps_have_no_forecast() {
        let mut other = level(Window::Ever, 1, 2, DAY_MS);
        assert_eq!(forecast_cap(&other, 0), None);
        other.limit = Limit { unit: Unit::Requests, window: Window::Day, most: 9 };
        assert_eq!(forecast_cap(&other, 0), None);
    }

    proptest! {
        #[test]
        fn cap_forecast_is_sound_for_any_clock_and_amount(used: u64, most: u64, now_ms: i64) {
            let ends_at_ms = (DAY + 1) * DAY_MS;
            let cap = forecast_cap(&level(Window::Day, used, most, ends_at_ms), now_ms).unwrap();
            prop_assert!(cap.expected.is_none_or(|expected| expected >= used));
            prop_assert!(cap.met_at_ms.is_none_or(|at_ms| at_ms <= ends_at_ms));
        }
    }
}
