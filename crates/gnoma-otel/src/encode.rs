//! Requests of OTLP: `ExportTraceServiceRequest`, `ExportMetricsServiceRequest` and `ExportLogsServiceRequest`.
//!
//! Numbers and names of fields are those of `opentelemetry-proto` 1.10 (<https://github.com/open-telemetry/opentelemetry-proto>,
//! `opentelemetry/proto/{common,resource,trace,metrics,logs}/v1`); each constant stands below its message.

use crate::{
    instrument::{InstrumentForm, Series},
    log_record::LogRecord,
    options::{Format, SCHEMA_URL},
    span::{Attribute, AttributeValue, Span, SpanEvent, SpanKind},
    writer::{Field, Writer},
};

/// The instrumentation that the spans are of.
const SCOPE: &str = "gnoma";

// ExportTraceServiceRequest, ExportMetricsServiceRequest, ExportLogsServiceRequest
const RESOURCE_SPANS: Field = Field(1, "resourceSpans");
const RESOURCE_METRICS: Field = Field(1, "resourceMetrics");
const RESOURCE_LOGS: Field = Field(1, "resourceLogs");
// ResourceSpans, ResourceMetrics, ResourceLogs
const RESOURCE: Field = Field(1, "resource");
const SCOPE_SPANS: Field = Field(2, "scopeSpans");
const SCOPE_METRICS: Field = Field(2, "scopeMetrics");
const SCOPE_LOGS: Field = Field(2, "scopeLogs");
const RESOURCE_SCHEMA_URL: Field = Field(3, "schemaUrl");
// Resource
const RESOURCE_ATTRIBUTES: Field = Field(1, "attributes");
// ScopeSpans, ScopeMetrics, ScopeLogs
const SCOPE_OF: Field = Field(1, "scope");
const SPANS: Field = Field(2, "spans");
const METRICS: Field = Field(2, "metrics");
const LOG_RECORDS: Field = Field(2, "logRecords");
const SCOPE_SCHEMA_URL: Field = Field(3, "schemaUrl");
// InstrumentationScope
const SCOPE_NAME: Field = Field(1, "name");
const SCOPE_VERSION: Field = Field(2, "version");
// KeyValue
const KEY: Field = Field(1, "key");
const VALUE: Field = Field(2, "value");
// AnyValue
const TEXT_VALUE: Field = Field(1, "stringValue");
const BOOL_VALUE: Field = Field(2, "boolValue");
const INT_VALUE: Field = Field(3, "intValue");
const DOUBLE_VALUE: Field = Field(4, "doubleValue");
const ARRAY_VALUE: Field = Field(5, "arrayValue");
// ArrayValue
const ARRAY_VALUES: Field = Field(1, "values");
// Span
const TRACE_ID: Field = Field(1, "traceId");
const SPAN_ID: Field = Field(2, "spanId");
const PARENT_SPAN_ID: Field = Field(4, "parentSpanId");
const SPAN_NAME: Field = Field(5, "name");
const SPAN_KIND: Field = Field(6, "kind");
const START_TIME: Field = Field(7, "startTimeUnixNano");
const END_TIME: Field = Field(8, "endTimeUnixNano");
const SPAN_ATTRIBUTES: Field = Field(9, "attributes");
const SPAN_EVENTS: Field = Field(11, "events");
const SPAN_STATUS: Field = Field(15, "status");
// Span.Event
const EVENT_TIME: Field = Field(1, "timeUnixNano");
const EVENT_NAME: Field = Field(2, "name");
const EVENT_ATTRIBUTES: Field = Field(3, "attributes");
// Status
const STATUS_MESSAGE: Field = Field(2, "message");
const STATUS_CODE: Field = Field(3, "code");
/// The value of `Status.StatusCode.STATUS_CODE_ERROR`.
const STATUS_ERROR: u8 = 2;
// LogRecord
const LOG_TIME: Field = Field(1, "timeUnixNano");
const LOG_SEVERITY: Field = Field(2, "severityNumber");
const LOG_SEVERITY_TEXT: Field = Field(3, "severityText");
const LOG_BODY: Field = Field(5, "body");
const LOG_ATTRIBUTES: Field = Field(6, "attributes");
const LOG_TRACE_ID: Field = Field(9, "traceId");
const LOG_SPAN_ID: Field = Field(10, "spanId");
const LOG_OBSERVED_TIME: Field = Field(11, "observedTimeUnixNano");
const LOG_EVENT_NAME: Field = Field(12, "eventName");
// Metric
const METRIC_NAME: Field = Field(1, "name");
const METRIC_DESCRIPTION: Field = Field(2, "description");
const METRIC_UNIT: Field = Field(3, "unit");
const METRIC_SUM: Field = Field(7, "sum");
const METRIC_HISTOGRAM: Field = Field(9, "histogram");
// Sum, Histogram
const DATA_POINTS: Field = Field(1, "dataPoints");
const TEMPORALITY: Field = Field(2, "aggregationTemporality");
const IS_MONOTONIC: Field = Field(3, "isMonotonic");
/// The value of `AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u8 = 2;
// NumberDataPoint, HistogramDataPoint
const POINT_START: Field = Field(2, "startTimeUnixNano");
const POINT_TIME: Field = Field(3, "timeUnixNano");
// NumberDataPoint
const AS_DOUBLE: Field = Field(4, "asDouble");
const AS_INT: Field = Field(6, "asInt");
const NUMBER_ATTRIBUTES: Field = Field(7, "attributes");
// HistogramDataPoint
const HISTOGRAM_COUNT: Field = Field(4, "count");
const HISTOGRAM_SUM: Field = Field(5, "sum");
const BUCKET_COUNTS: Field = Field(6, "bucketCounts");
const EXPLICIT_BOUNDS: Field = Field(7, "explicitBounds");
const HISTOGRAM_ATTRIBUTES: Field = Field(9, "attributes");

