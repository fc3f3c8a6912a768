//! What a turn showed about the work of its arms. Pure: events in, a verdict out.
//!
//! Strong signs are a person's word and a check that ran after the last change. Where neither spoke, an
//! arm that could not handle its tools did not serve. Weaker signs say nothing: an arm is not learnt
//! from a guess.

use gnoma_core::{
    ToolCall, ToolOutcome, ToolSpec,
    tool::{Access, CommandReport, TouchedResource},
};
use serde_json::Value;

use crate::detect::RedCheck;

/// Most bytes of diffs kept for the review of the work.
const MAX_DIFF_BYTES: usize = 48 << 10;
/// Longer messages are tasks, not reactions.
const MAX_REACTION_WORDS: usize = 40;

/// Calls that came to nothing before they say anything about the arm: one slips everybody's hand.
const FEWEST_BOTCHED: u32 = 3;

/// Exit codes of shells for commands that are not there or cannot be executed.
pub(crate) const CANNOT_RUN: [i32; 2] = [126, 127];

/// The events since the attempt began.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// True if something was changed since a check last ran.
    has_unchecked_edit: bool,
    /// True if anything was changed at all.
    pub(crate) has_edited: bool,
    /// The last check that ran after a change, and whether it was green.
    check: Option<(String, bool)>,
    red: RedCheck,
    /// The changes as unified diffs, as far as there is room.
    pub(crate) diffs: String,
    diffs_are_cut: bool,
}

impl Signals {
    /// A command that is no check and may have changed files has run.
    pub(crate) fn may_have_written(&mut self) {
        self.has_edited = true;
        self.has_unchecked_edit = true;
    }

    /// A call has changed files, if there is a diff.
    pub(crate) fn record_diff(&mut self, diff: Option<&str>) {
        let Some(diff) = diff else { return };
        self.has_edited = true;
        self.has_unchecked_edit = true;
        if self.diffs.len() + diff.len() <= MAX_DIFF_BYTES {
            self.diffs.push_str(diff);
            self.diffs.push('\n');
        } else {
            self.diffs_are_cut = true;
        }
    }

    /// A command has ended. Checks count for what was changed before them.
    pub(crate) fn command_ended(&mut self, report: &CommandReport) {
        // A command that could not be run says nothing of the work.
        let Some(code) = report.exit_code.filter(|code| !CANNOT_RUN.contains(code)) else { return };
        if !RedCheck::is_check(&report.command) {
            return;
        }
        self.red.record_command(&report.command, Some(code));
        self.has_unchecked_edit = false;
        let green = self.red.failing_command().is_none();
        self.check =
            Some((self.red.failing_command().unwrap_or(&report.command).to_owned(), green));
    }

    /// Another attempt begins, on top of what was changed so far.
    pub(crate) fn begin_again(&mut self) {
        self.check = None;
        self.red = RedCheck::default();
    }

    /// The check that speaks for the work as it is now, and whether it was green.
    pub(crate) fn last_check(&self) -> Option<(&str, bool)> {
        if self.has_unchecked_edit || !self.has_edited {
            return None;
        }
        self.check.as_ref().map(|(command, green)| (command.as_str(), *green))
    }

    /// The changes for a reviewer.
    pub(crate) fn render_changes(&self) -> String {
        let cut = if self.diffs_are_cut { "\n[more changes are left out]" } else { "" };
        format!("{}{cut}", self.diffs)
    }
}

/// A count of how well an arm handled its tools.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ToolHandling {
    calls: u32,
    botched: u32,
}

impl ToolHandling {
    /// A call is over.
    pub(crate) fn record_outcome(
        &mut self,
        call: &ToolCall,
        spec: Option<&ToolSpec>,
        outcome: &ToolOutcome,
    ) {
        let is_botched = match outcome {
            ToolOutcome::Done(_) => false,
            ToolOutcome::Failed(_) => spec.is_none_or(|spec| {
                // An edit that did not apply, or a call that no tool can make sense of.
                spec.access == Access::Edit || call.broken || lacks_arguments(call, spec)
            }),
            // Somebody else's decision.
            ToolOutcome::Denied(_) | ToolOutcome::Interrupted(_) => return,
        };
        self.calls = self.calls.saturating_add(1);
        self.botched = self.botched.saturating_add(u32::from(is_botched));
    }

    /// That the arm did not serve, where most of what it tried came to nothing.
    pub(crate) fn verdict(self) -> Option<bool> {
        let is_most = u64::from(self.botched) * 2 > u64::from(self.calls);
        (self.botched >= FEWEST_BOTCHED && is_most).then_some(false)
    }
}

