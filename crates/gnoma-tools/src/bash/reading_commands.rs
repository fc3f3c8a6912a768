//! Commands that only read, beside secret files that they cannot open: those that walk skip them, those that name one
//! are asked for.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use gnoma_core::{CallId, ToolCx, tool::Question};

use super::names::display_path;

/// Ends a script at its first command that fails.
pub(super) const STOP_AT_ERROR: &str = "set -e\n";
/// The most runs of a command that reads: as it is, without the files that it tried, without all of them.
const MAX_RUNS: usize = 3;
/// Names that a sentence holds.
const MAX_NAMES: usize = 5;

/// The runs of one command that only reads.
#[derive(Debug, Default)]
pub(super) struct ReadingRuns {
    /// The files that the next run does not find.
    pub(super) absent: Vec<PathBuf>,
    /// The files that the last run could not open.
    unread: Vec<PathBuf>,
    runs: usize,
    is_answered: bool,
    /// The files that the command names and that nobody let it read.
    refused: Vec<PathBuf>,
}

impl ReadingRuns {
    /// Decides whether the command runs again, given the secret files that the last run tried to open in vain.
    pub(super) async fn run_again(
        &mut self,
        command: &str,
        tried: Vec<PathBuf>,
        call: &CallId,
        cx: &mut ToolCx,
        can_leave_out: impl FnOnce(&[PathBuf]) -> bool,
    ) -> bool {
        self.runs += 1;
        self.unread.clone_from(&tried);
        if tried.is_empty() || self.is_answered || self.runs >= MAX_RUNS || !cx.grant.can_repeat {
            return false;
        }
        let (named, walked): (Vec<_>, Vec<_>) =
            tried.into_iter().partition(|path| names_file(command, path, cx));
        if named.is_empty() {
            let can_run = can_leave_out(&walked);
            self.absent.extend(walked.into_iter().filter(|_| can_run));
            return can_run;
        }
        self.is_answered = true;
        let text = format!(
            "`{}` reads {}, which {} secrets",
            one_line(command),
            describe_paths(&named, &cx.roots),
            if named.len() == 1 { "holds" } else { "hold" },
        );
        let question = Question { dangers: vec![text.clone()], text, ..Question::default() };
        let is_approved = cx.ask_user(call, question).await.is_approval();
        if is_approved {
            cx.grant.paths.extend(named);
        } else {
            self.refused = named;
        }
        is_approved
    }

    /// Returns the note for the model about files that were left out.
    pub(super) fn describe_skipped(&self, cx: &ToolCx) -> String {
        if !self.absent.is_empty() {
            return format!(
                "[skipped, because they hold secrets: {}]",
                describe_paths(&self.absent, &cx.roots)
            );
        }
        if !self.refused.is_empty() {
            return format!(
                "[the command could not read {}, because nobody approved it]",
                describe_paths(&self.refused, &cx.roots)
            );
        }
        if self.unread.is_empty() || self.is_answered {
            return String::new();
        }
        format!(
            "[could not be opened, because they hold secrets: {}]",
            describe_paths(&self.unread, &cx.roots)
        )
    }
}

/// Reports whether a command names a file itself, so that leaving it out would be a wrong answer.
pub(super) fn names_file(command: &str, path: &Path, cx: &ToolCx) -> bool {
    let is_border = |letter: char| letter.is_whitespace() || "'\"<>|&;()=`:".contains(letter);
    let name = path.file_name().unwrap_or_default();
    command.split(is_border).any(|word| {
        let word = Path::new(word);
        // Patterns and folders are walked.
        word.file_name().is_some_and(|last: &OsStr| last == name)
            && (path.ends_with(word) || cx.cwd.join(word) == path || word.is_absolute())
    })
}

/// Reports whether a word of a command is the path of something in a folder, or of the folder itself.
pub(super) fn leads_into(command: &str, folder: &Path, cwd: &Path) -> bool {
    let is_border = |letter: char| letter.is_whitespace() || "'\"<>|&;()=`:@,".contains(letter);
    command.split(is_border).any(|word| !word.is_empty() && cwd.join(word).starts_with(folder))
}

