//! Telemetry: spans and metrics of sessions for the person's OpenTelemetry collector.
//!
//! Off by default, and then nothing is computed. Spans of turns, tools and questions are made from the events that the
//! debug log and front ends get ([`session`]), those of model calls from what the ledger settles ([`calls`]), so that
//! their sums are the ledger's. Nothing of what people, models or tools wrote is in them, unless the person wants it;
//! every text passes a firewall that lets no secret pass. Sessions in incognito send nothing.

mod calls;
mod content;
mod hooks;
mod session;
mod spans;

use std::sync::{Arc, OnceLock};

use gnoma_config::settings::Otel;
use gnoma_core::{
    CallId,
    protocol::Environment,
    sync::Mutex,
    tool::{BoxFuture, CallSpans},
};
use gnoma_guard::firewall::Firewall;
use gnoma_net::Http;
use gnoma_otel::{
    ExportOptions, ExportSettings, Exporter, Format, SpanContext, TraceId, Value, find_attribute,
};

pub use self::session::SessionTrace;
pub(crate) use self::{calls::MeteredLedger, session::TracedSession};
use self::{content::clean_name, spans::SessionSpans};
use crate::{Notices, Project, clock::Clock, guarding, lowering::RoutingSettings};

/// Most sessions whose spans are remembered; the oldest are forgotten.
const MAX_SESSIONS: usize = 256;

/// The attribute of the resource that tells processes apart.
const INSTANCE_ID: &str = "service.instance.id";

/// The variable that names the span of whatever started this program.
const TRACEPARENT: &str = "TRACEPARENT";

/// Telemetry to one collector, for all sessions that send to it.
pub struct Telemetry {
    options: ExportOptions,
    /// Spans have texts of people, models and tools.
    has_content: bool,
    clock: Clock,
    http: Http,
    /// Started with the first session: commands that open none send nothing.
    exporter: OnceLock<Exporter>,
    sessions: Arc<Mutex<Sessions>>,
}

/// What is known of sessions, the oldest first.
type Sessions = Vec<KnownSession>;

struct KnownSession {
    id: String,
    spans: Arc<Mutex<SessionSpans>>,
    notices: Notices,
}

/// Where telemetry of a project goes.
///
/// # Errors
/// What is wrong with an address or a protocol.
fn options(
    otel: &Otel,
    environment: &Environment,
) -> Result<Option<ExportOptions>, gnoma_otel::OptionError> {
    if !otel.enabled {
        return Ok(None);
    }
    let headers = otel.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let settings = ExportSettings {
        endpoint: otel.endpoint.clone(),
        format: if otel.is_json { Format::Json } else { Format::Protobuf },
        headers: headers.collect(),
    };
    ExportOptions::new(&settings, |name| environment.get(name))
}

/// The hosts that telemetry of a project goes to, as scheme, name and port; none if it is off.
///
/// # Errors
/// What is wrong with an address or a protocol.
pub fn hosts(
    otel: &Otel,
    environment: &Environment,
) -> Result<Vec<String>, gnoma_otel::OptionError> {
    let mut hosts: Vec<String> = Vec::new();
    for host in options(otel, environment)?.iter().flat_map(ExportOptions::hosts) {
        if !hosts.contains(&host) {
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// Finds the telemetry of a project among that of its process; `None` if it has none.
pub(crate) fn find(
    otel: &Otel,
    environment: &Environment,
    routing: &RoutingSettings,
    shared: &crate::Shared,
    notices: &Notices,
) -> Option<Arc<Telemetry>> {
    if !otel.enabled || routing.privacy.incognito {
        return None;
    }
    let options = match options(otel, environment) {
        Ok(options) => options?,
        Err(error) => {
            notices.warning(format_args!("no telemetry is sent: {error}"));
            return None;
        }
    };
    let make = |options| Telemetry {
        options,
        has_content: otel.content,
        clock: shared.clock().clone(),
        http: shared.http(&routing.network),
        exporter: OnceLock::new(),
        sessions: Arc::default(),
    };
    Some(shared.telemetry(
        |known| known.options == options && known.has_content == otel.content,
        || make(options.clone()),
    ))
}

impl Telemetry {
    /// The exporter. Must be called within a runtime.
    fn exporter(&self) -> &Exporter {
        self.exporter.get_or_init(|| {
            let sessions = Arc::downgrade(&self.sessions);
            let now_ns = || nanoseconds(crate::clock::now_ms());
            let mut options = self.options.clone();
            // Sums since a process began must not be mixed with those of another one.
            if find_attribute(&options.resource, INSTANCE_ID).is_none() {
                let id = TraceId::from_random(self.random(), self.random());
                options.resource.push((INSTANCE_ID.into(), Value::Text(id.to_string())));
            }
            Exporter::start(options, self.http.clone(), now_ns, move |text| {
                let Some(sessions) = sessions.upgrade() else { return };
                sessions.lock().iter().for_each(|session| session.notices.warning(text));
            })
        })
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
    fn register(&self, id: &str, spans: &Arc<Mutex<SessionSpans>>, notices: &Notices) {
        let mut sessions = self.sessions.lock();
        sessions.retain(|known| known.id != id);
        if sessions.len() >= MAX_SESSIONS {
            sessions.remove(0);
        }
        let (id, spans, notices) = (id.to_owned(), Arc::clone(spans), notices.clone());
        sessions.push(KnownSession { id, spans, notices });
    }

    fn spans_of(&self, session: &str) -> Option<Arc<Mutex<SessionSpans>>> {
        let sessions = self.sessions.lock();
        let known = sessions.iter().rev().find(|known| known.id == session);
        known.map(|known| Arc::clone(&known.spans))
    }

    /// Returns the span that is above what a session does now; `None` if it has no parent.
    fn span_above(&self, session: &str) -> Option<SpanContext> {
        self.spans_of(session)?.lock().above()
    }

    /// A span id, or half a trace id.
    fn random(&self) -> u64 {
        self.clock.random()
    }
}

impl CallSpans for Telemetry {
    fn traceparent(&self, session: &str, call: &CallId) -> Option<String> {
        let spans = self.spans_of(session)?;
        let context = spans.lock().open_call(call, self.random())?;
        Some(context.to_string())
    }
}

impl Project {
    /// The spans of its sessions' calls, if telemetry is sent.
    pub(crate) fn call_spans(&self) -> Option<Arc<dyn CallSpans>> {
        self.telemetry.clone().map(|telemetry| telemetry as _)
    }

    /// Firewalls for what telemetry has of a session: its own, which knows the secrets that it met, and one that lets no
    /// secret pass, whatever the settings allow.
    fn telemetry_firewalls(&self) -> Option<[Arc<Firewall>; 2]> {
        let strict = guarding::strict_firewall(self).ok()?;
        Some([Arc::clone(&self.firewall), Arc::new(strict)])
    }
}

/// Converts milliseconds since 1970.
fn nanoseconds(ms: i64) -> u64 {
    u64::try_from(ms).unwrap_or_default().saturating_mul(1_000_000)
}