/// Reports whether a call lacks an argument that its tool requires.
fn lacks_arguments(call: &ToolCall, spec: &ToolSpec) -> bool {
    let (Ok(arguments), Ok(schema)) =
        (call.arguments.read::<Value>(), spec.parameters.read::<Value>())
    else {
        return true;
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let is_there = |name: &str| arguments.get(name).is_some_and(|value| !value.is_null());
    !arguments.is_object() || required.filter_map(Value::as_str).any(|name| !is_there(name))
}

/// Reports whether a call changes nothing that its diff would not show: a check of the project, or a tool that runs
/// nothing.
pub(crate) fn is_check(spec: &ToolSpec, call: &ToolCall) -> bool {
    if spec.access != Access::Execute {
        return true;
    }
    let argument = spec.touches.iter().find_map(|touches| match touches {
        TouchedResource::Command(argument) => Some(&**argument),
        TouchedResource::Path(_) | TouchedResource::Action(..) | TouchedResource::Url(_) => None,
    });
    let argument = argument.unwrap_or("command");
    let arguments: Option<Value> = call.arguments.read().ok();
    let command = arguments.as_ref().and_then(|arguments| arguments.get(argument)?.as_str());
    command.is_some_and(RedCheck::is_check)
}

/// Returns what a person's next message says about the work before it: right, wrong, or nothing.
pub(crate) fn classify_reaction(text: &str, asked_before: &str) -> Option<bool> {
    let said = text.trim().to_lowercase();
    let words = said.split_whitespace().take(MAX_REACTION_WORDS + 1).count();
    if words == 0 || words > MAX_REACTION_WORDS {
        return None;
    }
    if words >= MIN_REPEATED_WORDS && said == asked_before.trim().to_lowercase() {
        return Some(false);
    }
    let ends_there =
        |rest: &str| rest.is_empty() || rest.starts_with([',', '.', '!', ':', ';', '?']);
    let goes_on = |rest: &str| ends_there(rest) || rest.starts_with(char::is_whitespace);
    let is_no = NO.iter().any(|word| said.strip_prefix(word).is_some_and(ends_there));
    let opens = |phrases: &[&str]| {
        phrases.iter().any(|phrase| said.strip_prefix(phrase).is_some_and(goes_on))
    };
    let is_short = words <= MAX_COMPLAINT_WORDS;
    let orders_back = BACK.iter().any(|word| {
        let rest =
            said.strip_prefix(word).map(|rest| rest.trim_matches(|c: char| !c.is_alphabetic()));
        rest.is_some_and(|rest| OF_THE_WORK.contains(&rest))
    });
    let complains =
        opens(&WRONG_AT_THE_START) || FAILS.iter().any(|fails| is_of_the_work(&said, fails));
    if is_no || orders_back || (is_short && complains) {
        return Some(false);
    }
    let doubts =
        DOUBT.iter().any(|word| said.split(|c: char| !c.is_alphabetic()).any(|said| said == *word));
    (opens(&RIGHT_AT_THE_START) && !doubts).then_some(true)
}

/// Fewer words may be repeated for any reason ("go on").
const MIN_REPEATED_WORDS: usize = 4;
/// Words that mean "no" only if the sentence ends with them: "no problem" does not count.
const NO: [&str; 4] = ["no", "nope", "nein", "non"];
/// Longer messages about a failure describe it as a new task.
const MAX_COMPLAINT_WORDS: usize = 14;
/// Beginnings of messages that reject the work.
const WRONG_AT_THE_START: [&str; 5] =
    ["wrong", "try again", "that's wrong", "that is wrong", "that broke"];
/// Verbs by which people ask for the earlier state.
const BACK: [&str; 4] = ["undo", "revert", "take", "roll"];
/// Objects of these verbs that mean the work; behind "take" and "roll", with the word that belongs to them.
const OF_THE_WORK: [&str; 14] = [
    "",
    "it",
    "that",
    "this",
    "all",
    "everything",
    "please",
    "that please",
    "your changes",
    "the changes",
    "it back",
    "that back",
    "this back",
    "back",
];
/// Words that report a failure of the work if they follow a word that points back to it.
const FAILS: [&str; 10] = [
    "fails",
    "failing",
    "broken",
    "doesn't work",
    "does not work",
    "didn't work",
    "did not work",
    "not what i",
    "broke",
    "wrong",
];
/// Words that point back to the work.
const POINTERS: [&str; 7] = ["it", "that", "this", "still", "you", "they", "tests"];

/// Reports whether the failure is about the work so far: a word that points back is directly before it, or with one
/// word between.
fn is_of_the_work(said: &str, fails: &str) -> bool {
    said.match_indices(fails).any(|(at, _)| {
        let before = said.get(..at).unwrap_or_default();
        let ends_sentence = |word: &str| word.ends_with(['.', '!', '?', ';']);
        let near = before.split_whitespace().rev().take(2).take_while(|word| !ends_sentence(word));
        let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphabetic()).to_owned();
        near.map(plain).any(|word| POINTERS.contains(&word.as_str()))
    })
}

