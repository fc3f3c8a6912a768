//! Whole numbers, times and addresses on the command line, refused in sentences.

use std::{fmt::Display, net::SocketAddr, ops::RangeInclusive, time::Duration};

/// Reads a whole number within `range`.
///
/// # Errors
/// A sentence that says what is wrong with the text.
pub(super) fn whole_number<T>(text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: Copy + Display + TryFrom<i128> + Into<i128>,
{
    let number: i128 = text.parse().map_err(|_| format!("`{text}` is not a whole number"))?;
    let (least, most) = (*range.start(), *range.end());
    let fits = (least.into()..=most.into()).contains(&number);
    let number = T::try_from(number).ok().filter(|_| fits);
    // Nobody means the largest number that a type can hold.
    let is_bounded = most.into() <= i128::from(u16::MAX);
    number.ok_or_else(|| match is_bounded {
        true => format!("the number must be {least} to {most}"),
        false if text.starts_with('-') || text == "0" => {
            format!("the number must be {least} or more")
        }
        false => format!("the number must be at most {most}"),
    })
}

/// Reads how many there may be at most; 0 stands for all.
pub(super) fn parse_maximum(text: &str) -> Result<usize, String> {
    let number: u64 = whole_number(text, 0..=u64::MAX)?;
    usize::try_from(number).map_err(|error| error.to_string())
}

/// Reads a number of one or more.
pub(super) fn parse_count(text: &str) -> Result<u32, String> {
    whole_number(text, 1..=u32::MAX)
}

/// Reads a port of this machine; 0 stands for any that is free.
pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    whole_number(text, 0..=u16::MAX)
}

/// Reads the number of an entry of a session.
pub(super) fn parse_entry_number(text: &str) -> Result<i64, String> {
    whole_number(text, 1..=i64::MAX)
}

/// Reads a number to choose with.
pub(super) fn parse_seed(text: &str) -> Result<u64, String> {
    whole_number(text, 0..=u64::MAX)
}

/// Reads a number of turns, or the id of a checkpoint.
pub(super) fn turns_or_id(text: &str) -> Result<String, String> {
    match text.parse::<i128>() {
        Ok(number) if number < 1 => Err("the number of turns must be 1 or more".to_owned()),
        Ok(_) | Err(_) => Ok(text.to_owned()),
    }
}

/// An address with its port. A port alone would leave open who may connect.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.trim_start_matches(':').parse().unwrap_or(4666_u16);
        format!("`{text}` is not an address with a port; write it like 127.0.0.1:{port}")
    })
}

/// A span of time as people write it: `90s`, `30m`, `2h`, `1d`.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it like 90s, 30m, 2h or 1d");
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::Args;

    #[test]
    fn numbers_that_cannot_be_are_refused_in_sentences() {
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
