//! Keys and pastes for the editor.

use gnoma_core::Image;

use super::State;
use crate::{
    composer::{Draft, KeyOutcome, PasteOutcome},
    effect::Effect,
    keymap::{Action, Code, Key},
    terminal::decode::MAX_PASTE_BYTES,
};

impl State {
    pub(super) fn writing_key(&mut self, key: Key) {
        if self.completion_key(key) {
            return;
        }
        if key == Key::plain(Code::Backspace) && self.drop_attached() {
            return;
        }
        if self.composer.is_empty() && self.scroll_key(key) {
            return;
        }
        match self.composer.press(key, &self.keymap) {
            KeyOutcome::Changed => {
                self.timers.typed_at = Some(self.now);
                self.writing.completion.reopen();
                self.schedule_save();
            }
            KeyOutcome::Moved => (),
            KeyOutcome::Wanted(action) => self.apply_action(action),
            KeyOutcome::Ignored => self.hint_for(key),
        }
    }

    /// Scrolls to an end of the conversation where nothing is written and the key is one for the ends of a line.
    /// Returns whether it was one.
    fn scroll_key(&mut self, key: Key) -> bool {
        let action = match key {
            _ if key == Key::plain(Code::Home) => Action::ScrollToStart,
            _ if key == Key::plain(Code::End) => Action::ScrollToEnd,
            _ => return false,
        };
        self.apply_action(action);
        true
    }

    fn hint_for(&mut self, key: Key) {
        let is_function = matches!(key.code, Code::Function(_));
        if is_function || key.control || key.alt {
            let help = self.keymap.keys(crate::keymap::Context::Global, Action::Help).first();
            let help = help.map_or_else(|| "/help".to_owned(), ToString::to_string);
            self.show_hint(format!("{key} does nothing here. Press {help} for the keys"));
        }
    }

    pub(super) fn paste(&mut self, text: String) {
        if self.layer.is_some() {
            return self.layer_paste(text);
        }
        self.written_paste(text);
    }

    /// A paste was too large to be taken.
    pub(super) fn paste_refused(&mut self, bytes: u64) {
        let limit = MAX_PASTE_BYTES >> 20;
        self.show_warning(&format!(
            "Paste too large: {} MB, the limit is {limit} MB. Save it to a file and mention that with `@`",
            bytes.div_ceil(1 << 20)
        ));
    }

    /// An image for what is being written.
    pub(super) fn attach_image(&mut self, instead: &str, image: Image, name: &str) {
        if !self.composer.attach_instead(instead, image, name) {
            self.show_hint("Too many images and pasted texts in this message");
        }
        self.schedule_save();
    }

    pub(super) fn written_paste(&mut self, text: String) {
        let copy = text.clone();
        match self.composer.paste(text) {
            PasteOutcome::Inserted | PasteOutcome::Chip => (),
            PasteOutcome::Path { path, text } => self.emit(Effect::ReadImage { path, text }),
            PasteOutcome::Full => {
                self.keep_waiting(Draft::from(copy));
                self.show_hint("Too many pasted texts. This message stays in the queue");
            }
        }
        self.timers.typed_at = Some(self.now);
        self.writing.completion.reopen();
        self.schedule_save();
    }
}
