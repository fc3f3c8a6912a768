//! Sends what a process does to an OpenTelemetry collector: spans and metrics, as OTLP over HTTP.
//!
//! [`Span`] and [`Instrument`] are what is sent, [`encode`] writes them in the protocol's two forms, [`ExportOptions`]
//! says where to, and [`Exporter`] sends without anybody waiting for it. What a span means is up to the caller; no text
//! is redacted here.

mod answer;
mod encode;
mod exporter;
mod instrument;
mod options;
mod queue;
mod span;
mod writer;

pub use self::{
    exporter::Exporter,
    instrument::Instrument,
    options::{ExportOptions, ExportSettings, Format, OptionError},
    span::{
        Attribute, AttributeValue, Span, SpanContext, SpanEvent, SpanId, SpanKind, TraceId,
        find_attribute,
    },
};
