//! Runs of hooks.

use gnoma_extend::hooks::{HookRunReport, HookRuns};
use gnoma_otel::{AttributeValue, Span, SpanId, SpanKind, TraceId};

use super::{
    calls::error_type,
    process::{Telemetry, to_nanoseconds},
};
use crate::{Project, debug_log};

impl Project {
    /// Returns the last runs of a session's hooks; each run is a span if the project sends telemetry, and a line if this
    /// process writes a debug log.
    pub(crate) fn hook_runs(&self, session: &str) -> HookRuns {
        let runs = self.shared.hook_runs();
        let is_logged = debug_log::path().is_some() && !self.is_incognito();
        let (telemetry, session) = (self.telemetry.clone(), session.to_owned());
        if telemetry.is_none() && !is_logged {
            return runs;
        }
        runs.reported_to(move |run| {
            if let Some(telemetry) = &telemetry {
                telemetry.record_hook(&session, run);
            }
            if is_logged {
                debug_log::write_hook(&session, run);
            }
        })
    }
}

impl Telemetry {
    fn record_hook(&self, session: &str, run: &HookRunReport<'_>) {
        let above = self.span_above(session);
        if above.is_some_and(|above| !above.is_sampled) {
            return;
        }
        let now_ms = self.clock.now_ms();
        let took_ms = i64::try_from(run.took_ms).unwrap_or_default();
        let mut attributes = vec![("gnoma.hook.event".into(), run.event.into())];
        if let Some(code) = run.exit_code {
            attributes.push(("gnoma.hook.exit_code".into(), AttributeValue::Int(code.into())));
        }
        attributes.extend(run.error.map(error_type));
        let trace = above.map(|above| above.trace);
        self.exporter().send_span(Span {
            trace: trace
                .unwrap_or_else(|| TraceId::from_random(self.random_id(), self.random_id())),
            id: SpanId::from_random(self.random_id()),
            parent: above.map(|above| above.span),
            name: format!("hook {}", run.event),
            kind: SpanKind::Internal,
            start_ns: to_nanoseconds(now_ms.saturating_sub(took_ms)),
            end_ns: to_nanoseconds(now_ms),
            attributes,
            events: Vec::new(),
            error: run.error.map(str::to_owned),
        });
    }
}
