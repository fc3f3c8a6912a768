//! Names for sessions: when they began, and something to tell them apart.

use std::{
    hash::{BuildHasher as _, RandomState},
    time::{SystemTime, UNIX_EPOCH},
};

/// Bits from the system's random source, by way of the hasher's seed.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// `YYYYMMDD-HHMMSS-<6 hex>`, in UTC.
pub(crate) fn session_id() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("{}-{:06x}", stamp(seconds), random() & 0xFF_FFFF)
}

/// A Unix time as `YYYYMMDD-HHMMSS`. Days to date after Howard Hinnant's `civil_from_days`.
fn stamp(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_dates() {
        assert_eq!(stamp(0), "19700101-000000");
        assert_eq!(stamp(951_868_799), "20000229-235959");
        assert_eq!(stamp(1_795_307_625), "20261122-003345");
    }
}
