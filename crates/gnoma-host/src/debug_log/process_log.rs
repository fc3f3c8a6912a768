//! The debug log of this process.

use std::sync::{OnceLock, atomic::AtomicBool};

use super::{file::LogFile, filter::LogFilter, line};
use crate::clock;

/// The log of this process. The command line decides once whether there is one.
pub(super) static LOG: OnceLock<ProcessLog> = OnceLock::new();

pub(super) struct ProcessLog {
    pub(super) file: LogFile,
    pub(super) filter: LogFilter,
    /// The next session that is logged tells the person where the file is.
    pub(super) names_file: AtomicBool,
}

impl ProcessLog {
    /// Appends a line of a step that is no event. The next line of an event says that the file cannot be written.
    pub(super) fn append(&self, line: &str) {
        let _failed = self.file.append(&line::add_timestamp(clock::now_ms(), line));
    }
}