/// Beginnings of messages that accept the work.
const RIGHT_AT_THE_START: [&str; 10] = [
    "thanks",
    "thank you",
    "great",
    "perfect",
    "works",
    "it works",
    "nice work",
    "well done",
    "excellent",
    "danke",
];
/// Words that take praise back.
const DOUBT: [&str; 6] = ["but", "however", "wrong", "still", "except", "aber"];

#[cfg(test)]
mod tests {
    use gnoma_core::{
        CallId, RawJson,
        tool::{Tier, ToolKind},
    };
    use serde_json::json;

    use super::*;

    fn ran(command: &str, code: i32) -> CommandReport {
        CommandReport {
            command: command.to_owned(),
            exit_code: Some(code),
            walled: None,
            trial: None,
        }
    }

    #[test]
    fn check_result_counts_only_after_a_change_was_made() {
        let mut signals = Signals::default();
        signals.command_ended(&ran("cargo test", 101));
        assert_eq!(signals.last_check(), None, "it was looked at, nothing was done");
        signals.record_diff(Some("-a\n+b"));
        assert_eq!(signals.last_check(), None, "nobody looked at the change yet");
        signals.command_ended(&ran("ls", 0));
        signals.command_ended(&ran("cargo test", 127));
        assert_eq!(signals.last_check(), None);
        signals.command_ended(&ran("cargo test", 0));
        assert_eq!(signals.last_check(), Some(("cargo test", true)));
    }

    fn spec(access: Access) -> ToolSpec {
        ToolSpec {
            name: "t".into(),
            description: String::new(),
            parameters: RawJson::from_value(&json!({ "required": ["path"] })).unwrap(),
            access,
            touches: [TouchedResource::path("path")].into(),
            kind: ToolKind::Other,
            tier: Tier::Full,
        }
    }

    fn call(arguments: &Value) -> ToolCall {
        ToolCall::new(CallId::new("1"), "t", RawJson::from_value(arguments).unwrap())
    }

    #[test]
    fn model_with_mostly_failed_edit_calls_gets_a_bad_verdict() {
        let good = call(&json!({ "path": "a" }));
        let (edit, read) = (spec(Access::Edit), spec(Access::Read));
        let failed = ToolOutcome::failure_text("no");
        let done = ToolOutcome::Done(Default::default());
        let verdict = |ended: &[(&ToolCall, Option<&ToolSpec>, &ToolOutcome)]| {
            let mut handling = ToolHandling::default();
            for (call, spec, outcome) in ended {
                handling.record_outcome(call, *spec, outcome);
            }
            handling.verdict()
        };
        assert_eq!(verdict(&[(&good, Some(&edit), &failed); 3]), Some(false), "nothing applied");
        assert_eq!(verdict(&[(&good, Some(&edit), &failed); 2]), None, "it may slip");
        assert_eq!(verdict(&[(&good, Some(&read), &failed); 9]), None, "no such file");
        let lacking = call(&json!({ "file": "a" }));
        assert_eq!(verdict(&[(&lacking, Some(&read), &failed); 3]), Some(false));
        assert_eq!(verdict(&[(&good, None, &failed); 3]), Some(false), "there is no such tool");
        let denied = ToolOutcome::Denied(String::new());
        assert_eq!(verdict(&[(&good, Some(&edit), &denied); 9]), None, "a person said no");
        let mut mixed = vec![(&good, Some(&edit), &failed); 3];
        mixed.extend([(&good, Some(&edit), &done); 3]);
        assert_eq!(verdict(&mixed), None, "it found its way");
    }

    #[test]
    fn user_reaction_is_classified_as_good_or_bad_outcome() {
        for text in [
            "No, the other file",
            "it still fails with the same error",
            "fix the broken parser",
            "undo that",
            "Revert.",
            "take it back",
            "that doesn't work",
            "The tests are still broken",
            "you broke the build",
            "wrong file",
        ] {
            assert_eq!(classify_reaction(text, "fix the broken parser"), Some(false), "{text}");
        }
        for text in ["Thanks! Now add docs", "perfect"] {
            assert_eq!(classify_reaction(text, "fix it"), Some(true), "{text}");
        }
        for text in [
            "now write the docs",
            "nothing else in note.md matters",
            "",
            "knowing that, go on",
            "The login page does not work in Safari, please fix it",
            "Revert button needs an icon",
            "undo stack must be bounded",
            "nice to have: a progress bar",
            "wrongly sorted rows appear in the list, find out why; the sort key comes from the header",
            "find out why the build fails on arm",
        ] {
            assert_eq!(classify_reaction(text, "fix it"), None, "{text}");
        }
        assert_eq!(classify_reaction("go on", "go on"), None, "twice for any reason");
        let long = format!("no, {}", "word ".repeat(60));
        assert_eq!(classify_reaction(&long, ""), None, "a task of its own");
    }
}
