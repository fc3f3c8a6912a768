//! Where limits stand, in words for people and numbers for the router.

use gnoma_core::ledger::{Amount, ExhaustedLimit, Level, Limit, PoolDraw, Unit, Window};
use jiff::tz::TimeZone;

use super::{
    names::Pool,
    rates::{DAY_MS, MINUTE_MS, SECOND_MS},
};
use crate::{
    arm::PoolId,
    clock::{Zone, time_of, timestamp_from_ms},
    scarcity::PoolBudget,
};

const HOUR_MS: u64 = 60 * MINUTE_MS;

/// Milliseconds of a day, as times are counted.
const DAY_LENGTH_MS: i64 = 86_400_000;

const MICRO: f64 = 1e6;
/// Micro-dollars of a cent.
const CENT: u64 = 10_000;

/// With more than this share free, a limit that soon lets go is not pressing.
const EASY_SHARE: f64 = 0.3;
/// A full limit makes calls no dearer than this: it bars them.
const MOST_CROWDING: f64 = 100.0;

/// Share of a month's days that people work on.
const WORKING_DAYS: f64 = 5.0 / 7.0;

/// Returns why a call that takes `need` may not be made as the levels stand at `now_ms`; `None` if it may. Judges
/// as the ledger does, so that what is offered is also admitted, but for calls in between.
#[must_use]
pub fn refusal_reason(levels: &[Level], need: &Amount, now_ms: i64, zone: Zone) -> Option<String> {
    levels
        .iter()
        .filter(|level| {
            let need = need.in_unit(level.limit.unit);
            let standing = level.used.saturating_add(level.held);
            need > 0 && standing.saturating_add(need) > level.limit.most
        })
        .max_by_key(|level| level.resets_at_ms.unwrap_or(i64::MAX))
        .map(|level| {
            let used = level.used.saturating_add(level.held);
            let full = ExhaustedLimit {
                pool: level.pool.clone(),
                limit: level.limit,
                used,
                free_at_ms: level.resets_at_ms,
            };
            describe_refusal(&full, need.in_unit(level.limit.unit), (now_ms, zone), false)
        })
}

/// `the day cap of $5.00 is used up ($5.01); it resets at 00:00 your time`.
/// `is_budget`: a cap of this amount on the session is the budget of a scheduled run.
pub(super) fn describe_refusal(
    full: &ExhaustedLimit,
    need: u64,
    (now_ms, zone): (i64, Zone),
    is_budget: bool,
) -> String {
    let ExhaustedLimit { pool, limit, used, .. } = full;
    let name = limit_name(pool, *limit);
    if limit.most == 0 && limit.unit == Unit::MicroUsd {
        let setting = cap_setting(pool, limit.window);
        let setting = setting.map_or_else(String::new, |setting| format!(" ({setting})"));
        return format!(
            "{name}{setting} allows only models that cost nothing; raise it, or choose such a model"
        );
    }
    let stands = amount_of(limit.unit, *used);
    let state = if *used >= limit.most {
        format!("is used up ({stands})")
    } else {
        let needs = amount_of(limit.unit, need);
        format!("has no room for this call, which needs about {needs} ({stands} used or held)")
    };
    format!("{name} {state}; {}", describe_way_out(full, need, (now_ms, zone), is_budget))
}