/// Returns a request with these spans.
pub(crate) fn encode_spans(format: Format, resource: &[Attribute], spans: &[Span]) -> Vec<u8> {
    encode_request(format, resource, (RESOURCE_SPANS, SCOPE_SPANS), &|body| {
        body.write_list(SPANS, spans, write_span);
    })
}

/// Returns a request with these log records.
pub(crate) fn encode_logs(format: Format, resource: &[Attribute], logs: &[LogRecord]) -> Vec<u8> {
    encode_request(format, resource, (RESOURCE_LOGS, SCOPE_LOGS), &|body| {
        body.write_list(LOG_RECORDS, logs, write_log);
    })
}

/// Returns a request with these series, which began and are counted up to these times, in nanoseconds since 1970.
pub(crate) fn encode_metrics(
    format: Format,
    resource: &[Attribute],
    series: &[Series],
    times: (u64, u64),
) -> Vec<u8> {
    encode_request(format, resource, (RESOURCE_METRICS, SCOPE_METRICS), &|body| {
        let is_first = |at: usize| {
            let same = |earlier: &Series| earlier.instrument == series[at].instrument;
            !series[..at].iter().any(same)
        };
        let firsts = (0..series.len()).filter(|at| is_first(*at));
        body.write_list(METRICS, firsts, |body, at| {
            let of = series[at].instrument;
            let points: Vec<_> = series.iter().filter(|it| it.instrument == of).collect();
            write_metric(body, &points, times);
        });
    })
}

/// Returns a request of one resource and one scope, whose items `write` writes.
fn encode_request(
    format: Format,
    resource: &[Attribute],
    (of_resource, of_scope): (Field, Field),
    write: &dyn Fn(&mut Writer),
) -> Vec<u8> {
    Writer::encode_message(format, |request| {
        request.write_list(of_resource, [()], |body, ()| {
            write_resource(body, resource);
            body.write_list(of_scope, [()], |body, ()| {
                write_scope(body);
                write(body);
                body.write_text(SCOPE_SCHEMA_URL, SCHEMA_URL);
            });
            body.write_text(RESOURCE_SCHEMA_URL, SCHEMA_URL);
        });
    })
}

fn write_resource(body: &mut Writer, resource: &[Attribute]) {
    body.write_nested(RESOURCE, |body| {
        body.write_list(RESOURCE_ATTRIBUTES, resource, write_attribute);
    });
}

fn write_scope(body: &mut Writer) {
    body.write_nested(SCOPE_OF, |body| {
        body.write_text(SCOPE_NAME, SCOPE);
        body.write_text(SCOPE_VERSION, env!("CARGO_PKG_VERSION"));
    });
}

