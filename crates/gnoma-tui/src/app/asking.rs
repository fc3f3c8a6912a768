//! Questions for permission: one is shown, the others wait behind it. Keys that belong to a sentence
//! which is being written never answer one.

use std::time::{Duration, Instant};

use gnoma_core::{
    CallId, Command,
    session::{PermissionAnswer, PermissionMode, Scope},
};

use super::{
    State,
    layer::{Goal, Layer},
};
use crate::{
    keymap::{Action, Context, Key},
    prompt::{Lasting, Question, Verdict},
    wish::Wish,
};

/// Somebody who wrote this short a time ago is writing still.
const STILL_WRITING: Duration = Duration::from_millis(700);
/// How long a question must have been there where something is written already.
const TO_BE_SEEN: Duration = Duration::from_millis(500);
/// Questions that can wait; more than calls run side by side.
const MAX_QUESTIONS: usize = 1_000;

/// What people write out, and the key it stands for.
const SPELT_OUT: [(&str, &str); 3] = [("yes", "y"), ("no", "n"), ("always", "a")];

impl State {
    pub(super) fn ask(&mut self, question: Question) {
        let is_known = self.questions.open.iter().any(|other| other.call.id == question.call.id);
        if is_known || self.questions.open.len() == MAX_QUESTIONS {
            return;
        }
        let since = self.running.as_ref().map(|running| running.since);
        let took = since.map_or(Duration::ZERO, |since| self.now.saturating_duration_since(since));
        if self.questions.open.is_empty() {
            self.timers.asked_at = Some(self.now);
            if self.is_unseen(took) {
                self.wish(Wish::Notify(question.short()));
            }
        }
        self.questions.open.push_back(question);
    }

    /// A question was answered, here or elsewhere.
    pub(super) fn withdraw(&mut self, call: &CallId) {
        self.questions.open.retain(|question| question.call.id != *call);
        if self.layer.as_ref().is_some_and(|layer| layer.answers(call)) {
            self.rescue_reason();
        }
    }

    /// Whether keys answer a question now. Where they come by the line, lines do.
    pub(super) fn takes_answers(&self) -> bool {
        let is_time = self.answers_from().is_none_or(|from| from <= self.now);
        !self.questions.open.is_empty() && is_time && !self.accessible
    }

    /// From when on keys answer the question that waits: not while a sentence is being written, and
    /// not before somebody who pauses in one can have seen the question.
    pub(super) fn answers_from(&self) -> Option<Instant> {
        if self.questions.open.is_empty() || self.composer.is_empty() {
            return None;
        }
        let seen = self.timers.asked_at.map(|at| at + TO_BE_SEEN);
        let paused = self.timers.typed_at.map(|at| at + STILL_WRITING);
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
        let Some(question) = self.questions.open.front_mut() else { return };
        let call = question.call.id.clone();
        match question.act(action) {
            Verdict::Open => self.unfit_answer(action),
            verdict => self.obey(call, verdict),
        }
    }

    /// A line that answers a question: one of its keys, behind which words for the model may stand.
    /// Says whether it was one.
    pub(super) fn answers_by_line(&mut self) -> bool {
        if !self.accessible || self.questions.open.is_empty() {
            return false;
        }
        let line = self.composer.draft().text;
        let (name, words) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let word = SPELT_OUT.iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
        let key = word.map_or(name, |(_, key)| key).parse().ok();
        let action = key.and_then(|key| self.keymap.action_here(Context::Permission, key));
        let Some(question) = self.questions.open.front_mut() else { return false };
        let call = question.call.id.clone();
        let verdict = match (action, words.trim()) {
            (Some(Action::Refuse | Action::RefuseWithReason), reason) if !reason.is_empty() => {
                Verdict::Answer(PermissionAnswer::Deny { reason: reason.to_owned() })
            }
            (Some(action), "") => question.act(action),
            _ => {
                self.hint("this goes to the model at its next step; the question still waits");
                return false;
            }
        };
        // An answer is no prompt to come back to.
        self.composer.take();
        self.touched();
        match verdict {
            Verdict::Open => self.hint("this question has no such answer"),
            verdict => self.obey(call, verdict),
        }
        true
    }

    fn obey(&mut self, call: CallId, verdict: Verdict) {
        match verdict {
            Verdict::Open => (),
            Verdict::Answer(PermissionAnswer::Rule { rule, scope }) => {
                if let Err(why) = self.allow_by_rule(call, rule, scope) {
                    self.hint(why);
                }
            }
            Verdict::Answer(answer) => self.answer(call, answer),
            Verdict::WriteReason => self.write_reason(call),
            Verdict::EditRule => self.edit_rule(call),
            Verdict::NextScope => self.next_scope(),
        }
    }

