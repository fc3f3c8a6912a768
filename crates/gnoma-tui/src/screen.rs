//! Brings frames to a terminal with as few bytes as it can: only what changed is painted, and frames
//! that change nothing cost nothing. Pure: sizes and frames in, bytes out.
//!
//! Inline, finished lines are written where the live part begins and push it down, so that the
//! terminal's own scrollback ends up holding the conversation. What has left the live part is never
//! touched again, and the screen is never cleared as a whole.

mod cells;
mod pages;
mod plan;
mod region;
mod tail;
mod writer;

use pages::Pages;
use region::Region;
use tail::Tail;

use crate::{
    frame::{Cell, Frame, Size},
    text::Line,
    theme::Theme,
};

const BEGIN_SYNC: &[u8] = b"\x1b[?2026h";
const END_SYNC: &[u8] = b"\x1b[?2026l";
const HIDE_CURSOR: &[u8] = b"\x1b[?25l";
/// Scrollback is left alone, also by multiplexers, which keep a screen that is cleared in one go.
const HOME_AND_CLEAR: &[u8] = b"\x1b[m\x1b[H\x1b[2K\x1b[B\x1b[J\x1b[H";
const SHOW_CURSOR: &[u8] = b"\x1b[?25h";

/// The size before anything is drawn.
const NO_SIZE: Size = Size { width: 0, height: 0 };

/// The layout of a conversation on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// Below what the shell has written, with the terminal's own scrollback.
    #[default]
    Inline,
    /// On the alternate screen, with its own scrolling.
    FullScreen,
    /// Plain lines one after the other, for screen readers and terminals that cannot move their
    /// cursor. The live part is not shown: whatever matters has to be finished lines.
    Plain,
}

impl Layout {
    /// Returns the layout that fits: plain lines for people who ask for them (`ACCESSIBLE`) and where the cursor
    /// cannot be moved, by `TERM`.
    #[must_use]
    pub fn for_terminal(full_screen: bool, accessible: bool, term: Option<&str>) -> Self {
        if accessible || matches!(term, None | Some("" | "dumb")) {
            Self::Plain
        } else if full_screen {
            Self::FullScreen
        } else {
            Self::Inline
        }
    }
}

/// Reports whether a terminal folds its rows when it becomes narrower. This depends on `TERM`, on whether it is
/// XTerm itself (`XTERM_VERSION` is set), and on whether GNU Screen (`STY` is set) or tmux (`TMUX` is set) is in
/// between. tmux folds rows with any `TERM`.
#[must_use]
pub fn terminal_reflows(
    term: Option<&str>,
    is_xterm: bool,
    in_screen: bool,
    in_tmux: bool,
) -> bool {
    if in_tmux && !in_screen {
        return true;
    }
    const CUT: [&str; 5] = ["linux", "rxvt", "screen", "st-", "vt"];
    let term = term.unwrap_or_default();
    !is_xterm && !in_screen && !CUT.iter().any(|start| term.starts_with(start))
}

/// The known traits of the terminal that matter for drawing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// `true` if the terminal shows everything between two marks at once.
    pub synchronized: bool,
    /// `true` if the terminal folds rows that have become too wide when it is made narrower; few do not.
    pub reflows: bool,
}

/// The current content of the terminal.
#[derive(Debug)]
pub struct Screen {
    layout: Layout,
    traits: Traits,
    theme: Theme,
    size: Size,
    region: Region,
    pages: Pages,
    tail: Tail,
    /// `true` if nothing that is on the terminal can be relied on.
    is_spoiled: bool,
    cursor_shown: bool,
}

impl Screen {
    /// A screen with nothing drawn yet. The terminal's cursor is where it will begin: in the first column if
    /// inline, or at the upper left corner of the alternate screen.
    #[must_use]
    pub fn new(layout: Layout, theme: Theme, traits: Traits) -> Self {
        Self {
            layout,
            traits,
            theme,
            size: NO_SIZE,
            region: Region::default(),
            pages: Pages::default(),
            tail: Tail::default(),
            is_spoiled: false,
            cursor_shown: true,
        }
    }

    /// Sets the traits that have been learned about the terminal since.
    pub fn set_traits(&mut self, traits: Traits) {
        self.traits = traits;
    }

    /// Returns the known traits of the terminal.
    #[must_use]
    pub fn traits(&self) -> Traits {
        self.traits
    }

    /// Other colours, from the next frame on. Lines that are finished keep theirs.
    pub fn set_theme(&mut self, theme: Theme) {
        if self.theme != theme {
            self.theme = theme;
            self.region.invalidate_rows();
        }
    }

