//! Times of the week at which a rule holds. What time it is comes in.

use serde::{Deserialize, Serialize};

/// Minutes of a day.
pub const MINUTES_PER_DAY: u16 = 24 * 60;

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
    /// Reports whether a time lies in these hours.
    #[must_use]
    pub fn contains_time(&self, time: LocalTime) -> bool {
        let begins_on = |day: Day| self.days.is_empty() || self.days.contains(&day);
        let today = time.minute >= self.from && (self.to <= self.from || time.minute < self.to);
        let since_yesterday = self.to <= self.from && time.minute < self.to;
        (today && begins_on(time.day)) || (since_yesterday && begins_on(time.day.previous_day()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(day: Day, hour: u16) -> LocalTime {
        LocalTime { day, minute: hour * 60 }
    }

    #[test]
    fn a_night_belongs_to_the_day_it_begins_on() {
        let friday_night = Hours { from: 22 * 60, to: 6 * 60, days: vec![Day::Fri] };
        assert!(friday_night.contains_time(at(Day::Fri, 23)));
        assert!(friday_night.contains_time(at(Day::Sat, 5)));
        assert!(!friday_night.contains_time(at(Day::Fri, 5)));
        assert!(!friday_night.contains_time(at(Day::Sat, 23)));
        assert!(!friday_night.contains_time(at(Day::Sat, 6)));
    }

    proptest! {
        #[test]
        fn a_span_and_its_rest_make_the_week(from in 0..MINUTES_PER_DAY, to in 0..MINUTES_PER_DAY, day in 0_usize..7, minute in 0..MINUTES_PER_DAY) {
            prop_assume!(from != to);
            let time = LocalTime { day: Day::ALL[day], minute };
            let span = Hours { from, to, days: Vec::new() };
            let rest = Hours { from: to, to: from, days: Vec::new() };
            prop_assert!(span.contains_time(time) != rest.contains_time(time));
        }
    }
}
