//! Where limits stand, in words for people and numbers for the router.

use gnoma_core::ledger::{Amount, Full, Level, Limit, Unit, Window};

use super::{
    names::Pool,
    rates::{DAY_MS, MINUTE_MS, SECOND_MS},
};
use crate::{
    arm::PoolId,
    clock::{date, day_of_date, time_of},
    scarcity::Budget,
};

const HOUR_MS: u64 = 60 * MINUTE_MS;

const MICRO: f64 = 1e6;

/// Why a call that takes `need` may not be made as the levels stand at `now_ms`; `None`: it may.
/// Judges as the ledger does, so that what is offered is also admitted, but for calls in between.
#[must_use]
pub fn refusal(levels: &[Level], need: &Amount, now_ms: i64) -> Option<String> {
    levels
        .iter()
        .filter(|level| {
            let need = need.of(level.limit.unit);
            let standing = level.used.saturating_add(level.held);
            need > 0 && standing.saturating_add(need) > level.limit.most
        })
        .max_by_key(|level| level.resets_at_ms.unwrap_or(i64::MAX))
        .map(|level| {
            let used = level.used.saturating_add(level.held);
            say(&level.pool, level.limit, used, level.resets_at_ms, now_ms)
        })
}

/// A ledger's refusal in words.
#[must_use]
pub fn words(full: &Full, now_ms: i64) -> String {
    say(&full.pool, full.limit, full.used, full.free_at_ms, now_ms)
}

/// `the day cap of $5.00 is used up ($5.01); it resets at 00:00 UTC`.
fn say(pool: &str, limit: Limit, used: u64, free_at_ms: Option<i64>, now_ms: i64) -> String {
    let name = limit_name(pool, limit);
    let stands = amount_of(limit.unit, used);
    let state = if used >= limit.most {
        format!("is used up ({stands})")
    } else {
        format!("has no room for this call ({stands} used or held)")
    };
    let next = match (free_at_ms, limit.window) {
        (_, Window::Ever) => match Pool::parse(pool) {
            Some(Pool::Turn(_)) => "raise `router.caps.turn` or go on in a new turn".to_owned(),
            Some(Pool::Session(_)) => {
                "raise `router.caps.session` or go on in a new session".to_owned()
            }
            Some(_) | None => "it does not reset".to_owned(),
        },
        (None, _) => "waiting does not help: the call is larger than the limit".to_owned(),
        (Some(at_ms), Window::Day | Window::Month) => {
            format!("it resets at {}", time_of(at_ms, now_ms))
        }
        (Some(at_ms), Window::Rolling { .. }) => {
            format!("there may be room at {}", time_of(at_ms, now_ms))
        }
    };
    format!("{name} {state}; {next}")
}

fn limit_name(pool: &str, limit: Limit) -> String {
    let most = amount_of(limit.unit, limit.most);
    let pool = Pool::parse(pool);
    let whose = match &pool {
        Some(Pool::Project(_)) => "this project's ".to_owned(),
        Some(pool @ (Pool::Rates(_) | Pool::Part(..) | Pool::Arm(_))) => {
            format!("{}'s ", pool.words())
        }
        Some(Pool::All) => "the ".to_owned(),
        Some(Pool::Turn(_)) => "the turn's ".to_owned(),
        Some(Pool::Session(_)) => "the session's ".to_owned(),
        None => String::new(),
    };
    if limit.unit != Unit::MicroUsd {
        return format!("{whose}limit of {most} {}", per(limit.window)).trim_end().to_owned();
    }
    match limit.window {
        Window::Day => format!("{whose}day cap of {most}"),
        Window::Month => format!("{whose}month cap of {most}"),
        Window::Ever => format!("{whose}cap of {most}"),
        Window::Rolling { .. } => format!("{whose}cap of {most} {}", per(limit.window)),
    }
}

/// `a minute`.
pub(super) fn per(window: Window) -> String {
    match window {
        Window::Rolling { ms: SECOND_MS } => "a second".to_owned(),
        Window::Rolling { ms: MINUTE_MS } => "a minute".to_owned(),
        Window::Rolling { ms: HOUR_MS } => "an hour".to_owned(),
        Window::Rolling { ms: DAY_MS } => "in 24 hours".to_owned(),
        Window::Rolling { ms } => format!("in {:.1} seconds", seconds(ms)),
        Window::Day => "a day".to_owned(),
        Window::Month => "a month".to_owned(),
        Window::Ever => String::new(),
    }
}

/// `$5.00` or `50 requests`.
pub(super) fn amount_of(unit: Unit, amount: u64) -> String {
    match unit {
        // Less than half a cent would read as nothing.
        Unit::MicroUsd if (1..10_000).contains(&amount) => format!("${:.4}", dollars(amount)),
        Unit::MicroUsd => format!("${:.2}", dollars(amount)),
        Unit::Requests | Unit::Input | Unit::Output | Unit::Tokens | Unit::Custom => {
            format!("{amount} {}", noun(unit))
        }
    }
}

