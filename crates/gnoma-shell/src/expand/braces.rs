//! `{1..9}` and `{a..z..2}`.

/// The words a range becomes; `None` when there are more than `most`, or it is no range.
pub(super) fn expand_range(text: &str, most: usize) -> Option<Vec<String>> {
    let mut ends = text.split("..");
    let (first, last) = (ends.next()?, ends.next()?);
    let step = match ends.next() {
        Some(step) => step.parse::<i64>().ok()?.checked_abs()?.max(1),
        None => 1,
    };
    if ends.next().is_some() {
        return None;
    }
    if let (Ok(from), Ok(to)) = (first.parse::<i64>(), last.parse::<i64>()) {
        let width = padded_width(first).max(padded_width(last));
        return number_range(from, to, step, most)
            .map(|all| all.into_iter().map(|n| pad_number(n, width)).collect());
    }
    let (from, to) = (parse_letter(first)?, parse_letter(last)?);
    let codes = number_range(from, to, step, most)?;
    codes
        .into_iter()
        .map(|code| u8::try_from(code).ok().map(|byte| char::from(byte).to_string()))
        .collect()
}

fn parse_letter(text: &str) -> Option<i64> {
    let mut bytes = text.bytes();
    let byte = bytes.next().filter(u8::is_ascii_alphabetic)?;
    bytes.next().is_none().then_some(i64::from(byte))
}

/// Width that zeros in front ask for.
fn padded_width(text: &str) -> usize {
    let digits = text.trim_start_matches('-');
    if digits.len() > 1 && digits.starts_with('0') { text.len() } else { 0 }
}

fn pad_number(number: i64, width: usize) -> String {
    format!("{number:0width$}")
}

fn number_range(from: i64, to: i64, step: i64, most: usize) -> Option<Vec<i64>> {
    let mut all = Vec::new();
    let mut now = from;
    let upwards = from <= to;
    while if upwards { now <= to } else { now >= to } {
        if all.len() == most {
            return None;
        }
        all.push(now);
        now = if upwards { now.checked_add(step)? } else { now.checked_sub(step)? };
    }
    Some(all)
}
