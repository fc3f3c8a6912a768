//! Sums the spending of a session and its child sessions. An engine knows only its own calls; people see the calls of
//! all elfs below as well. Pure.

use gnoma_core::Event;

/// Micro-dollars of calls whose price is known, since the session was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SpendingSums {
    /// The session's own calls, as its engine counts them.
    own_session: u64,
    own_turn: u64,
    /// Calls of the sessions below it, and of the engines that it had before.
    below_session: u64,
    below_turn: u64,
}

impl SpendingSums {
    /// Begins the sums of another turn.
    pub(super) fn begin_turn(&mut self) {
        (self.own_turn, self.below_turn) = (0, 0);
    }

    /// Begins the sums of another engine, which counts from nothing.
    pub(super) fn begin_engine(&mut self) {
        let own = std::mem::take(&mut self.own_session);
        self.below_session = self.below_session.saturating_add(own);
        self.begin_turn();
    }

    /// Takes in what the engine says a call of its own cost, and returns the event with the sums of all sessions.
    pub(super) fn add_own(&mut self, event: &Event) -> Option<Event> {
        let Event::Cost { turn_micro_usd, session_micro_usd, .. } = event else { return None };
        (self.own_turn, self.own_session) = (*turn_micro_usd, *session_micro_usd);
        self.with_sums(event)
    }

    /// Takes in what a call of a session below cost, and returns the event with this session's sums.
    pub(super) fn add_below(&mut self, event: &Event) -> Option<Event> {
        let Event::Cost { call_micro_usd, .. } = event else { return None };
        let micro_usd = call_micro_usd.unwrap_or(0);
        self.below_turn = self.below_turn.saturating_add(micro_usd);
        self.below_session = self.below_session.saturating_add(micro_usd);
        self.with_sums(event)
    }

    fn with_sums(&self, event: &Event) -> Option<Event> {
        let Event::Cost { arm, call_micro_usd, estimated, .. } = event else { return None };
        Some(Event::Cost {
            arm: arm.clone(),
            call_micro_usd: *call_micro_usd,
            turn_micro_usd: self.own_turn.saturating_add(self.below_turn),
            session_micro_usd: self.own_session.saturating_add(self.below_session),
            estimated: *estimated,
        })
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::ModelRef;
    use proptest::prelude::*;

    use super::*;

    fn cost(call: Option<u64>, turn: u64, session: u64) -> Event {
        let arm = ModelRef { provider: "p".to_owned(), model: "m".to_owned() };
        Event::Cost {
            arm,
            call_micro_usd: call,
            turn_micro_usd: turn,
            session_micro_usd: session,
            estimated: false,
        }
    }

    proptest! {
        /// Over any sequence of turns, of engines and of calls of a session and of the elfs below it, in any order, every total is
        /// the sum of all calls, to the micro-dollar.
        #[test]
        fn session_and_turn_spending_totals_sum_all_calls(
            steps in prop::collection::vec((0_u8..5, prop::option::of(0_u64..1_000_000)), 1..200),
        ) {
            let mut sums = SpendingSums::default();
            let (mut own, mut own_turn, mut turn, mut session) = (0, 0, 0, 0);
            for (kind, call) in steps {
                if kind == 0 {
                    sums.begin_turn();
                    (own_turn, turn) = (0, 0);
                    continue;
                }
                if kind == 4 {
                    sums.begin_engine();
                    (own, own_turn, turn) = (0, 0, 0);
                    continue;
                }
                let micro_usd = call.unwrap_or(0);
                (turn, session) = (turn + micro_usd, session + micro_usd);
                let told = if kind == 1 {
                    (own, own_turn) = (own + micro_usd, own_turn + micro_usd);
                    sums.add_own(&cost(call, own_turn, own))
                } else {
                    sums.add_below(&cost(call, 7, 7))
                };
                prop_assert_eq!(told, Some(cost(call, turn, session)));
            }
        }
    }
}
