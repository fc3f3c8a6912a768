//! Frame rate: one frame at once after a pause, then so many a second. A frame for a key may come one frame early, so
//! that a stream of events never delays its echo; the following frames make up for that gradually, so that a key never
//! delays the stream either. Pure.

use std::time::{Duration, Instant};

use super::MAX_FRAMES_PER_SECOND;

/// The time that a frame takes its turn for.
pub(super) const FRAME: Duration =
    Duration::from_nanos(1_000_000_000 / MAX_FRAMES_PER_SECOND as u64);

/// The longest time between two frames where there is always something to draw.
const LONGEST: Duration = Duration::from_nanos(1_250_000_000 / MAX_FRAMES_PER_SECOND as u64);

/// Says when the next frame is drawn.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    last: Option<Last>,
}

/// The times of the last frame.
#[derive(Clone, Copy, Debug)]
struct Last {
    drawn: Instant,
    /// The time at which the next frame takes its turn.
    due: Instant,
}

impl Pace {
    /// Returns the time at which the next frame may be drawn; `None` at once.
    pub(super) fn next_frame_at(&self, now: Instant, is_typed: bool) -> Option<Instant> {
        let Last { drawn, due } = self.last?;
        let due =
            if is_typed { due.checked_sub(FRAME).unwrap_or(due) } else { due.min(drawn + LONGEST) };
        (due > now).then_some(due)
    }

    /// A frame was drawn.
    pub(super) fn record_frame(&mut self, now: Instant) {
        let due = self.last.map_or(now, |last| last.due.max(now)) + FRAME;
        self.last = Some(Last { drawn: now, due });
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
        pace.record_frame(now);
        let soon = now + Duration::from_millis(1);
        assert_eq!(pace.next_frame_at(soon, true), None);
        assert!(pace.next_frame_at(soon, false).is_some());
        pace.record_frame(soon);
        assert!(pace.next_frame_at(soon, true).is_some(), "the second waits its turn");
    }

    proptest! {
        #[test]
        fn frame_rate_never_exceeds_the_limit(
            steps in prop::collection::vec((0_u64..60, any::<bool>()), 1..300),
        ) {
            let start = Instant::now();
            let (mut now, mut pace, mut frames) = (start, Pace::default(), Vec::new());
            for (milliseconds, is_typed) in steps {
                now += Duration::from_millis(milliseconds);
                if pace.next_frame_at(now, is_typed).is_none() {
                    pace.record_frame(now);
                    frames.push(now);
                    let next = pace.next_frame_at(now, false).unwrap_or(now);
                    prop_assert!(next <= now + Duration::from_millis(45), "{:?}", next - now);
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