/// "`a`, `b` and 3 more".
pub(super) fn describe_paths(paths: &[PathBuf], roots: &[PathBuf]) -> String {
    match paths.split_at_checked(MAX_NAMES) {
        Some((first, more)) if !more.is_empty() => {
            format!("{} and {} more", describe_all_paths(first, roots), more.len())
        }
        Some(_) | None => describe_all_paths(paths, roots),
    }
}

/// "`a`, `b`", however many there are.
pub(super) fn describe_all_paths(paths: &[PathBuf], roots: &[PathBuf]) -> String {
    let names = paths.iter().map(|path| format!("`{}`", display_path(path, roots)));
    names.collect::<Vec<_>>().join(", ")
}

/// A command in one line, without what ends a script at its first error.
pub(super) fn one_line(command: &str) -> String {
    let command = command.strip_prefix(STOP_AT_ERROR).unwrap_or(command);
    command.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gnoma_core::tool::{Budget, Grant};
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::*;

    #[test]
    fn command_title_omits_set_e() {
        assert_eq!(one_line("set -e\ngit tag  v1\nls"), "git tag v1 ls");
        assert_eq!(one_line("set -x\nls"), "set -x ls");
    }

    fn cx() -> ToolCx {
        ToolCx {
            cwd: Arc::new("/w/sub".into()),
            roots: [PathBuf::from("/w")].into(),
            grant: Grant::default(),
            stop: CancellationToken::new(),
            progress: mpsc::channel(1).0,
            stores_large_results: false,
            budget: Budget::default(),
            session: None,
            traceparent: None,
        }
    }

    #[test]
    fn file_named_by_a_command_differs_from_one_found_by_glob_or_search() {
        let path = Path::new("/w/sub/notes.txt");
        for command in
            ["cat notes.txt", "head ./notes.txt|wc", "cat /w/sub/notes.txt", "x=<notes.txt"]
        {
            assert!(names_file(command, path, &cx()), "{command}");
        }
        for command in
            ["cat *", "grep -r x .", "rg notes", "cat other/notes.txt", "cat notes.txt.bak"]
        {
            assert!(!names_file(command, path, &cx()), "{command}");
        }
    }

    #[tokio::test]
    async fn read_only_command_reruns_without_secret_files_and_reports_them() {
        let (mut cx, call) = (cx(), CallId::new("call"));
        cx.grant.can_repeat = true;
        let path = PathBuf::from("/w/.env");
        let mut runs = ReadingRuns::default();
        assert!(!runs.run_again("rg x", vec![], &call, &mut cx, |_| true).await);
        assert!(runs.run_again("rg x", vec![path.clone()], &call, &mut cx, |_| true).await);
        assert_eq!(runs.describe_skipped(&cx), "[skipped, because they hold secrets: `.env`]");
        let mut runs = ReadingRuns::default();
        assert!(!runs.run_again("cat /w/.env", vec![path], &call, &mut cx, |_| true).await);
        assert_eq!(
            runs.describe_skipped(&cx),
            "[the command could not read `.env`, because nobody approved it]"
        );
    }

    #[tokio::test]
    async fn command_that_cannot_be_rerun_reports_the_files_it_could_not_open() {
        let (mut cx, call) = (cx(), CallId::new("call"));
        let path = PathBuf::from("/w/.env");
        for (can_repeat, can_leave_out) in [(false, true), (true, false)] {
            cx.grant.can_repeat = can_repeat;
            let mut runs = ReadingRuns::default();
            let tried = vec![path.clone()];
            assert!(!runs.run_again("rg x", tried, &call, &mut cx, |_| can_leave_out).await);
            assert_eq!(
                runs.describe_skipped(&cx),
                "[could not be opened, because they hold secrets: `.env`]"
            );
        }
    }
}
