//! The one list of tests that run one at a time: those that need a real terminal, kill processes, fill disks, or measure.

use std::time::Duration;

use super::{TestProgram, error::TestRunError};

/// `package program test seconds`, one a line; `#` begins a comment.
const LIST: &str = include_str!("serial.txt");

/// The most tests that may be on the list: everything else has to bear company.
const MAX_TESTS: usize = 150;

/// A test that runs by itself.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct SerialTest {
    package: String,
    program: String,
    /// The full path of the test in its program, such as `tmux::a_day_in_tmux`.
    pub(super) test: String,
    /// After this time it is ended, and has failed.
    pub(super) timeout: Duration,
}

impl SerialTest {
    pub(super) fn matches_test(&self, program: &TestProgram, test: &str) -> bool {
        self.test == test && self.package == program.package && self.program == program.target
    }
}

/// Reads the list that is part of this program.
///
/// # Errors
/// A line cannot be read, or the list is too long.
pub(super) fn read_list() -> Result<Vec<SerialTest>, TestRunError> {
    parse_list(LIST)
}

fn parse_list(list: &str) -> Result<Vec<SerialTest>, TestRunError> {
    let lines = list.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let tests = lines.filter(|line| !line.is_empty()).map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [package, program, test, seconds] = words.as_slice() else {
            return Err(TestRunError::SerialLine(line.to_owned()));
        };
        let seconds = seconds
            .parse::<u64>()
            .map_err(|cause| TestRunError::SerialSeconds { line: line.to_owned(), cause })?;
        Ok(SerialTest {
            package: (*package).to_owned(),
            program: (*program).to_owned(),
            test: (*test).to_owned(),
            timeout: Duration::from_secs(seconds),
        })
    });
    let tests: Vec<_> = tests.collect::<Result<_, _>>()?;
    if tests.len() > MAX_TESTS {
        return Err(TestRunError::TooManySerialTests { count: tests.len(), most: MAX_TESTS });
    }
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serial_test_list_line_has_a_test_and_its_timeout() {
        let tests = parse_list("# real terminals\ngnoma it tmux::a_day 90 # keys\n\n").unwrap();
        assert_eq!(tests.len(), 1);
        assert_eq!(
            (tests[0].test.as_str(), tests[0].timeout),
            ("tmux::a_day", Duration::from_secs(90))
        );
        let error = parse_list("gnoma it tmux::a_day").unwrap_err().to_string();
        assert!(error.contains("tmux::a_day"), "{error}");
        assert!(parse_list(&"a b c 1\n".repeat(MAX_TESTS + 1)).is_err());
    }
}
