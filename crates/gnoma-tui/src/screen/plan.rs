//! Which rows stay, change, come and go, so that the fewest bytes are written.

use super::cells;
use crate::text::Line;

/// More rows than this on either side are not compared with each other: they are painted in order.
const MAX_ALIGNED_ROWS: usize = 80;
/// Bytes it takes to put in or take out a row.
const MOVE_BYTES: usize = 8;
/// Bytes it takes to get to a row and back to plain attributes.
const VISIT_BYTES: usize = 6;

/// The step that turns an old row of the screen into a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowStep {
    /// The next old row is the next new row.
    Keep,
    /// The next old row becomes the next new row.
    Change,
    /// The next new row goes between old rows.
    Insert,
    /// The next old row goes.
    Delete,
}

/// The cheapest way from old rows to new rows. Without rows put in or taken out in between where
/// `may_move` says so; then rows are only added or missing at the end.
pub(super) fn plan_steps(old: &[&Line], new: &[&Line], may_move: bool) -> Vec<RowStep> {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (Some(old_rest), Some(new_rest)) = (old.get(same..), new.get(same..)) else {
        return in_order(old, new);
    };
    let small = old_rest.len() <= MAX_ALIGNED_ROWS && new_rest.len() <= MAX_ALIGNED_ROWS;
    if !may_move || !small || old_rest.is_empty() || new_rest.is_empty() {
        return in_order(old, new);
    }
    let mut steps = vec![RowStep::Keep; same];
    steps.extend(Table::from_rows(old_rest, new_rest).trace_steps());
    steps
}

fn in_order(old: &[&Line], new: &[&Line]) -> Vec<RowStep> {
    let both = old
        .iter()
        .zip(new)
        .map(|(old, new)| if old == new { RowStep::Keep } else { RowStep::Change });
    let more = new.len().saturating_sub(old.len());
    let fewer = old.len().saturating_sub(new.len());
    both.chain(std::iter::repeat_n(RowStep::Insert, more))
        .chain(std::iter::repeat_n(RowStep::Delete, fewer))
        .collect()
}

/// The edit distance between two lists of rows, in bytes.
struct Table {
    /// Cost and last step for every pair of counts of old and new rows, row by row.
    cells: Vec<(usize, RowStep)>,
    width: usize,
    old: usize,
    new: usize,
}

impl Table {
    fn from_rows(old: &[&Line], new: &[&Line]) -> Self {
        let width = new.len() + 1;
        let cells = Vec::with_capacity(width * (old.len() + 1));
        let mut table = Self { cells, width, old: old.len(), new: new.len() };
        let insertions: Vec<_> =
            new.iter().map(|line| cells::paint_cost(line) + MOVE_BYTES).collect();
        let nothing = std::iter::once(None);
        for (i, old) in nothing.chain(old.iter().map(Some)).enumerate() {
            let nothing = std::iter::once(None);
            for (j, new) in nothing.chain(new.iter().zip(&insertions).map(Some)).enumerate() {
                let best = table.best(i, j, old, new);
                table.cells.push(best);
            }
        }
        table
    }

    /// The cheapest last step when `i` old rows have become `j` new ones.
    fn best(
        &self,
        i: usize,
        j: usize,
        old: Option<&&Line>,
        new: Option<(&&Line, &usize)>,
    ) -> (usize, RowStep) {
        let mut best = (usize::MAX, RowStep::Keep);
        let mut offer = |cost: usize, step| {
            if cost < best.0 {
                best = (cost, step);
            }
        };
        match (old, new) {
            (None, None) => offer(0, RowStep::Keep),
            (Some(_), None) => offer(self.cost_at(i - 1, j) + MOVE_BYTES, RowStep::Delete),
            (None, Some((_, cost))) => offer(self.cost_at(i, j - 1) + cost, RowStep::Insert),
            (Some(old), Some((new, cost))) => {
                let before = self.cost_at(i - 1, j - 1);
                if old == new {
                    offer(before, RowStep::Keep);
                } else {
                    let change = cells::cost_of_change(old, new) + VISIT_BYTES;
                    offer(before + change, RowStep::Change);
                }
                offer(self.cost_at(i, j - 1) + cost, RowStep::Insert);
                offer(self.cost_at(i - 1, j) + MOVE_BYTES, RowStep::Delete);
            }
        }
        best
    }

    fn cell_at(&self, i: usize, j: usize) -> (usize, RowStep) {
        self.cells.get(i * self.width + j).copied().unwrap_or((usize::MAX / 2, RowStep::Keep))
    }

    fn cost_at(&self, i: usize, j: usize) -> usize {
        self.cell_at(i, j).0
    }

    /// The steps of the cheapest way, from the top.
    fn trace_steps(&self) -> Vec<RowStep> {
        let (mut i, mut j) = (self.old, self.new);
        let mut steps = Vec::new();
        while i > 0 || j > 0 {
            let (_, step) = self.cell_at(i, j);
            match step {
                RowStep::Keep | RowStep::Change => {
                    (i, j) = (i.saturating_sub(1), j.saturating_sub(1));
                }
                RowStep::Insert => j = j.saturating_sub(1),
                RowStep::Delete => i = i.saturating_sub(1),
            }
            steps.push(step);
        }
        steps.reverse();
        steps
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::Style;

    fn plan(old: &[&str], new: &[&str], may_move: bool) -> Vec<RowStep> {
        let line = |text: &&str| Line::new((*text).to_owned(), Style::default());
        let old: Vec<_> = old.iter().map(line).collect();
        let new: Vec<_> = new.iter().map(line).collect();
        plan_steps(&old.iter().collect::<Vec<_>>(), &new.iter().collect::<Vec<_>>(), may_move)
    }

    #[test]
    fn a_new_row_above_the_input_moves_it_down() {
        use RowStep::{Change, Insert, Keep};
        let rule = "────────────────────────────────────────";
        let old = ["text", "more te", rule, "> input", rule, "status 1 s"];
        let new = ["text", "more text", "next", rule, "> input", rule, "status 2 s"];
        assert_eq!(plan(&old, &new, true), [Keep, Change, Insert, Keep, Keep, Keep, Change]);
        assert_eq!(plan(&old, &new, false).len(), 7);
    }

    proptest! {
        #[test]
        fn repaint_plan_uses_every_old_row_and_makes_every_new_row(
            old in prop::collection::vec("[ab]{0,3}", 0..8),
            new in prop::collection::vec("[ab]{0,3}", 0..8),
            may_move: bool,
        ) {
            let old: Vec<_> = old.iter().map(String::as_str).collect();
            let new: Vec<_> = new.iter().map(String::as_str).collect();
            let steps = plan(&old, &new, may_move);
            let used = steps.iter().filter(|step| **step != RowStep::Insert).count();
            let made = steps.iter().filter(|step| **step != RowStep::Delete).count();
            prop_assert_eq!((used, made), (old.len(), new.len()));
        }
    }
}