    fn edit_rule(&mut self, call: CallId) {
        let Some(lasting) = self.questions.open.front().and_then(Question::lasting) else { return };
        let rule = lasting.rule.clone();
        self.layer = Some(Layer::field(&rule_title(lasting), &rule, Goal::Rule(call)));
    }

    fn next_scope(&mut self) {
        let Some(lasting) = self.questions.open.front().and_then(Question::lasting) else { return };
        let before = lasting.scope;
        let (scope, place) = self.scope_after(before);
        if let Some(question) = self.questions.open.front_mut() {
            question.hold(scope, place);
        }
    }

    /// The next scope in which a rule can be kept; says why not of those that are passed over.
    fn scope_after(&mut self, scope: Scope) -> (Scope, String) {
        let mut next = scope;
        for _ in [Scope::Project, Scope::User] {
            next = match next {
                Scope::Session => Scope::Project,
                Scope::Project => Scope::User,
                Scope::User => return (Scope::Session, String::new()),
            };
            match self.desk.rule_place(next) {
                Ok(place) => return (next, place),
                Err(why) => self.hint(why),
            }
        }
        (Scope::Session, String::new())
    }

    /// The same while the rule is being changed. Gives the field's new title.
    pub(super) fn next_scope_of(&mut self, call: &CallId) -> Option<String> {
        self.questions.open.front().filter(|question| question.call.id == *call)?;
        self.next_scope();
        self.questions.open.front().and_then(Question::lasting).map(rule_title)
    }

    /// A lasting yes with the rule that was written.
    pub(super) fn allow_as_written(&mut self, call: &CallId, rule: &str) -> Result<(), String> {
        let question = self.questions.open.iter().find(|question| question.call.id == *call);
        let Some(lasting) = question.and_then(Question::lasting) else { return Ok(()) };
        if rule.is_empty() {
            return Err("a rule must say what it allows; Esc leaves it".to_owned());
        }
        let scope = lasting.scope;
        self.allow_by_rule(call.clone(), rule.to_owned(), scope)
    }

    fn allow_by_rule(&mut self, call: CallId, rule: String, scope: Scope) -> Result<(), String> {
        self.desk.keep_rule(&rule, Scope::Session)?;
        let kept = match scope {
            Scope::Session => Ok(String::new()),
            Scope::Project | Scope::User => self.desk.keep_rule(&rule, scope),
        };
        let scope = match kept {
            Ok(told) if told.is_empty() => scope,
            Ok(told) => {
                self.note(&told);
                scope
            }
            Err(why) => {
                self.warn(&format!("{why}; the rule holds for this session only"));
                Scope::Session
            }
        };
        self.answer(call, PermissionAnswer::Rule { rule, scope });
        Ok(())
    }

    fn write_reason(&mut self, call: CallId) {
        self.layer = Some(Layer::field("Tell the model why not", "", Goal::Refuse(call)));
    }

    fn unfit_answer(&mut self, action: Action) {
        match action {
            Action::AllowAlways | Action::EditRule | Action::NextScope => {
                self.hint("a lasting yes is not offered for this");
            }
            _ => (),
        }
    }

    pub(super) fn answer(&mut self, call: CallId, answer: PermissionAnswer) {
        let place = self.questions.open.iter().position(|question| question.call.id == call);
        self.questions.answered = place.and_then(|place| self.questions.open.remove(place));
        self.wish(Wish::Tell(Command::Answer { call, answer }));
    }

    /// An answer did not reach the session.
    pub(super) fn ask_again(&mut self, call: &CallId) {
        if let Some(question) =
            self.questions.answered.take_if(|question| question.call.id == *call)
        {
            self.questions.open.push_front(question);
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
        if mode == PermissionMode::Bypass && !self.questions.bypass_confirmed {
            let title =
                "Everything runs without a question, also what destroys. Type `bypass` to go on";
            self.layer = Some(Layer::field(title, "", Goal::Bypass));
            return;
        }
        self.set_mode(mode);
    }

    pub(super) fn confirm_bypass(&mut self, typed: &str) {
        if typed.trim() == PermissionMode::Bypass.name() {
            self.questions.bypass_confirmed = true;
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

fn rule_title(lasting: &Lasting) -> String {
    format!("Always allow: {} (Tab elsewhere)", lasting.held())
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
