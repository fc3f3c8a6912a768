//! Questions for permission: one is shown, the others wait behind it. Keys that belong to a sentence
//! which is being written never answer one.

use std::time::{Duration, Instant};

use gnoma_core::{
    CallId, Command,
    session::{Answer, PermissionMode},
};

use super::{
    State,
    choosing::{Goal, Layer},
};
use crate::{
    keymap::{Action, Context, Key},
    prompt::{Question, Verdict},
    wish::Wish,
};

/// Somebody who wrote this short a time ago is writing still.
const STILL_WRITING: Duration = Duration::from_millis(700);
/// How long a question must have been there where something is written already.
const TO_BE_SEEN: Duration = Duration::from_millis(500);
/// Questions that can wait; more than calls run side by side.
const MAX_QUESTIONS: usize = 1_000;

impl State {
    pub(super) fn ask(&mut self, question: Question) {
        let is_known = self.asks.iter().any(|other| other.call.id == question.call.id);
        if is_known || self.asks.len() == MAX_QUESTIONS {
            return;
        }
        let since = self.running.as_ref().map(|running| running.since);
        let took = since.map_or(Duration::ZERO, |since| self.now.saturating_duration_since(since));
        if self.asks.is_empty() {
            self.asked_at = Some(self.now);
            if self.is_unseen(took) {
                self.wish(Wish::Notify(question.short()));
            }
        }
        self.asks.push_back(question);
    }

    /// A question was answered, here or elsewhere.
    pub(super) fn withdraw(&mut self, call: &CallId) {
        self.asks.retain(|question| question.call.id != *call);
        if self.layer.as_ref().is_some_and(|layer| layer.is_reason_for(call)) {
            self.rescue_reason();
        }
    }

    /// Whether keys answer a question now. Where they come by the line, lines do.
    pub(super) fn takes_answers(&self) -> bool {
        let is_time = self.answers_from().is_none_or(|from| from <= self.now);
        !self.asks.is_empty() && is_time && !self.accessible
    }

    /// From when on keys answer the question that waits: not while a sentence is being written, and
    /// not before somebody who pauses in one can have seen the question.
    pub(super) fn answers_from(&self) -> Option<Instant> {
        if self.asks.is_empty() || self.composer.is_empty() {
            return None;
        }
        let seen = self.asked_at.map(|at| at + TO_BE_SEEN);
        let paused = self.typed_at.map(|at| at + STILL_WRITING);
        seen.max(paused)
    }

    pub(super) fn question_key(&mut self, key: Key) {
        let Some(action) = self.keymap.action(Context::Permission, key) else {
            return self.hint("the question waits for its answer first");
        };
        if self.keymap.action_here(Context::Permission, key).is_none() {
            // What is written is not seen now, so that only the turn can be meant.
            return self.act(if action == Action::Interrupt { Action::Stop } else { action });
        }
        let Some(question) = self.asks.front_mut() else { return };
        let call = question.call.id.clone();
        match question.act(action) {
            Verdict::Open => self.unfit_answer(action),
            Verdict::Answer(answer) => self.answer(call, answer),
            Verdict::WriteReason => self.write_reason(call),
        }
    }

    /// A line that answers a question: one of its keys, behind which words for the model may stand.
    /// Says whether it was one.
    pub(super) fn answers_by_line(&mut self) -> bool {
        if !self.accessible || self.asks.is_empty() {
            return false;
        }
        let line = self.composer.draft().text;
        let (name, words) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let action =
            name.parse().ok().and_then(|key| self.keymap.action_here(Context::Permission, key));
        let Some(question) = self.asks.front_mut() else { return false };
        let call = question.call.id.clone();
        let verdict = match (action, words.trim()) {
            (Some(Action::Refuse | Action::RefuseWithReason), reason) if !reason.is_empty() => {
                Verdict::Answer(Answer::Deny { reason: reason.to_owned() })
            }
            (Some(action), "") => question.act(action),
            _ => return false,
        };
        self.take_written();
        match verdict {
            Verdict::Open => self.hint("this question has no such answer"),
            Verdict::Answer(answer) => self.answer(call, answer),
            Verdict::WriteReason => self.write_reason(call),
        }
        true
    }

    fn write_reason(&mut self, call: CallId) {
        self.layer = Some(Layer::field("Tell the model why not", "", Goal::Refuse(call)));
    }

    fn unfit_answer(&mut self, action: Action) {
        match action {
            Action::AllowAlways => self.hint("a lasting yes is not offered for this"),
            Action::EditRule | Action::NextScope => self.hint("the rule is taken as it is shown"),
            _ => (),
        }
    }

    pub(super) fn answer(&mut self, call: CallId, answer: Answer) {
        let place = self.asks.iter().position(|question| question.call.id == call);
        self.answered = place.and_then(|place| self.asks.remove(place));
        self.wish(Wish::Tell(Command::Answer { call, answer }));
    }

    /// An answer did not reach the session.
    pub(super) fn ask_again(&mut self, call: &CallId) {
        if let Some(question) = self.answered.take_if(|question| question.call.id == *call) {
            self.asks.push_front(question);
        }
        self.warn("the session did not take the answer in; answer again");
    }

    /// The next of the modes that are safe to cycle through.
    pub(super) fn cycle_mode(&mut self) {
        let next = match self.facts.mode {
            PermissionMode::Default => PermissionMode::AcceptEdits,
            PermissionMode::AcceptEdits => PermissionMode::Auto,
            PermissionMode::Auto => PermissionMode::Plan,
            PermissionMode::Plan | PermissionMode::Deny | PermissionMode::Bypass => {
                PermissionMode::Default
            }
        };
        self.set_mode(next);
    }

    /// Sets a mode that a person chose. The one that asks nothing is confirmed once.
    pub(crate) fn choose_mode(&mut self, mode: PermissionMode) {
        if mode == PermissionMode::Bypass && !self.bypass_confirmed {
            let title =
                "Everything runs without a question, also what destroys. Type `bypass` to go on";
            self.layer = Some(Layer::field(title, "", Goal::Bypass));
            return;
        }
        self.set_mode(mode);
    }

    pub(super) fn confirm_bypass(&mut self, typed: &str) {
        if typed.trim() == PermissionMode::Bypass.name() {
            self.bypass_confirmed = true;
            self.set_mode(PermissionMode::Bypass);
        } else {
            self.hint(format!("nothing changed; the mode is {}", self.facts.mode));
        }
    }

    fn set_mode(&mut self, mode: PermissionMode) {
        self.facts.mode = mode;
        self.wish(Wish::Tell(Command::SetMode { mode }));
        self.hint(format!("mode {mode}: {}", meaning(mode)));
    }
}

/// What a mode does, in a few words.
pub(crate) fn meaning(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "asks for everything",
        PermissionMode::AcceptEdits => "reads and edits run, the rest asks",
        PermissionMode::Auto => "reading runs, the rest asks",
        PermissionMode::Plan => "reading runs, nothing else does",
        PermissionMode::Deny => "nothing runs",
        PermissionMode::Bypass => "everything runs, nothing asks",
    }
}
