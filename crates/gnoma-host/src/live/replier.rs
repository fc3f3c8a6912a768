//! The duty to answer one request, exactly once.

use std::sync::Arc;

use gnoma_core::{
    protocol::{RequestError, RequestErrorKind, RequestId},
    sync::Mutex,
};
use tokio::sync::oneshot;

use super::replies::{Replies, ReplyOutcome};

/// Answers one request exactly once. Dropped without an answer, it answers that the session ended.
pub(super) struct Replier {
    /// The record that keeps the reply for when the request comes again, if it is kept.
    replies: Option<Arc<Mutex<Replies>>>,
    client: String,
    id: RequestId,
    tell: Option<oneshot::Sender<ReplyOutcome>>,
}

impl Replier {
    pub(super) fn new(
        replies: Option<Arc<Mutex<Replies>>>,
        client: &str,
        id: RequestId,
    ) -> (Self, oneshot::Receiver<ReplyOutcome>) {
        let (tell, told) = oneshot::channel();
        (Self { replies, client: client.to_owned(), id, tell: Some(tell) }, told)
    }

    /// Reports whether the client that asked no longer waits.
    pub(super) fn is_abandoned(&self) -> bool {
        self.tell.as_ref().is_none_or(oneshot::Sender::is_closed)
    }

    /// Answers the request with an outcome.
    pub(super) fn reply(mut self, outcome: ReplyOutcome) {
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: ReplyOutcome) {
        let Some(tell) = self.tell.take() else { return };
        if let Some(replies) = &self.replies {
            replies.lock().end_request(&self.client, self.id, &outcome);
        }
        // A client that has gone asks again when it comes back.
        let _gone = tell.send(outcome);
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        self.finish(Err(ended_error()));
    }
}

/// Returns the error for a request whose session has ended before it was answered.
pub(super) fn ended_error() -> RequestError {
    RequestError::new(RequestErrorKind::Closed, "the session ended before the request was answered")
}
