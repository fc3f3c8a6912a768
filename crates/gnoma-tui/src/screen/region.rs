//! The rows that a screen controls: what they show now, and how they change to show something else. Positions are
//! relative to the first of these rows, so a region works in the middle of a shell's output as well as on the
//! alternate screen.

use super::{
    cells,
    plan::{self, RowStep},
    writer::{CursorSpot, RowWriter},
};
use crate::{
    frame::{Cell, Size},
    text::{BackgroundRole, Line, Span, Style},
    theme::Theme,
};

/// Rows as they are on the terminal.
#[derive(Debug, Default)]
pub(super) struct Region {
    rows: Vec<Line>,
    spot: CursorSpot,
}

impl Region {
    /// A region of empty rows with the cursor at its upper left corner.
    pub(super) fn with_blank_rows(rows: usize) -> Self {
        Self { rows: vec![Line::default(); rows], spot: CursorSpot { row: 0, column: Some(0) } }
    }

    /// Paints `new` where the region was. The first `leaving` of these rows belong to the terminal
    /// from then on; the others, at least one and at most a screen full, are the region.
    pub(super) fn repaint(
        &mut self,
        new: &[&Line],
        leaving: usize,
        size: Size,
        theme: &Theme,
        out: &mut Vec<u8>,
    ) {
        let old: Vec<_> = self.rows.iter().collect();
        let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let rows_at_stake = old.len().max(new.len()) - same;
        let steps = plan::plan_steps(&old, new, rows_at_stake <= size.height);
        let mut writer = RowWriter::new(theme, size.width, self.spot, out);
        if only_at_the_end(&steps) {
            in_order(&steps, &old, new, &mut writer);
        } else {
            with_moves(&steps, &old, new, &mut writer);
        }
        self.spot = writer.spot();
        if leaving > 0 || steps.iter().any(|step| *step != RowStep::Keep) {
            self.rows = new.iter().skip(leaving).copied().cloned().collect();
        }
        // Rows that have left are above the first. The cursor cannot be there unless nothing was
        // painted below, and then it is brought down.
        if self.spot.row < leaving {
            let mut writer = RowWriter::new(theme, size.width, self.spot, out);
            writer.move_to(leaving, 0);
            self.spot = writer.spot();
        }
        self.spot.row -= leaving;
    }

    /// Brings the cursor to a cell.
    pub(super) fn move_cursor(&mut self, cell: Cell, size: Size, theme: &Theme, out: &mut Vec<u8>) {
        let mut writer = RowWriter::new(theme, size.width, self.spot, out);
        writer.move_to(
            cell.row.min(self.rows.len().saturating_sub(1)),
            cell.column.min(size.width - 1),
        );
        self.spot = writer.spot();
    }

    /// Leaves the rows as they are, with the cursor below them.
    pub(super) fn close(&mut self, size: Size, theme: &Theme, out: &mut Vec<u8>) {
        let Some(last) = self.rows.len().checked_sub(1) else { return };
        let mut writer = RowWriter::new(theme, size.width, self.spot, out);
        if self.rows.get(last).is_some_and(|row| row.width() > 0) {
            writer.add_rows(last, 1);
        } else {
            writer.move_to(last, 0);
        }
        *self = Self::default();
    }

    /// Clears the rows, with the cursor where they began. `width` is the terminal's width now, which
    /// may have changed since they were painted, and `reflows` says whether the terminal then folds
    /// rows that have become too wide.
    pub(super) fn erase(&mut self, width: usize, reflows: bool, out: &mut Vec<u8>) {
        if self.rows.is_empty() {
            return;
        }
        let row = if reflows { self.folded_row(width) } else { self.spot.row };
        let spot = CursorSpot { row, column: None };
        let folds = reflows && self.rows.iter().any(|row| row.width() > width);
        let has_more_rows = self.rows.len() > 1 || folds;
        RowWriter::new(&Theme::default(), width, spot, out).clear_all(has_more_rows);
        self.rows.clear();
        self.spot = CursorSpot { row: 0, column: Some(0) };
    }

