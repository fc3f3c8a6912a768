//! The size of a terminal that reports changes late. Multiplexers fold and cut their rows at once, but report the
//! new size up to a quarter of a second later. A frame that is drawn for the old size meanwhile leaves copies of
//! rows in the scrollback, or overwrites lines. So gnoma asks such a terminal before each frame.

use std::time::{Duration, Instant};

use crate::frame::Size;

/// The time to wait for an answer. A terminal that needs longer is not asked again until it has answered.
const ANSWER_WAIT: Duration = Duration::from_millis(100);
/// An older answer may be out of date: somebody else has had the terminal meanwhile.
const MAX_ANSWER_AGE: Duration = Duration::from_millis(250);

/// The time for which nothing is drawn after a new size: the next may be there already, as while a window is
/// dragged.
const SETTLES: Duration = Duration::from_millis(300);

/// The step that the next frame needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeStep {
    /// Ask the terminal, and wait until this time.
    Ask(Instant),
    /// Wait for the answer until this time.
    Wait(Instant),
    /// Draw, for this size if it is known.
    Draw(Option<Size>),
}

/// The questions about the size that were asked and answered.
#[derive(Debug, Default)]
pub(super) struct SizeCheck {
    /// The terminal reports a new size late.
    is_needed: bool,
    /// `true` if the terminal has not answered in time.
    is_silent: bool,
    asked_until: Option<Instant>,
    answer: Option<(Size, Instant)>,
    /// The size that the last frame was drawn for, or the next one will be, once it has settled.
    settling: Option<(Size, Instant)>,
    /// `true` if the terminal answers with columns before rows, as tmux did up to 3.3.
    is_turned: bool,
}

impl SizeCheck {
    pub(super) fn new(is_needed: bool) -> Self {
        Self { is_needed, ..Self::default() }
    }

    /// The size can only be learned from the system, which reports it late.
    pub(super) fn is_late(&self) -> bool {
        self.is_needed && self.is_silent
    }

    pub(super) fn step(&mut self, now: Instant) -> SizeStep {
        if !self.is_needed || self.is_silent {
            return SizeStep::Draw(None);
        }
        if let Some((_, until)) = self.settling.filter(|(_, until)| *until > now) {
            return SizeStep::Wait(until);
        }
        if let Some((size, at)) = self.answer.take()
            && now.saturating_duration_since(at) <= MAX_ANSWER_AGE
        {
            return self.confirm_size(size, now);
        }
        match self.asked_until {
            Some(until) if until > now => SizeStep::Wait(until),
            Some(_) => {
                self.is_silent = true;
                SizeStep::Draw(None)
            }
            None => {
                let until = now + ANSWER_WAIT;
                self.asked_until = Some(until);
                SizeStep::Ask(until)
            }
        }
    }

    fn confirm_size(&mut self, size: Size, now: Instant) -> SizeStep {
        match self.settling {
            Some((known, _)) if known != size => {
                let until = now + SETTLES;
                self.settling = Some((size, until));
                SizeStep::Wait(until)
            }
            Some(_) | None => {
                self.settling = Some((size, now));
                SizeStep::Draw(Some(size))
            }
        }
    }

    /// The terminal has answered. `system` is its size as the system has it, which shows in which order it
    /// answers.
    pub(super) fn record_answer(&mut self, size: Size, system: Size, now: Instant) {
        (self.is_silent, self.asked_until) = (false, None);
        let turned = Size::new(size.height, size.width);
        // A square says nothing about the order.
        if size != turned && (size == system || turned == system) {
            self.is_turned = turned == system;
        }
        let size = if self.is_turned { turned } else { size };
        self.answer = Some((size, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Size = Size { width: 60, height: 20 };

    #[test]
    fn each_frame_is_asked_for_and_drawn_for_the_answer() {
        let start = Instant::now();
        let mut check = SizeCheck::new(true);
        let until = start + ANSWER_WAIT;
        for _ in 0..2 {
            assert_eq!(check.step(start), SizeStep::Ask(until));
            assert_eq!(check.step(start), SizeStep::Wait(until));
            check.record_answer(SIZE, SIZE, start);
            assert_eq!(check.step(start), SizeStep::Draw(Some(SIZE)));
        }
        assert_eq!(check.step(start), SizeStep::Ask(until));
        check.record_answer(SIZE, SIZE, start);
        let later = start + MAX_ANSWER_AGE * 2;
        assert_eq!(check.step(later), SizeStep::Ask(later + ANSWER_WAIT));
    }

    #[test]
    fn a_terminal_that_answers_with_columns_first_is_understood() {
        let start = Instant::now();
        let mut check = SizeCheck::new(true);
        check.record_answer(Size::new(20, 60), SIZE, start);
        assert_eq!(check.step(start), SizeStep::Draw(Some(SIZE)));
        let square = Size::new(40, 40);
        check.record_answer(square, square, start);
        assert!(check.is_turned, "a square says nothing about the order");
        // The system does not know of the new size yet.
        check.record_answer(Size::new(20, 40), SIZE, start);
        assert_eq!(check.step(start), SizeStep::Wait(start + SETTLES));
        let later = start + SETTLES;
        check.record_answer(Size::new(20, 40), SIZE, later);
        assert_eq!(check.step(later), SizeStep::Draw(Some(Size::new(40, 20))));
    }

    #[test]
    fn nothing_is_drawn_until_a_new_size_has_settled() {
        let mut now = Instant::now();
        let mut check = SizeCheck::new(true);
        check.record_answer(SIZE, SIZE, now);
        assert_eq!(check.step(now), SizeStep::Draw(Some(SIZE)));
        for width in [50, 40] {
            check.record_answer(Size::new(width, 20), SIZE, now);
            assert_eq!(check.step(now), SizeStep::Wait(now + SETTLES));
            assert_eq!(check.step(now), SizeStep::Wait(now + SETTLES));
            now += SETTLES;
            assert_eq!(check.step(now), SizeStep::Ask(now + ANSWER_WAIT));
        }
        check.record_answer(Size::new(40, 20), SIZE, now);
        assert_eq!(check.step(now), SizeStep::Draw(Some(Size::new(40, 20))));
    }

    #[test]
    fn a_terminal_that_does_not_answer_is_drawn_on_without_asking() {
        let start = Instant::now();
        let mut check = SizeCheck::new(true);
        assert_eq!(check.step(start), SizeStep::Ask(start + ANSWER_WAIT));
        let later = start + ANSWER_WAIT;
        assert_eq!(check.step(later), SizeStep::Draw(None));
        assert_eq!((check.step(later), check.is_late()), (SizeStep::Draw(None), true));
        check.record_answer(SIZE, SIZE, later);
        assert_eq!((check.step(later), check.is_late()), (SizeStep::Draw(Some(SIZE)), false));
        assert_eq!(SizeCheck::new(false).step(start), SizeStep::Draw(None));
    }
}