fn write_attribute(body: &mut Writer, (key, value): &Attribute) {
    body.write_text(KEY, key);
    body.write_nested(VALUE, |body| match value {
        AttributeValue::Text(text) => body.write_text(TEXT_VALUE, text),
        AttributeValue::Bool(value) => body.write_bool(BOOL_VALUE, *value),
        AttributeValue::Int(number) => body.write_int(INT_VALUE, *number),
        AttributeValue::Number(number) => body.write_double(DOUBLE_VALUE, *number),
        AttributeValue::Texts(texts) => body.write_nested(ARRAY_VALUE, |body| {
            body.write_list(ARRAY_VALUES, texts, |body, text| body.write_text(TEXT_VALUE, text));
        }),
    });
}

fn write_span(body: &mut Writer, span: &Span) {
    body.write_id(TRACE_ID, &span.trace.0);
    body.write_id(SPAN_ID, &span.id.0);
    if let Some(parent) = span.parent {
        body.write_id(PARENT_SPAN_ID, &parent.0);
    }
    body.write_text(SPAN_NAME, &span.name);
    body.write_small(
        SPAN_KIND,
        match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Client => 3,
        },
    );
    body.write_fixed(START_TIME, span.start_ns);
    body.write_fixed(END_TIME, span.end_ns.max(span.start_ns));
    body.write_list(SPAN_ATTRIBUTES, &span.attributes, write_attribute);
    body.write_list(SPAN_EVENTS, &span.events, write_event);
    if let Some(error) = &span.error {
        body.write_nested(SPAN_STATUS, |body| {
            body.write_text(STATUS_MESSAGE, error);
            body.write_small(STATUS_CODE, STATUS_ERROR);
        });
    }
}

fn write_event(body: &mut Writer, event: &SpanEvent) {
    body.write_fixed(EVENT_TIME, event.at_ns);
    body.write_text(EVENT_NAME, event.name);
    body.write_list(EVENT_ATTRIBUTES, &event.attributes, write_attribute);
}

fn write_log(body: &mut Writer, log: &LogRecord) {
    let (severity, severity_text) = log.severity.describe();
    body.write_fixed(LOG_TIME, log.at_ns);
    body.write_small(LOG_SEVERITY, severity);
    body.write_text(LOG_SEVERITY_TEXT, severity_text);
    // Collectors before protocol 1.5 know no names of events.
    body.write_nested(LOG_BODY, |body| body.write_text(TEXT_VALUE, log.event));
    body.write_list(LOG_ATTRIBUTES, &log.attributes, write_attribute);
    if let Some(context) = &log.context {
        body.write_id(LOG_TRACE_ID, &context.trace.0);
        body.write_id(LOG_SPAN_ID, &context.span.0);
    }
    body.write_fixed(LOG_OBSERVED_TIME, log.at_ns);
    body.write_text(LOG_EVENT_NAME, log.event);
}

fn write_metric(body: &mut Writer, points: &[&Series], times: (u64, u64)) {
    let Some(first) = points.first() else { return };
    let (name, unit, description, form) = first.instrument.describe();
    body.write_text(METRIC_NAME, name);
    body.write_text(METRIC_DESCRIPTION, description);
    body.write_text(METRIC_UNIT, unit);
    let (field, bounds) = match form {
        InstrumentForm::Histogram(bounds) => (METRIC_HISTOGRAM, Some(bounds)),
        InstrumentForm::Count | InstrumentForm::Millionths => (METRIC_SUM, None),
    };
    body.write_nested(field, |body| {
        body.write_list(DATA_POINTS, points, |body, point| {
            body.write_fixed(POINT_START, times.0);
            body.write_fixed(POINT_TIME, times.1);
            write_value(body, point, form);
        });
        body.write_small(TEMPORALITY, CUMULATIVE);
        if bounds.is_none() {
            body.write_bool(IS_MONOTONIC, true);
        }
    });
}

