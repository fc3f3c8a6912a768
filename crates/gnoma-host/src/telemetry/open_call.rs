//! Calls and questions whose spans have not ended.

use gnoma_otel::SpanContext;

/// A call that was judged or runs.
pub(super) struct OpenCall {
    pub(super) context: SpanContext,
    pub(super) begin_ms: i64,
    pub(super) tool: String,
    pub(super) is_started: bool,
    pub(super) allowed: Option<bool>,
    pub(super) was_asked: bool,
    pub(super) arguments: Option<String>,
}

pub(super) struct AskedQuestion {
    pub(super) begin_ms: i64,
    /// The span of the call that it is about.
    pub(super) above: SpanContext,
    /// `true` if the question came up in the middle of a call, and has an id of its own.
    pub(super) is_within: bool,
    pub(super) kind: &'static str,
}

impl OpenCall {
    pub(super) fn new(context: SpanContext, begin_ms: i64) -> Self {
        Self {
            context,
            begin_ms,
            tool: String::new(),
            is_started: false,
            allowed: None,
            was_asked: false,
            arguments: None,
        }
    }
}
