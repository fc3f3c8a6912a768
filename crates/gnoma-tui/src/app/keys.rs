//! Where a key goes, and what the keys do that are not editing.

use gnoma_core::protocol::Request;

use super::{
    State,
    layer::Layer,
    parts::{Armed, HintSubject, LookUp},
};
use crate::{
    ask::Purpose,
    commands,
    effect::Effect,
    keymap::{Action, Code, Key},
    transcript::OutputReader,
};

/// Lines that a scroll key moves.
const SCROLL_LINES: isize = 5;

/// Keys that are kept for a list until it is there.
const MAX_TYPED: usize = 256;

/// Reports whether a key types a character.
fn is_text(key: Key) -> bool {
    matches!(key.code, Code::Char(_)) && !key.control && !key.alt && !key.super_key
}

impl State {
    pub(super) fn key(&mut self, key: Key) {
        if self.writing.ends_line {
            self.writing.ends_line = key != Key::plain(Code::Enter);
            return;
        }
        let armed = self.timers.armed;
        self.dispatch(key);
        // A key that has not confirmed what waits for a second one takes it back.
        self.timers.armed.take_if(|now| armed == Some(*now));
    }

    fn dispatch(&mut self, key: Key) {
        if let Some(layer) = self.layer.take() {
            self.layer_key(layer, key);
        } else if self.takes_answers() {
            self.question_key(key);
        } else if self.is_for_list(key) {
            if self.look_ups.typed.len() < MAX_TYPED {
                self.look_ups.typed.push(key);
            }
        } else {
            self.writing_key(key);
        }
    }

    /// Reports whether a key is meant for the list that was asked for and is not there yet. Text that is written
    /// already, and another command, continue in the editor.
    fn is_for_list(&self, key: Key) -> bool {
        let is_awaited = |look_up: &LookUp| look_up.sought.is_list() && look_up.argument.is_empty();
        let begins_command = self.look_ups.typed.is_empty() && key == Key::plain(Code::Char('/'));
        let is_of_lists = match key.code {
            Code::Char(_) => is_text(key),
            Code::Up | Code::Down | Code::Enter | Code::Backspace => true,
            _ => false,
        };
        self.look_ups.open.as_ref().is_some_and(is_awaited)
            && self.composer.is_empty()
            && is_of_lists
            && !begins_command
    }

    /// Passes the keys that were typed for a list to it. Where none has opened only the text is left, in the
    /// editor.
    pub(super) fn type_again(&mut self) {
        for key in std::mem::take(&mut self.look_ups.typed) {
            if self.layer.is_some() || is_text(key) {
                self.key(key);
            }
        }
    }

