//! Ids of sessions: the second they began, in UTC, and six digits of chance.

use gnoma_core::store::SessionId;

/// The id of a session that begins at `at_ms` (milliseconds since 1970) in the form that
/// [`SessionId`] describes. The lowest 24 bits of `chance` tell it from others of its second; take
/// them from a source of random numbers.
#[must_use]
pub fn session_id(at_ms: i64, chance: i64) -> SessionId {
    let seconds = at_ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let tail = chance & 0x00ff_ffff;
    SessionId::new(format!(
        "{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{tail:06x}"
    ))
}

/// Whether a text has the form of an id: the digits of a date and of a time, and six of `0-9a-f`.
pub(crate) fn is_session_id(text: &str) -> bool {
    const SHAPE: &[u8] = b"dddddddd-dddddd-xxxxxx";
    text.len() == SHAPE.len()
        && text.bytes().zip(SHAPE).all(|(byte, shape)| match shape {
            b'd' => byte.is_ascii_digit(),
            b'x' => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            _ => byte == *shape,
        })
}

/// `YYYY-MM-DD HH:MM` in UTC.
pub(crate) fn minute_of(at_ms: i64) -> String {
    let seconds = at_ms.div_euclid(1000);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}", second / 3600, second / 60 % 60)
}

/// Milliseconds since 1970 of a time such as `2026-01-31T12:30:00.5Z` or with `+02:00`; `None`
/// when it is not one.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let (date_part, time_part) = text.split_once(['T', ' '])?;
    let mut numbers = date_part.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let zone_at = time_part.find(['Z', 'z', '+', '-']).unwrap_or(time_part.len());
    let (clock, zone) = time_part.split_at_checked(zone_at)?;
    let mut clock = clock.splitn(3, ':');
    let hour: i64 = clock.next()?.parse().ok()?;
    let minute: i64 = clock.next()?.parse().ok()?;
    let seconds = clock.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let second: i64 = whole.parse().ok()?;
    let padded: String = fraction.chars().chain("000".chars()).take(3).collect();
    let millis: i64 = padded.parse().ok()?;
    let sane = (0..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second)
        && (0..1000).contains(&millis);
    sane.then(|| {
        let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - offset_minutes(zone);
        (minutes * 60 + second) * 1000 + millis
    })
}

fn offset_minutes(zone: &str) -> i64 {
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone.chars().filter(char::is_ascii_digit).take(4).collect();
    digits.parse::<i64>().map_or(0, |hhmm| sign * (hhmm / 100 * 60 + hhmm % 100))
}

/// Days since 1970-01-01 as year, month, day. Years are counted from March, so that the leap day
/// is the last of its year; 400 years have 146,097 days.
pub(crate) fn date(days: i64) -> (i64, i64, i64) {
    let since_year_0 = days + 719_468;
    let era = since_year_0.div_euclid(146_097);
    let day_of_era = since_year_0.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// The inverse of [`date`].
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(session_id(0, 0xabc).as_str(), "19700101-000000-000abc");
        assert_eq!(session_id(1_709_210_096_789, -1).as_str(), "20240229-123456-ffffff");
        assert_eq!(parse_time("2024-02-29T12:34:56.789Z"), Some(1_709_210_096_789));
        assert_eq!(parse_time("2024-02-29T14:34:56+02:00"), Some(1_709_210_096_000));
        assert_eq!(minute_of(1_709_210_096_789), "2024-02-29 12:34");
        assert_eq!(parse_time("yesterday"), None);
    }

    #[test]
    fn only_ids_look_like_ids() {
        assert!(is_session_id(session_id(1_709_210_096_789, 7).as_str()));
        for text in [
            "",
            "20240229-123456",
            "20240229-123456-00000",
            "20240229-123456-0000000",
            "20240229-123456-00000G",
            "20240229-123456-ABCDEF",
            "20240229_123456-000000",
            "2024-0229123456-000000",
            "../etc-passwd-00000000",
            "２0240229-123456-0000",
        ] {
            assert!(!is_session_id(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn dates_and_days_are_inverse(number in -700_000_i64..2_900_000) {
            let (year, month, day) = date(number);
            prop_assert_eq!(days(year, month, day), number);
        }

        #[test]
        fn no_text_upsets_the_reader(text in "[0-9TZ:+. -]{0,40}|\\PC{0,30}") {
            parse_time(&text);
        }
    }
}
