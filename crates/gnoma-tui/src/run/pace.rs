//! How often frames are drawn: one at once after a pause, then so many a second. What a person types
//! may be one frame ahead of that, so that a stream of events never delays the echo of a key. Pure.

use std::time::{Duration, Instant};

use super::MAX_FRAMES_PER_SECOND;

/// The time that a frame takes its turn for.
pub(super) const FRAME: Duration =
    Duration::from_nanos(1_000_000_000 / MAX_FRAMES_PER_SECOND as u64);

/// Says when the next frame is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    /// When a frame is due that nobody has typed for.
    due: Option<Instant>,
}

impl Pace {
    /// When the next frame may be drawn; `None` at once.
    pub(super) fn wait(&self, now: Instant, is_typed: bool) -> Option<Instant> {
        let due = self.due?;
        let due = if is_typed { due.checked_sub(FRAME).unwrap_or(due) } else { due };
        (due > now).then_some(due)
    }

    /// A frame was drawn.
    pub(super) fn drawn(&mut self, now: Instant) {
        self.due = Some(self.due.map_or(now, |due| due.max(now)) + FRAME);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_key_after_a_frame_is_drawn_at_once() {
        let now = Instant::now();
        let mut pace = Pace::default();
        pace.drawn(now);
        let soon = now + Duration::from_millis(1);
        assert_eq!(pace.wait(soon, true), None);
        assert!(pace.wait(soon, false).is_some());
        pace.drawn(soon);
        assert!(pace.wait(soon, true).is_some(), "the second waits its turn");
    }

    proptest! {
        #[test]
        fn there_are_never_more_frames_than_allowed(
            steps in prop::collection::vec((0_u64..60, any::<bool>()), 1..300),
        ) {
            let start = Instant::now();
            let (mut now, mut pace, mut frames) = (start, Pace::default(), Vec::new());
            for (milliseconds, is_typed) in steps {
                now += Duration::from_millis(milliseconds);
                if pace.wait(now, is_typed).is_none() {
                    pace.drawn(now);
                    frames.push(now);
                }
            }
            for first in &frames {
                let end = *first + Duration::from_secs(1);
                let count = frames.iter().filter(|at| *at >= first && **at < end).count();
                // One at the start, one ahead.
                prop_assert!(count <= MAX_FRAMES_PER_SECOND as usize + 2, "{count}");
            }
        }
    }
}