/// Describes when a full limit has room again, or how to raise it.
fn describe_way_out(
    full: &ExhaustedLimit,
    need: u64,
    (now_ms, zone): (i64, Zone),
    is_budget: bool,
) -> String {
    let ExhaustedLimit { pool, limit, used, free_at_ms } = full;
    let cap = cap_for(used.saturating_add(need));
    // Only caps of money can be raised.
    let is_money = limit.unit == Unit::MicroUsd;
    let advice = if is_money { format!("a cap of {cap} or more would do") } else { String::new() };
    match (free_at_ms, limit.window) {
        (_, Window::Ever) => match Pool::parse(pool) {
            Some(Pool::Turn(_)) => {
                format!("raise `router.caps.turn` to {cap} or more, or continue in a new turn")
            }
            // No setting raises it, and a schedule is not edited.
            Some(Pool::Session(_)) if is_budget => format!(
                "it is the budget of this run: delete its schedule and make it again with `--budget {}` or more",
                cap.trim_start_matches('$')
            ),
            Some(Pool::Session(_)) => format!(
                "raise `router.caps.session` to {cap} or more, or continue in a new session"
            ),
            Some(_) | None => "it does not reset".to_owned(),
        },
        (None, _) => {
            let gap = if advice.is_empty() { "" } else { "; " };
            format!("waiting does not help: the call is larger than the limit{gap}{advice}")
        }
        (Some(at_ms), Window::Day | Window::Month) => {
            // The days of caps are those of UTC, and the time is the reader's.
            let time = time_of(*at_ms, now_ms, zone);
            let gap = if advice.is_empty() { "" } else { ", and " };
            format!("it resets at {time} your time{gap}{advice}")
        }
        (Some(at_ms), Window::Rolling { .. }) => {
            format!("there may be room at {}", time_of(*at_ms, now_ms, zone))
        }
    }
}

/// Describes how full a limit is: `the day cap of $5.00 is 84 % used ($4.20); it resets at 00:00 your time`.
#[must_use]
pub fn describe_level(level: &Level, now_ms: i64, zone: Zone) -> String {
    let Level { pool, limit, used, resets_at_ms, .. } = level;
    let percent = u128::from(*used) * 100 / u128::from(limit.most.max(1));
    let resets = resets_at_ms.map_or_else(String::new, |at_ms| {
        format!("; it resets at {} your time", time_of(at_ms, now_ms, zone))
    });
    let (name, amount) = (limit_name(pool, *limit), amount_of(limit.unit, *used));
    format!("{name} is {percent} % used ({amount}){resets}")
}

/// A cap that has room for so much, in whole cents.
fn cap_for(micro_usd: u64) -> String {
    amount_of(Unit::MicroUsd, micro_usd.div_ceil(CENT).saturating_mul(CENT))
}

/// The setting that sets a cap; `None` for limits of providers.
fn cap_setting(pool: &str, window: Window) -> Option<&'static str> {
    match (Pool::parse(pool)?, window) {
        (Pool::All, Window::Day) => Some("router.caps.day"),
        (Pool::All, Window::Month) => Some("router.caps.month"),
        (Pool::Project(_), Window::Day) => Some("router.caps.project_day"),
        (Pool::Project(_), Window::Month) => Some("router.caps.project_month"),
        (Pool::Session(_), _) => Some("router.caps.session"),
        (Pool::Turn(_), _) => Some("router.caps.turn"),
        _ => None,
    }
}

/// A limit as it was set: `$0.00001` stays so.
fn limit_amount(unit: Unit, most: u64) -> String {
    /// Amounts in dollars are shown with four digits; this is one of the last.
    const SHOWN_MICRO_USD: u64 = 100;
    if unit != Unit::MicroUsd || most.is_multiple_of(SHOWN_MICRO_USD) {
        return amount_of(unit, most);
    }
    format!("${:.6}", to_dollars(most)).trim_end_matches('0').to_owned()
}

fn limit_name(pool: &str, limit: Limit) -> String {
    let most = limit_amount(limit.unit, limit.most);
    let pool = Pool::parse(pool);
    let whose = match &pool {
        Some(Pool::Project(_)) => "this project's ".to_owned(),
        Some(pool @ (Pool::Rates(_) | Pool::Part(..) | Pool::Arm(_))) => {
            format!("{}'s ", pool.display_name())
        }
        Some(Pool::All) => "the ".to_owned(),
        Some(Pool::Turn(_)) => "the turn's ".to_owned(),
        Some(Pool::Session(_)) => "the session's ".to_owned(),
        None => String::new(),
    };
    if limit.unit != Unit::MicroUsd {
        return format!("{whose}limit of {most} {}", per_window(limit.window))
            .trim_end()
            .to_owned();
    }
    match limit.window {
        Window::Day => format!("{whose}day cap of {most}"),
        Window::Month => format!("{whose}month cap of {most}"),
        Window::Ever => format!("{whose}cap of {most}"),
        Window::Rolling { .. } => format!("{whose}cap of {most} {}", per_window(limit.window)),
    }
}

