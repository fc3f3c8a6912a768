//! Key bindings that do not edit: Ctrl+C and Esc interrupt, Ctrl+O expands, and where every key goes.

use gnoma_core::protocol::Request;

use super::{
    State,
    layer::Layer,
    parts::{ArmedKey, HintSubject, LookUp},
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
    pub(super) fn on_key(&mut self, key: Key) {
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
                self.on_key(key);
            }
        }
    }

    /// Does what a key asks for that is not editing.
    pub(super) fn apply_action(&mut self, action: Action) {
        match action {
            Action::Send => self.submit_input(),
            Action::Queue => self.enqueue_draft(),
            Action::HistoryOlder => self.show_older_prompt(),
            Action::HistoryNewer => self.show_newer_prompt(),
            Action::HistorySearch => self.layer = Some(Layer::Search(Default::default())),
            Action::ExternalEditor => self.open_editor(),
            Action::PasteImage => self.emit(Effect::PasteClipboard),
            Action::Stop => self.cancel_turn_on_esc(),
            Action::Interrupt => self.interrupt(),
            Action::Quit => self.quit_key(),
            Action::Redraw => self.emit(Effect::Redraw),
            Action::Suspend => self.emit(Effect::Suspend),
            Action::Detach => self.detach(),
            Action::CycleMode => self.cycle_mode(),
            Action::CycleThinking => self.cycle_thinking(),
            Action::Incognito => commands::run_command(self, "/incognito"),
            Action::Unfold => self.open_folded(),
            Action::Thinking => self.unfold_all(),
            Action::PickModel => commands::run_command(self, "/model"),
            Action::CopyAnswer => commands::run_command(self, "/copy"),
            Action::Help => commands::run_command(self, "/help"),
            Action::ScrollUp => self.emit(Effect::Scroll(SCROLL_LINES)),
            Action::ScrollDown => self.emit(Effect::Scroll(-SCROLL_LINES)),
            Action::PageUp => self.emit(Effect::Scroll(self.page_rows())),
            Action::PageDown => self.emit(Effect::Scroll(-self.page_rows())),
            Action::ScrollToStart => self.emit(Effect::Scroll(isize::MAX)),
            Action::ScrollToEnd => self.emit(Effect::Scroll(-isize::MAX)),
            // Editing, lists and answers are done where they belong.
            _ => (),
        }
    }

    /// Half of the screen: what is not the conversation takes less.
    fn page_rows(&self) -> isize {
        isize::try_from((self.size.height / 2).max(1)).unwrap_or(SCROLL_LINES)
    }

    /// Stops the turn and keeps its work.
    pub(super) fn cancel_turn_on_esc(&mut self) {
        if self.give_up_look_up() {
            return;
        }
        if self.drop_later() {
            return self.show_hint("Press Esc again to stop the turn");
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
        self.send_request(Request::Cancel, Purpose::Stop);
    }

    /// Clears what is written, else stops the turn, else quits when it is meant twice.
    fn interrupt(&mut self) {
        if !self.composer.is_empty() {
            let draft = self.composer.take_draft();
            self.save_prompt_and_end_browsing(&draft.text);
            self.schedule_save();
            return self.show_hint("Cleared. Press Up or undo to restore it");
        }
        if self.running.as_ref().is_some_and(|running| !running.is_stopping) {
            self.is_second_press(ArmedKey::Interrupt);
            self.drop_later();
            self.cancel_turn_on_esc();
            let text = "Stopping the turn. Press Ctrl+C again to quit";
            return self.hint_about(HintSubject::Turn, text);
        }
        if self.is_idle() && self.stop_shells() {
            return;
        }
        if self.is_second_press(ArmedKey::Interrupt) {
            return self.quit();
        }
        self.show_hint("Press Ctrl+C again to quit");
    }

    fn quit_key(&mut self) {
        if self.is_idle() || self.is_second_press(ArmedKey::Quit) {
            return self.quit();
        }
        self.show_hint("Turn running. Press Ctrl+D again to stop it and quit");
    }

    fn open_editor(&mut self) {
        if self.facts.incognito {
            // An editor needs a file, and makes some of its own beside it.
            return self.show_hint("Incognito writes no files, so the text cannot go to an editor");
        }
        let draft = self.composer.draft();
        self.emit(Effect::Save(self.unsent_drafts()));
        self.emit(Effect::OpenEditor(draft.text.clone()));
        self.writing.edited = Some(draft);
    }

    fn open_folded(&mut self) {
        if self.accessible {
            if !self.transcript.unfold_newest() {
                self.show_hint("Nothing is folded");
            }
            return;
        }
        match self.transcript.open_reader() {
            Some(reader) => self.layer = Some(Layer::Reader(reader)),
            None => self.show_hint("Nothing is folded"),
        }
    }

    /// A key for output that is shown whole. What is typed folds it and is written: a question that was not seen gets
    /// no answer by it.
    pub(super) fn reader_key(&mut self, mut reader: OutputReader, key: Key) {
        if is_text(key) {
            return self.writing_key(key);
        }
        if self.list_action(key).is_none_or(|action| reader.apply_action(action)) {
            self.layer = Some(Layer::Reader(reader));
        }
    }

    fn unfold_all(&mut self) {
        let text = if self.transcript.toggle_folding() {
            "Showing all output and thinking"
        } else {
            "Output and thinking folded"
        };
        self.show_hint(text);
    }

    fn show_older_prompt(&mut self) {
        if self.take_back_queued() {
            return;
        }
        if let Some(draft) = self.writing.history.recall_older(self.composer.draft()) {
            self.composer.restore_draft(draft);
            self.schedule_save();
        }
    }

    fn show_newer_prompt(&mut self) {
        if let Some(draft) = self.writing.history.recall_newer(self.composer.draft()) {
            self.composer.restore_draft(draft);
            self.schedule_save();
        }
    }
}
