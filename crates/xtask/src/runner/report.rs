//! The closing lines of a run.

use std::{collections::BTreeSet, ffi::OsString, fmt::Write as _, fs, time::Duration};

use super::{
    result::{TestOutcome, TestResult},
    skips::Skip,
};

/// The results of all tests.
#[derive(Debug)]
pub(super) struct Report {
    results: Vec<TestResult>,
    phases: Vec<(&'static str, Duration)>,
    /// Files and folders in the machine's temporary folder that were not there before.
    leftovers: Vec<OsString>,
    pub(super) skips: BTreeSet<Skip>,
}

impl Report {
    pub(super) fn new(results: Vec<TestResult>) -> Self {
        Self { results, phases: Vec::new(), leftovers: Vec::new(), skips: BTreeSet::new() }
    }

    pub(super) fn add_results(&mut self, results: Vec<TestResult>) {
        self.results.extend(results);
    }

    pub(super) fn note_phase(&mut self, name: &'static str, duration: Duration) {
        self.phases.push((name, duration));
    }

    pub(super) fn note_leftovers(&mut self, before: &BTreeSet<OsString>) {
        self.leftovers = temp_folder_names().difference(before).cloned().collect();
    }

    /// Returns whether nothing failed; with `must_not_skip`, also whether nothing was skipped that could have run.
    pub(super) fn is_success(&self, must_not_skip: bool) -> bool {
        let is_skip_allowed = |skip: &Skip| !must_not_skip || skip.is_confirmed();
        self.failed_results().next().is_none() && self.skips.iter().all(is_skip_allowed)
    }

    /// Writes what was skipped, left behind, run twice and failed, and `N passed, N failed, N skipped` as the last line.
    pub(super) fn render(&self, must_not_skip: bool) -> String {
        let mut text = String::new();
        for (name, duration) in &self.phases {
            let _infallible = writeln!(text, "{name}: {:.0} s", duration.as_secs_f64());
        }
        for Skip { test, reason } in &self.skips {
            let _infallible = writeln!(text, "skipped: {test}: {reason}");
        }
        for skip in self.skips.iter().filter(|skip| must_not_skip && !skip.is_confirmed()) {
            let _infallible =
                writeln!(text, "SKIPPED, although this machine can run it: {}", skip.test);
        }
        for name in &self.leftovers {
            let _infallible =
                writeln!(text, "LEFT BEHIND in the temporary folder: {}", name.to_string_lossy());
        }
        let retried: Vec<_> = self.results.iter().filter(|result| result.is_retried).collect();
        for TestResult { program, test, .. } in &retried {
            let _infallible = writeln!(text, "run twice: {program} {test}");
        }
        for TestResult { program, test, .. } in self.failed_results() {
            let _infallible = writeln!(text, "FAILED: {program} {test}");
        }
        let _infallible = writeln!(text, "{} of the serial tests ran twice", retried.len());
        let passed =
            self.results.iter().filter(|result| result.outcome == TestOutcome::Passed).count();
        let _infallible = writeln!(
            text,
            "{} passed, {} failed, {} skipped",
            passed.saturating_sub(self.skips.len()),
            self.failed_results().count(),
            self.skips.len()
        );
        text
    }

    fn failed_results(&self) -> impl Iterator<Item = &TestResult> {
        self.results.iter().filter(|result| result.outcome == TestOutcome::Failed)
    }
}

/// Returns the names in the machine's temporary folder.
pub(super) fn temp_folder_names() -> BTreeSet<OsString> {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_lists_skipped_and_retried_tests_separately_from_passed_ones() {
        let result = |test: &str, outcome, is_retried| TestResult {
            program: "p it".to_owned(),
            test: test.to_owned(),
            outcome,
            is_retried,
        };
        let mut report = Report::new(vec![
            result("a", TestOutcome::Passed, false),
            result("b", TestOutcome::Passed, true),
            result("child", TestOutcome::Ignored, false),
        ]);
        report
            .skips
            .insert(Skip { test: "p it a".to_owned(), reason: "`sh` is not installed".to_owned() });
        let text = report.render(true);
        assert!(
            text.contains("run twice: p it b\n")
                && text.ends_with("1 passed, 0 failed, 1 skipped\n"),
            "{text}"
        );
        assert!(report.is_success(false) && !report.is_success(true), "{text}");
    }
}
