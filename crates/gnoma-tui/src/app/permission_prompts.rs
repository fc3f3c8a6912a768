//! Permission prompts: one is shown, the others wait behind it. Keys that belong to a sentence which is being written
//! never answer one.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use gnoma_core::{
    CallId,
    protocol::{Reply, Request, RequestError, RequestErrorKind},
    session::{PermissionAnswer, PermissionMode, Scope},
};

use super::{
    State,
    layer::{FieldPurpose, Layer},
};
use crate::{
    ask::{Purpose, describe_request_error, text_of},
    effect::Effect,
    keymap::{Action, Code, Context, Key},
    prompt::{LastingRule, PermissionQuestion, PromptVerdict},
};

/// Somebody who wrote this short a time ago is writing still.
const STILL_WRITING: Duration = Duration::from_millis(700);
/// The time for which a question must have been there where something is written already.
const TO_BE_SEEN: Duration = Duration::from_millis(500);
/// Questions that can wait; more than calls run side by side.
const MAX_QUESTIONS: usize = 1_000;

/// Most names that the field for a part begins with; with more, people use a pattern.
const MAX_NAMED: usize = 12;

/// Keys that wait for the place of a rule.
const MAX_KEYS: usize = 16;

/// The answers that people write out, and the keys that they mean.
const SPELT_OUT: [(&str, &str); 3] = [("yes", "y"), ("no", "n"), ("always", "a")];

impl State {
    pub(super) fn add_question(&mut self, question: PermissionQuestion) {
        let is_known = self.questions.open.iter().any(|other| other.call.id == question.call.id);
        if is_known || self.questions.open.len() == MAX_QUESTIONS {
            return;
        }
        let since = self.running.as_ref().map(|running| running.since);
        let took = since.map_or(Duration::ZERO, |since| self.now.saturating_duration_since(since));
        if self.questions.open.is_empty() {
            // It would stand beside the question as if it belonged to that.
            self.timers.hint = None;
            self.timers.asked_at = Some(self.now);
            if self.is_unseen(took) {
                self.emit(Effect::Notify(question.short_description()));
            }
        }
        self.questions.open.push_back(question);
    }

    /// A question was answered, here or elsewhere.
    pub(super) fn withdraw_question(&mut self, call: &CallId) {
        self.questions.open.retain(|question| question.call.id != *call);
        if self.layer.as_ref().is_some_and(|layer| layer.is_answer_to(call)) {
            self.rescue_reason();
        }
    }

