//! Numbers compared and divided exactly: as they are written, not as the machine rounds them.

use std::{cmp::Ordering, fmt};

use serde_json::Number;

const TEN: u128 = 10;
/// Most digits of a number that is shown without an exponent.
const MAX_SHOWN_DIGITS: u32 = 21;

/// A number in decimal: `±digits · 10^exponent`, without zeros at the end of the digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    negative: bool,
    digits: u128,
    exponent: i32,
}

impl Decimal {
    /// The number as it is written. `serde_json` keeps at most 20 digits.
    pub(crate) fn from_number(number: &Number) -> Self {
        let text = number.to_string();
        let (negative, text) = text.strip_prefix('-').map_or((false, &*text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let mut exponent: i32 = exponent.parse().unwrap_or(0);
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        exponent = exponent.saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
        let digit = |so_far: u128, c: char| {
            so_far.saturating_mul(TEN).saturating_add(u128::from(c.to_digit(10).unwrap_or(0)))
        };
        let mut digits = whole.chars().chain(fraction.chars()).fold(0, digit);
        while digits != 0 && digits.is_multiple_of(TEN) {
            digits /= TEN;
            exponent = exponent.saturating_add(1);
        }
        if digits == 0 {
            return Self { negative: false, digits, exponent: 0 };
        }
        Self { negative, digits, exponent }
    }

    pub(crate) fn is_integer(self) -> bool {
        self.exponent >= 0
    }

    pub(crate) fn is_positive(self) -> bool {
        !self.negative && self.digits > 0
    }

    /// Reports whether the number is a whole multiple of `unit`, which is not zero.
    pub(crate) fn is_multiple_of(self, unit: Self) -> bool {
        if self.digits == 0 {
            return true;
        }
        let shift = self.exponent.saturating_sub(unit.exponent);
        let distance = shift.unsigned_abs();
        if shift < 0 {
            // More digits behind the point than the unit has: only where the unit's own digits absorb them.
            let power = TEN.checked_pow(distance);
            let unit = power.and_then(|power| unit.digits.checked_mul(power));
            return unit.is_some_and(|unit| unit != 0 && self.digits.is_multiple_of(unit));
        }
        // Unit and digits have at most 20 digits each, so that products of remainders fit.
        let unit = unit.digits;
        let mut rest = self.digits % unit.max(1);
        for _ in 0..distance {
            if rest == 0 {
                return true;
            }
            rest = rest.saturating_mul(TEN) % unit.max(1);
        }
        rest == 0
    }

    fn compare_magnitude(self, other: Self) -> Ordering {
        let length = |digits: u128| i64::from(digits.checked_ilog10().map_or(0, |log| log + 1));
        let place = |it: Self| length(it.digits) + i64::from(it.exponent);
        match (self.digits, other.digits) {
            (0, 0) => return Ordering::Equal,
            (0, _) => return Ordering::Less,
            (_, 0) => return Ordering::Greater,
            _ => (),
        }
        place(self).cmp(&place(other)).then_with(|| {
            // Written with equally many digits.
            let most = length(self.digits).max(length(other.digits));
            let scaled = |digits: u128| {
                let missing = u32::try_from(most - length(digits)).unwrap_or(0);
                digits.saturating_mul(TEN.saturating_pow(missing))
            };
            scaled(self.digits).cmp(&scaled(other.digits))
        })
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { negative, digits, exponent } = *self;
        let sign = if negative { "-" } else { "" };
        let places = usize::try_from(exponent.unsigned_abs().min(MAX_SHOWN_DIGITS)).unwrap_or(0);
        if exponent.unsigned_abs() >= MAX_SHOWN_DIGITS {
            return write!(f, "{sign}{digits}e{exponent}");
        }
        if exponent >= 0 {
            return write!(f, "{sign}{digits}{}", "0".repeat(places));
        }
        let text = format!("{digits:0>width$}", width = places + 1);
        let (whole, fraction) = text.split_at(text.len() - places);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => self.compare_magnitude(*other),
            (true, true) => other.compare_magnitude(*self),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::from_number(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn json_numbers_compare_as_exact_decimals() {
        for (least, most) in [
            ("-2", "-1.5"),
            ("-0.1", "0"),
            ("0.1", "0.11"),
            ("9.99", "10"),
            ("1e-7", "2e-7"),
            ("9007199254740993", "9007199254740994"),
            ("18446744073709551614", "18446744073709551615"),
            ("1e300", "1e301"),
        ] {
            assert!(decimal(least) < decimal(most), "{least} < {most}");
        }
        assert_eq!(decimal("1.0"), decimal("1"));
        assert_eq!(decimal("100"), decimal("1e2"));
        assert_eq!(decimal("-0.0"), decimal("0"));
    }

    #[test]
    fn decimal_display_omits_trailing_zeros_and_small_exponents() {
        for (text, shown) in
            [("1.50", "1.5"), ("-0.05", "-0.05"), ("1e3", "1000"), ("0.0", "0"), ("1e99", "1e99")]
        {
            assert_eq!(decimal(text).to_string(), shown);
        }
    }

    #[test]
    fn multiple_of_is_checked_exactly_for_decimals() {
        for (number, unit, expected) in [
            ("0.3", "0.1", true),
            ("19.99", "0.01", true),
            ("19.995", "0.01", false),
            ("1e300", "3", false),
            ("3e300", "3", true),
            ("7", "2.5", false),
            ("7.5", "2.5", true),
            ("0", "5", true),
            ("-9", "3", true),
            ("0.00000001", "1e-8", true),
            ("4.5", "9e10", false),
        ] {
            assert_eq!(decimal(number).is_multiple_of(decimal(unit)), expected, "{number} {unit}");
        }
    }
}
