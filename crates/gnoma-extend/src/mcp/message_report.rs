//! Reports of the messages that gnoma and servers exchange, for a log.

use std::{fmt, sync::Arc};

use tokio::time::Instant;

/// A message to or from a server, without its content.
#[derive(Clone, Copy, Debug)]
pub struct MessageReport<'a> {
    /// The name of the server.
    pub server: &'a str,
    /// The method, as its sender wrote it.
    pub method: &'a str,
    /// The milliseconds until the answer to a request of gnoma's; `None` for a message of the server's own.
    pub took_ms: Option<u64>,
    /// The request was refused, not answered or given up.
    pub failed: bool,
}

/// Takes reports of messages; must not wait.
#[derive(Clone)]
pub struct MessageReporter(Arc<dyn Fn(&MessageReport<'_>) + Send + Sync>);

impl MessageReporter {
    /// Returns a reporter that calls `report` for each message.
    #[must_use]
    pub fn new(report: impl Fn(&MessageReport<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    pub(super) fn report(&self, message: &MessageReport<'_>) {
        (self.0)(message);
    }
}

impl fmt::Debug for MessageReporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MessageReporter")
    }
}

/// A request that is reported when it ends, even if its caller has given it up.
pub(super) struct ReportedRequest<'a> {
    pub(super) reporter: &'a MessageReporter,
    pub(super) server: &'a str,
    pub(super) method: &'a str,
    pub(super) began: Instant,
    pub(super) failed: bool,
}

impl Drop for ReportedRequest<'_> {
    fn drop(&mut self) {
        let took_ms = u64::try_from(self.began.elapsed().as_millis()).ok();
        let Self { server, method, failed, .. } = *self;
        self.reporter.report(&MessageReport { server, method, took_ms, failed });
    }
}
