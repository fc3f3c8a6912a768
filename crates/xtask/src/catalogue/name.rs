//! What an id tells by its form: its stem, its date, and the part that says which model it is, whoever
//! serves it.

/// An ISO date as it stands, with the day of a mere month being its first; `None` for anything else.
pub(super) fn whole_date(text: &str) -> Option<String> {
    let mut parts = text.split('-');
    let year = parts.next().filter(|year| year.len() == 4)?;
    let month: u8 = parts.next().filter(|month| month.len() == 2)?.parse().ok()?;
    let day: u8 = match parts.next() {
        None => 1,
        Some(day) => day.parse().ok()?,
    };
    let real = year.parse::<u16>().is_ok() && (1..=12).contains(&month) && (1..=31).contains(&day);
    (real && parts.next().is_none()).then(|| format!("{year}-{month:02}-{day:02}"))
}

/// An id without the date or the `latest` at its end, and the date where it tells a year.
pub(super) fn strip_date(id: &str) -> (&str, Option<String>) {
    if let Some(stem) = id.strip_suffix("-latest") {
        return (stem, None);
    }
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // -2026-03-05
    if let Some(at) = id.len().checked_sub(11)
        && let (Some(stem), Some(date)) =
            (id.get(..at), id.get(at..).and_then(|d| d.strip_prefix('-')))
        && let Some(date) = whole_date(date)
    {
        return (stem, Some(date));
    }
    match id.rsplit_once('-') {
        Some((stem, last)) if digits(last) => match last.len() {
            // -20260305
            8 => (stem, whole_date(&format!("{}-{}-{}", &last[..4], &last[4..6], &last[6..]))),
            // -2603, or -0305, which tells no year
            4 => (stem, year_and_month(last)),
            _ => (id, None),
        },
        _ => (id, None),
    }
}

fn year_and_month(digits: &str) -> Option<String> {
    let (year, month) = digits.split_at_checked(2)?;
    let recent = (23..=40).contains(&year.parse::<u8>().ok()?);
    if recent { whole_date(&format!("20{year}-{month}")) } else { None }
}

/// Returns the name of the model, whichever provider serves it: the last part of the id in small letters, dots as
/// hyphens, without what a server puts after a colon.
pub(super) fn bare_model_name(id: &str) -> String {
    let last = id.rsplit('/').next().unwrap_or(id);
    let model = last.split(':').next().unwrap_or(last);
    model.to_ascii_lowercase().replace('.', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_dates_are_stripped_from_model_ids() {
        let date = |id| strip_date(id).1;
        assert_eq!(strip_date("a-5.4-2026-03-05"), ("a-5.4", Some("2026-03-05".to_owned())));
        assert_eq!(strip_date("a-4-5-20250929"), ("a-4-5", Some("2025-09-29".to_owned())));
        assert_eq!(strip_date("a-large-2512"), ("a-large", Some("2025-12-01".to_owned())));
        assert_eq!(strip_date("a-4.20-0309"), ("a-4.20", None));
        assert_eq!(strip_date("a-small-latest"), ("a-small", None));
        for id in ["a-4-5", "a", "", "-", "a-2a12", "a-120", "ä-123456789"] {
            assert_eq!(strip_date(id), (id, None));
        }
        assert_eq!(date("a-20261345"), None);
    }

    #[test]
    fn bare_model_name_is_the_same_for_all_vendors_of_a_model() {
        assert_eq!(
            bare_model_name("vendor/Claude-Opus-4.5:free"),
            bare_model_name("claude-opus-4-5")
        );
        assert_ne!(bare_model_name("a/b-1"), bare_model_name("a/b-1-mini"));
    }
}