    /// Shows an earlier part of the conversation, where the screen does its own scrolling.
    pub fn scroll(&mut self, rows_up: isize) {
        self.pages.scroll(rows_up);
    }

    /// Makes the next frame redraw everything, because something else has written to the terminal.
    pub fn request_redraw(&mut self) {
        self.is_spoiled = true;
    }

    /// Draws a frame that was made for a terminal of this size. Each finished line must be handed
    /// over in one frame only.
    pub fn draw(&mut self, frame: &Frame, size: Size, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        let live = last_rows(&frame.live, size.height);
        let above = match self.layout {
            Layout::Plain => return write_plain_lines(&frame.finished, out),
            Layout::Inline => self.draw_inline(&frame.finished, live, size, &mut body),
            Layout::FullScreen => self.draw_full(&frame.finished, live, size, &mut body),
        };
        self.size = size;
        let painted = !body.is_empty();
        let cut = frame.live.len() - live.len();
        let cursor = frame
            .cursor
            .map(|cell| Cell { row: above + cell.row.saturating_sub(cut), column: cell.column });
        if let Some(cell) = cursor {
            self.region.move_cursor(cell, size, &self.theme, &mut body);
        }
        self.write_synchronized(painted, cursor.is_some(), &body, out);
    }

    /// Clears the live part, so that something else may use the terminal. The next frame draws it
    /// again wherever the cursor is then, in the first column.
    pub fn erase(&mut self, out: &mut Vec<u8>) {
        if self.layout != Layout::Plain {
            self.region.erase(self.size.width, false, out);
            self.show_cursor(true, out);
        }
        self.region = Region::default();
        self.size = NO_SIZE;
    }

    /// Leaves the live part as it is, with the cursor below it.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if self.layout != Layout::Plain {
            self.region.close(self.size, &self.theme, out);
            self.show_cursor(true, out);
        }
    }

    /// Both ways of drawing say at which row of the region the live part begins.
    fn draw_inline(
        &mut self,
        finished: &[Line],
        live: &[Line],
        size: Size,
        out: &mut Vec<u8>,
    ) -> usize {
        let mut again = Vec::new();
        if std::mem::take(&mut self.is_spoiled) {
            out.extend_from_slice(HOME_AND_CLEAR);
            self.region = Region::with_blank_rows(1);
            let room = size.height.saturating_sub(finished.len() + live.len().max(1));
            again = self.tail.visible_rows(size.width, room);
        } else if size != self.size {
            let narrower = size.width < self.size.width;
            self.region.erase(size.width, narrower && self.traits.reflows, out);
        }
        let blank = Line::default();
        let mut rows: Vec<_> = again.iter().chain(finished).chain(live).collect();
        if live.is_empty() {
            rows.push(&blank);
        }
        let leaving = again.len() + finished.len();
        self.region.repaint(&rows, leaving, size, &self.theme, out);
        self.tail.add(finished);
        0
    }

    fn draw_full(
        &mut self,
        finished: &[Line],
        live: &[Line],
        size: Size,
        out: &mut Vec<u8>,
    ) -> usize {
        if std::mem::take(&mut self.is_spoiled) || size != self.size {
            out.extend_from_slice(HOME_AND_CLEAR);
            self.region = Region::with_blank_rows(size.height);
        }
        self.pages.add(finished);
        let (rows, above) = self.pages.visible_lines(live, size);
        self.region.repaint(&rows.iter().collect::<Vec<_>>(), 0, size, &self.theme, out);
        above
    }

    /// Wraps what was painted so that it is seen at once, or at least without a wandering cursor.
    fn write_synchronized(&mut self, painted: bool, cursor: bool, body: &[u8], out: &mut Vec<u8>) {
        let synchronized = painted && self.traits.synchronized;
        if synchronized {
            out.extend_from_slice(BEGIN_SYNC);
        } else if painted || !cursor {
            self.show_cursor(false, out);
        }
        out.extend_from_slice(body);
        self.show_cursor(cursor, out);
        if synchronized {
            out.extend_from_slice(END_SYNC);
        }
    }

    fn show_cursor(&mut self, shown: bool, out: &mut Vec<u8>) {
        if self.cursor_shown != shown {
            self.cursor_shown = shown;
            out.extend_from_slice(if shown { SHOW_CURSOR } else { HIDE_CURSOR });
        }
    }
}

/// The last rows, as many as there is room for.
fn last_rows(lines: &[Line], height: usize) -> &[Line] {
    lines.get(lines.len().saturating_sub(height)..).unwrap_or_default()
}

fn write_plain_lines(lines: &[Line], out: &mut Vec<u8>) {
    for line in lines {
        crate::paint::paint_text(line.plain_text().trim_end(), out);
        out.push(b'\n');
    }
}
