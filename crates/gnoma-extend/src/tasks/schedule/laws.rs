//! Laws of schedules over years of simulated time: clocks that sleep, jump and change with the seasons, and two servers
//! that look at the same schedule.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use super::{
    due::{NextRun, ScheduleProgress},
    record::ScheduleRecord,
    rule::ScheduleRule,
    schedule_parser::parse_every,
};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// All offsets of the zones and all times of the rules are multiples of it.
const GRID_MS: i64 = 15 * MINUTE_MS;
const DAYS: i64 = 1_000;
/// 2026-01-01.
const BEGIN_MS: i64 = 1_767_225_600_000;

/// A schedule that is due once, at this moment.
pub(super) fn record(at_ms: i64) -> ScheduleRecord {
    ScheduleRecord {
        version: ScheduleRecord::current_version(),
        id: 0,
        words: vec!["t".to_owned()],
        session: None,
        rule: ScheduleRule::Once { at_ms, at_limits: false },
        zone: "UTC".to_owned(),
        made_ms: 0,
        budget_micro_usd: 1,
        mode: None,
        folder: "/".into(),
        more_folders: Vec::new(),
        profile: None,
        provider: None,
        model: None,
        is_paused: false,
        progress: ScheduleProgress::default(),
        last: None,
    }
}

/// Numbers that look random and are the same in each run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: i64) -> i64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % end
    }
}

/// The first moment at which a clock of the zone shows each date and time, found by walking over it quarter by quarter.
fn clock_face(zone: &TimeZone) -> BTreeMap<DateTime, i64> {
    let mut first = BTreeMap::new();
    for at in 0..(DAYS + 60) * DAY_MS / GRID_MS {
        let at_ms = BEGIN_MS + at * GRID_MS;
        let local = zone.to_datetime(Timestamp::from_millisecond(at_ms).unwrap());
        first.entry(local).or_insert(at_ms);
    }
    first
}

/// The moments that a rule names.
fn moments(rule: ScheduleRule, zone: &TimeZone, first: &BTreeMap<DateTime, i64>) -> BTreeSet<i64> {
    let ScheduleRule::Days { days, hour, minute } = rule else {
        let ScheduleRule::Interval { minutes } = rule else { unreachable!() };
        let step = i64::from(minutes) * MINUTE_MS;
        return (1..=(DAYS + 60) * DAY_MS / step).map(|number| BEGIN_MS + number * step).collect();
    };
    let dates: BTreeSet<_> = first.keys().map(|local| local.date()).collect();
    let named = dates.into_iter().filter_map(|date| {
        let bit = date.weekday().to_monday_zero_offset();
        if days & 1 << bit == 0 {
            return None;
        }
        let wanted = date.at(hour, minute, 0, 0);
        // Where the clock is set forward over it: half an hour or an hour later.
        let gaps = [0, 30, 60].map(|minutes| wanted + jiff::Span::new().minutes(minutes));
        let step = usize::from(!is_half_hour_zone(zone)) + 1;
        let shown = if first.contains_key(&wanted) { wanted } else { gaps[step] };
        first.get(&shown).copied()
    });
    named.collect()
}

fn is_half_hour_zone(zone: &TimeZone) -> bool {
    let offset = |at_ms: i64| zone.to_offset(Timestamp::from_millisecond(at_ms).unwrap()).seconds();
    (offset(BEGIN_MS) - offset(BEGIN_MS + 180 * DAY_MS)).abs() == 1_800
}

/// How the clock goes on from one look to the next.
fn advance(now_ms: i64, chance: &mut Chance) -> i64 {
    match chance.below(60) {
        // It sleeps for hours or days.
        0..=7 => now_ms + chance.below(16 * HOUR_MS),
        8 => now_ms + chance.below(12 * DAY_MS),
        // It is corrected by seconds.
        9..=12 => now_ms - chance.below(5_000),
        // It is set back by hours or days, or forward and later back.
        13 => now_ms - chance.below(3 * HOUR_MS),
        14 if chance.below(4) == 0 => now_ms - chance.below(6 * DAY_MS),
        15 if chance.below(4) == 0 => now_ms + chance.below(40 * DAY_MS) - 36 * DAY_MS,
        _ => now_ms + chance.below(3 * HOUR_MS),
    }
}

