//! Answers requests that wait until a session rests or asks.

use gnoma_core::{protocol::SessionView, session::SessionState};

use super::{actor::Actor, command, engine::Engine};

impl Actor {
    /// Answers the requests that have waited long enough; all of them if the session rests or asks.
    pub(super) fn answer_waits(&mut self) {
        if !self.waits.is_empty() {
            let is_ready = self.rests() || self.asks();
            self.waits.answer(is_ready, || self.log.with_view(SessionView::status));
        }
    }

    /// Reports whether no turn runs, and none is about to.
    fn rests(&self) -> bool {
        match self.engine {
            Engine::Opening(_) | Engine::Changing(_) => false,
            Engine::Gone => true,
            Engine::Open(_) => {
                self.tasks.pending_turns == 0
                    && !self.tasks.is_running()
                    && !command::is_at_work(&self.log)
            }
        }
    }

    fn asks(&self) -> bool {
        self.log.with_view(|view| {
            view.state != SessionState::Closed
                && view.questions().any(|it| !self.answered.contains(&it.call.id))
        })
    }
}
