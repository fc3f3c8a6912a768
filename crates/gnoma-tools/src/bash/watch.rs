//! Output of a running command, for people to watch.
//!
//! Small writes are gathered for a moment, and what nobody has room for is dropped: the watched
//! output is a courtesy, the captured one is the result.

use std::time::Duration;

use gnoma_core::{CallId, tool::Progress};
use tokio::{
    sync::mpsc::{Sender, error::TrySendError},
    time::Instant,
};

/// Least time between two pieces.
const INTERVAL: Duration = Duration::from_millis(40);
/// Most text that waits to be shown; older text gives way.
const MAX_PENDING_BYTES: usize = 16 * 1024;

/// Passes text on in pieces.
#[derive(Debug)]
pub(super) struct ProgressWatch {
    call: CallId,
    sender: Sender<Progress>,
    pending: String,
    next: Instant,
}

impl ProgressWatch {
    /// A watch whose first text is passed on at once.
    pub(super) fn new(call: CallId, sender: Sender<Progress>, now: Instant) -> Self {
        Self { call, sender, pending: String::new(), next: now }
    }

    /// Adds text, and passes it on if it is time.
    pub(super) fn push(&mut self, text: &str, now: Instant) {
        self.pending.push_str(text);
        let surplus = self.pending.len().saturating_sub(MAX_PENDING_BYTES);
        let cut = self.pending.ceil_char_boundary(surplus);
        self.pending.drain(..cut);
        if now >= self.next {
            self.flush(now);
        }
    }

    /// Returns the time at which waiting text is to be passed on.
    pub(super) fn next_flush(&self) -> Option<Instant> {
        (!self.pending.is_empty()).then_some(self.next)
    }

    /// Passes waiting text on; if there is no room it continues waiting.
    pub(super) fn flush(&mut self, now: Instant) {
        if self.pending.is_empty() {
            return;
        }
        let piece = Progress { call: self.call.clone(), text: std::mem::take(&mut self.pending) };
        if let Err(TrySendError::Full(piece)) = self.sender.try_send(piece) {
            self.pending = piece.text;
        }
        self.next = now + INTERVAL;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    fn drained(receiver: &mut mpsc::Receiver<Progress>) -> Vec<String> {
        std::iter::from_fn(|| receiver.try_recv().ok().map(|piece| piece.text)).collect()
    }

    #[test]
    fn progress_output_is_sent_at_once_and_then_batched() {
        let (sender, mut receiver) = mpsc::channel(8);
        let start = Instant::now();
        let mut watch = ProgressWatch::new(CallId::new("c"), sender, start);
        for text in ["a", "b", "c"] {
            watch.push(text, start);
        }
        assert_eq!(drained(&mut receiver), ["a"]);
        assert_eq!(watch.next_flush(), Some(start + INTERVAL));
        watch.flush(start + INTERVAL);
        assert_eq!(drained(&mut receiver), ["bc"]);
        assert_eq!(watch.next_flush(), None);
    }

    #[test]
    fn progress_for_a_full_channel_retains_the_newest_text_in_bounded_memory() {
        let (sender, mut receiver) = mpsc::channel(1);
        let start = Instant::now();
        let mut watch = ProgressWatch::new(CallId::new("c"), sender, start);
        watch.push("first", start);
        watch.push(&"é".repeat(MAX_PENDING_BYTES), start + INTERVAL);
        watch.push("!", start + INTERVAL * 2);
        assert_eq!(drained(&mut receiver), ["first"]);
        watch.flush(start + INTERVAL * 3);
        let kept = drained(&mut receiver).concat();
        assert!(kept.ends_with("é!") && kept.len() <= MAX_PENDING_BYTES);
    }
}
