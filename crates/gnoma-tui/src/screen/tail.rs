//! The last lines that went into the terminal's own scrollback, to fill a spoiled screen again. Only the terminal
//! has earlier ones.

use std::collections::VecDeque;

use crate::text::Line;

/// More rows than any terminal shows at once.
const MAX_LINES: usize = 300;

/// The last lines that went into the terminal's own scrollback.
#[derive(Debug, Default)]
pub(super) struct Tail(VecDeque<Line>);

impl Tail {
    pub(super) fn add(&mut self, lines: &[Line]) {
        let newest = lines.get(lines.len().saturating_sub(MAX_LINES)..).unwrap_or_default();
        self.0.extend(newest.iter().cloned());
        let excess = self.0.len().saturating_sub(MAX_LINES);
        self.0.drain(..excess);
    }

    /// The last of them, in at most so many rows.
    pub(super) fn visible_rows(&self, width: usize, room: usize) -> Vec<Line> {
        let mut rows = Vec::new();
        for line in self.0.iter().rev() {
            let wrapped = if line.width() <= width {
                vec![line.clone()]
            } else {
                line.wrap(width, &Line::default())
            };
            rows.extend(wrapped.into_iter().rev());
            if rows.len() >= room {
                break;
            }
        }
        rows.truncate(room);
        rows.reverse();
        rows
    }
}
