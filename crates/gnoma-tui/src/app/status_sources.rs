//! Reading what the line at the bottom shows of the ledger: when that is read, and what is done with it.

use std::time::{Duration, Instant};

use gnoma_core::Event;

use super::state::State;
use crate::{effect::Effect, status::SpendingParts};

/// The time between two looks at the ledger while calls are made, at least.
const PERIOD: Duration = Duration::from_secs(10);
/// The time after which the ledger is looked at again when nothing happens here: others spend, too, and days end.
const IDLE_PERIOD: Duration = Duration::from_secs(300);

impl State {
    /// Says what the line at the bottom shows besides what the session tells: the line of a script of the person's, and
    /// spending. Lines for screen readers have neither.
    pub fn use_status_sources(&mut self, has_script: bool, has_spending: bool) {
        let script = &mut self.window.script;
        script.is_on = has_script && !self.accessible;
        (script.is_stale, script.next_at) = (true, None);
        if !script.is_on {
            script.line = None;
        }
        let spending = &mut self.window.spending;
        spending.is_on = has_spending && !self.accessible;
        spending.next_at = None;
        if !spending.is_on {
            spending.parts = SpendingParts::default();
        }
    }

    /// Has the ledger looked at soon, because a call was paid.
    pub(super) fn on_spending_event(&mut self, event: &Event) {
        if matches!(event, Event::Cost { .. }) {
            let soon = self.window.spending.read_at.map(|at| at + PERIOD);
            self.window.spending.next_at = soon;
        }
    }

    /// Looks at the ledger if it is time.
    pub(super) fn read_spending(&mut self) {
        let now = self.now;
        if self.spending_due().is_none_or(|due| due > now) {
            return;
        }
        let spending = &mut self.window.spending;
        (spending.is_running, spending.read_at) = (true, Some(now));
        spending.next_at = Some(now + IDLE_PERIOD);
        self.emit(Effect::ReadSpending);
    }

    /// Returns the time at which the ledger is to be looked at.
    pub(super) fn spending_due(&self) -> Option<Instant> {
        let spending = &self.window.spending;
        let is_wanted = spending.is_on && !spending.is_running && !self.exit.is_leaving;
        is_wanted.then(|| spending.next_at.unwrap_or(self.now))
    }

    pub(super) fn spending_read(&mut self, parts: Option<SpendingParts>) {
        let spending = &mut self.window.spending;
        spending.is_running = false;
        if let Some(parts) = parts.filter(|_| spending.is_on) {
            self.window.script.is_stale |= spending.parts != parts;
            spending.parts = parts;
        }
    }
}
