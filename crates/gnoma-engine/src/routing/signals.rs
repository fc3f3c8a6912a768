//! What a turn showed about the work of its arms. Pure: events in, a verdict out.
//!
//! Strong signs are a person's word and a check that ran after the last change. Weak ones say nothing:
//! an arm is not learnt from a guess.

use gnoma_core::tool::CommandReport;

use crate::detect::RedCheck;

/// Most bytes of diffs kept for whoever reviews the work.
const MAX_DIFF_BYTES: usize = 48 << 10;
/// Longer messages are tasks, not reactions.
const MAX_REACTION_WORDS: usize = 40;

/// What happened since the attempt began.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Something was changed since a check last ran.
    has_unchecked_edit: bool,
    /// Something was changed at all.
    pub(crate) has_edited: bool,
    /// Tool calls that failed, and all.
    pub(crate) failed_calls: u32,
    pub(crate) calls: u32,
    /// The last check that ran after a change, and whether it was green.
    check: Option<(String, bool)>,
    red: RedCheck,
    /// What was changed, as unified diffs, as far as there is room.
    pub(crate) diffs: String,
    diffs_are_cut: bool,
}

impl Signals {
    /// A call has ended.
    pub(crate) fn call_ended(&mut self, is_error: bool, diff: Option<&str>) {
        self.calls = self.calls.saturating_add(1);
        self.failed_calls = self.failed_calls.saturating_add(u32::from(is_error));
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
        let Some(code) = report.exit_code else { return };
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
        if self.has_unchecked_edit {
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

/// What a person's next message says about the work before it: right, wrong, or nothing.
pub(crate) fn reaction(text: &str, asked_before: &str) -> Option<bool> {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .take(MAX_REACTION_WORDS + 1)
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() || words.len() > MAX_REACTION_WORDS {
        return None;
    }
    if text.trim() == asked_before.trim() {
        return Some(false);
    }
    let said = format!(" {} ", words.join(" "));
    let opens = |phrase: &&str| said.starts_with(&format!(" {phrase} "));
    let holds = |phrase: &&str| said.contains(&format!(" {phrase} "));
    if WRONG_AT_THE_START.iter().any(opens) || WRONG.iter().any(holds) {
        return Some(false);
    }
    RIGHT_AT_THE_START.iter().any(opens).then_some(true)
}

/// How people begin who were not served.
const WRONG_AT_THE_START: [&str; 12] = [
    "no",
    "nope",
    "wrong",
    "undo",
    "revert",
    "try again",
    "again",
    "that's wrong",
    "that is wrong",
    "that broke",
    "nein",
    "non",
];
/// What they say anywhere.
const WRONG: [&str; 12] = [
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
    "is not correct",
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
        assert_eq!(signals.check(), Some(("cargo test", false)));
        signals.call_ended(false, Some("-a\n+b"));
        assert_eq!(signals.check(), None, "nobody looked at the change yet");
        signals.command_ended(&ran("ls", 0));
        assert_eq!(signals.check(), None);
        signals.command_ended(&ran("cargo test", 0));
        assert_eq!(signals.check(), Some(("cargo test", true)));
    }

    #[test]
    fn people_say_whether_they_were_served() {
        for text in ["No, the other file", "it still fails with the same error", "fix it"] {
            assert_eq!(reaction(text, "fix it"), Some(false), "{text}");
        }
        for text in ["Thanks! Now add docs", "perfect"] {
            assert_eq!(reaction(text, "fix it"), Some(true), "{text}");
        }
        for text in
            ["now write the docs", "nothing else in note.md matters", "", "knowing that, go on"]
        {
            assert_eq!(reaction(text, "fix it"), None, "{text}");
        }
        let long = format!("no {}", "word ".repeat(60));
        assert_eq!(reaction(&long, ""), None, "a task of its own");
    }
}
