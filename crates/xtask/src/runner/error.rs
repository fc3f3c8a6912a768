//! Errors of a run of the tests.

use std::{io, num::ParseIntError, path::PathBuf, process::ExitStatus};

/// A run of the tests that could not be made. A failed test is no error.
#[derive(Debug, thiserror::Error)]
pub enum TestRunError {
    /// The file with cargo's messages cannot be read.
    #[error(transparent)]
    Messages(io::Error),
    /// A message about a test program lacks what names the program.
    #[error("cannot read: {0}")]
    Artifact(String),
    /// A file or folder of the run cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// A test program cannot be run.
    #[error("{program}: {cause}")]
    Program {
        /// The label of the program, such as `gnoma-store it`.
        program: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// A test program does not list its tests.
    #[error("{program} does not list its tests: {status}")]
    NoList {
        /// The label of the program.
        program: String,
        /// The status with which it ended.
        status: ExitStatus,
    },
    /// A line of `serial.txt` does not name a test and its time.
    #[error("serial.txt: not `package program test seconds`: {0}")]
    SerialLine(String),
    /// The time in a line of `serial.txt` is no number.
    #[error("serial.txt: {line}: {cause}")]
    SerialSeconds {
        /// The line.
        line: String,
        /// The fault of the number.
        #[source]
        cause: ParseIntError,
    },
    /// `serial.txt` lists too many tests.
    #[error("serial.txt: {count} tests, and at most {most} may run one at a time")]
    TooManySerialTests {
        /// The number of tests in the list.
        count: usize,
        /// The number of tests that it may have.
        most: usize,
    },
    /// `serial.txt` names a test that no program has.
    #[error("the list of serial tests names `{0}`, which does not exist")]
    UnknownSerialTest(String),
    /// A thread of the runner panicked.
    #[error("a thread of the test runner panicked")]
    Panicked,
}