pub(super) fn noun(unit: Unit) -> &'static str {
    match unit {
        Unit::Requests => "requests",
        Unit::Input => "prompt tokens",
        Unit::Output => "written tokens",
        Unit::Tokens => "tokens",
        Unit::MicroUsd => "dollars",
        Unit::Custom => "units",
    }
}

/// What the router needs to share out a day's or month's money; `None` for other limits. `tasks` is
/// how many the window usually sees.
#[must_use]
pub fn budget(level: &Level, now_ms: i64, tasks: f64) -> Option<(PoolId, Budget)> {
    if level.limit.unit != Unit::MicroUsd {
        return None;
    }
    let length_ms = window_ms(level.limit.window, now_ms)?;
    let left_ms = level.resets_at_ms?.saturating_sub(now_ms).max(0);
    let used = level.used.saturating_add(level.held);
    let budget = Budget {
        cap: dollars(level.limit.most),
        left: dollars(level.limit.most.saturating_sub(used)),
        to_come: (ratio(left_ms) / ratio(length_ms)).clamp(0.0, 1.0),
        tasks,
    };
    Some((level.pool.as_str().into(), budget))
}

/// How long the calendar window is that `now_ms` is in.
fn window_ms(window: Window, now_ms: i64) -> Option<i64> {
    const DAY: i64 = 86_400_000;
    match window {
        Window::Day => Some(DAY),
        Window::Month => {
            let (year, month, _) = date(now_ms.div_euclid(DAY));
            let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
            let days = day_of_date(next_year, next, 1) - day_of_date(year, month, 1);
            Some(days * DAY)
        }
        Window::Rolling { .. } | Window::Ever => None,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share of a window, to be weighed and not counted"
)]
fn ratio(ms: i64) -> f64 {
    ms as f64
}

#[expect(clippy::cast_precision_loss, reason = "for people and for weighing, not for counting")]
fn dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / MICRO
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW_MS: i64 = 1_800_014_400_000;
    const MIDNIGHT_MS: i64 = 1_800_057_600_000;

    fn level(pool: &Pool, unit: Unit, window: Window, most: u64, used: u64) -> Level {
        Level {
            pool: pool.to_string(),
            limit: Limit { unit, window, most },
            used,
            held: 0,
            resets_at_ms: Some(MIDNIGHT_MS),
        }
    }

    #[test]
    fn refusals_read_well() {
        let need = Amount { requests: 1, micro_usd: 40_000, ..Amount::default() };
        let day = level(&Pool::All, Unit::MicroUsd, Window::Day, 5_000_000, 5_010_000);
        assert_eq!(
            refusal(&[day], &need, NOW_MS).unwrap(),
            "the day cap of $5.00 is used up ($5.01); it resets at 00:00 UTC"
        );
        let rates = Pool::Rates("anthropic".into());
        let mut minute = level(&rates, Unit::Requests, Window::Rolling { ms: MINUTE_MS }, 50, 50);
        minute.resets_at_ms = Some(NOW_MS + 12_345);
        assert_eq!(
            refusal(&[minute], &need, NOW_MS).unwrap(),
            "anthropic's limit of 50 requests a minute is used up (50 requests); there may be room \
             at 12:00:13 UTC"
        );
        let mut session =
            level(&Pool::Session("s".into()), Unit::MicroUsd, Window::Ever, 50_000, 20_000);
        session.resets_at_ms = None;
        assert_eq!(
            refusal(&[session], &need, NOW_MS).unwrap(),
            "the session's cap of $0.05 has no room for this call ($0.02 used or held); raise \
             `router.caps.session` or go on in a new session"
        );
        let free = Amount { requests: 1, ..Amount::default() };
        let over = level(&Pool::All, Unit::MicroUsd, Window::Day, 1, 2);
        assert_eq!(refusal(&[over], &free, NOW_MS), None, "what is free may go on");
    }

    #[test]
    fn a_budget_shrinks_with_the_day() {
        let day = level(&Pool::All, Unit::MicroUsd, Window::Day, 6_000_000, 1_500_000);
        let (pool, budget) = budget(&day, NOW_MS, 12.0).unwrap();
        assert_eq!(&*pool, "all");
        assert_eq!(budget, Budget { cap: 6.0, left: 4.5, to_come: 0.5, tasks: 12.0 });
    }

    proptest! {
        #[test]
        fn budgets_are_sound_whatever_the_clock(
            now in -4_000_000_000_000_i64..8_000_000_000_000,
            reset in proptest::option::of(any::<i64>()),
            most: u64, used: u64, held: u64,
        ) {
            for window in [Window::Day, Window::Month] {
                let mut level = level(&Pool::All, Unit::MicroUsd, window, most, used);
                (level.held, level.resets_at_ms) = (held, reset);
                if let Some((_, budget)) = budget(&level, now, 10.0) {
                    prop_assert!((0.0..=1.0).contains(&budget.to_come));
                    prop_assert!(budget.left >= 0.0 && budget.left <= budget.cap);
                }
            }
        }
    }
}
