//! Dispatches every input to the part of the view that handles it.

use std::{mem, time::Instant};

use super::{
    parts::Focus,
    state::{BEAT, State},
};
use crate::{
    effect::Effect,
    frame::{Frame, Size},
    input::Input,
    run::View,
};

/// Characters of the window's title.
const MAX_TITLE_CHARS: usize = 80;

impl State {
    fn dispatch_input(&mut self, input: Input) {
        match input {
            Input::Tick(now) => self.tick(now),
            Input::Session(envelope) => self.on_envelope(envelope),
            Input::Snapshot(view) => self.apply_snapshot(view),
            Input::Reply { purpose, result } => self.on_reply(purpose, result),
            Input::NoSession(error) => self.no_session(&error),
            Input::Disconnected { returns } => self.on_disconnected(returns),
            Input::Connected => self.show_hint("Reconnected to the server"),
            Input::Key(key) => self.on_key(key),
            Input::Paste(text) => self.paste(text),
            Input::PasteRefused(bytes) => self.paste_refused(bytes),
            Input::Wheel(rows_up) => self.emit(Effect::Scroll(rows_up)),
            Input::Resize(size) => self.size = size,
            Input::FocusGained => self.window.focus = Focus::Here,
            Input::FocusLost => self.window.focus = Focus::Away,
            Input::Background(_) | Input::Resumed => (),
            Input::Ending => {
                self.emit(Effect::Save(self.unsent_drafts()));
                // What is under way ends with the program: no line about it stays behind.
                self.exit.is_leaving = true;
            }
            Input::Listing(files) => self.writing.completion.set_files(files),
            Input::Missing(files) => self.warn_missing_files(&files),
            Input::Shell { line, output, failure } => self.shell_ended(&line, &output, failure),
            Input::Image { instead, image, name } => self.attach_image(&instead, image, &name),
            Input::Edited(text) => self.on_editor_closed(text),
            Input::StatusLine(text) => self.show_scripted_status(&text),
            Input::StatusScriptFailed(why) => self.on_status_script_failed(&why),
            Input::StatusSources { has_script, has_spending } => {
                self.use_status_sources(has_script, has_spending);
            }
            Input::Spending(parts) => self.spending_read(parts),
            Input::Failed(text) => self.show_warning(&text),
        }
    }

    /// The session has ended, and nothing takes its place.
    pub(super) fn on_session_closed(&mut self) {
        if self.session.is_switching {
            return;
        }
        self.forget_turn();
        let was_open = !mem::replace(&mut self.session.is_closed, true);
        // Where no provider is set up yet, the first start says what to do.
        if was_open && self.session.view.parent.is_some() {
            self.append_note("The elf has ended");
        } else if was_open && self.setup.found.is_none() {
            self.show_warning(if self.session.view.messages > 0 {
                "Session closed. Use /resume to reopen it; your draft is saved"
            } else {
                "Could not open a session. Your draft is saved; /clear to retry"
            });
        }
    }

    /// Carries out what follows from every input.
    fn run_follow_ups(&mut self) {
        self.catch_up_on_later();
        self.send_queued();
        self.complete_anew();
        self.update_title();
        self.read_spending();
        self.run_status_script();
        if self.timers.save_at.take_if(|at| *at <= self.now).is_some() {
            self.emit(Effect::Save(self.unsent_drafts()));
        }
    }

    fn update_title(&mut self) {
        let mark = match (self.questions.open.is_empty(), self.is_idle()) {
            (false, _) => "? ",
            (true, false) => "● ",
            (true, true) => "",
        };
        if self.window.mark.replace(mark) != Some(mark) {
            let title = format!("{mark}gnoma · {}", self.facts.folder);
            self.emit(Effect::Title(title.chars().take(MAX_TITLE_CHARS).collect()));
        }
    }
}

impl View for State {
    type Effect = Effect;

    fn on_input(&mut self, input: Input) -> Vec<Effect> {
        self.window.script.is_stale |=
            matches!(input, Input::Session(_) | Input::Snapshot(_) | Input::Reply { .. });
        self.dispatch_input(input);
        self.run_follow_ups();
        mem::take(&mut self.effects)
    }

    fn render_frame(&mut self, size: Size) -> Frame {
        self.size = size;
        if self.accessible {
            self.announce_focus();
        }
        self.draw(size)
    }

    fn next_tick(&self) -> Option<Instant> {
        let hint = self.timers.hint.as_ref().map(|hint| hint.until);
        let is_turning = self.running.is_some() && self.questions.open.is_empty();
        let is_moving = (is_turning || !self.shells.is_empty()) && !self.accessible;
        let beat = is_moving.then(|| self.now + BEAT);
        let answers = self.answers_from().filter(|from| *from > self.now);
        let (script, spending) = (self.status_script_due(), self.spending_due());
        let all = [hint, beat, self.waits_until(), answers, self.timers.save_at, script, spending];
        all.into_iter().flatten().min()
    }
}