/// Returns the words for a window, such as `a minute`.
pub(super) fn per_window(window: Window) -> String {
    match window {
        Window::Rolling { ms: SECOND_MS } => "a second".to_owned(),
        Window::Rolling { ms: MINUTE_MS } => "a minute".to_owned(),
        Window::Rolling { ms: HOUR_MS } => "an hour".to_owned(),
        Window::Rolling { ms: DAY_MS } => "in 24 hours".to_owned(),
        Window::Rolling { ms } => format!("in {:.1} seconds", to_seconds(ms)),
        Window::Day => "a day".to_owned(),
        Window::Month => "a month".to_owned(),
        Window::Ever => String::new(),
    }
}

/// `$5.00` or `50 requests`.
pub(super) fn amount_of(unit: Unit, amount: u64) -> String {
    match unit {
        // Less than half a cent would read as nothing.
        Unit::MicroUsd if (1..10_000).contains(&amount) => format!("${:.4}", to_dollars(amount)),
        Unit::MicroUsd => format!("${:.2}", to_dollars(amount)),
        Unit::Requests if amount == 1 => "1 request".to_owned(),
        Unit::Requests
        | Unit::Input
        | Unit::Output
        | Unit::Tokens
        | Unit::AllInput
        | Unit::AllTokens => {
            format!("{amount} {}", unit_noun(unit))
        }
    }
}

pub(super) fn unit_noun(unit: Unit) -> &'static str {
    match unit {
        Unit::Requests => "requests",
        Unit::Input | Unit::AllInput => "prompt tokens",
        Unit::Output => "output tokens",
        Unit::Tokens | Unit::AllTokens => "tokens",
        Unit::MicroUsd => "dollars",
    }
}

/// The days' and months' money that calls with these draws take from.
pub fn budget_pools(draws: &[PoolDraw]) -> impl Iterator<Item = PoolId> {
    let of = |draw: &PoolDraw| {
        draw.limits.iter().filter_map(|limit| budget_name(&draw.pool, limit)).collect::<Vec<_>>()
    };
    draws.iter().flat_map(of)
}

/// A pool may have a day's and a month's money: each is shared out by itself.
fn budget_name(pool: &str, limit: &Limit) -> Option<PoolId> {
    let window = match limit.window {
        Window::Day => "day",
        Window::Month => "month",
        Window::Rolling { .. } | Window::Ever => return None,
    };
    (limit.unit == Unit::MicroUsd).then(|| format!("{pool}/{window}").into())
}

/// Returns what the router needs to share out a day's or month's money; `None` for other limits. `tasks_a_day` is
/// how many a working day usually sees.
#[must_use]
pub fn pool_budget(level: &Level, now_ms: i64, tasks_a_day: f64) -> Option<(PoolId, PoolBudget)> {
    let name = budget_name(&level.pool, &level.limit)?;
    let length_ms = window_ms(level.limit.window, now_ms)?;
    let days = ms_to_float(length_ms) / ms_to_float(DAY_LENGTH_MS);
    let left_ms = level.resets_at_ms?.saturating_sub(now_ms).max(0);
    let used = level.used.saturating_add(level.held);
    let budget = PoolBudget {
        cap: to_dollars(level.limit.most),
        left: to_dollars(level.limit.most.saturating_sub(used)),
        to_come: (ms_to_float(left_ms) / ms_to_float(length_ms)).clamp(0.0, 1.0),
        tasks: tasks_a_day * (days * WORKING_DAYS).max(1.0),
    };
    Some((name, budget))
}

/// Returns the factor by which calls are dearer while little is left of these limits of requests and tokens: one
/// over a power of the free share, halved for a limit that soon lets go and has some room. 1 while there is plenty.
///
/// So a scarce arm is left to what it is worth most for before its limit bars it. Money has
/// [`pool_budget`]; what comes back within seconds is waited for.
pub fn crowding_factor<'a>(levels: impl Iterator<Item = &'a Level>) -> f64 {
    levels.filter_map(crowding_of).fold(1.0, f64::max)
}

