//! Model calls: every call that the ledger settles is a span `chat`, whichever part of gnoma made it, also one that failed or was given
//! up. So the tokens and costs of all spans add up to what the ledger counts.

use std::{collections::HashMap, sync::Arc};

use gnoma_core::{
    ErrorKind, ModelRef, StopReason,
    ledger::{
        HoldId, Ledger, Level, PoolDraw, ReservationOutcome, ReservationRequest, SettledCall, Total,
    },
    store::StoreFuture,
    sync::Mutex,
};
use gnoma_otel::{Attribute, AttributeValue, Instrument, Span, SpanId, SpanKind, TraceId};

use super::{
    content::clean_name,
    process::{Telemetry, to_nanoseconds},
};
use crate::{Project, ledger::LateLedger};

/// Most reservations that are remembered until they are settled.
const MAX_HELD: usize = 4096;

/// A ledger whose calls are spans.
pub(crate) struct MeteredLedger {
    ledger: Arc<LateLedger>,
    telemetry: Arc<Telemetry>,
    held: Arc<Mutex<HashMap<i64, HeldCall>>>,
}

/// A call that was reserved and is not settled.
struct HeldCall {
    arm: ModelRef,
    /// The session that makes the call.
    session: String,
    task: String,
}

impl MeteredLedger {
    /// Returns the ledger, with spans of its calls if the project sends telemetry.
    pub(crate) fn wrap_ledger(project: &Project, ledger: Arc<LateLedger>) -> Arc<dyn Ledger> {
        match &project.telemetry {
            Some(telemetry) => {
                Arc::new(Self { ledger, telemetry: Arc::clone(telemetry), held: Arc::default() })
            }
            None => ledger,
        }
    }
}

impl Ledger for MeteredLedger {
    fn reserve(&self, ask: ReservationRequest) -> StoreFuture<'_, ReservationOutcome> {
        let origin = &ask.origin;
        let session = if origin.elf.is_empty() { &origin.session } else { &origin.elf };
        let (arm, task) = (ask.arm.clone(), origin.task.clone());
        let call = HeldCall { arm, session: session.clone(), task };
        Box::pin(async move {
            let reserved = self.ledger.reserve(ask).await?;
            if let ReservationOutcome::Held(hold) = &reserved {
                let mut held = self.held.lock();
                if held.len() < MAX_HELD {
                    held.insert(hold.0, call);
                }
            }
            Ok(reserved)
        })
    }

    fn commit(&self, hold: HoldId, at_ms: i64, call: SettledCall) -> StoreFuture<'_, ()> {
        if let Some(held) = self.held.lock().remove(&hold.0) {
            self.telemetry.record_call(&held, at_ms, &call);
        }
        self.ledger.commit(hold, at_ms, call)
    }

    fn rollback(&self, hold: HoldId) {
        self.held.lock().remove(&hold.0);
        self.ledger.rollback(hold);
    }

    fn limit_levels(&self, draws: Vec<PoolDraw>, at_ms: i64) -> StoreFuture<'_, Vec<Level>> {
        self.ledger.limit_levels(draws, at_ms)
    }

    fn daily_totals(&self, from_day: i32) -> StoreFuture<'_, Vec<Total>> {
        self.ledger.daily_totals(from_day)
    }
}

impl Telemetry {
    fn record_call(&self, held: &HeldCall, at_ms: i64, call: &SettledCall) {
        let above = self.span_above(&held.session);
        let took_ms = call.took_ms.unwrap_or_default();
        let start_ms = at_ms.saturating_sub(i64::try_from(took_ms).unwrap_or_default());
        self.count_call(held, call, took_ms);
        if above.is_some_and(|above| !above.is_sampled) {
            return;
        }
        let trace = above.map(|above| above.trace);
        self.exporter().send_span(Span {
            trace: trace
                .unwrap_or_else(|| TraceId::from_random(self.random_id(), self.random_id())),
            id: SpanId::from_random(self.random_id()),
            parent: above.map(|above| above.span),
            name: format!("chat {}", clean_name(&held.arm.model)),
            kind: SpanKind::Client,
            start_ns: to_nanoseconds(start_ms),
            end_ns: to_nanoseconds(at_ms),
            attributes: call_attributes(held, call),
            events: Vec::new(),
            error: call.failure.map(|kind| kind.to_string()),
        });
    }