/// Runs the simulation, and returns the number of runs.
fn simulate(
    rule: ScheduleRule,
    zone: &TimeZone,
    first: &BTreeMap<DateTime, i64>,
    seed: u64,
) -> usize {
    let moments = moments(rule, zone, first);
    let mut chance = Chance(seed);
    let mut now_ms = BEGIN_MS;
    let mut saved = ScheduleProgress::with_past_seen(rule, zone, BEGIN_MS, now_ms);
    let mut ran: BTreeSet<i64> = BTreeSet::new();
    let mut looked_ms = now_ms;
    while now_ms < BEGIN_MS + DAYS * DAY_MS {
        now_ms = advance(now_ms, &mut chance).max(BEGIN_MS);
        // The last moment since the last look is due, unless it ran before the clock was set back.
        let passed = (now_ms > looked_ms)
            .then(|| moments.range(looked_ms + 1..=now_ms).next_back().copied())
            .flatten();
        let expected = passed.filter(|moment| !ran.contains(moment));
        // Both servers look; each takes it from what is saved, one after the other.
        let looks = [0, 1].map(|_| saved.peek_next_run(rule, zone, BEGIN_MS, now_ms));
        let takes = looks.map(|look| match look {
            NextRun::Due { .. } => saved.advance_clock(rule, zone, BEGIN_MS, now_ms),
            NextRun::At(at_ms) => {
                assert!(at_ms > now_ms && moments.contains(&at_ms));
                saved.advance_clock(rule, zone, BEGIN_MS, now_ms)
            }
            NextRun::Over => unreachable!("it never ends"),
        });
        let due = takes.map(|take| match take {
            NextRun::Due { for_ms } => Some(for_ms),
            NextRun::At(_) | NextRun::Over => None,
        });
        assert_eq!(due[0], expected, "{rule} seed {seed}: from {looked_ms} to {now_ms}");
        assert_eq!(due[1], None, "the second server runs nothing");
        if let Some(for_ms) = due[0] {
            assert!(for_ms <= now_ms && ran.insert(for_ms), "{rule}: {for_ms} runs twice");
        }
        looked_ms = now_ms;
    }
    ran.len()
}

#[test]
fn each_due_run_begins_exactly_once_over_a_thousand_days() {
    let zones = [
        "UTC0",
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "<+0545>-5:45",
        "<-1200>12",
    ]
    .map(|name| TimeZone::posix(name).unwrap());
    let others = ["weekdays 9:00", "sunday 2:00", "fri-mon 0:00", "90m"];
    let mut seed = 1;
    for (zone, other) in zones.iter().zip(others.iter().cycle()) {
        let first = clock_face(zone);
        for rule in ["day 2:30", other] {
            let count = simulate(parse_every(rule).unwrap(), zone, &first, seed);
            assert!(count > 90, "{rule}: only {count} runs");
            seed += 1;
        }
    }
}

#[test]
fn daily_schedule_runs_every_day_across_daylight_saving_changes() {
    // Without sleeps, no day is left out and none has two, also where the clock is set forward or back.
    let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    let rule = parse_every("day 2:30").unwrap();
    let mut progress = ScheduleProgress::with_past_seen(rule, &zone, BEGIN_MS, BEGIN_MS);
    let looks = (0..365 * 24 * 2).map(|half| BEGIN_MS + half * HOUR_MS / 2);
    let due = looks.filter(|at| {
        matches!(progress.advance_clock(rule, &zone, BEGIN_MS, *at), NextRun::Due { .. })
    });
    assert_eq!(due.count(), 365);
}