fn crowding_of(level: &Level) -> Option<f64> {
    let power = match (level.limit.unit, level.limit.window) {
        (Unit::MicroUsd, _) | (_, Window::Ever) => return None,
        (_, Window::Rolling { ms }) if ms < MINUTE_MS => return None,
        (Unit::Output, _) => 3,
        (_, Window::Month) => 4,
        _ => 2,
    };
    let used = level.used.saturating_add(level.held).min(level.limit.most);
    let free = 1.0 - used as f64 / (level.limit.most.max(1)) as f64;
    let soon = matches!(level.limit.window, Window::Rolling { ms } if ms <= HOUR_MS);
    let eased = if soon && free > EASY_SHARE { 0.5 } else { 1.0 };
    Some((eased / free.max(f64::MIN_POSITIVE).powi(power)).clamp(1.0, MOST_CROWDING))
}

/// Returns the length of the calendar window that `now_ms` is in, in milliseconds.
fn window_ms(window: Window, now_ms: i64) -> Option<i64> {
    match window {
        Window::Day => Some(DAY_LENGTH_MS),
        Window::Month => {
            let today = TimeZone::UTC.to_datetime(timestamp_from_ms(now_ms)).date();
            Some(i64::from(today.days_in_month()) * DAY_LENGTH_MS)
        }
        Window::Rolling { .. } | Window::Ever => None,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share of a window, to be weighed and not counted"
)]
fn ms_to_float(ms: i64) -> f64 {
    ms as f64
}

