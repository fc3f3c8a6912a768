//! The finished lines on the alternate screen, which has no scrollback: they are kept here, with a window on their
//! end or, scrolled back, on an earlier part.

use std::collections::VecDeque;

use crate::{
    frame::Size,
    picker::truncate_line,
    text::{Line, Style, TextRole},
};

/// Older lines than this are forgotten.
const MAX_KEPT_LINES: usize = 20_000;

/// The finished lines of the conversation.
#[derive(Debug, Default)]
pub(super) struct Pages {
    lines: VecDeque<Line>,
    /// Lines below the window.
    below: usize,
}

impl Pages {
    /// Adds finished lines. A window that was scrolled back stays where it is.
    pub(super) fn add(&mut self, lines: &[Line]) {
        self.lines.extend(lines.iter().cloned());
        if self.below > 0 {
            self.below += lines.len();
        }
        let excess = self.lines.len().saturating_sub(MAX_KEPT_LINES);
        self.lines.drain(..excess);
        self.below = self.below.min(self.lines.len());
    }

    /// Moves the window, up by positive numbers.
    pub(super) fn scroll(&mut self, up: isize) {
        let last = self.lines.len().saturating_sub(1);
        self.below = self.below.saturating_add_signed(up).min(last);
    }

    /// A screen full, as many finished lines as there is room for above `live`, and how many these
    /// are. A window that is scrolled back says so.
    pub(super) fn visible_lines(&mut self, live: &[Line], size: Size) -> (Vec<Line>, usize) {
        let room = size.height.saturating_sub(live.len());
        // At the top the window is full as well.
        self.below = self.below.min((self.lines.len() + 1).saturating_sub(room));
        let mark = (self.below > 0 && room > 0).then(|| more_below_line(self.below, size.width));
        let mut above: Vec<Line> = mark.into_iter().collect();
        for line in self.lines.iter().rev().skip(self.below) {
            if above.len() >= room {
                break;
            }
            let fits = line.width() <= size.width;
            let rows = if fits {
                vec![line.clone()]
            } else {
                line.wrap(size.width, &leading_blanks(line, size))
            };
            above.extend(rows.into_iter().rev());
        }
        above.truncate(room);
        above.reverse();
        let count = above.len();
        above.extend(live.iter().cloned());
        above.resize(size.height, Line::default());
        (above, count)
    }
}

/// The blanks that a line begins with, for the rows that it takes on a narrower screen.
fn leading_blanks(line: &Line, size: Size) -> Line {
    let text = line.plain_text();
    let blanks = text.len() - text.trim_start_matches(' ').len();
    Line::new(" ".repeat(blanks.min(size.width / 2)), Style::default())
}

fn more_below_line(below: usize, width: usize) -> Line {
    let text = format!("  {below} more below (PgDn, Ctrl+PgDn)");
    truncate_line(Line::new(text, Style::with_ink(TextRole::Warning)), width)
}
