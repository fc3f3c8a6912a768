//! Joins findings that overlap, so that nothing of a secret is left over between two of them.

use super::raw_finding::RawFinding;

/// Sorts the findings and makes one of each group that overlaps; the strongest label stays.
pub(crate) fn merge_overlaps(raw: &mut Vec<RawFinding>) {
    raw.sort_by_key(|found| (found.span.start, found.span.end, found.label.strength()));
    raw.dedup_by(|next, kept| {
        if next.span.start >= kept.span.end {
            return false;
        }
        if next.label.strength() < kept.label.strength() {
            kept.label = next.label.clone();
        }
        kept.span.end = kept.span.end.max(next.span.end);
        true
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scanner::raw_finding::Label;

    proptest! {
        #[test]
        fn merging_covers_the_same_bytes_without_overlap(
            spans in prop::collection::vec((0_usize..200, 1_usize..40, 0_usize..3), 0..40),
        ) {
            let mut raw: Vec<RawFinding> = spans
                .iter()
                .map(|&(start, length, rule)| RawFinding { span: start..start + length, label: Label::Rule(rule) })
                .collect();
            let before: Vec<bool> = (0..300).map(|at| raw.iter().any(|r| r.span.contains(&at))).collect();
            merge_overlaps(&mut raw);
            let after: Vec<bool> = (0..300).map(|at| raw.iter().any(|r| r.span.contains(&at))).collect();
            prop_assert_eq!(before, after);
            prop_assert!(raw.windows(2).all(|pair| pair[0].span.end <= pair[1].span.start));
        }
    }
}
