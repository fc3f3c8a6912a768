//! Diffs of two sequences: hunks of a file, marks in a line, renamed names.
//!
//! Everything is numbered before it is compared, so that one algorithm is compiled for one type.
//! Colours and limits on what is shown are the front ends'.

use std::{collections::HashMap, hash::Hash, ops::Range, time::Instant};

use similar::{
    algorithms::{Capture, Compact, Replace, myers},
    group_diff_ops,
};

pub use similar::DiffOp;

/// The stretches that are equal, and what stands in one place of the old and the new sequence otherwise.
/// After `deadline` the answer gets coarse.
#[must_use]
pub fn diff_sequences<T: Eq + Hash>(
    old: &[T],
    new: &[T],
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    let mut known = HashMap::new();
    let mut number = |item| {
        let next = known.len();
        *known.entry(item).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut number).collect();
    let new: Vec<usize> = new.iter().map(&mut number).collect();
    diff_numbers(&old, &new, deadline)
}

fn diff_numbers(old: &[usize], new: &[usize], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut found = Compact::new(Replace::new(Capture::new()), old, new);
    let whole = |items: &[usize]| 0..items.len();
    let Ok(()) = myers::diff_deadline(&mut found, old, whole(old), new, whole(new), deadline);
    found.into_inner().into_inner().into_ops()
}

/// Twice what is equal in both, as a share of both: 1 where all is equal, 0 where nothing is.
#[must_use]
pub fn similarity_ratio<T: Eq + Hash>(old: &[T], new: &[T]) -> f32 {
    let equal: usize = diff_sequences(old, new, None).iter().map(equal_length).sum();
    match old.len() + new.len() {
        0 => 1.0,
        all => 2.0 * equal as f32 / all as f32,
    }
}

fn equal_length(op: &DiffOp) -> usize {
    match op {
        DiffOp::Equal { len, .. } => *len,
        DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => 0,
    }
}

/// The hunks of a unified diff, with `context` lines around a change; nothing where the texts are equal.
/// Lines end at `\n` only, so that their numbers agree with every other tool's.
#[must_use]
pub fn unified_diff(old: &str, new: &str, context: usize, deadline: Option<Instant>) -> String {
    hunks(old, new, context, deadline).into_iter().map(|hunk| hunk.text).collect()
}

/// One hunk of a unified diff.
struct Hunk {
    /// The lines of the hunk in the old and in the new text.
    old: Range<usize>,
    new: Range<usize>,
    text: String,
}

fn hunks(old: &str, new: &str, context: usize, deadline: Option<Instant>) -> Vec<Hunk> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let mut hunks = Vec::new();
    for ops in group_diff_ops(diff_sequences(&old, &new, deadline), context) {
        let (Some(first), Some(last)) = (ops.first(), ops.last()) else { continue };
        let gone = first.old_range().start..last.old_range().end;
        let come = first.new_range().start..last.new_range().end;
        let mut text =
            format!("@@ -{} +{} @@\n", hunk_range(gone.clone()), hunk_range(come.clone()));
        for op in &ops {
            if let DiffOp::Equal { .. } = op {
                add_lines(&mut text, ' ', &old, op.old_range());
            } else {
                add_lines(&mut text, '-', &old, op.old_range());
                add_lines(&mut text, '+', &new, op.new_range());
            }
        }
        hunks.push(Hunk { old: gone, new: come, text });
    }
    hunks
}

/// Returns `new` with one hunk of its diff from `old` reverted: the one that reads like `hunk`, wherever it is now. `None`
/// if the diff has no such hunk, or several of which none is at the same lines.
#[must_use]
pub fn reverse_hunk(old: &str, new: &str, context: usize, hunk: &str) -> Option<String> {
    let body = |text: &str| text.split_once('\n').map(|(_, body)| body.to_owned());
    let mut alike = hunks(old, new, context, None);
    alike.retain(|found| body(&found.text) == body(hunk));
    if alike.len() > 1 {
        alike.retain(|found| found.text == hunk);
    }
    let found = alike.pop()?;
    let lines = |text: &str, range: Range<usize>| -> String {
        text.split_inclusive('\n').skip(range.start).take(range.len()).collect()
    };
    let before = lines(new, 0..found.new.start) + &lines(old, found.old);
    Some(before + &lines(new, found.new.end..usize::MAX))
}