fn write_value(body: &mut Writer, point: &Series, form: InstrumentForm) {
    match form {
        InstrumentForm::Count => body.write_fixed(AS_INT, point.total),
        InstrumentForm::Millionths => body.write_double(AS_DOUBLE, point.total as f64 / 1e6),
        InstrumentForm::Histogram(bounds) => {
            body.write_fixed(HISTOGRAM_COUNT, point.count);
            body.write_double(HISTOGRAM_SUM, point.sum);
            body.fixed_list(BUCKET_COUNTS, &point.buckets);
            body.double_list(EXPLICIT_BOUNDS, bounds);
            return body.write_list(HISTOGRAM_ATTRIBUTES, &point.attributes, write_attribute);
        }
    }
    body.write_list(NUMBER_ATTRIBUTES, &point.attributes, write_attribute);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        instrument::{Instrument, Metrics},
        log_record::LogSeverity,
        span::{SpanContext, SpanId, TraceId},
    };

    fn span() -> Span {
        Span {
            trace: TraceId([0xAB; 16]),
            id: SpanId([1; 8]),
            parent: Some(SpanId([2; 8])),
            name: "chat m".to_owned(),
            kind: SpanKind::Client,
            start_ns: 5,
            end_ns: 4,
            attributes: vec![
                ("gen_ai.usage.input_tokens".into(), AttributeValue::Int(7)),
                (
                    "gen_ai.response.finish_reasons".into(),
                    AttributeValue::Texts(vec!["stop".to_owned()]),
                ),
            ],
            events: Vec::new(),
            error: Some("timeout".to_owned()),
        }
    }

    #[test]
    fn span_is_encoded_as_otlp_json() {
        let json =
            encode_spans(Format::Json, &[("service.name".into(), "gnoma".into())], &[span()]);
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let resource = &json["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "gnoma");
        assert_eq!(resource["schemaUrl"], SCHEMA_URL);
        let span = &resource["scopeSpans"][0]["spans"][0];
        assert_eq!(span["traceId"], "ab".repeat(16));
        assert_eq!((&span["kind"], &span["status"]["code"]), (&3.into(), &2.into()));
        assert_eq!(span["attributes"][0]["value"]["intValue"], "7");
        assert_eq!(
            span["attributes"][1]["value"]["arrayValue"]["values"][0]["stringValue"],
            "stop"
        );
        assert_eq!(span["endTimeUnixNano"], "5", "an end is never before its start");
    }

    #[test]
    fn log_record_is_encoded_as_otlp_json() {
        let (trace, id) = (TraceId([0xAB; 16]), SpanId([1; 8]));
        let log = LogRecord {
            event: "gnoma.failover",
            severity: LogSeverity::Warning,
            at_ns: 7,
            context: Some(SpanContext { trace, span: id, is_sampled: true }),
            attributes: vec![("gnoma.arm.from".into(), "a/b".into())],
        };
        let json = encode_logs(Format::Json, &[], &[log]);
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let log = &json["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
        assert_eq!(
            (&log["eventName"], &log["severityNumber"]),
            (&"gnoma.failover".into(), &13.into())
        );
        assert_eq!((&log["timeUnixNano"], &log["traceId"]), (&"7".into(), &"ab".repeat(16).into()));
        assert_eq!(log["attributes"][0]["value"]["stringValue"], "a/b");
    }

    #[test]
    fn data_points_of_one_metric_are_grouped_in_otlp_json() {
        let mut all = Metrics::default();
        let model = |name: &str| vec![("gen_ai.request.model".into(), name.into())];
        for (name, micro_usd) in [("a", 1_500_000), ("b", 1), ("a", 1)] {
            all.add_count(Instrument::CostUsd, micro_usd, model(name));
            all.record_value(Instrument::TokenUsage, 100.0, model(name));
        }
        let series = all.take_changed().unwrap();
        let json = encode_metrics(Format::Json, &[], &series, (1, 2));
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let metrics = json["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        assert_eq!(metrics.len(), 2);
        let cost = &metrics[0]["sum"];
        assert_eq!(cost["dataPoints"][0]["asDouble"], 1.500_001);
        assert_eq!(
            (&cost["aggregationTemporality"], &cost["isMonotonic"]),
            (&2.into(), &true.into())
        );
        let tokens = &metrics[1]["histogram"]["dataPoints"][0];
        assert_eq!((&tokens["count"], &tokens["sum"]), (&"2".into(), &200.into()));
    }
}
