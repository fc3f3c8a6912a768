//! A question as a screen reader says it: all of it in lines, without boxes.

use gnoma_core::session::Scope;

use super::{Choice, MAX_SPOKEN_LINES, PermissionQuestion, dim_style};
use crate::{keymap::Keymap, text::Line};

impl PermissionQuestion {
    /// All of the question, for those who hear it.
    #[must_use]
    pub fn spoken_lines(&self, place: &str, keymap: &Keymap, width: usize) -> Vec<Line> {
        let mut lines = vec![self.heading(0)];
        let body = self.body_lines(width);
        let missing = body.len().saturating_sub(MAX_SPOKEN_LINES);
        lines.extend(body.into_iter().take(MAX_SPOKEN_LINES));
        if missing > 0 {
            lines.push(Line::new(format!("{missing} more lines"), dim_style()));
        }
        lines.extend(self.facts(place, width));
        for choice in self.choices() {
            lines.push(self.choice_line(choice, false, keymap));
            lines.extend(self.holding_lines(choice, keymap, width));
        }
        lines.push(Line::new(self.how_to_answer(keymap), dim_style()));
        lines
    }

    /// Names the keys of the answers, for people who type a line.
    fn how_to_answer(&self, keymap: &Keymap) -> String {
        let keys: Vec<String> =
            self.choices().iter().map(|choice| choice.key_label(keymap)).collect();
        match keys.split_last() {
            Some((last, [])) => format!("Type {last} and press Enter"),
            Some((last, first)) => format!("Type {} or {last} and press Enter", first.join(", ")),
            None => String::new(),
        }
    }

    /// The choice that Enter would take, in one line.
    #[must_use]
    pub fn spoken_choice(&self, keymap: &Keymap) -> String {
        let chosen = self.choices().get(self.chosen).copied().unwrap_or(Choice::No);
        let text = self.choice_line(chosen, false, keymap).plain_text().trim().to_owned();
        match self.always.as_ref().filter(|lasting| lasting.scope != Scope::Session) {
            Some(lasting) => format!("{text} ({})", lasting.describe_scope()),
            None => text,
        }
    }
}