/// Lines count from one; an empty stretch names the line before it.
fn hunk_range(lines: Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn add_lines(text: &mut String, mark: char, lines: &[&str], range: Range<usize>) {
    for line in lines.get(range).unwrap_or_default() {
        text.push(mark);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// The last line of a diff of which only the first lines are there: how many are left out, and how many of those add and
/// remove a line.
#[must_use]
pub fn cut_line(left: usize, added: usize, removed: usize) -> String {
    format!("[{left} more diff lines: +{added} -{removed}]")
}

/// Reads how many lines are added and removed in what a [`cut_line`] leaves out; `None` for any other line.
#[must_use]
pub fn parse_cut_line(line: &str) -> Option<(usize, usize)> {
    let (left, counts) =
        line.strip_prefix('[')?.strip_suffix(']')?.split_once(" more diff lines: +")?;
    let (added, removed) = counts.split_once(" -")?;
    let _is_number: usize = left.parse().ok()?;
    Some((added.parse().ok()?, removed.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// What `patch` makes of `old`.
    fn applied(old: &str, hunks: &str) -> String {
        let old: Vec<&str> = old.split_inclusive('\n').collect();
        let hunks = hunks.replace("\n\\ No newline at end of file\n", "");
        let (mut new, mut at) = (String::new(), 0);
        for line in hunks.split_inclusive('\n') {
            let (mark, rest) = line.split_at(1);
            match mark {
                "@" => {
                    let numbers = rest.split(['-', ' ']).nth(2).unwrap();
                    let (start, count) = numbers.split_once(',').unwrap_or((numbers, "1"));
                    let start = start.parse::<usize>().unwrap() - usize::from(count != "0");
                    new.push_str(&old[at..start].concat());
                    at = start;
                }
                "+" => new.push_str(rest),
                _ => {
                    assert_eq!(rest, old[at]);
                    new.push_str(if mark == " " { rest } else { "" });
                    at += 1;
                }
            }
        }
        new + &old[at..].concat()
    }

    proptest! {
        #[test]
        fn applying_unified_diff_hunks_to_the_old_text_yields_the_new_text(
            old in vec("[abc]\n", 0..30),
            new in vec("[abc]\n", 0..30),
            context in 0_usize..4,
        ) {
            let (old, new) = (old.concat(), new.concat());
            prop_assert_eq!(applied(&old, &unified_diff(&old, &new, context, None)), new);
        }

        #[test]
        fn reverting_every_diff_hunk_restores_the_old_text(
            old in vec("[abc]\n", 0..30),
            new in vec("[abc]\n", 0..30),
            context in 0_usize..4,
        ) {
            let (old, mut new) = (old.concat(), new.concat());
            while let Some(hunk) = hunks(&old, &new, context, None).pop() {
                let reverted = reverse_hunk(&old, &new, context, &hunk.text).unwrap();
                prop_assert_ne!(&reverted, &new);
                new = reverted;
            }
            prop_assert_eq!(old, new);
        }

        #[test]
        fn diff_ops_cover_both_sequences_without_gaps(old: Vec<u8>, new: Vec<u8>) {
            let (mut left, mut right) = (0, 0);
            for op in diff_sequences(&old, &new, None) {
                prop_assert_eq!((op.old_range().start, op.new_range().start), (left, right));
                (left, right) = (op.old_range().end, op.new_range().end);
                if let DiffOp::Equal { .. } = op {
                    prop_assert_eq!(&old[op.old_range()], &new[op.new_range()]);
                }
            }
            prop_assert_eq!((left, right), (old.len(), new.len()));
        }
    }

    #[test]
    fn diff_hunk_reverts_at_its_moved_line_and_fails_if_its_text_changed() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let hunk = unified_diff(old, &old.replace("g\n", "G\n"), 1, None);
        let moved = format!("new\n{}", old.replace("g\n", "G\n"));
        assert_eq!(reverse_hunk(old, &moved, 1, &hunk), Some(format!("new\n{old}")));
        assert_eq!(reverse_hunk(old, &old.replace("g\n", "X\n"), 1, &hunk), None);
        assert_eq!(reverse_hunk(old, old, 1, &hunk), None);
        assert_eq!(reverse_hunk(old, &moved, 1, "nothing of a hunk"), None);
    }

    #[test]
    fn unified_diff_marks_no_newline_at_end_of_file() {
        let hunk = "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n";
        assert_eq!(unified_diff("a\n", "a", 3, None), hunk);
        assert_eq!(unified_diff("a", "a", 3, None), "");
    }

    #[test]
    fn similarity_ratio_is_the_share_of_equal_bytes() {
        let like = |old: &str, new: &str| similarity_ratio(old.as_bytes(), new.as_bytes());
        assert_eq!([like("", ""), like("ab", "ab"), like("ab", "cd")], [1.0, 1.0, 0.0]);
        assert_eq!(like("parser", "parsr"), 10.0 / 11.0);
    }
}