    /// Does what a key asks for that is not editing.
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::Send => self.submit(),
            Action::Queue => self.enqueue(),
            Action::HistoryOlder => self.older(),
            Action::HistoryNewer => self.newer(),
            Action::HistorySearch => self.layer = Some(Layer::Search(Default::default())),
            Action::ExternalEditor => self.open_editor(),
            Action::PasteImage => self.emit(Effect::PasteClipboard),
            Action::Stop => self.stop(),
            Action::Interrupt => self.interrupt(),
            Action::Quit => self.quit_key(),
            Action::Redraw => self.emit(Effect::Redraw),
            Action::Suspend => self.emit(Effect::Suspend),
            Action::Detach => self.detach(),
            Action::CycleMode => self.cycle_mode(),
            Action::CycleThinking => self.cycle_thinking(),
            Action::Incognito => commands::run(self, "/incognito"),
            Action::Unfold => self.unfold(),
            Action::Thinking => self.unfold_all(),
            Action::PickModel => commands::run(self, "/model"),
            Action::CopyAnswer => commands::run(self, "/copy"),
            Action::Help => commands::run(self, "/help"),
            Action::ScrollUp => self.emit(Effect::Scroll(SCROLL_LINES)),
            Action::ScrollDown => self.emit(Effect::Scroll(-SCROLL_LINES)),
            Action::PageUp => self.emit(Effect::Scroll(self.page())),
            Action::PageDown => self.emit(Effect::Scroll(-self.page())),
            Action::ScrollToStart => self.emit(Effect::Scroll(isize::MAX)),
            Action::ScrollToEnd => self.emit(Effect::Scroll(-isize::MAX)),
            // Editing, lists and answers are done where they belong.
            _ => (),
        }
    }

    /// Half of the screen: what is not the conversation takes less.
    fn page(&self) -> isize {
        isize::try_from((self.size.height / 2).max(1)).unwrap_or(SCROLL_LINES)
    }

    /// Stops the turn and keeps its work.
    pub(super) fn stop(&mut self) {
        if self.give_up_look_up() {
            return;
        }
        if self.drop_later() {
            return self.hint("Press Esc again to stop the turn");
        }
        let Some(running) = &mut self.running else {
            self.stop_shells();
            return;
        };
        if running.is_stopping {
            return self.hint_about(HintSubject::Turn, "Stopping…");
        }
        running.is_stopping = true;
        self.hold_queue();
        self.request(Request::Cancel, Purpose::Stop);
    }

    /// Clears what is written, else stops the turn, else quits when it is meant twice.
    fn interrupt(&mut self) {
        if !self.composer.is_empty() {
            let draft = self.composer.take();
            self.remember(&draft.text);
            self.touched();
            return self.hint("Cleared. Press Up or undo to restore it");
        }
        if self.running.as_ref().is_some_and(|running| !running.is_stopping) {
            self.confirms(Armed::Interrupt);
            self.drop_later();
            self.stop();
            let text = "Stopping the turn. Press Ctrl+C again to quit";
            return self.hint_about(HintSubject::Turn, text);
        }
        if self.is_idle() && self.stop_shells() {
            return;
        }
        if self.confirms(Armed::Interrupt) {
            return self.quit();
        }
        self.hint("Press Ctrl+C again to quit");
    }

    fn quit_key(&mut self) {
        if self.is_idle() || self.confirms(Armed::Quit) {
            return self.quit();
        }
        self.hint("Turn running. Press Ctrl+D again to stop it and quit");
    }

    fn open_editor(&mut self) {
        if self.facts.incognito {
            // An editor needs a file, and makes some of its own beside it.
            return self.hint("Incognito writes no files, so the text cannot go to an editor");
        }
        let draft = self.composer.draft();
        self.emit(Effect::Save(self.drafts()));
        self.emit(Effect::OpenEditor(draft.text.clone()));
        self.writing.edited = Some(draft);
    }

    fn unfold(&mut self) {
        if self.accessible {
            if !self.transcript.unfold() {
                self.hint("Nothing is folded");
            }
            return;
        }
        match self.transcript.reader() {
            Some(reader) => self.layer = Some(Layer::Reader(reader)),
            None => self.hint("Nothing is folded"),
        }
    }

    /// A key for output that is shown whole. What is typed folds it and is written: a question that was not seen gets
    /// no answer by it.
    pub(super) fn reader_key(&mut self, mut reader: OutputReader, key: Key) {
        if is_text(key) {
            return self.writing_key(key);
        }
        if self.list_action(key).is_none_or(|action| reader.act(action)) {
            self.layer = Some(Layer::Reader(reader));
        }
    }

    fn unfold_all(&mut self) {
        let text = if self.transcript.toggle() {
            "Showing all output and thinking"
        } else {
            "Output and thinking folded"
        };
        self.hint(text);
    }

    fn older(&mut self) {
        if self.take_back_queued() {
            return;
        }
        if let Some(draft) = self.writing.history.older(self.composer.draft()) {
            self.composer.restore(draft);
            self.touched();
        }
    }

    fn newer(&mut self) {
        if let Some(draft) = self.writing.history.newer(self.composer.draft()) {
            self.composer.restore(draft);
            self.touched();
        }
    }
}
