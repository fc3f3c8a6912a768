//! What every input means: who takes it, and what follows from it.

use std::{mem, time::Instant};

use gnoma_core::Command;

use super::{
    parts::{Focus, Leaving},
    state::{BEAT, State},
};
use crate::{
    commands,
    frame::{Frame, Size},
    input::Input,
    run::Face,
    wish::Wish,
};

/// Characters of the window's title.
const MAX_TITLE_CHARS: usize = 80;

impl State {
    fn take_in(&mut self, input: Input) {
        match input {
            Input::Tick(now) => self.tick(now),
            Input::Session(event) => self.on_event(&event),
            Input::SessionClosed => self.closed(),
            Input::Undelivered(command) => self.undelivered(command),
            Input::Key(key) => self.key(key),
            Input::Paste(text) => self.paste(text),
            Input::PasteRefused(bytes) => self.paste_refused(bytes),
            Input::Wheel(rows_up) => self.wish(Wish::Scroll(rows_up)),
            Input::Resize(size) => self.size = size,
            Input::FocusGained => self.window.focus = Focus::Here,
            Input::FocusLost => self.window.focus = Focus::Away,
            Input::Background(_) | Input::Resumed => (),
            Input::Ending => {
                self.wish(Wish::Save(self.drafts()));
                // What is under way ends with the program: no line about it stays behind.
                self.exit.leaving = Leaving::ForGood;
            }
            Input::Listing(files) => self.writing.completion.list(files),
            Input::Missing(files) => self.missing(&files),
            Input::Models(offers) => commands::models_listed(self, offers),
            Input::Shell { line, output, failure } => self.shell_ended(&line, &output, failure),
            Input::Image { instead, image, name } => self.attach(&instead, image, &name),
            Input::Edited(text) => self.edited(text),
            Input::Failed(text) => self.warn(&text),
        }
    }

    fn undelivered(&mut self, command: Command) {
        match command {
            Command::Send { content } => self.not_sent(&content),
            Command::Answer { call, .. } => self.ask_again(&call),
            Command::Cancel => {
                if let Some(running) = &mut self.running {
                    running.is_stopping = false;
                }
                self.warn("the session did not take the stop in; Esc tries it again");
            }
            Command::SetMode { mode } => {
                self.warn(&format!(
                    "the session did not take the mode in; `/permission {mode}` tries it again"
                ));
            }
            Command::Pin { .. } | Command::Rate { .. } | Command::Compact { .. } => {
                self.warn("the session is too busy and did not take the command in; give it again");
            }
            Command::Close => (),
        }
    }

    pub(super) fn closed(&mut self) {
        self.forget_turn();
        // Without a provider none has been open, and the list on the screen says what to do.
        if !std::mem::replace(&mut self.session.is_closed, true) && self.setup.found.is_none() {
            self.warn(if self.session.id.is_empty() {
                "no session could be opened; what you write is kept, /clear tries again"
            } else {
                "the session is closed; /resume goes on with it, what you write is kept"
            });
        }
    }

    /// What follows from whatever happened.
    fn settle(&mut self) {
        self.send_queued();
        self.complete_anew();
        self.retitle();
        if self.timers.save_at.take_if(|at| *at <= self.now).is_some() {
            self.wish(Wish::Save(self.drafts()));
        }
    }

    fn retitle(&mut self) {
        let mark = match (self.questions.open.is_empty(), self.is_idle()) {
            (false, _) => "? ",
            (true, false) => "● ",
            (true, true) => "",
        };
        if self.window.mark.replace(mark) != Some(mark) {
            let title = format!("{mark}gnoma · {}", self.facts.folder);
            self.wish(Wish::Title(title.chars().take(MAX_TITLE_CHARS).collect()));
        }
    }
}

impl Face for State {
    type Wish = Wish;

    fn on(&mut self, input: Input) -> Vec<Wish> {
        self.take_in(input);
        self.settle();
        mem::take(&mut self.wishes)
    }

    fn frame(&mut self, size: Size) -> Frame {
        self.size = size;
        if self.accessible {
            self.speak();
        }
        self.draw(size)
    }

    fn next_tick(&self) -> Option<Instant> {
        let hint = self.timers.hint.as_ref().map(|hint| hint.until);
        let is_turning = self.running.is_some() && self.questions.open.is_empty();
        let is_moving = (is_turning || !self.shells.is_empty()) && !self.accessible;
        let beat = is_moving.then(|| self.now + BEAT);
        let now = self.setup.to_try.as_ref().map(|_| self.now);
        let answers = self.answers_from().filter(|from| *from > self.now);
        [hint, beat, now, answers, self.timers.save_at].into_iter().flatten().min()
    }
}
