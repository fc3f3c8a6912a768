//! The spans that wait to be sent: limited in number and memory, so that a collector that does not answer costs no turn
//! anything.

use std::collections::VecDeque;

use crate::span::Span;

/// Most spans that wait.
pub(crate) const MAX_SPANS: usize = 2048;
/// Most memory of spans that wait, in bytes.
pub(crate) const MAX_BYTES: usize = 1 << 20;
/// Most spans of one request.
const MAX_BATCH: usize = 512;

/// Spans in the order in which they ended.
#[derive(Debug)]
pub(crate) struct SpanQueue {
    spans: VecDeque<Span>,
    bytes: usize,
    /// Most spans of the next request.
    batch: usize,
    dropped: u64,
    /// Those of them that were not reported yet.
    unreported: u64,
}

impl Default for SpanQueue {
    fn default() -> Self {
        Self { spans: VecDeque::new(), bytes: 0, batch: MAX_BATCH, dropped: 0, unreported: 0 }
    }
}

impl SpanQueue {
    /// Adds a span, or counts it as dropped if there is no room. Returns whether a request is full.
    pub(crate) fn push(&mut self, span: Span) -> bool {
        let size = span.size_bytes();
        if self.spans.len() >= MAX_SPANS || self.bytes.saturating_add(size) > MAX_BYTES {
            self.drop_spans(1);
            return false;
        }
        self.bytes += size;
        self.spans.push_back(span);
        self.spans.len() >= self.batch
    }

    /// Takes the spans of the next request, the oldest first; none if none wait.
    pub(crate) fn take_batch(&mut self) -> Vec<Span> {
        let count = self.batch.min(self.spans.len());
        let spans: Vec<_> = self.spans.drain(..count).collect();
        self.bytes = self.bytes.saturating_sub(spans.iter().map(Span::size_bytes).sum());
        spans
    }

    /// A request was too large: its spans wait for smaller ones. A single span is dropped.
    pub(crate) fn requeue_split(&mut self, spans: Vec<Span>) {
        if spans.len() < 2 {
            return self.drop_spans(spans.len() as u64);
        }
        self.batch = spans.len().div_ceil(2);
        for span in spans.into_iter().rev() {
            self.bytes += span.size_bytes();
            self.spans.push_front(span);
        }
    }

    pub(crate) fn drop_spans(&mut self, count: u64) {
        self.dropped = self.dropped.saturating_add(count);
        self.unreported = self.unreported.saturating_add(count);
    }

    /// Counts the spans that were dropped since this was asked last.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.unreported)
    }

    /// Counts the spans that were dropped so far.
    pub(crate) fn dropped_spans(&self) -> u64 {
        self.dropped
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{SpanId, SpanKind, TraceId};

    fn span(number: u64, bytes: usize) -> Span {
        Span {
            trace: TraceId([1; 16]),
            id: SpanId::from_random(number),
            parent: None,
            name: "x".repeat(bytes),
            kind: SpanKind::Internal,
            start_ns: number,
            end_ns: number,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        }
    }

    fn push_all(queue: &mut SpanQueue, numbers: std::ops::Range<u64>, bytes: usize) {
        for number in numbers {
            let _is_full = queue.push(span(number, bytes));
        }
    }

    #[test]
    fn span_queue_limits_count_and_memory_and_counts_drops() {
        let mut queue = SpanQueue::default();
        push_all(&mut queue, 0..5000, 1);
        assert_eq!((queue.len(), queue.dropped_spans()), (MAX_SPANS, 5000 - MAX_SPANS as u64));
        assert_eq!(queue.take_batch().len(), MAX_BATCH);
        let mut queue = SpanQueue::default();
        push_all(&mut queue, 0..100, 100_000);
        assert!(queue.bytes <= MAX_BYTES && queue.dropped_spans() >= 89, "{queue:?}");
        while !queue.is_empty() {
            queue.take_batch();
        }
        assert_eq!(queue.bytes, 0);
    }

    #[test]
    fn too_large_span_batch_is_halved_down_to_one_span() {
        let mut queue = SpanQueue::default();
        push_all(&mut queue, 0..5, 1);
        let mut sizes = Vec::new();
        while !queue.is_empty() {
            let spans = queue.take_batch();
            assert_eq!(spans[0].start_ns, queue.dropped_spans(), "the order stays");
            sizes.push(spans.len());
            queue.requeue_split(spans);
        }
        assert_eq!(queue.dropped_spans(), 5);
        assert_eq!(sizes, [5, 3, 2, 1, 1, 1, 1, 1]);
    }
}
