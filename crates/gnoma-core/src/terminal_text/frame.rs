//! Pictures that a program draws again and again, a screen each.

use std::collections::{HashSet, VecDeque};

/// True if `drawn` shows what `cleared` showed before, with other numbers: at least half of its lines are there
/// again.
pub(super) fn is_redrawn(cleared: &VecDeque<String>, drawn: &VecDeque<String>) -> bool {
    let outlines: HashSet<String> = drawn.iter().map(|row| row_letters(row)).collect();
    let before =
        || cleared.iter().map(|row| row_letters(row)).filter(|outline| !outline.is_empty());
    before().filter(|outline| outlines.contains(outline)).count() * 2 >= before().count()
}

/// The letters of a line: what stays of a progress bar, a spinner or a clock while it goes on.
fn row_letters(row: &str) -> String {
    row.chars().filter(|letter| letter.is_alphabetic()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redrawn_terminal_frame_is_recognized_despite_changed_numbers() {
        let rows = |text: &str| text.lines().map(str::to_owned).collect::<VecDeque<_>>();
        for (cleared, drawn, is_same) in [
            ("Every 2s: 10:01\n\nload 0.1", "Every 2s: 10:03\n\nload 0.9", true),
            ("[##  ] building", "[####] building", true),
            ("one\ntwo", "one\nthree", true),
            ("12:01", "", true),
            ("build failed: E1", "watching", false),
            ("one\ntwo\nthree", "one", false),
        ] {
            assert_eq!(is_redrawn(&rows(cleared), &rows(drawn)), is_same, "{cleared:?}");
        }
    }
}
