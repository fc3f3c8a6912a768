//! The spans of one session that others are below.

use std::collections::VecDeque;

use gnoma_core::CallId;
use gnoma_otel::{SpanContext, SpanId, TraceId};

/// Most calls of a session that are remembered; the oldest are forgotten.
const MAX_CALLS: usize = 64;

/// The spans of a session that others are below: known to what records its model calls, tools and hooks.
#[derive(Debug, Default)]
pub(super) struct SessionSpans {
    /// The span that its turns are below: that of the call that started it, or of what started the program.
    pub(super) remote: Option<SpanContext>,
    /// The turn that runs, or the last one: calls of it can end later.
    turn: Option<SpanContext>,
    calls: VecDeque<CallSpan>,
}

#[derive(Debug)]
struct CallSpan {
    call: CallId,
    context: SpanContext,
    /// `true` if the call's span has ended: another call of that id is another one.
    is_over: bool,
}

impl SessionSpans {
    /// Returns the spans of a session below another span.
    pub(super) fn with_remote(remote: Option<SpanContext>) -> Self {
        Self { remote, ..Self::default() }
    }

    /// Begins a turn and returns its span.
    pub(super) fn begin_turn(&mut self, random: impl Fn() -> u64) -> SpanContext {
        let span = SpanId::from_random(random());
        let turn = match self.remote {
            Some(remote) => SpanContext { span, ..remote },
            None => {
                let trace = TraceId::from_random(random(), random());
                SpanContext { trace, span, is_sampled: true }
            }
        };
        *self.turn.insert(turn)
    }

    /// Returns the span that is above what happens now.
    pub(super) fn parent_span(&self) -> Option<SpanContext> {
        self.turn.or(self.remote)
    }

    /// Returns the span of a call that is about to run or does. Its tool can ask before the event of its start has come.
    pub(super) fn open_call(&mut self, call: &CallId, random: u64) -> Option<SpanContext> {
        let mut open = self.calls.iter().rev().filter(|known| !known.is_over);
        if let Some(known) = open.find(|known| known.call == *call) {
            return Some(known.context);
        }
        let context = SpanContext { span: SpanId::from_random(random), ..self.turn? };
        if self.calls.len() >= MAX_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(CallSpan { call: call.clone(), context, is_over: false });
        Some(context)
    }

    /// The span of a call has ended. Models can use its id again.
    pub(super) fn end_call(&mut self, call: &CallId) {
        for known in self.calls.iter_mut().filter(|known| known.call == *call) {
            known.is_over = true;
        }
    }

    /// Returns the span of a call, also of one that is over; that of the turn if the call is not known.
    pub(super) fn call_or_above(&self, call: &CallId) -> Option<SpanContext> {
        let known = self.calls.iter().rev().find(|known| known.call == *call);
        known.map(|known| known.context).or_else(|| self.parent_span())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_spans_are_children_of_the_call_that_started_the_session() {
        let mut spans = SessionSpans::default();
        let id = CallId::new("c");
        assert_eq!(spans.open_call(&id, 1), None);
        let numbers = std::cell::Cell::new(0);
        let random = || {
            numbers.set(numbers.get() + 1);
            numbers.get()
        };
        let first = spans.begin_turn(random);
        let second = spans.begin_turn(random);
        assert_ne!(first.trace, second.trace, "each turn has a trace");
        assert_eq!(spans.call_or_above(&id), Some(second));
        let call = spans.open_call(&id, 7).unwrap();
        assert_eq!((call.trace, spans.open_call(&id, 8)), (second.trace, Some(call)));
        spans.end_call(&id);
        assert_eq!(spans.call_or_above(&id), Some(call));
        assert_ne!(spans.open_call(&id, 8), Some(call), "an id can be used again");
        let mut child = SessionSpans::with_remote(Some(call));
        assert_eq!(child.parent_span(), Some(call));
        assert_eq!(child.begin_turn(random).trace, second.trace);
    }
}
