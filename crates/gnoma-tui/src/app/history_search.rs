//! The search through the history, as Ctrl+R does it.

use super::{State, layer::Layer};
use crate::{
    composer::Draft,
    history::Search,
    keymap::{Action, Key},
    text::{Line, Span, Style, TextRole},
};

impl State {
    pub(super) fn search_key(&mut self, mut search: Search, key: Key) {
        match (self.list_action(key), key.typed_char()) {
            (Some(Action::Accept | Action::Complete), _) => {
                let hit = search.current_match(&self.writing.history).map(Draft::from);
                if let Some(draft) = hit {
                    self.write_instead(draft);
                }
                return;
            }
            (Some(Action::Close | Action::Stop | Action::Interrupt), _) => return,
            (Some(Action::HistorySearch | Action::Up), _) => {
                search.select_older(&self.writing.history);
            }
            (Some(Action::HistoryNewer | Action::Down), _) => search.select_newer(),
            (Some(Action::DeleteLeft), _) => search.delete_char(),
            (Some(_), _) | (None, None) => (),
            (None, Some(c)) => search.add_char(c),
        }
        self.layer = Some(Layer::Search(search));
    }

    /// The search in one line, and what it found below.
    pub(super) fn search_lines(&self, search: &Search) -> Vec<Line> {
        let hit = search.current_match(&self.writing.history);
        let found = match hit {
            _ if search.query().is_empty() => String::new(),
            None => "no matches".to_owned(),
            Some(hit) => super::draft_display::first_line(&hit.into()),
        };
        let style = if hit.is_some() { Style::default() } else { Style::with_ink(TextRole::Dim) };
        vec![
            Line::from([
                Span::new("search › ", Style::with_ink(TextRole::Accent).bold()),
                Span::new(search.query().to_owned(), Style::default()),
            ]),
            Line::from([Span::new("  ", style), Span::new(found, style)]),
            Line::new("  Enter select · Ctrl+R older · Esc close", Style::with_ink(TextRole::Dim)),
        ]
    }
}