#[expect(clippy::cast_precision_loss, reason = "for people and for weighing, not for counting")]
fn to_dollars(micro_usd: u64) -> f64 {
    micro_usd as f64 / MICRO
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn to_seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UTC: Zone = || jiff::tz::TimeZone::UTC;

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
    fn exhausted_cap_message_names_the_cap_its_use_and_its_reset() {
        let need = Amount { requests: 1, micro_usd: 40_000, ..Amount::default() };
        let day = level(&Pool::All, Unit::MicroUsd, Window::Day, 5_000_000, 5_010_000);
        assert_eq!(
            refusal_reason(&[day], &need, NOW_MS, UTC).unwrap(),
            "the day cap of $5.00 is used up ($5.01); it resets at 00:00 your time, and a cap of \
             $5.05 or more would do"
        );
        let none = level(&Pool::All, Unit::MicroUsd, Window::Day, 0, 0);
        assert_eq!(
            refusal_reason(&[none], &need, NOW_MS, UTC).unwrap(),
            "the day cap of $0.00 (router.caps.day) allows only models that cost nothing; raise it, or \
             choose such a model"
        );
        let tiny = level(&Pool::All, Unit::MicroUsd, Window::Day, 10, 10);
        let said = refusal_reason(&[tiny], &need, NOW_MS, UTC).unwrap();
        assert!(said.starts_with("the day cap of $0.00001 is used up"), "{said}");
        let rates = Pool::Rates("anthropic".into());
        let mut minute = level(&rates, Unit::Requests, Window::Rolling { ms: MINUTE_MS }, 50, 50);
        minute.resets_at_ms = Some(NOW_MS + 12_345);
        assert_eq!(
            refusal_reason(&[minute], &need, NOW_MS, UTC).unwrap(),
            "anthropic's limit of 50 requests a minute is used up (50 requests); there may be room \
             at 12:00:13"
        );
        let mut session =
            level(&Pool::Session("s".into()), Unit::MicroUsd, Window::Ever, 50_000, 20_000);
        session.resets_at_ms = None;
        assert_eq!(
            refusal_reason(&[session], &need, NOW_MS, UTC).unwrap(),
            "the session's cap of $0.05 has no room for this call, which needs about $0.04 \
             ($0.02 used or held); raise `router.caps.session` to $0.06 or more, or continue in \
             a new session"
        );
        let full = ExhaustedLimit {
            pool: Pool::Session("s".into()).to_string(),
            limit: Limit { unit: Unit::MicroUsd, window: Window::Ever, most: 50_000 },
            used: 20_000,
            free_at_ms: None,
        };
        let units = need.in_unit(Unit::MicroUsd);
        let told = describe_refusal(&full, units, (NOW_MS, UTC), true);
        assert!(told.ends_with("make it again with `--budget 0.06` or more"), "{told}");
        let mut small = level(&Pool::All, Unit::MicroUsd, Window::Day, 10_000, 0);
        small.resets_at_ms = None;
        assert_eq!(
            refusal_reason(&[small], &need, NOW_MS, UTC).unwrap(),
            "the day cap of $0.01 has no room for this call, which needs about $0.04 ($0.00 used or \
             held); waiting does not help: the call is larger than the limit; a cap of $0.04 or more \
             would do"
        );
        let free = Amount { requests: 1, ..Amount::default() };
        let over = level(&Pool::All, Unit::MicroUsd, Window::Day, 1, 2);
        assert_eq!(refusal_reason(&[over], &free, NOW_MS, UTC), None, "what is free may go on");
    }

    #[test]
    fn nearly_full_rate_limit_raises_the_routing_cost_before_it_bars() {
        let minute = Window::Rolling { ms: MINUTE_MS };
        let at = |unit, window, used| {
            crowding_factor([level(&Pool::All, unit, window, 100, used)].iter())
        };
        let requests = |used| at(Unit::Requests, minute, used);
        assert_eq!([0, 20, 50, 100].map(requests), [1.0, 1.0, 2.0, 100.0]);
        assert!(requests(80) > 24.0 && requests(80) < 26.0, "{}", requests(80));
        assert!(at(Unit::Output, minute, 80) > requests(80));
        assert_eq!(at(Unit::Requests, Window::Day, 50), 4.0, "it does not come back soon");
        assert_eq!(at(Unit::MicroUsd, Window::Day, 99), 1.0, "budgets have their own price");
        assert_eq!(at(Unit::Requests, Window::Rolling { ms: SECOND_MS }, 99), 1.0);
        assert_eq!(crowding_factor([].iter()), 1.0);
    }

    #[test]
    fn a_budget_shrinks_with_the_day() {
        let day = level(&Pool::All, Unit::MicroUsd, Window::Day, 6_000_000, 1_500_000);
        let (pool, budget) = pool_budget(&day, NOW_MS, 12.0).unwrap();
        assert_eq!(&*pool, "all/day");
        assert_eq!(budget, PoolBudget { cap: 6.0, left: 4.5, to_come: 0.5, tasks: 12.0 });
    }

    #[test]
    fn monthly_budget_is_spread_over_more_tasks_than_the_daily_one() {
        let both = [Window::Day, Window::Month].map(|window| {
            let level = level(&Pool::All, Unit::MicroUsd, window, 6_000_000, 0);
            pool_budget(&level, NOW_MS, 12.0).unwrap()
        });
        let draw = PoolDraw {
            pool: "all".into(),
            limits: [Window::Day, Window::Month, Window::Ever]
                .map(|window| Limit { unit: Unit::MicroUsd, window, most: 6_000_000 })
                .into(),
        };
        let names: Vec<PoolId> = both.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(budget_pools(&[draw]).collect::<Vec<_>>(), names);
        assert_ne!(names[0], names[1]);
        // January has 31 days.
        assert!((both[1].1.tasks - 12.0 * 31.0 * 5.0 / 7.0).abs() < 1e-9, "{both:?}");
    }

    proptest! {
        #[test]
        fn pool_budget_stays_in_range_for_any_clock(
            now in -4_000_000_000_000_i64..8_000_000_000_000,
            reset in proptest::option::of(any::<i64>()),
            most: u64, used: u64, held: u64,
        ) {
            for window in [Window::Day, Window::Month] {
                let mut level = level(&Pool::All, Unit::MicroUsd, window, most, used);
                (level.held, level.resets_at_ms) = (held, reset);
                if let Some((_, budget)) = pool_budget(&level, now, 10.0) {
                    prop_assert!((0.0..=1.0).contains(&budget.to_come));
                    prop_assert!(budget.left >= 0.0 && budget.left <= budget.cap);
                }
            }
        }
    }
}
