//! Log records: single events, sent as soon as spans are. They wait in a queue of their own, which is limited.

use crate::span::{Attribute, SpanContext};

/// Most log records that wait; further ones are dropped and counted.
pub(crate) const MAX_LOGS: usize = 512;

/// How grave an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSeverity {
    /// Good to know.
    Info,
    /// Not as it should be.
    Warning,
    /// Something failed.
    Error,
}

impl LogSeverity {
    /// Returns the number and the text of the severity in the protocol.
    pub(crate) fn describe(self) -> (u8, &'static str) {
        match self {
            Self::Info => (9, "INFO"),
            Self::Warning => (13, "WARN"),
            Self::Error => (17, "ERROR"),
        }
    }
}

/// An event as a log record.
#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    /// The name of the event.
    pub event: &'static str,
    /// How grave it is.
    pub severity: LogSeverity,
    /// The time of the event, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The span in which it happened, if there is one.
    pub context: Option<SpanContext>,
    /// Facts about the event.
    pub attributes: Vec<Attribute>,
}

/// The log records that wait to be sent.
#[derive(Debug, Default)]
pub(crate) struct LogQueue {
    records: Vec<LogRecord>,
    dropped: u64,
}

impl LogQueue {
    /// Adds a record, or counts it as dropped if there is no room.
    pub(crate) fn push(&mut self, record: LogRecord) {
        if self.records.len() < MAX_LOGS {
            self.records.push(record);
        } else {
            self.drop_records(1);
        }
    }

    /// Takes all records that wait.
    pub(crate) fn take_all(&mut self) -> Vec<LogRecord> {
        std::mem::take(&mut self.records)
    }

    pub(crate) fn drop_records(&mut self, count: u64) {
        self.dropped = self.dropped.saturating_add(count);
    }

    /// Counts the records that were dropped since this was asked last.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}
