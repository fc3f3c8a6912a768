//! What a turn showed about the work of its arms. Pure: events in, a verdict out.
//!
//! Strong signs are a person's word and a check that ran after the last change. Weak ones say nothing:
//! an arm is not learnt from a guess.

use gnoma_core::{
    ToolCall, ToolSpec,
    tool::{Access, CommandReport, Touches},
};
use serde_json::Value;

use crate::detect::RedCheck;

/// Most bytes of diffs kept for whoever reviews the work.
const MAX_DIFF_BYTES: usize = 48 << 10;
/// Longer messages are tasks, not reactions.
const MAX_REACTION_WORDS: usize = 40;

/// Exit codes of shells for commands that are not there or cannot be executed.
pub(crate) const CANNOT_RUN: [i32; 2] = [126, 127];

/// What happened since the attempt began.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Something was changed since a check last ran.
    has_unchecked_edit: bool,
    /// Something was changed at all.
    pub(crate) has_edited: bool,
    /// The last check that ran after a change, and whether it was green.
    check: Option<(String, bool)>,
    red: RedCheck,
    /// What was changed, as unified diffs, as far as there is room.
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
    pub(crate) fn changed(&mut self, diff: Option<&str>) {
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
        self.red.record(&report.command, Some(code));
        self.has_unchecked_edit = false;
        let green = self.red.red().is_none();
        self.check = Some((self.red.red().unwrap_or(&report.command).to_owned(), green));
    }

    /// Another attempt begins, on top of what was changed so far.
    pub(crate) fn begin_again(&mut self) {
        self.check = None;
        self.red = RedCheck::default();
    }

    /// The check that speaks for the work as it is now, and whether it was green.
    pub(crate) fn check(&self) -> Option<(&str, bool)> {
        if self.has_unchecked_edit || !self.has_edited {
            return None;
        }
        self.check.as_ref().map(|(command, green)| (command.as_str(), *green))
    }

    /// The changes for a reviewer.
    pub(crate) fn changes(&self) -> String {
        let cut = if self.diffs_are_cut { "\n[more changes are left out]" } else { "" };
        format!("{}{cut}", self.diffs)
    }
}

/// Whether a call changes nothing that its diff would not show: a check of the project, or a tool that
/// runs nothing.
pub(crate) fn is_check(spec: &ToolSpec, call: &ToolCall) -> bool {
    if spec.access != Access::Execute {
        return true;
    }
    let argument = match spec.touches {
        Touches::Command(argument) => argument,
        Touches::Nothing | Touches::Path(_) | Touches::Action(..) | Touches::Url(_) => "command",
    };
    let arguments: Option<Value> = call.arguments.read().ok();
    let command = arguments.as_ref().and_then(|arguments| arguments.get(argument)?.as_str());
    command.is_some_and(RedCheck::is_check)
}

/// What a person's next message says about the work before it: right, wrong, or nothing.
pub(crate) fn reaction(text: &str, asked_before: &str) -> Option<bool> {
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
    if is_no || opens(&WRONG_AT_THE_START) || WRONG.iter().any(|phrase| said.contains(phrase)) {
        return Some(false);
    }
    let doubts =
        DOUBT.iter().any(|word| said.split(|c: char| !c.is_alphabetic()).any(|said| said == *word));
    (opens(&RIGHT_AT_THE_START) && !doubts).then_some(true)
}

/// Fewer words may be said twice for any reason ("go on").
const MIN_REPEATED_WORDS: usize = 4;
/// What says no only where the sentence ends with it: "no problem" does not.
const NO: [&str; 4] = ["no", "nope", "nein", "non"];
/// How people begin who were not served.
const WRONG_AT_THE_START: [&str; 7] =
    ["wrong", "undo", "revert", "try again", "that's wrong", "that is wrong", "that broke"];
/// What they say anywhere.
const WRONG: [&str; 13] = [
    "still fails",
    "still failing",
    "still broken",
    "still doesn't",
    "still does not",
    "doesn't work",
    "does not work",
    "didn't work",
    "did not work",
    "not what i",
    "you broke",
    "that is wrong",
    "that's wrong",
];
/// How people begin who were.
const RIGHT_AT_THE_START: [&str; 10] = [
    "thanks",
    "thank you",
    "great",
    "perfect",
    "works",
    "it works",
    "nice",
    "well done",
    "excellent",
    "danke",
];
/// What takes praise back.
const DOUBT: [&str; 6] = ["but", "however", "wrong", "still", "except", "aber"];

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(command: &str, code: i32) -> CommandReport {
        CommandReport { command: command.to_owned(), exit_code: Some(code), walled: None }
    }

    #[test]
    fn a_check_speaks_for_what_was_changed_before_it() {
        let mut signals = Signals::default();
        signals.command_ended(&ran("cargo test", 101));
        assert_eq!(signals.check(), None, "it was looked at, nothing was done");
        signals.changed(Some("-a\n+b"));
        assert_eq!(signals.check(), None, "nobody looked at the change yet");
        signals.command_ended(&ran("ls", 0));
        signals.command_ended(&ran("cargo test", 127));
        assert_eq!(signals.check(), None);
        signals.command_ended(&ran("cargo test", 0));
        assert_eq!(signals.check(), Some(("cargo test", true)));
    }

    #[test]
    fn people_say_whether_they_were_served() {
        for text in
            ["No, the other file", "it still fails with the same error", "fix the broken parser"]
        {
            assert_eq!(reaction(text, "fix the broken parser"), Some(false), "{text}");
        }
        for text in ["Thanks! Now add docs", "perfect"] {
            assert_eq!(reaction(text, "fix it"), Some(true), "{text}");
        }
        for text in
            ["now write the docs", "nothing else in note.md matters", "", "knowing that, go on"]
        {
            assert_eq!(reaction(text, "fix it"), None, "{text}");
        }
        assert_eq!(reaction("go on", "go on"), None, "twice for any reason");
        let long = format!("no, {}", "word ".repeat(60));
        assert_eq!(reaction(&long, ""), None, "a task of its own");
    }
}
