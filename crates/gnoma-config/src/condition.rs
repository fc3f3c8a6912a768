//! Conditions of routing rules as people write them (hours, days, shares), and the names of arms.

use gnoma_core::ModelRef;

/// Minutes of an hour.
const HOUR_MIN: u16 = 60;
/// Minutes of a day.
const DAY_MIN: u16 = 24 * HOUR_MIN;
/// The largest share, in percent.
const ALL_PERCENT: u8 = 100;

/// Hours of a day. Those that end before they begin go over midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    /// First minute of the day, below 1440.
    pub from_min: u16,
    /// The minute after the last, up to 1440; never the same as the first.
    pub to_min: u16,
}

/// A range of percent, both ends in it; the first is no larger than the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The first percent of the range.
    pub from: u8,
    /// Last, up to 100.
    pub to: u8,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weekday {
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

impl Weekday {
    /// All of them, from Monday on.
    pub const ALL: [Self; 7] =
        [Self::Mon, Self::Tue, Self::Wed, Self::Thu, Self::Fri, Self::Sat, Self::Sun];

    /// Returns the name of this weekday in rules.
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

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|day| day.name() == name)
    }
}

impl Hours {
    /// Reads hours such as `09:00-17:00`; `24:00` is an end only.
    #[must_use]
    pub fn parse_range(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let hours = Self { from_min: parse_minute(from)?, to_min: parse_minute(to)? };
        (hours.from_min < DAY_MIN && hours.from_min != hours.to_min).then_some(hours)
    }
}

/// The minute of the day that `09:30` means.
fn parse_minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.trim().split_once(':')?;
    let (hours, minutes) = (parse_digits(hours, 2)?, parse_digits(minutes, 2)?);
    let minute = hours * HOUR_MIN + minutes;
    (minutes < HOUR_MIN && minute <= DAY_MIN).then_some(minute)
}

/// A number of at most `most` digits, without a sign.
fn parse_digits(text: &str, most: usize) -> Option<u16> {
    let is_short = text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_short)
}

impl Share {
    /// Reads a range such as `40-100`.
    #[must_use]
    pub fn parse_range(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let percent = |text: &str| u8::try_from(parse_digits(text.trim(), 3)?).ok();
        let share = Self { from: percent(from)?, to: percent(to)? };
        (share.from <= share.to && share.to <= ALL_PERCENT).then_some(share)
    }
}

/// The arm that `provider/model` names; the model may have further slashes.
#[must_use]
pub fn arm_named(text: &str) -> Option<ModelRef> {
    let (provider, model) = text.split_once('/')?;
    let is_name = |name: &str| {
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c.is_control())
    };
    (is_name(provider) && is_name(model))
        .then(|| ModelRef { provider: provider.to_owned(), model: model.to_owned() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hours_may_go_over_midnight() {
        let hours = |from_min, to_min| Some(Hours { from_min, to_min });
        assert_eq!(Hours::parse_range("22:00-06:30"), hours(22 * 60, 6 * 60 + 30));
        assert_eq!(Hours::parse_range("9:00 - 24:00"), hours(9 * 60, DAY_MIN));
        for wrong in ["9-17", "09:00", "09:00-09:00", "24:00-06:00", "08:60-10:00", "+8:00-9:00"] {
            assert_eq!(Hours::parse_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_range_of_percent() {
        assert_eq!(Share::parse_range("40-100"), Some(Share { from: 40, to: 100 }));
        for wrong in ["40", "60-40", "0-101", "-1-5", "0-1000", "a-b", "0.4-1"] {
            assert_eq!(Share::parse_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_the_first_slash_parts_provider_and_model() {
        let arm = arm_named("openrouter/meta/llama").unwrap();
        assert_eq!((arm.provider.as_str(), arm.model.as_str()), ("openrouter", "meta/llama"));
        for wrong in ["", "mistral", "/large", "mistral/", "mistral/la rge"] {
            assert_eq!(arm_named(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_keeps_its_bounds(text in "[0-9:+ -]{0,12}|\\PC{0,12}") {
            if let Some(hours) = Hours::parse_range(&text) {
                prop_assert!(hours.from_min < DAY_MIN && hours.to_min <= DAY_MIN);
                prop_assert_ne!(hours.from_min, hours.to_min);
            }
            if let Some(share) = Share::parse_range(&text) {
                prop_assert!(share.from <= share.to && share.to <= ALL_PERCENT);
            }
        }
    }
}
