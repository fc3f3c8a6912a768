//! Sends what a process does to an OpenTelemetry collector: spans, metrics and log records, as OTLP over HTTP.
//!
//! [`Span`], [`Instrument`] and [`LogRecord`] are what is sent, [`encode`] writes them in the protocol's two forms, [`ExportOptions`]
//! says where to, and [`Exporter`] sends without anybody waiting for it. What a span means is up to the caller; no text
//! is redacted here.

mod answer;
mod encode;
mod exporter;
mod instrument;
mod log_record;
mod options;
mod queue;
mod span;
mod writer;

pub use self::{
    exporter::Exporter,
    instrument::Instrument,
    log_record::{LogRecord, LogSeverity},
    options::{ExportOptions, ExportSettings, Format, OptionError, host_of},
    span::{
        Attribute, AttributeValue, Span, SpanContext, SpanEvent, SpanId, SpanKind, TraceId,
        find_attribute,
    },
};
