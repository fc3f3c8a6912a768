//! The parts of a conversation, each as lines.

use std::time::Instant;

use super::{
    call::Call, folded_items::FoldedItem, layout, options::TranscriptOptions, thinking::Thinking,
};
use crate::{
    clean, markdown,
    text::{self, BackgroundRole, Line, Style, TextRole},
};

/// Lines of what a person said that are shown.
const MAX_PERSON_LINES: usize = 200;
/// Before the first line of what a person said.
const PERSON_MARK: &str = "› ";
/// The indentation before the other lines of what a person said.
const PERSON_INDENT: &str = "  ";

/// The words with which errors, their remedies and notices begin.
const MARKS: [&str; 4] = ["error: ", "hint: ", "warning: ", "note: "];

/// A part of the conversation.
#[derive(Debug)]
pub(super) enum Block {
    Person(String),
    Answer {
        stream: markdown::Stream,
        ended: bool,
        started: bool,
        /// `true` if the answer counts no more.
        retracted: bool,
    },
    Thinking(Thinking),
    Call(Call),
    /// A call has started, where calls are not shown while they run.
    Began(String),
    /// A line in the style of what it says.
    Words(String, Style),
    Folded(FoldedItem),
    Lines(Vec<Line>),
}

/// Decides whether an empty line separates two blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Person,
    Answer,
    Thinking,
    Call,
    Words,
    Lines,
}

impl Block {
    pub(super) fn sort_kind(&self) -> BlockKind {
        match self {
            Self::Person(_) => BlockKind::Person,
            Self::Answer { .. } => BlockKind::Answer,
            Self::Thinking(_) => BlockKind::Thinking,
            Self::Call(_) | Self::Began(_) => BlockKind::Call,
            Self::Words(..) => BlockKind::Words,
            Self::Folded(_) | Self::Lines(_) => BlockKind::Lines,
        }
    }

    /// Reports whether the block does not change any more.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Answer { ended, .. } => *ended,
            Self::Thinking(thinking) => thinking.is_over(),
            Self::Call(call) => call.is_over(),
            Self::Began(_)
            | Self::Person(_)
            | Self::Words(..)
            | Self::Folded(_)
            | Self::Lines(_) => true,
        }
    }

    /// The lines that cannot change any more, and whether the block is over.
    pub(super) fn take_finished_lines(
        &mut self,
        width: usize,
        options: TranscriptOptions,
    ) -> (Vec<Line>, bool) {
        let is_over = self.is_over();
        let lines = match self {
            Self::Answer { stream, retracted, .. } => {
                strike_lines(stream.take_lines(width), *retracted)
            }
            _ if is_over => self.draw(width, None, options),
            _ => Vec::new(),
        };
        (lines, is_over)
    }

    /// The lines as they are now; of an answer those that were not handed over.
    pub(super) fn draw(
        &self,
        width: usize,
        now: Option<Instant>,
        options: TranscriptOptions,
    ) -> Vec<Line> {
        match self {
            Self::Answer { stream, retracted, .. } => {
                strike_lines(stream.unfinished_lines(width), *retracted)
            }
            Self::Thinking(thinking) => thinking.draw(width, options),
            Self::Call(call) => call.draw(width, now, options),
            Self::Began(title) => layout::wrap_with_mark(
                "",
                &format!("running: {title}"),
                Style::with_ink(TextRole::Dim),
                width,
            ),
            Self::Person(text) => render_user_message(text, width),
            Self::Words(text, style) => wrap_marked_text(text, *style, width),
            Self::Folded(folded) => folded.draw(width),
            Self::Lines(lines) => lines.iter().flat_map(|line| line.wrap_hanging(width)).collect(),
        }
    }
}

/// Lines struck out, where they are.
fn strike_lines(mut lines: Vec<Line>, is_struck: bool) -> Vec<Line> {
    if is_struck {
        for span in lines.iter_mut().flat_map(|line| &mut line.spans) {
            span.style = Style { strike: true, ..Style::with_ink(TextRole::Dim) };
        }
    }
    lines
}

/// Lines of which the first may begin with a word such as `error:`, below whose text they continue. A line that is
/// indented continues below its own beginning.
fn wrap_marked_text(text: &str, style: Style, width: usize) -> Vec<Line> {
    let marked = MARKS.iter().find_map(|mark| Some((*mark, text.strip_prefix(mark)?)));
    let (mark, text) = marked.filter(|(mark, _)| mark.len() * 3 <= width).unwrap_or(("", text));
    let blank = " ".repeat(mark.len());
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let own = line.trim_start_matches(' ');
        let indent = " ".repeat(line.len() - own.len());
        let lead = if at == 0 { mark } else { &blank };
        let lead = format!("{lead}{indent}");
        let (lead, own) = if lead.len() * 3 <= width { (lead.as_str(), own) } else { ("", line) };
        lines.extend(layout::wrap_with_mark(lead, own, style, width));
    }
    lines
}

fn render_user_message(text: &str, width: usize) -> Vec<Line> {
    let style = Style::with_ink(TextRole::Person).on_paper(BackgroundRole::Person);
    let total = text.lines().count();
    let mut lines = Vec::new();
    for line in text.lines().take(MAX_PERSON_LINES) {
        let mark = if lines.is_empty() { PERSON_MARK } else { PERSON_INDENT };
        let line = clean::expand_tabs(line);
        lines.extend(layout::wrap_with_mark(mark, &line, style, width));
    }
    text::pad_background(&mut lines, width);
    if total > MAX_PERSON_LINES {
        lines.push(layout::more_lines_note(total - MAX_PERSON_LINES, width));
    }
    lines
}