    /// Returns the number of rows by which the cursor is below the first when the terminal has folded all of them.
    fn folded_row(&self, width: usize) -> usize {
        let above: usize = self
            .rows
            .iter()
            .take(self.spot.row)
            .map(|row| row_offset(row, usize::MAX, width) + 1)
            .sum();
        let here = self.rows.get(self.spot.row);
        let column = self.spot.column.unwrap_or(usize::MAX);
        above + here.map_or(0, |row| row_offset(row, column, width))
    }

    /// Forgets how the rows look, but not how wide they are, so that all are painted again.
    pub(super) fn invalidate_rows(&mut self) {
        for row in &mut self.rows {
            let unknown = "\0".repeat(row.width());
            *row = Line {
                spans: vec![Span { text: unknown.into(), style: Style::default(), link: None }],
            };
        }
    }
}

/// Onto which row below its first a line's `column` comes when the terminal folds it. Spaces at the
/// end do not count: most terminals take them for nothing.
fn row_offset(line: &Line, column: usize, width: usize) -> usize {
    let pieces = cells::line_pieces(line, usize::MAX);
    let shown = pieces
        .iter()
        .rposition(|piece| piece.text != " " || piece.span.style.paper != BackgroundRole::None);
    let (mut row, mut used) = (0, 0);
    for piece in pieces.iter().take(shown.map_or(0, |last| last + 1)) {
        if used + piece.width > width {
            (row, used) = (row + 1, 0);
        }
        if piece.column >= column {
            break;
        }
        used += piece.width;
    }
    row
}

/// Rows only come or go after all others.
fn only_at_the_end(steps: &[RowStep]) -> bool {
    let stays = |step: &RowStep| matches!(step, RowStep::Keep | RowStep::Change);
    let first_moved = steps.iter().position(|step| !stays(step)).unwrap_or(steps.len());
    let rest = steps.get(first_moved..).unwrap_or_default();
    rest.windows(2).all(|pair| pair.first() == pair.last()) && !rest.iter().any(stays)
}

/// Paints from the top; rows that scroll away are complete before they do.
fn in_order(steps: &[RowStep], old: &[&Line], new: &[&Line], writer: &mut RowWriter) {
    let blank = Line::default();
    for (row, step) in steps.iter().enumerate() {
        match step {
            RowStep::Keep => {}
            RowStep::Change => {
                if let (Some(old), Some(new)) = (old.get(row), new.get(row)) {
                    writer.change_row(row, old, new);
                }
            }
            RowStep::Insert => {
                if row > 0 {
                    writer.add_rows(row - 1, 1);
                }
                if let Some(new) = new.get(row) {
                    writer.change_row(row, &blank, new);
                }
            }
            RowStep::Delete => return writer.clear_from(row),
        }
    }
}

/// Takes rows out first, then makes room at the end, then puts rows in: nothing ever falls off the
/// lower end of the terminal.
fn with_moves(steps: &[RowStep], old: &[&Line], new: &[&Line], writer: &mut RowWriter) {
    take_out(steps, writer);
    if new.len() > old.len() {
        writer.add_rows(old.len().saturating_sub(1), new.len() - old.len());
    }
    let blank = Line::default();
    let (mut old, mut new) = (old.iter(), new.iter());
    let (mut row, mut steps) = (0, steps);
    while let Some(step) = steps.first() {
        let run = steps.iter().take_while(|other| *other == step).count();
        if *step == RowStep::Insert && run < steps.len() {
            writer.insert_rows(row, run);
        }
        for _ in 0..run {
            let before = if *step == RowStep::Insert { None } else { old.next() };
            let Some(after) = (if *step == RowStep::Delete { None } else { new.next() }) else {
                continue;
            };
            if *step != RowStep::Keep {
                writer.change_row(row, before.unwrap_or(&&blank), after);
            }
            row += 1;
        }
        steps = steps.get(run..).unwrap_or_default();
    }
}

fn take_out(steps: &[RowStep], writer: &mut RowWriter) {
    let mut row = steps.iter().filter(|step| **step != RowStep::Insert).count();
    let mut run = 0;
    for step in steps.iter().rev().filter(|step| **step != RowStep::Insert) {
        if *step == RowStep::Delete {
            run += 1;
        } else if run > 0 {
            writer.delete_rows(row, run);
            run = 0;
        }
        row -= 1;
    }
    if run > 0 {
        writer.delete_rows(row, run);
    }
}
