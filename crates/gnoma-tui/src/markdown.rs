//! Streaming Markdown rendering: a block that is complete is drawn once and forgotten, and only the open one at the
//! end is read again. However a text is cut into pieces, the lines are those of the whole text. HTML is shown as it is
//! written; nothing is fetched.

mod blocks;
mod code;
mod inline;
mod split;
mod table;

use crate::{
    highlight::Highlighter,
    text::{Line, Style, TextRole},
};
use blocks::Definitions;
use code::CODE_INDENT;
use split::{Piece, PieceKind, Splitter};

/// A line without an end is cut here, whatever it holds.
const MAX_LINE_BYTES: usize = 8_192;

/// A whole text as lines of at most `width` columns.
#[must_use]
pub fn render(text: &str, width: usize) -> Vec<Line> {
    let mut stream = Stream::default();
    stream.push(text);
    stream.finish();
    stream.take_lines(width)
}

/// A text that is being written.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    splitter: Splitter,
    /// The line that has no end yet.
    partial: String,
    /// Complete, but not drawn.
    ready: Vec<Piece>,
    drawn: DrawnBlocks,
}

impl Stream {
    /// More of the text.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = rest.split_once('\n').map_or((rest, None), |(a, b)| (a, Some(b)));
            self.extend_partial(line);
            let Some(after) = after else { return };
            self.end_line();
            rest = after;
        }
    }

    /// The text ends here.
    pub fn finish(&mut self) {
        if !self.partial.is_empty() {
            self.end_line();
        }
        self.splitter.finish(&mut self.ready);
    }

    /// The lines of the blocks that have become complete.
    pub fn take_lines(&mut self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in self.ready.drain(..) {
            self.drawn.render_piece(&piece, width, &mut lines);
        }
        lines
    }

    /// The lines of what is still open, as if the text ended here.
    #[must_use]
    pub fn unfinished_lines(&self, width: usize) -> Vec<Line> {
        let mut splitter = self.splitter.clone();
        let mut pieces = self.ready.clone();
        if !inline::is_only_marks(&self.partial) {
            splitter.push_line(&inline::close_marks(splitter.open(), &self.partial), &mut pieces);
        }
        splitter.finish(&mut pieces);
        let mut drawn = self.drawn.clone();
        let mut lines = Vec::new();
        for piece in &pieces {
            drawn.render_piece(piece, width, &mut lines);
        }
        lines
    }

    /// Bytes that are kept because they may still change their meaning.
    #[must_use]
    pub fn open_bytes(&self) -> usize {
        self.splitter.open().len() + self.partial.len()
    }

    fn extend_partial(&mut self, mut text: &str) {
        while self.partial.len() + text.len() > MAX_LINE_BYTES {
            let room = MAX_LINE_BYTES.saturating_sub(self.partial.len());
            let (fits, after) = text.split_at(text.floor_char_boundary(room));
            self.partial.push_str(fits);
            self.end_line();
            text = after;
        }
        self.partial.push_str(text);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.partial);
        self.splitter.push_line(line.trim_end_matches('\r'), &mut self.ready);
    }
}

/// The facts about drawn blocks that later blocks need.
#[derive(Clone, Debug, Default)]
struct DrawnBlocks {
    definitions: Definitions,
    code: Option<Highlighter>,
    /// `true` if something was drawn before.
    any: bool,
}

impl DrawnBlocks {
    fn render_piece(&mut self, piece: &Piece, width: usize, lines: &mut Vec<Line>) {
        let before = lines.len();
        if piece.gap && self.any {
            lines.push(Line::default());
        }
        let start = lines.len();
        match &piece.kind {
            PieceKind::Text { source, number } => {
                lines.extend(blocks::render_blocks(source, *number, width, &mut self.definitions));
            }
            PieceKind::CodeStart { language } => {
                self.code = Highlighter::for_name(language);
                if !language.is_empty() {
                    let label = format!("{CODE_INDENT}{language}");
                    let label = Line::new(label, Style::with_ink(TextRole::Dim));
                    lines.extend(label.wrap(width, &Line::default()).into_iter().take(1));
                }
            }
            PieceKind::CodeLine(line) => {
                lines.extend(code::render_code_line(line, self.code.as_mut(), width));
            }
        }
        // The gap belongs to lines; without any there is none. Code without a name has no first line.
        let is_start = matches!(piece.kind, PieceKind::CodeStart { .. });
        if lines.len() == start && !is_start {
            lines.truncate(before);
        } else {
            self.any = true;
        }
    }
}

#[cfg(test)]
mod tests;
