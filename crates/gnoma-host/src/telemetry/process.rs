//! Telemetry of a process to one collector, for all sessions that send to it.

use std::sync::{Arc, OnceLock};

use gnoma_core::{
    CallId,
    ledger::{Level, Window},
    sync::Mutex,
    tool::{BoxFuture, CallSpans},
};
use gnoma_net::Http;
use gnoma_otel::{
    Attribute, AttributeValue, ExportOptions, Exporter, LogRecord, LogSeverity, SpanContext,
    TraceId, find_attribute,
};
use gnoma_router::pool::Pool;

use super::spans::SessionSpans;
use crate::{Notices, clock::Clock};

/// Most sessions whose spans are remembered; the oldest are forgotten.
const MAX_SESSIONS: usize = 256;

/// The attribute of the resource that tells processes apart.
const INSTANCE_ID: &str = "service.instance.id";

/// Telemetry to one collector, for all sessions that send to it.
pub struct Telemetry {
    pub(super) options: ExportOptions,
    /// Spans have texts of people, models and tools.
    pub(super) has_content: bool,
    pub(super) clock: Clock,
    http: Http,
    /// Started with the first session: commands that open none send nothing.
    exporter: OnceLock<Exporter>,
    sessions: Arc<Mutex<Sessions>>,
}

/// The known sessions, the oldest first.
type Sessions = Vec<KnownSession>;

struct KnownSession {
    id: String,
    spans: Arc<Mutex<SessionSpans>>,
    notices: Notices,
}

impl Telemetry {
    /// Telemetry to a collector. Nothing is sent before a session begins.
    pub(super) fn new(options: ExportOptions, has_content: bool, clock: Clock, http: Http) -> Self {
        let (exporter, sessions) = (OnceLock::new(), Arc::default());
        Self { options, has_content, clock, http, exporter, sessions }
    }

    /// Reports whether the telemetry goes to that collector, with or without texts.
    pub(super) fn matches_options(&self, options: &ExportOptions, has_content: bool) -> bool {
        self.options == *options && self.has_content == has_content
    }

    /// The exporter. Must be called within a runtime.
    pub(super) fn exporter(&self) -> &Exporter {
        self.exporter.get_or_init(|| {
            let sessions = Arc::downgrade(&self.sessions);
            let now_ns = || to_nanoseconds(crate::clock::now_ms());
            let mut options = self.options.clone();
            // Sums since a process began must not be mixed with those of another one.
            if find_attribute(&options.resource, INSTANCE_ID).is_none() {
                let id = TraceId::from_random(self.random_id(), self.random_id());
                options.resource.push((INSTANCE_ID.into(), AttributeValue::Text(id.to_string())));
            }
            Exporter::start(options, self.http.clone(), now_ns, move |text| {
                let Some(sessions) = sessions.upgrade() else { return };
                sessions.lock().iter().for_each(|session| session.notices.warning(text));
            })
        })
    }

    /// Records an event; not one in a trace that is not sampled.
    pub(super) fn send_log(
        &self,
        (event, severity): (&'static str, LogSeverity),
        at_ms: i64,
        context: Option<SpanContext>,
        attributes: Vec<Attribute>,
    ) {
        if context.is_none_or(|context| context.is_sampled) {
            let at_ns = to_nanoseconds(at_ms);
            self.exporter().send_log(LogRecord { event, severity, at_ns, context, attributes });
        }
    }

    /// Records that a spending cap of a day or month is nearly used up.
    pub(crate) fn log_near_cap(&self, level: &Level, at_ms: i64) {
        let scope = match Pool::parse(&level.pool) {
            Some(Pool::Project(_)) => "project",
            Some(Pool::Rates(_) | Pool::Part(..) | Pool::Arm(_)) => "provider",
            Some(Pool::All | Pool::Turn(_) | Pool::Session(_)) | None => "all",
        };
        let window = if level.limit.window == Window::Month { "month" } else { "day" };
        let attributes = vec![
            ("gnoma.cap.scope".into(), scope.into()),
            ("gnoma.cap.period".into(), window.into()),
            ("gnoma.cap.used_micro_usd".into(), level.used.into()),
            ("gnoma.cap.most_micro_usd".into(), level.limit.most.into()),
        ];
        self.send_log(("gnoma.cap_nears", LogSeverity::Warning), at_ms, None, attributes);
    }

    /// Sends what was recorded, within a second. Nothing is sent afterwards.
    pub(crate) fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(exporter) = self.exporter.get() {
                exporter.finish().await;
            }
        })
    }

    /// Remembers the spans of a session.
    pub(super) fn register_session(
        &self,
        id: &str,
        spans: &Arc<Mutex<SessionSpans>>,
        notices: &Notices,
    ) {
        let mut sessions = self.sessions.lock();
        sessions.retain(|known| known.id != id);
        if sessions.len() >= MAX_SESSIONS {
            sessions.remove(0);
        }
        let (id, spans, notices) = (id.to_owned(), Arc::clone(spans), notices.clone());
        sessions.push(KnownSession { id, spans, notices });
    }

    pub(super) fn spans_of(&self, session: &str) -> Option<Arc<Mutex<SessionSpans>>> {
        let sessions = self.sessions.lock();
        let known = sessions.iter().rev().find(|known| known.id == session);
        known.map(|known| Arc::clone(&known.spans))
    }

    /// Returns the span that is above what a session does now; `None` if it has no parent.
    pub(super) fn span_above(&self, session: &str) -> Option<SpanContext> {
        self.spans_of(session)?.lock().parent_span()
    }

    /// A span id, or half a trace id.
    pub(super) fn random_id(&self) -> u64 {
        self.clock.random_bits()
    }
}

impl CallSpans for Telemetry {
    fn traceparent(&self, session: &str, call: &CallId) -> Option<String> {
        let spans = self.spans_of(session)?;
        let context = spans.lock().open_call(call, self.random_id())?;
        Some(context.to_string())
    }
}

/// Converts milliseconds since 1970.
pub(super) fn to_nanoseconds(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default().saturating_mul(1_000_000)
}
