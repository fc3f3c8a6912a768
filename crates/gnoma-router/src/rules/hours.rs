//! Times of the week at which a rule holds. What time it is comes in.

use serde::{Deserialize, Serialize};

/// Minutes of an hour.
const MINUTES_PER_HOUR: u16 = 60;
/// Minutes of a day.
pub const MINUTES_PER_DAY: u16 = 24 * MINUTES_PER_HOUR;

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

impl Day {
    /// All days, beginning with Monday.
    pub const ALL: [Self; 7] =
        [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    /// Returns the name of this day in rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Mon => "mon",
            Self::Tue => "tue",
            Self::Wed => "wed",
            Self::Thu => "thu",
            Self::Fri => "fri",
            Self::Sat => "sat",
            Self::Sun => "sun",
        }
    }

    /// Returns the day of this name, if there is one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|day| day.name() == name)
    }

    /// Returns the day before.
    #[must_use]
    pub fn previous_day(self) -> Self {
        match self {
            Self::Mon => Self::Sun,
            Self::Tue => Self::Mon,
            Self::Wed => Self::Tue,
            Self::Thu => Self::Wed,
            Self::Fri => Self::Thu,
            Self::Sat => Self::Fri,
            Self::Sun => Self::Sat,
        }
    }
}

/// The local day and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    /// The day of the week.
    pub day: Day,
    /// Minutes since midnight.
    pub minute: u16,
}

/// A span of each of some days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hours {
    /// Minutes since midnight at which it begins.
    pub from: u16,
    /// Minutes since midnight before which it ends. Not after `from`: it ends on the next day; equal: it lasts a day.
    pub to: u16,
    /// Days on which it begins; none: every day.
    #[serde(default)]
    pub days: Vec<Day>,
}

impl Hours {
    /// Reads hours such as `09:00-17:00`, of every day; `24:00` is an end only. Hours that end before they begin go over
    /// midnight.
    #[must_use]
    pub fn parse_range(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let hours = Self { from: parse_minute(from)?, to: parse_minute(to)?, days: Vec::new() };
        (hours.from < MINUTES_PER_DAY && hours.from != hours.to).then_some(hours)
    }

    /// Reports whether a time lies in these hours.
    #[must_use]
    pub fn contains_time(&self, time: LocalTime) -> bool {
        let begins_on = |day: Day| self.days.is_empty() || self.days.contains(&day);
        let today = time.minute >= self.from && (self.to <= self.from || time.minute < self.to);
        let since_yesterday = self.to <= self.from && time.minute < self.to;
        (today && begins_on(time.day)) || (since_yesterday && begins_on(time.day.previous_day()))
    }
}

/// The minute of the day that `09:30` means.
fn parse_minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let number = |digits: &str| {
        let is_short = digits.len() <= 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits.parse::<u16>().ok().filter(|_| is_short)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minute = hours * MINUTES_PER_HOUR + minutes;
    (minutes < MINUTES_PER_HOUR && minute <= MINUTES_PER_DAY).then_some(minute)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(day: Day, hour: u16) -> LocalTime {
        LocalTime { day, minute: hour * 60 }
    }

    #[test]
    fn routing_rule_hours_past_midnight_belong_to_the_starting_day() {
        let friday_night = Hours { from: 22 * 60, to: 6 * 60, days: vec![Day::Fri] };
        assert!(friday_night.contains_time(at(Day::Fri, 23)));
        assert!(friday_night.contains_time(at(Day::Sat, 5)));
        assert!(!friday_night.contains_time(at(Day::Fri, 5)));
        assert!(!friday_night.contains_time(at(Day::Sat, 23)));
        assert!(!friday_night.contains_time(at(Day::Sat, 6)));
    }

    #[test]
    fn hours_that_are_read_may_go_over_midnight() {
        let hours = |from, to| Some(Hours { from, to, days: Vec::new() });
        assert_eq!(Hours::parse_range("22:00-06:30"), hours(22 * 60, 6 * 60 + 30));
        assert_eq!(Hours::parse_range("9:00 - 24:00"), hours(9 * 60, MINUTES_PER_DAY));
        for wrong in ["9-17", "09:00", "09:00-09:00", "24:00-06:00", "08:60-10:00", "+8:00-9:00"] {
            assert_eq!(Hours::parse_range(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn hours_that_are_read_keep_their_bounds(text in "[0-9:+ -]{0,12}|\\PC{0,12}") {
            if let Some(Hours { from, to, .. }) = Hours::parse_range(&text) {
                prop_assert!(from < MINUTES_PER_DAY && to <= MINUTES_PER_DAY && from != to);
            }
        }

        #[test]
        fn routing_rule_hours_and_their_complement_cover_the_week(from in 0..MINUTES_PER_DAY, to in 0..MINUTES_PER_DAY, day in 0_usize..7, minute in 0..MINUTES_PER_DAY) {
            prop_assume!(from != to);
            let time = LocalTime { day: Day::ALL[day], minute };
            let span = Hours { from, to, days: Vec::new() };
            let rest = Hours { from: to, to: from, days: Vec::new() };
            prop_assert!(span.contains_time(time) != rest.contains_time(time));
        }
    }
}