    fn count_call(&self, held: &HeldCall, call: &SettledCall, took_ms: u64) {
        let exporter = self.exporter();
        let facts = || arm_attributes(&held.arm);
        let mut timed = facts();
        timed.extend(call.failure.map(|kind| error_type(&error_name(kind))));
        exporter.record_value(Instrument::OperationDuration, took_ms as f64 / 1e3, timed);
        for (kind, tokens) in [("input", call.amount.input), ("output", call.amount.output)] {
            if call.amount.input + call.amount.output > 0 {
                let mut facts = facts();
                facts.push(("gen_ai.token.type".into(), kind.into()));
                exporter.record_value(Instrument::TokenUsage, tokens as f64, facts);
            }
        }
        if call.is_priced {
            exporter.add_count(Instrument::CostUsd, call.amount.micro_usd, facts());
        }
    }
}

/// The attributes that spans and metrics of a call have.
pub(super) fn arm_attributes(arm: &ModelRef) -> Vec<Attribute> {
    vec![
        ("gen_ai.operation.name".into(), "chat".into()),
        ("gen_ai.provider.name".into(), provider_name(&arm.provider).into()),
        ("gen_ai.request.model".into(), AttributeValue::Text(clean_name(&arm.model))),
    ]
}

fn call_attributes(held: &HeldCall, call: &SettledCall) -> Vec<Attribute> {
    let amount = &call.amount;
    let mut all = arm_attributes(&held.arm);
    all.extend([
        ("gen_ai.conversation.id".into(), AttributeValue::Text(held.session.clone())),
        ("gen_ai.request.stream".into(), AttributeValue::Bool(true)),
        ("gen_ai.usage.input_tokens".into(), amount.input.into()),
        ("gen_ai.usage.output_tokens".into(), amount.output.into()),
        ("gen_ai.usage.cache_read.input_tokens".into(), amount.cached.into()),
        ("gen_ai.usage.cache_creation.input_tokens".into(), amount.cache_write.into()),
        ("gen_ai.usage.reasoning.output_tokens".into(), call.thinking.into()),
        ("gnoma.arm".into(), AttributeValue::Text(clean_name(&held.arm.to_string()))),
    ]);
    if call.is_priced {
        all.push(("gnoma.cost.micro_usd".into(), amount.micro_usd.into()));
    }
    if let Some(ms) = call.first_part_ms {
        let seconds = AttributeValue::Number(ms as f64 / 1e3);
        all.push(("gen_ai.response.time_to_first_chunk".into(), seconds));
    }
    if let Some(stop) = call.stop {
        let reasons = AttributeValue::Texts(vec![finish_reason(stop).to_owned()]);
        all.push(("gen_ai.response.finish_reasons".into(), reasons));
    }
    if !held.task.is_empty() {
        all.push(("gnoma.task.kind".into(), AttributeValue::Text(clean_name(&held.task))));
    }
    all.extend(call.failure.map(|kind| error_type(&error_name(kind))));
    all
}

pub(super) fn error_type(name: &str) -> Attribute {
    ("error.type".into(), name.into())
}

/// The name of a provider in the conventions, where they have one.
pub(super) fn provider_name(provider: &str) -> &str {
    match provider {
        "mistral" => "mistral_ai",
        "google" => "gcp.gemini",
        "xai" => "x_ai",
        "moonshot" => "moonshot_ai",
        "azure" => "azure.ai.openai",
        other => other,
    }
}

/// The reason in the words of `gen-ai-output-messages.json`, where it has one.
fn finish_reason(stop: StopReason) -> &'static str {
    match stop {
        StopReason::EndTurn | StopReason::StopSequence => "stop",
        StopReason::ToolUse => "tool_call",
        StopReason::MaxTokens => "length",
        StopReason::ContentFilter => "content_filter",
        StopReason::Refusal => "refusal",
        StopReason::Pause => "pause",
        StopReason::Other => "other",
    }
}

/// The value of `error.type`: the name of the kind in the session protocol, such as `rate_limited`.
pub(super) fn error_name(kind: ErrorKind) -> String {
    let name = serde_json::to_value(kind).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or("_OTHER").to_owned()
}
