//! A table as lines: columns as wide as their content if there is room, otherwise narrower with wrapped cells, and
//! one line per cell if columns make no sense.

use pulldown_cmark::Alignment;

use crate::text::{Line, Span, Style, TextRole};

/// The bar between two columns.
const BAR: &str = " │ ";
/// Between two columns, in the line under the head.
const CROSS: &str = "─┼─";
const BAR_COLUMNS: usize = 3;
/// No column is made narrower to make room for others.
const MIN_COLUMNS: usize = 6;

/// A table that is being read.
pub(super) struct Table {
    alignments: Vec<Alignment>,
    head: Vec<Line>,
    rows: Vec<Vec<Line>>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, head: Vec::new(), rows: Vec::new() }
    }

    /// A row of the body begins.
    pub(super) fn begin_row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// The next cell of the row, or of the head.
    pub(super) fn push_cell(&mut self, mut cell: Line) {
        cell.trim_end();
        match self.rows.last_mut() {
            Some(row) => row.push(cell),
            None => {
                for span in &mut cell.spans {
                    span.style.bold = true;
                }
                self.head.push(cell);
            }
        }
    }

    pub(super) fn draw(&self, width: usize) -> Vec<Line> {
        match self.column_widths(width) {
            Some(widths) => self.in_columns(&widths),
            None => self.in_records(width),
        }
    }

    /// Returns the width of each column; nothing when they do not fit.
    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut widths = vec![1; count];
        for row in self.rows.iter().chain([&self.head]) {
            for (column, cell) in widths.iter_mut().zip(row) {
                *column = (*column).max(cell.width());
            }
        }
        let room = width.checked_sub(BAR_COLUMNS * count.saturating_sub(1))?;
        let most = widest_that_fits(&widths, room);
        let fits = widths.iter().all(|natural| (*natural).min(MIN_COLUMNS) <= most);
        fits.then(|| widths.iter().map(|natural| (*natural).min(most)).collect())
    }

    fn in_columns(&self, widths: &[usize]) -> Vec<Line> {
        let mut lines = self.render_row(&self.head, widths);
        let rule: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
        lines.push(Line::new(rule.join(CROSS), Style::with_ink(TextRole::Dim)));
        lines.extend(self.rows.iter().flat_map(|row| self.render_row(row, widths)));
        lines
    }

    /// A row in as many lines as its longest cell takes.
    fn render_row(&self, row: &[Line], widths: &[usize]) -> Vec<Line> {
        let none = Line::default();
        let broken = |(at, width): (usize, &usize)| {
            let cell = row.get(at).unwrap_or(&none);
            if cell.width() <= *width {
                return vec![cell.clone()];
            }
            let mut lines = cell.wrap(*width, &none);
            lines.iter_mut().for_each(Line::trim_end);
            lines
        };
        let cells: Vec<_> = widths.iter().enumerate().map(broken).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            let mut line = Line::default();
            for ((cell, width), alignment) in cells.iter().zip(widths).zip(&self.alignments) {
                if !line.spans.is_empty() {
                    line.spans.push(Span::new(BAR, Style::with_ink(TextRole::Dim)));
                }
                align_cell(cell.get(at).unwrap_or(&none), *width, *alignment, &mut line);
            }
            line.trim_end();
            line
        };
        (0..height).map(line).collect()
    }

    /// Every cell by itself, behind the name of its column.
    fn in_records(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for row in &self.rows {
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            for (name, cell) in self.head.iter().zip(row) {
                let mut line = name.clone();
                line.spans.push(Span::new(": ", Style::default()));
                line.spans.extend(cell.spans.iter().cloned());
                lines.extend(line.wrap(width, &Line::default()));
            }
        }
        lines.iter_mut().for_each(Line::trim_end);
        lines
    }
}

/// The largest width for which all columns fit, when none is wider than it.
fn widest_that_fits(widths: &[usize], room: usize) -> usize {
    let mut ordered = widths.to_vec();
    gnoma_core::sort::sort_items(&mut ordered);
    let mut room = room;
    for (at, width) in ordered.iter().enumerate() {
        let left = ordered.len() - at;
        if width * left > room {
            return room / left;
        }
        room -= width;
    }
    ordered.last().copied().unwrap_or(0)
}

fn align_cell(cell: &Line, width: usize, alignment: Alignment, line: &mut Line) {
    let free = width.saturating_sub(cell.width());
    let before = match alignment {
        Alignment::None | Alignment::Left => 0,
        Alignment::Center => free / 2,
        Alignment::Right => free,
    };
    let spaces = |count: usize| Span::new(" ".repeat(count), Style::default());
    line.spans.push(spaces(before));
    line.spans.extend(cell.spans.iter().cloned());
    line.spans.push(spaces(free - before));
}
