//! The right, and the duty, to answer one request.

use std::sync::Weak;

use gnoma_core::protocol::{RequestError, RequestErrorKind, RequestId};
use tokio::sync::oneshot;

use super::{Shared, replies::Outcome};

/// Answers one request exactly once: whoever drops it without an answer has answered that it ended.
pub(super) struct Replier {
    shared: Weak<Shared>,
    client: String,
    id: RequestId,
    /// The reply is given again where the request comes again.
    is_kept: bool,
    tell: Option<oneshot::Sender<Outcome>>,
}

impl Replier {
    pub(super) fn new(
        shared: Weak<Shared>,
        client: &str,
        id: RequestId,
        is_kept: bool,
    ) -> (Self, oneshot::Receiver<Outcome>) {
        let (tell, told) = oneshot::channel();
        (Self { shared, client: client.to_owned(), id, is_kept, tell: Some(tell) }, told)
    }

    /// Answers.
    pub(super) fn reply(mut self, outcome: Outcome) {
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: Outcome) {
        let Some(tell) = self.tell.take() else { return };
        if self.is_kept
            && let Some(shared) = self.shared.upgrade()
        {
            shared.state().replies.end(&self.client, self.id, &outcome);
        }
        // A client that has gone asks again when it comes back.
        let _gone = tell.send(outcome);
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        self.finish(Err(ended()));
    }
}

/// What should have answered the request has ended.
pub(super) fn ended() -> RequestError {
    RequestError::new(RequestErrorKind::Closed, "the session ended before the request was answered")
}
