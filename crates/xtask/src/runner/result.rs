//! The result of one test.

/// The outcome of a test.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TestOutcome {
    Passed,
    Failed,
    /// The test is run by another test, in a process of its own.
    Ignored,
}

/// The result of one test.
#[derive(Debug)]
pub(super) struct TestResult {
    pub(super) program: String,
    pub(super) test: String,
    pub(super) outcome: TestOutcome,
    /// `true` if the test failed first, and this is the result of its second run.
    pub(super) is_retried: bool,
}
