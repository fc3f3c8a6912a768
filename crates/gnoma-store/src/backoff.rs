//! Waiting for another process, a little longer each time.

use std::{thread, time::Duration};

/// Backoff a little longer each time, until `patience` is used up.
pub(crate) struct Backoff {
    left: Duration,
    next: Duration,
}

impl Backoff {
    /// A new row of waits.
    pub(crate) fn new(patience: Duration) -> Self {
        Self { left: patience, next: Duration::from_millis(1) }
    }

    /// Backoff once; `false` when the patience is used up.
    pub(crate) fn wait(&mut self) -> bool {
        const LONGEST: Duration = Duration::from_millis(50);
        if self.left.is_zero() {
            return false;
        }
        let wait = self.next.min(self.left);
        thread::sleep(wait);
        self.left -= wait;
        self.next = (self.next * 2).min(LONGEST);
        true
    }
}
