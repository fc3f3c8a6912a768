//! The result of one test.

/// How a test ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TestOutcome {
    Passed,
    Failed,
    /// It is run by another test, in a process of its own.
    Ignored,
}

/// The result of one test.
#[derive(Debug)]
pub(super) struct TestResult {
    pub(super) program: String,
    pub(super) test: String,
    pub(super) outcome: TestOutcome,
    /// It failed first, and this is the result of its second run.
    pub(super) is_retried: bool,
}
