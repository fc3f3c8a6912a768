//! Keys and pastes for the editor.

use gnoma_core::Image;

use super::State;
use crate::{
    composer::{Draft, Pasted, Pressed},
    keymap::{Action, Code, Key},
    wish::Wish,
};

impl State {
    pub(super) fn writing_key(&mut self, key: Key) {
        if self.completion_key(key) {
            return;
        }
        if key == Key::plain(Code::Backspace) && self.drop_attached() {
            return;
        }
        match self.composer.press(key, &self.keymap) {
            Pressed::Changed => {
                self.typed_at = Some(self.now);
                self.completion.reopen();
                self.touched();
            }
            Pressed::Moved => (),
            Pressed::Wanted(action) => self.act(action),
            Pressed::Ignored => self.hint_for(key),
        }
    }

    fn hint_for(&mut self, key: Key) {
        let is_function = matches!(key.code, Code::Function(_));
        if is_function || key.control || key.alt {
            let help = self.keymap.keys(crate::keymap::Context::Global, Action::Help).first();
            let help = help.map_or_else(|| "/help".to_owned(), ToString::to_string);
            self.hint(format!("{key} does nothing here; {help} shows the keys"));
        }
    }

    pub(super) fn paste(&mut self, text: String) {
        if self.layer.is_some() {
            return self.layer_paste(text);
        }
        self.written_paste(text);
    }

    /// An image for what is being written.
    pub(super) fn attach(&mut self, instead: &str, image: Image, name: &str) {
        if !self.composer.attach_instead(instead, image, name) {
            self.hint("there are too many images and pasted parts already");
        }
        self.touched();
    }

    pub(super) fn written_paste(&mut self, text: String) {
        let copy = text.clone();
        match self.composer.paste(text) {
            Pasted::Inserted | Pasted::Chip => (),
            Pasted::Path { path, text } => self.wish(Wish::ReadImage { path, text }),
            Pasted::Full => {
                self.keep_waiting(Draft::from(copy));
                self.hint("there are too many pasted parts; this one waits in the queue");
            }
        }
        self.typed_at = Some(self.now);
        self.completion.reopen();
        self.touched();
    }
}
