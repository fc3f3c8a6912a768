//! A three-way merge of texts by lines, with conflicts. Pure.
//!
//! Lines that both sides left alone hold the stretches between them apart. A stretch that one side changed
//! becomes what that side made of it; one that both changed, each in its own way, is a clash, also where
//! the changes only touch.

use std::{ops::Range, time::Instant};

use crate::diff::{DiffOp, diff_sequences};

/// A stretch that both sides changed, each in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConflictRegion {
    /// The first line of it in the text that both began with, from one.
    pub line: usize,
    /// The text before both changes.
    pub base: String,
    /// The text that one side made of it.
    pub ours: String,
    /// The text that the other side made of it.
    pub theirs: String,
}

/// The text with the changes of both sides. Lines end at `\n` only; after `deadline` stretches get coarse.
///
/// # Errors
/// All places where the sides are at odds, in their order.
pub fn merge_texts(
    base: &str,
    ours: &str,
    theirs: &str,
    deadline: Option<Instant>,
) -> Result<String, Vec<ConflictRegion>> {
    let [base, ours, theirs] =
        [base, ours, theirs].map(|text| text.split_inclusive('\n').collect::<Vec<_>>());
    let in_ours = map_unchanged_lines(&base, &ours, deadline);
    let in_theirs = map_unchanged_lines(&base, &theirs, deadline);
    let (mut text, mut clashes) = (String::new(), Vec::new());
    let (mut at, mut our_at, mut their_at) = (0, 0, 0);
    loop {
        let both = |line: usize| {
            Some((line, in_ours.get(line)?.as_ref()?, in_theirs.get(line)?.as_ref()?))
        };
        let anchor = (at..base.len()).find_map(both);
        let (end, our_end, their_end) = anchor
            .map_or((base.len(), ours.len(), theirs.len()), |(line, our, their)| {
                (line, *our, *their)
            });
        let was = line_slice(&base, at..end);
        let our = line_slice(&ours, our_at..our_end);
        let their = line_slice(&theirs, their_at..their_end);
        if our == was {
            text.extend(their.iter().copied());
        } else if their == was || our == their {
            text.extend(our.iter().copied());
        } else {
            let (base, ours, theirs) = (was.concat(), our.concat(), their.concat());
            clashes.push(ConflictRegion { line: at + 1, base, ours, theirs });
        }
        let Some(line) = anchor.and_then(|(line, ..)| base.get(line)) else { break };
        text.push_str(line);
        (at, our_at, their_at) = (end + 1, our_end + 1, their_end + 1);
    }
    if clashes.is_empty() { Ok(text) } else { Err(clashes) }
}

fn line_slice<'a, 't>(all: &'a [&'t str], range: Range<usize>) -> &'a [&'t str] {
    all.get(range).unwrap_or_default()
}

/// For each old line where it stands in the new text, if it still does.
fn map_unchanged_lines(
    old: &[&str],
    new: &[&str],
    deadline: Option<Instant>,
) -> Vec<Option<usize>> {
    let mut kept = vec![None; old.len()];
    for op in diff_sequences(old, new, deadline) {
        if let DiffOp::Equal { .. } = op {
            for (line, now) in op.old_range().zip(op.new_range()) {
                if let Some(place) = kept.get_mut(line) {
                    *place = Some(now);
                }
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn text() -> impl Strategy<Value = String> {
        (vec("[abcd]\n", 0..20), prop_oneof![Just(""), Just("end")])
            .prop_map(|(lines, end)| lines.concat() + end)
    }

    proptest! {
        #[test]
        fn three_way_merge_takes_a_change_made_on_one_side_or_on_both(base in text(), other in text()) {
            let merge = |base: &str, ours: &str, theirs: &str| merge_texts(base, ours, theirs, None);
            prop_assert_eq!(merge(&base, &base, &other), Ok(other.clone()));
            prop_assert_eq!(merge(&base, &other, &base), Ok(other.clone()));
            prop_assert_eq!(merge(&base, &other, &other), Ok(other));
        }

        #[test]
        fn three_way_merge_is_symmetric_in_its_sides(
            base in text(), ours in text(), theirs in text(),
        ) {
            let swapped = merge_texts(&base, &theirs, &ours, None).map_err(|clashes| {
                let turned = clashes.into_iter().map(|ConflictRegion { line, base, ours, theirs }| ConflictRegion {
                    line, base, ours: theirs, theirs: ours,
                });
                turned.collect::<Vec<_>>()
            });
            prop_assert_eq!(merge_texts(&base, &ours, &theirs, None), swapped);
        }

        /// Every line is a number of its own, so that nothing is ambiguous: each side replaces, removes
        /// or adds at some lines. What neither touches in the same place or beside it is all there.
        #[test]
        fn three_way_merge_combines_separate_edits_and_conflicts_on_overlaps(
            edits in vec((0_usize..3, 0_usize..3), 1..30),
        ) {
            let (mut base, mut ours, mut theirs, mut both) = <(String, String, String, String)>::default();
            let (mut touching, mut before) = (false, [false; 2]);
            for (line, (our, their)) in edits.iter().enumerate() {
                let was = format!("line {line}\n");
                let made = |edit: usize, who: &str| match edit {
                    0 => was.clone(),
                    1 => String::new(),
                    _ => format!("{who} {line}\n"),
                };
                base.push_str(&was);
                ours.push_str(&made(*our, "ours"));
                theirs.push_str(&made(*their, "theirs"));
                both.push_str(&if *our != 0 { made(*our, "ours") } else { made(*their, "theirs") });
                let now = [*our != 0, *their != 0];
                // Removed by both is the same change; it still joins what stands on either side.
                let same = *our == 1 && *their == 1;
                touching |= (now[0] && now[1] && !same) || (before[0] && now[1]) || (before[1] && now[0]);
                before = now;
            }
            match merge_texts(&base, &ours, &theirs, None) {
                Ok(text) => prop_assert_eq!(text, both),
                Err(clashes) => {
                    prop_assert!(touching, "{:?}", clashes);
                    for ConflictRegion { base: was, ours: our, theirs: their, .. } in clashes {
                        prop_assert!(base.contains(&was) && ours.contains(&our) && theirs.contains(&their));
                        prop_assert!(our != was && their != was && our != their);
                    }
                }
            }
        }
    }

    #[test]
    fn merge_conflict_has_both_sides_and_its_line() {
        let clashes = merge_texts("a\nb\nc\n", "a\nB\nc\n", "a\nX\nc\n", None).unwrap_err();
        let [clash] = &*clashes else { panic!("{clashes:?}") };
        assert_eq!(
            (clash.line, &*clash.base, &*clash.ours, &*clash.theirs),
            (2, "b\n", "B\n", "X\n")
        );
        assert_eq!(merge_texts("a\nb\nc\n", "a\nb\nC", "A\nb\nc\n", None).unwrap(), "A\nb\nC");
    }
}
