//! The reader: expands what was shown folded, one thing at a time in a part of the window, which is folded again with
//! a key.

use super::folded_items::FoldedItem;
use crate::{
    keymap::Action,
    text::{Line, Style, TextRole},
};

/// Rows around the text: its title, and the keys.
const ROWS_AROUND: usize = 2;

/// Shows folded things, the newest first.
#[derive(Clone, Debug)]
pub(crate) struct OutputReader {
    /// The newest first; never empty.
    things: Vec<FoldedItem>,
    at: usize,
    scrolled: usize,
    /// Rows that a page moves: those that were shown last.
    page: usize,
    /// The lines of the thing that is shown, for a width.
    drawn: Option<(usize, Vec<Line>)>,
}

impl OutputReader {
    /// `None` if there is nothing to show.
    pub(super) fn new(things: Vec<FoldedItem>) -> Option<Self> {
        let is_some = !things.is_empty();
        is_some.then_some(Self { things, at: 0, scrolled: 0, page: 1, drawn: None })
    }

    /// Does what a key asks for. Says whether it stays open.
    pub(crate) fn apply_action(&mut self, action: Action) -> bool {
        match action {
            Action::Up => self.scrolled = self.scrolled.saturating_sub(1),
            Action::Down => self.scrolled = self.scrolled.saturating_add(1),
            Action::PageUp => self.scrolled = self.scrolled.saturating_sub(self.page),
            Action::PageDown => self.scrolled = self.scrolled.saturating_add(self.page),
            Action::First => self.scrolled = 0,
            Action::Last => self.scrolled = usize::MAX,
            Action::Left => self.turn_to((self.at + 1).min(self.things.len() - 1)),
            Action::Right => self.turn_to(self.at.saturating_sub(1)),
            Action::Unfold | Action::Close | Action::Accept | Action::Stop | Action::Interrupt => {
                return false;
            }
            _ => (),
        }
        true
    }

    fn turn_to(&mut self, at: usize) {
        if at != self.at {
            (self.at, self.scrolled, self.drawn) = (at, 0, None);
        }
    }

    /// The thing in at most `height` lines.
    pub(crate) fn render_lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        let Some(thing) = self.things.get(self.at) else { return Vec::new() };
        if self.drawn.as_ref().is_none_or(|(drawn, _)| *drawn != width) {
            self.drawn = Some((width, thing.draw(width)));
        }
        let Some((_, drawn)) = &self.drawn else { return Vec::new() };
        let Some((title, body)) = drawn.split_first() else { return Vec::new() };
        let room = height.saturating_sub(ROWS_AROUND).max(1);
        self.page = room;
        self.scrolled = self.scrolled.min(body.len().saturating_sub(room));
        let shown = body.iter().skip(self.scrolled).take(room);
        let mut lines = vec![title.clone()];
        lines.extend(shown.cloned());
        if height > ROWS_AROUND {
            let (first, last) = (self.scrolled + 1, (self.scrolled + room).min(body.len()));
            lines.push(Line::new(
                self.footer(first, last, body.len()),
                Style::with_ink(TextRole::Dim),
            ));
        }
        lines
    }

    fn footer(&self, first: usize, last: usize, all: usize) -> String {
        let mut parts = vec!["Ctrl+O or Esc folds".to_owned()];
        if all > (last + 1).saturating_sub(first) {
            parts.push(format!("lines {first}–{last} of {all} (Up, Down, PgUp, PgDn)"));
        }
        if self.at + 1 < self.things.len() {
            parts.push("Left: the one before".to_owned());
        }
        if self.at > 0 {
            parts.push("Right: the next one".to_owned());
        }
        parts.join(" · ")
    }
}

#[cfg(test)]
mod tests {
    use super::{super::folded_items::Body, *};

    fn reader(bodies: &[&str]) -> OutputReader {
        let thing = |body: &&str| FoldedItem {
            title: format!("thing of {}", body.len()),
            body: Body::Text((*body).to_owned()),
        };
        OutputReader::new(bodies.iter().map(thing).collect()).unwrap()
    }

    fn plain(lines: &[Line]) -> Vec<String> {
        lines.iter().map(|line| line.plain_text().trim_end().to_owned()).collect()
    }

    #[test]
    fn long_output_is_scrolled_and_folded_again() {
        let long: String = (1..=100).map(|line| format!("line {line}\n")).collect();
        let mut reader = reader(&[&long, "older"]);
        let shown = plain(&reader.render_lines(80, 6));
        assert_eq!(shown[1..5], ["  line 1", "  line 2", "  line 3", "  line 4"]);
        assert!(shown[5].contains("lines 1–4 of 100") && shown[5].contains("Ctrl+O"), "{shown:?}");
        assert!(reader.apply_action(Action::PageDown) && reader.apply_action(Action::Down));
        assert_eq!(plain(&reader.render_lines(80, 6))[1], "  line 6");
        assert!(reader.apply_action(Action::Last));
        assert_eq!(plain(&reader.render_lines(80, 6))[4], "  line 100");
        assert!(!reader.apply_action(Action::Unfold), "the same key folds");
    }

    #[test]
    fn output_reader_steps_to_older_outputs() {
        let mut reader = reader(&["newest", "older"]);
        reader.apply_action(Action::Left);
        reader.apply_action(Action::Left);
        assert!(plain(&reader.render_lines(80, 6)).contains(&"  older".to_owned()));
        reader.apply_action(Action::Right);
        let shown = plain(&reader.render_lines(80, 6));
        assert_eq!(
            shown,
            ["▾ thing of 6", "  newest", "Ctrl+O or Esc folds · Left: the one before"]
        );
        assert!(OutputReader::new(Vec::new()).is_none());
    }
}
