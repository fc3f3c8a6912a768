//! Requests that wait until a session rests or asks.

use std::time::Duration;

use gnoma_core::{
    protocol::{Reply, RequestError, RequestErrorKind, SessionView},
    session::SessionState,
};
use tokio::time::Instant;

use super::{actor::Actor, command, engine::Engine, replier::Replier};

/// Requests that wait at once.
const MAX_WAITS: usize = 32;
/// How long one waits at most, and where it does not say how long.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// Requests that wait, each until its time.
#[derive(Default)]
pub(super) struct Waits(Vec<(Instant, Replier)>);

impl Waits {
    /// The time at which the next one is answered whatever the session does.
    pub(super) fn until(&self) -> Option<Instant> {
        self.0.iter().map(|(until, _)| *until).min()
    }
}

impl Actor {
    /// Answers once the session rests or asks, or after `max_seconds`.
    pub(super) fn wait(&mut self, max_seconds: Option<u32>, replier: Replier) {
        if self.waits.0.len() >= MAX_WAITS {
            let cause = "too many requests wait for this session";
            return replier.reply(Err(RequestError::new(RequestErrorKind::Busy, cause)));
        }
        let wait = max_seconds.map_or(MAX_WAIT, |it| Duration::from_secs(it.into()).min(MAX_WAIT));
        self.waits.0.push((Instant::now() + wait, replier));
    }

    /// Answers those that have waited long enough; all of them if the session rests or asks.
    pub(super) fn answer_waits(&mut self) {
        if self.waits.0.is_empty() {
            return;
        }
        let (is_ready, now) = (self.rests() || self.asks(), Instant::now());
        let ready = self.waits.0.extract_if(.., |(until, _)| is_ready || *until <= now);
        for (_, replier) in ready {
            let status = self.log.with_view(SessionView::status);
            replier.reply(Ok(Reply::Status(Box::new(status))));
        }
    }

    /// Whether no turn runs, and none is about to.
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
