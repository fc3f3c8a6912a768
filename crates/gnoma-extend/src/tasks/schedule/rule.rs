//! Rules of schedules: `every weekday at 9:00` and the like, as a numbered series of times. They are numbered, so that
//! whether one has passed or ran does not depend on how a clock or the rules of a time zone change.

use std::fmt;

use jiff::{
    Timestamp, ToSpan as _,
    civil::{Date, date},
    tz::TimeZone,
};
use serde::{Deserialize, Serialize};

/// Milliseconds of a minute.
const MINUTE_MS: i64 = 60_000;
/// Days that are looked at for the next or the last time: a week, and room for a date line that moves.
const MAX_DAYS: i32 = 9;
/// Names of days in the order of the bits of [`ScheduleRule::Days`].
pub(super) const DAY_NAMES: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
/// Bits of all days, of those from Monday to Friday, and of the other two.
pub(super) const ALL_DAYS: u8 = 0b111_1111;
pub(super) const WEEKDAYS: u8 = 0b001_1111;
pub(super) const WEEKENDS: u8 = 0b110_0000;

/// The times that a schedule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleRule {
    /// A time of the clock on some days of the week, in the schedule's zone. Where the clock is set forward over it, it
    /// is later by as much; where it occurs twice, it is the first.
    Days {
        /// A bit for each day, Monday first.
        days: u8,
        /// The hour, 0 to 23.
        hour: i8,
        /// The minute, 0 to 59.
        minute: i8,
    },
    /// Again and again after so many minutes, from when the schedule was made.
    Interval {
        /// The minutes, from 1.
        minutes: u32,
    },
    /// A single run at one moment.
    Once {
        /// The moment, in milliseconds since 1970.
        at_ms: i64,
        /// `true` if the moment is the one when the limits of models reset.
        at_limits: bool,
    },
}

/// A time that a rule names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Occurrence {
    /// The number of the occurrence: higher for later ones, and the same whatever a clock or a zone does.
    pub number: i64,
    /// The moment, in milliseconds since 1970.
    pub at_ms: i64,
}

impl ScheduleRule {
    /// Returns the last time at or before a moment.
    pub(super) fn last_occurrence(
        self,
        zone: &TimeZone,
        made_ms: i64,
        now_ms: i64,
    ) -> Option<Occurrence> {
        match self {
            Self::Days { .. } => {
                // One day more: the date of a zone may be ahead of the time that it names.
                let days = (-1..MAX_DAYS).map(|back| self.on_day(zone, now_ms, -back));
                days.flatten().find(|it| it.at_ms <= now_ms)
            }
            Self::Interval { minutes } => {
                let step = i64::from(minutes).max(1) * MINUTE_MS;
                let number = now_ms.saturating_sub(made_ms).div_euclid(step);
                let at_ms = made_ms.saturating_add(number.saturating_mul(step));
                Some(Occurrence { number, at_ms }).filter(|it| it.number > 0)
            }
            Self::Once { at_ms, .. } => {
                Some(Occurrence { number: 0, at_ms }).filter(|it| it.at_ms <= now_ms)
            }
        }
    }

    /// Returns the first time after a moment.
    pub(super) fn next(self, zone: &TimeZone, made_ms: i64, now_ms: i64) -> Option<Occurrence> {
        match self {
            Self::Days { .. } => {
                let days = (-1..MAX_DAYS).map(|ahead| self.on_day(zone, now_ms, ahead));
                days.flatten().find(|it| it.at_ms > now_ms)
            }
            Self::Interval { minutes } => {
                let step = i64::from(minutes).max(1) * MINUTE_MS;
                let last = now_ms.saturating_sub(made_ms).div_euclid(step).max(0);
                let number = last.saturating_add(1);
                Some(Occurrence {
                    number,
                    at_ms: made_ms.saturating_add(number.saturating_mul(step)),
                })
            }
            Self::Once { at_ms, .. } => {
                Some(Occurrence { number: 0, at_ms }).filter(|it| it.at_ms > now_ms)
            }
        }
    }

    /// Returns the time of a rule with days on the day that is `ahead` of that of a moment, if the rule names that day.
    fn on_day(self, zone: &TimeZone, now_ms: i64, ahead: i32) -> Option<Occurrence> {
        let Self::Days { days, hour, minute } = self else { return None };
        let today = zone.to_datetime(to_timestamp(now_ms)).date();
        let day = today.checked_add(ahead.days()).ok()?;
        let bit = u32::try_from(day.weekday().to_monday_zero_offset()).ok()?;
        if days & 1_u8.checked_shl(bit)? == 0 {
            return None;
        }
        let at = zone.to_timestamp(day.at(hour, minute, 0, 0)).ok()?;
        Some(Occurrence { number: day_number(day)?, at_ms: at.as_millisecond() })
    }
}

/// Returns the days from 1970-01-01 to a date.
fn day_number(day: Date) -> Option<i64> {
    let span = date(1970, 1, 1).until(day).ok()?;
    Some(i64::from(span.get_days()))
}

fn to_timestamp(at_ms: i64) -> Timestamp {
    let end = if at_ms < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(at_ms).unwrap_or(end)
}

/// Returns a time zone by its name (`Europe/Vienna`, `UTC`); without a name, the system's.
#[must_use]
pub fn zone_named(name: &str) -> Option<TimeZone> {
    match name {
        "" => Some(TimeZone::system()),
        "UTC" => Some(TimeZone::UTC),
        name => TimeZone::get(name).ok(),
    }
}

/// Writes the rule as it can be typed: `every weekdays 09:00`.
impl fmt::Display for ScheduleRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Days { days, hour, minute } => {
                let names = match days {
                    ALL_DAYS => "day".to_owned(),
                    WEEKDAYS => "weekdays".to_owned(),
                    WEEKENDS => "weekends".to_owned(),
                    days => {
                        let all = (0_u8..).zip(DAY_NAMES);
                        let named = all.filter(|(bit, _)| days & (1 << bit) != 0);
                        named.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
                    }
                };
                write!(f, "every {names} {hour:02}:{minute:02}")
            }
            Self::Interval { minutes } if minutes % 60 == 0 => write!(f, "every {}h", minutes / 60),
            Self::Interval { minutes } => write!(f, "every {minutes}m"),
            Self::Once { at_limits: true, .. } => f.write_str("when limits reset"),
            Self::Once { at_limits: false, .. } => f.write_str("once"),
        }
    }
}
