//! What is to be seen: the result of the view, the input of the screen.

use crate::text::Line;

/// A cell of the live part, from its upper left corner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    /// Lines below the first.
    pub row: usize,
    /// Columns right of the first.
    pub column: usize,
}

/// The size of the terminal, in cells. Never zero in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The number of columns.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
}

impl Size {
    /// A size; a terminal that reports nothing is taken as one cell.
    #[must_use]
    pub fn new(width: usize, height: usize) -> Self {
        Self { width: width.max(1), height: height.max(1) }
    }
}

impl Default for Size {
    fn default() -> Self {
        Self { width: 80, height: 24 }
    }
}

/// One picture of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Lines that will not change any more: they are written above the live part once, and belong to
    /// the terminal from then on. Already cut to its width.
    pub finished: Vec<Line>,
    /// The lines that are redrawn when they change; at most as many as the terminal has rows, already cut to its
    /// width.
    pub live: Vec<Line>,
    /// The position of the terminal's cursor; `None` hides it.
    pub cursor: Option<Cell>,
}
