//! A change that is told as a line and what it has to be, by who copies a whole file without changing it. Pure.

use serde::Deserialize;

use crate::repair;

/// One line, or a few, and what stands in their place.
#[derive(Deserialize)]
struct ChangedLine {
    old_line: String,
    new_line: String,
}

/// `text` with the change that `told` names, if its line stands at one place and becomes another. How far it is
/// indented need not be right.
pub(crate) fn with_line(text: &str, told: &str) -> Option<String> {
    let from = told.find('{')?;
    let object = told.get(from..=told.rfind('}')?)?;
    let change: ChangedLine = repair::arguments(object)?.read().ok()?;
    let old: Vec<&str> = change.old_line.trim_end().lines().collect();
    let lines: Vec<&str> = text.split('\n').collect();
    let at = place(&lines, &old)?;
    let (before, rest) = lines.split_at(at);
    let after = rest.get(old.len()..)?;
    if only_joins(&old.concat(), &change.new_line, &rest.concat()) {
        return None;
    }
    let depth = |line: &str| line.len() - line.trim_start().len();
    let first = change.new_line.lines().next().map_or(0, depth);
    let indent = rest.first().and_then(|line| line.get(..depth(line))).unwrap_or_default();
    let line = |line: &str| {
        let inner = " ".repeat(depth(line).saturating_sub(first));
        format!("{indent}{inner}{}", line.trim_start()).trim_end().to_owned()
    };
    let new = change.new_line.trim_end().lines().map(line);
    let before = before.iter().map(|line| (*line).to_owned());
    let all = before.chain(new).chain(after.iter().map(|line| (*line).to_owned()));
    let new = all.collect::<Vec<_>>().join("\n");
    (new != text).then_some(new)
}

/// The one place where `old` stands.
fn place(lines: &[&str], old: &[&str]) -> Option<usize> {
    if old.iter().all(|line| line.trim().is_empty()) {
        return None;
    }
    let fits = |lines: &[&str]| lines.iter().zip(old).all(|(a, b)| a.trim() == b.trim());
    let mut found = lines.windows(old.len()).enumerate().filter(|(_, lines)| fits(lines));
    let (at, _) = found.next()?;
    found.next().is_none().then_some(at)
}

/// Whether the new line is the old one with those behind it, which stay.
fn only_joins(old: &str, new: &str, rest: &str) -> bool {
    let bare = |text: &str| text.split_whitespace().collect::<String>();
    let (old, new) = (bare(old), bare(new));
    new.len() > old.len() && bare(rest).starts_with(&new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(told: &str) -> Option<String> {
        with_line("def f(x):\n    y = x + 1\n    return y\n\nz = 0\nz = 0\n", told)
    }

    #[test]
    fn a_line_takes_the_place_of_another_with_its_indentation() {
        let told = |old: &str, new: &str| {
            made(
                &serde_json::json!({ "reason": "r", "old_line": old, "new_line": new }).to_string(),
            )
        };
        let whole = |line: &str| format!("def f(x):\n{line}\n    return y\n\nz = 0\nz = 0\n");
        assert_eq!(told("y = x + 1", "y = x * 2"), Some(whole("    y = x * 2")));
        assert_eq!(
            told("    y = x + 1", "    if x:\n        y = 2"),
            Some(whole("    if x:\n        y = 2"))
        );
        assert_eq!(told("y = x + 1", "y = x"), Some(whole("    y = x")));
        for (old, new) in [
            ("y = x + 1", " y = x + 1 "),
            ("y = 2", "y = 3"),
            ("z = 0", "z = 1"),
            ("", "z = 1"),
            ("def f(x):", "def f(x): y = x + 1"),
        ] {
            assert_eq!(told(old, new), None, "{old} {new}");
        }
    }

    #[test]
    fn the_object_may_stand_in_a_block_and_be_repaired() {
        let told =
            "It is:\n```json\n{\"old_line\": \"return y\", \"new_line\": \"return 2\",}\n```";
        assert!(made(told).unwrap().contains("    return 2\n"));
        assert_eq!(made("I see no fault."), None);
        assert_eq!(made("} and {"), None);
    }
}
