//! Lines of steps that no event tells of: checkpoints, merges, writes into the session store, and messages of MCP servers.
//! Only for sessions that may be logged.

use std::{borrow::Cow, fmt::Display, sync::Arc, time::Instant};

use gnoma_core::store::StoreError;
use gnoma_extend::mcp::{MessageReport, MessageReporter};

use super::{
    filter::LogLevel,
    line::LogLine,
    process_log::{LOG, ProcessLog},
};
use crate::Project;

/// Messages that servers send by themselves. The name of another one could hold anything that the server knows.
const SERVER_METHODS: [&str; 9] = [
    "ping",
    "elicitation/create",
    "sampling/createMessage",
    "roots/list",
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
];

/// A step that has begun, if this process writes a log.
pub(crate) struct LoggedStep {
    log: &'static ProcessLog,
    session: String,
    began: Instant,
}

impl LoggedStep {
    /// Begins a step of a session; `None` without a log.
    pub(crate) fn begin(session: &str) -> Option<Self> {
        let log = LOG.get()?;
        Some(Self { log, session: session.to_owned(), began: Instant::now() })
    }

    /// Writes the line of a step that is over, with a number or name that tells more of it.
    pub(crate) fn end(
        self,
        what: &'static str,
        fact: (&'static str, &dyn Display),
        error: Option<&StoreError>,
    ) {
        let Self { log, session, began } = self;
        let level = if error.is_some() { LogLevel::Warn } else { LogLevel::Debug };
        let line = LogLine::new(level, what)
            .with_field(fact.0, fact.1)
            .with_field("ms", &began.elapsed().as_millis())
            .with_some("error", error.map(|error| format!("{:?}", error.kind)));
        if line.is_allowed(&log.filter) {
            log.append(&format!("session={session} {}", line.render(Cow::Borrowed)));
        }
    }
}

/// Returns what writes a line for each message to and from MCP servers; `None` if the sessions of the project are not
/// logged.
pub(crate) fn report_messages(project: &Project) -> Option<MessageReporter> {
    let log = LOG.get().filter(|_| !project.is_incognito())?;
    let firewall = Arc::clone(&project.firewall);
    Some(MessageReporter::new(move |message| {
        let line = format_message(message);
        if line.is_allowed(&log.filter) {
            log.append(&line.render(|value| firewall.redact_text(value)));
        }
    }))
}

fn format_message(message: &MessageReport<'_>) -> LogLine {
    let MessageReport { server, method, took_ms, failed } = message;
    let level = if *failed { LogLevel::Warn } else { LogLevel::Debug };
    let what = if took_ms.is_some() { "mcp request" } else { "mcp message" };
    let is_known = took_ms.is_some() || SERVER_METHODS.contains(method);
    let method = if is_known { *method } else { "other" };
    let line = LogLine::new(level, what)
        .with_field("server", server)
        .with_field("method", &method)
        .with_some("ms", *took_ms);
    if took_ms.is_some() { line.with_field("failed", failed) } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_log_of_mcp_messages_has_method_and_duration() {
        let of = |method, took_ms| {
            let report = MessageReport { server: "git", method, took_ms, failed: false };
            format_message(&report).render(Cow::Borrowed)
        };
        assert_eq!(
            of("tools/call", Some(7)),
            "mcp request server=git method=tools/call ms=7 failed=false"
        );
        assert_eq!(of("ping", None), "mcp message server=git method=ping");
        assert_eq!(of("words_of_a_person", None), "mcp message server=git method=other");
    }
}
