//! Whole numbers, times and addresses on the command line, refused in sentences.

use std::{net::SocketAddr, ops::RangeInclusive, time::Duration};

use super::error::ArgumentError;

/// Parses a whole number within `range`, all of which `T` can hold.
fn whole_number<T: TryFrom<u64>>(
    text: &str,
    range: RangeInclusive<u64>,
) -> Result<T, ArgumentError> {
    let not_a_number = || ArgumentError::NotANumber(text.to_owned());
    let number = text.parse::<i128>().ok().ok_or_else(not_a_number)?;
    let number = u64::try_from(number).ok().filter(|number| range.contains(number));
    let (least, most) = range.into_inner();
    number.and_then(|number| T::try_from(number).ok()).ok_or({
        // The largest number that a type can hold is no bound that people know.
        if most <= u64::from(u16::MAX) {
            ArgumentError::OutOfRange { least, most }
        } else if text.starts_with('-') || text == "0" {
            ArgumentError::TooSmall { least }
        } else {
            ArgumentError::TooLarge { most }
        }
    })
}

/// Reads how many there may be at most; 0 stands for all.
pub(super) fn parse_maximum(text: &str) -> Result<usize, ArgumentError> {
    whole_number(text, 0..=u64::MAX)
}

/// Reads a number of one or more.
pub(super) fn parse_count(text: &str) -> Result<u32, ArgumentError> {
    whole_number(text, 1..=u32::MAX.into())
}

/// Reads a port of this machine; 0 stands for any that is free.
pub(super) fn parse_port(text: &str) -> Result<u16, ArgumentError> {
    whole_number(text, 0..=u16::MAX.into())
}

/// Reads the number of an entry of a session.
pub(super) fn parse_entry_number(text: &str) -> Result<i64, ArgumentError> {
    whole_number(text, 1..=i64::MAX.unsigned_abs())
}

/// Reads a number to choose with.
pub(super) fn parse_seed(text: &str) -> Result<u64, ArgumentError> {
    whole_number(text, 0..=u64::MAX)
}

/// Reads a number of turns, or the id of a checkpoint.
pub(super) fn turns_or_id(text: &str) -> Result<String, ArgumentError> {
    match text.parse::<i128>() {
        Ok(number) if number < 1 => Err(ArgumentError::NoTurns),
        Ok(_) | Err(_) => Ok(text.to_owned()),
    }
}

/// Parses an address with its port. A port alone would leave open which machines may connect.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, ArgumentError> {
    text.parse().map_err(|_| ArgumentError::NotAnAddress {
        value: text.to_owned(),
        port: text.trim_start_matches(':').parse().unwrap_or(4666),
    })
}

/// Parses a span of time as people write it: `90s`, `30m`, `2h`, `1d`.
pub(super) fn duration(text: &str) -> Result<Duration, ArgumentError> {
    let (value, expected, example) = (text.to_owned(), "a duration", "90s, 30m, 2h or 1d");
    let wrong = ArgumentError::Malformed { value, expected, example };
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let Ok(number) = number.parse::<u64>() else { return Err(wrong) };
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::Args;

    #[test]
    fn invalid_numbers_in_options_are_refused_with_a_reason() {
        for (line, told) in [
            ("gnoma --max-turns abc hi", "`abc` is not a whole number"),
            ("gnoma --max-turns 1.5 hi", "`1.5` is not a whole number"),
            ("gnoma --max-turns 0 hi", "the number must be 1 or more"),
            ("gnoma --max-turns -1 hi", "the number must be 1 or more"),
            ("gnoma --max-turns 99999999999 hi", "the number must be at most 4294967295"),
            ("gnoma web --port abc", "`abc` is not a whole number"),
            ("gnoma web --port -1", "the number must be 0 to 65535"),
            ("gnoma web --port 70000", "the number must be 0 to 65535"),
            ("gnoma sessions list -n x", "`x` is not a whole number"),
            ("gnoma sessions list -n -1", "the number must be 0 or more"),
            ("gnoma sessions search -n x it", "`x` is not a whole number"),
            ("gnoma sessions fork --at x", "`x` is not a whole number"),
            ("gnoma sessions fork --at -3", "the number must be 1 or more"),
            ("gnoma route --seed x fix it", "`x` is not a whole number"),
            ("gnoma route --seed -2 fix it", "the number must be 0 or more"),
            ("gnoma rewind 0", "the number of turns must be 1 or more"),
            ("gnoma rewind -1", "the number of turns must be 1 or more"),
        ] {
            let error = Args::try_parse_from(line.split_whitespace()).unwrap_err().to_string();
            assert!(error.contains(told), "{line}: {error}");
        }
        for line in ["gnoma --max-turns 1 hi", "gnoma sessions list -n 0", "gnoma rewind 2"] {
            assert!(Args::try_parse_from(line.split_whitespace()).is_ok(), "{line}");
        }
    }

    #[test]
    fn the_last_of_a_repeated_option_counts() {
        let args = Args::try_parse_from("gnoma -p -p -m a -m b hi".split(' ')).unwrap();
        assert_eq!((args.turn.model.as_deref(), args.turn.print), (Some("b"), true));
        let args = Args::try_parse_from("gnoma --add-dir /a --add-dir /b hi".split(' ')).unwrap();
        assert_eq!(args.turn.add_dir.len(), 2);
    }
}
