//! Requests that wait until a session rests or asks. Pure except for the channels of waiting connections.

use std::time::Duration;

use gnoma_core::protocol::{Reply, RequestError, RequestErrorKind, Status};
use tokio::time::Instant;

use super::replier::Replier;

/// Requests that wait at once.
const MAX_WAITS: usize = 32;
/// The longest wait, and the wait of a request that names no time.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// Requests that wait, each until its time.
#[derive(Default)]
pub(super) struct Waits(Vec<(Instant, Replier)>);

impl Waits {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The time at which the next one is answered whatever the session does.
    pub(super) fn until(&self) -> Option<Instant> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    /// Answers later, after `max_seconds` at the latest. Clients that have gone give up their places.
    pub(super) fn add(&mut self, max_seconds: Option<u32>, replier: Replier) {
        self.0.retain(|(_, waiting)| !waiting.is_abandoned());
        if self.0.len() >= MAX_WAITS {
            let cause = "too many requests wait for this session";
            return replier.reply(Err(RequestError::new(RequestErrorKind::Busy, cause)));
        }
        let wait = max_seconds.map_or(MAX_WAIT, |it| Duration::from_secs(it.into()).min(MAX_WAIT));
        self.0.push((Instant::now() + wait, replier));
    }

    /// Answers those that have waited long enough; all of them if the session `is_ready`.
    pub(super) fn answer(&mut self, is_ready: bool, status: impl Fn() -> Status) {
        let now = Instant::now();
        for (_, replier) in self.0.extract_if(.., |(until, _)| is_ready || *until <= now) {
            replier.reply(Ok(Reply::Status(Box::new(status()))));
        }
    }
}