    /// Reports whether keys answer a question now. Where keys come by the line, lines do.
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
        if let Some((call, answer)) = self.offered_by(key) {
            return self.answer_question(call, answer);
        }
        let is_answer = self.keymap.action_here(Context::Permission, key).is_some();
        if is_answer && self.questions.placing.is_some() && self.questions.keys.len() < MAX_KEYS {
            // It may be about the place that is being looked up.
            return self.questions.keys.push_back(key);
        }
        let Some(action) = self.keymap.action(Context::Permission, key) else {
            return self.show_hint("Answer the question above first");
        };
        if self.keymap.action_here(Context::Permission, key).is_none() {
            // What is written is not seen now, so that only the turn can be meant.
            return self.apply_action(if action == Action::Interrupt {
                Action::Stop
            } else {
                action
            });
        }
        let Some(question) = self.questions.open.front_mut() else { return };
        let call = question.call.id.clone();
        match question.apply_action(action) {
            PromptVerdict::Open => self.unfit_answer(action),
            verdict => self.apply_verdict(call, verdict),
        }
    }

    /// The answer that a digit means, of those that the model offers.
    fn offered_by(&self, key: Key) -> Option<(CallId, PermissionAnswer)> {
        let Code::Char(digit) = key.code else { return None };
        let number = usize::try_from(digit.to_digit(10)?).ok()?;
        let question = self.questions.open.front().filter(|_| key == Key::plain(key.code))?;
        Some((question.call.id.clone(), question.offered_answer(number)?))
    }

    /// The model's question that a line answers: the number of an answer that it offers, or any other
    /// words.
    fn answers_in_words(&mut self) -> bool {
        let text = self.composer.draft().text.trim().to_owned();
        let open = self.questions.open.front().filter(|question| question.wants_words());
        let Some(question) = open.filter(|_| !text.is_empty()) else { return false };
        let call = question.call.id.clone();
        let offered = text.parse().ok().and_then(|number| question.offered_answer(number));
        self.composer.take_draft();
        self.schedule_save();
        self.answer_question(call, offered.unwrap_or(PermissionAnswer::Text { text }));
        true
    }

    /// A line that answers a question: one of its keys, behind which words for the model may stand.
    /// Says whether it was one.
    pub(super) fn answers_by_line(&mut self) -> bool {
        if !self.accessible || self.questions.open.is_empty() {
            return false;
        }
        if self.answers_in_words() {
            return true;
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
                PromptVerdict::Answer(PermissionAnswer::Deny { reason: reason.to_owned() })
            }
            (Some(Action::AllowPart), names) if !names.is_empty() && question.has_parts() => {
                PromptVerdict::Answer(part_of(names))
            }
            (Some(action), "") => question.apply_action(action),
            _ => {
                self.show_hint("Sent to the model for its next step. The question is still open");
                return false;
            }
        };
        // An answer is no prompt to come back to.
        self.composer.take_draft();
        self.schedule_save();
        match verdict {
            PromptVerdict::Open => self.show_hint("That is not one of the answers"),
            verdict => self.apply_verdict(call, verdict),
        }
        true
    }

    fn apply_verdict(&mut self, call: CallId, verdict: PromptVerdict) {
        match verdict {
            PromptVerdict::Open => (),
            PromptVerdict::Answer(PermissionAnswer::Rule { rule, scope }) => {
                self.check_rule(call, rule, scope);
            }
            PromptVerdict::Answer(answer) => self.answer_question(call, answer),
            PromptVerdict::WriteReason => self.write_reason(call),
            PromptVerdict::WriteAnswer => {
                self.layer = Some(Layer::field("Your answer", "", FieldPurpose::Reply(call)));
            }
            PromptVerdict::NamePart => self.choose_parts(call),
            PromptVerdict::EditRule => self.edit_rule(call),
            PromptVerdict::NextScope => self.next_scope(&call),
        }
    }

    fn edit_rule(&mut self, call: CallId) {
        let Some(lasting) = self.questions.open.front().and_then(PermissionQuestion::lasting_rule)
        else {
            return;
        };
        let rule = lasting.rule.clone();
        self.layer = Some(Layer::field(&rule_title(lasting), &rule, FieldPurpose::Rule(call)));
    }

    /// Looks for the next scope in which the rule can be kept.
    pub(super) fn next_scope(&mut self, call: &CallId) {
        let question = self.questions.open.iter().find(|question| question.call.id == *call);
        if let Some(lasting) = question.and_then(PermissionQuestion::lasting_rule) {
            self.try_scope(call, scope_after(lasting.scope));
        }
    }

    fn try_scope(&mut self, call: &CallId, scope: Scope) {
        if scope == Scope::Session {
            return self.hold_rule(call, scope, String::new());
        }
        let question = self.questions.open.iter().find(|question| question.call.id == *call);
        let Some(lasting) = question.and_then(PermissionQuestion::lasting_rule) else { return };
        let rule = lasting.rule.clone();
        self.questions.placing = Some(call.clone());
        let purpose = Purpose::RulePlace { call: call.clone(), scope };
        self.send_request(Request::KeepRule { rule, scope, dry_run: true }, purpose);
    }

    /// A scope in which the rule cannot be kept is passed over.
    pub(super) fn rule_place_known(
        &mut self,
        call: &CallId,
        scope: Scope,
        result: Result<Reply, RequestError>,
    ) {
        if !self.questions.open.iter().any(|question| question.call.id == *call) {
            (self.questions.placing, self.questions.keys) = (None, VecDeque::new());
            return;
        }
        match text_of(result) {
            Ok(place) => self.hold_rule(call, scope, place),
            Err(error) => {
                self.show_hint(describe_request_error(&error));
                self.try_scope(call, scope_after(scope));
            }
        }
    }

    /// Holds the rule there, and does what was pressed meanwhile.
    fn hold_rule(&mut self, call: &CallId, scope: Scope, place: String) {
        self.show_rule_place(call, scope, place);
        self.questions.placing = None;
        for key in std::mem::take(&mut self.questions.keys) {
            if self.seen_question().is_some_and(|question| question.call.id == *call) {
                self.question_key(key);
            }
        }
    }

    fn show_rule_place(&mut self, call: &CallId, scope: Scope, place: String) {
        let question = self.questions.open.iter_mut().find(|question| question.call.id == *call);
        let Some(question) = question else { return };
        question.set_scope(scope, place);
        if let Some(Layer::Field { title, goal: FieldPurpose::Rule(of), .. }) = &mut self.layer
            && of == call
            && let Some(lasting) = question.lasting_rule()
        {
            *title = rule_title(lasting);
        }
    }

    /// A lasting yes with the rule that was written.
    pub(super) fn allow_as_written(&mut self, call: &CallId, rule: &str) {
        if rule.is_empty() {
            return self
                .show_hint("The rule is empty. Write what to allow, or press Esc to cancel");
        }
        if self.questions.placing.is_some() {
            return self.show_hint("Checking where to save the rule…");
        }
        let question = self.questions.open.iter().find(|question| question.call.id == *call);
        if let Some(lasting) = question.and_then(PermissionQuestion::lasting_rule) {
            let scope = lasting.scope;
            self.check_rule(call.clone(), rule.to_owned(), scope);
        }
    }

    fn check_rule(&mut self, call: CallId, rule: String, scope: Scope) {
        let request =
            Request::KeepRule { rule: rule.clone(), scope: Scope::Session, dry_run: true };
        self.send_request(request, Purpose::CheckRule { call, rule, scope });
    }

    pub(super) fn rule_checked(
        &mut self,
        call: CallId,
        rule: String,
        scope: Scope,
        result: Result<Reply, RequestError>,
    ) {
        if !self.questions.open.iter().any(|question| question.call.id == call) {
            return;
        }
        match (result, scope) {
            (Err(error), _) => self.show_hint(describe_request_error(&error)),
            (Ok(_), Scope::Session) => {
                self.answer_question(call, PermissionAnswer::Rule { rule, scope });
            }
            (Ok(_), Scope::Project | Scope::User) => {
                let request = Request::KeepRule { rule: rule.clone(), scope, dry_run: false };
                self.send_request(request, Purpose::KeepRule { call, rule, scope });
            }
        }
    }

    pub(super) fn rule_kept(
        &mut self,
        call: CallId,
        rule: String,
        scope: Scope,
        result: Result<Reply, RequestError>,
    ) {
        let scope = match text_of(result) {
            Ok(text) => {
                self.append_note(&text);
                scope
            }
            Err(error) => {
                let why = describe_request_error(&error);
                self.show_warning(&format!("{why}. The rule applies to this session only"));
                Scope::Session
            }
        };
        self.answer_question(call, PermissionAnswer::Rule { rule, scope });
    }

    fn write_reason(&mut self, call: CallId) {
        self.layer = Some(Layer::field("Tell the model why", "", FieldPurpose::Refuse(call)));
    }

    fn choose_parts(&mut self, call: CallId) {
        let parts = self.questions.open.front().map(PermissionQuestion::parts).unwrap_or_default();
        let names = if parts.len() <= MAX_NAMED { parts.join(", ") } else { String::new() };
        let title =
            "Keep only these files (names, folders or patterns with *, separated by commas)";
        self.layer = Some(Layer::field(title, &names, FieldPurpose::Part(call)));
    }

    /// Keeps what was named.
    pub(super) fn keep_part(&mut self, call: CallId, names: &str) {
        self.answer_question(call, part_of(names));
    }

    fn unfit_answer(&mut self, action: Action) {
        match action {
            Action::AllowPart => self.show_hint("This has no parts to keep"),
            Action::AllowAlways | Action::EditRule | Action::NextScope => {
                self.show_hint("“Always allow” is not available for this call");
            }
            _ => (),
        }
    }

    pub(super) fn answer_question(&mut self, call: CallId, answer: PermissionAnswer) {
        let place = self.questions.open.iter().position(|question| question.call.id == call);
        let Some(question) = place.and_then(|place| self.questions.open.remove(place)) else {
            return;
        };
        self.questions.answered = Some(question);
        // What was said of the question holds no more.
        self.timers.hint = None;
        self.layer.take_if(|layer| layer.is_answer_to(&call));
        self.send_request(Request::Answer { call: call.clone(), answer }, Purpose::Answer(call));
    }

    /// An answer did not reach the session, or somebody else was first.
    pub(super) fn ask_again(&mut self, call: &CallId, error: &RequestError) {
        let answered = self.questions.answered.take_if(|question| question.call.id == *call);
        if error.kind == RequestErrorKind::NotAsked {
            return self.show_hint("Already answered in another window");
        }
        if let Some(question) = answered {
            self.questions.open.push_front(question);
        }
        self.show_warning(&format!(
            "Could not send your answer: {}. Answer again",
            describe_request_error(error)
        ));
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
            let title = "Bypass asks for almost nothing; some dangerous actions still need a yes. Type `bypass` to confirm";
            self.layer = Some(Layer::field(title, "", FieldPurpose::Bypass));
            return;
        }
        self.set_mode(mode);
    }

    pub(super) fn confirm_bypass(&mut self, typed: &str) {
        if typed.trim() == PermissionMode::Bypass.name() {
            self.questions.bypass_confirmed = true;
            self.set_mode(PermissionMode::Bypass);
        } else {
            self.show_hint(format!("Not changed. The mode is still {}", self.facts.mode.label()));
        }
    }

    fn set_mode(&mut self, mode: PermissionMode) {
        self.facts.mode = mode;
        self.send_request(Request::SetMode { mode }, Purpose::Mode(mode));
        self.show_hint(format!("{} mode: {}", mode.label(), describe_mode(mode)));
    }
}

/// A yes to what is named between commas.
fn part_of(names: &str) -> PermissionAnswer {
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    PermissionAnswer::Part { names: names.map(str::to_owned).collect() }
}

/// The scope that is offered after that one.
fn scope_after(scope: Scope) -> Scope {
    match scope {
        Scope::Session => Scope::Project,
        Scope::Project => Scope::User,
        Scope::User => Scope::Session,
    }
}

fn rule_title(lasting: &LastingRule) -> String {
    format!("Always allow {} (Tab: other scope)", lasting.describe_scope())
}

/// Describes a mode in a few words.
pub(crate) fn describe_mode(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Default => "asks before every call",
        PermissionMode::AcceptEdits => "reads and edits freely; asks for the rest",
        PermissionMode::Auto => {
            "reads freely; tries commands on a copy; asks before keeping changes"
        }
        PermissionMode::Plan => "reads, and changes nothing",
        PermissionMode::Deny => "nothing runs",
        PermissionMode::Bypass => "asks only about what is dangerous",
    }
}
