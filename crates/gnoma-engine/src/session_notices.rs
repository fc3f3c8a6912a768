//! Notices from work beside the conversation, on their way to the session's events.

use gnoma_core::session::NoticeLevel;
use tokio::sync::mpsc;

/// Sentences that may wait. Whoever tells, tells a thing once, so there are few; more are dropped.
const MAX_WAITING: usize = 16;

/// A sentence, and how loud it is.
pub(crate) type SessionNotice = (NoticeLevel, String);

/// The sending end of the channel for notices.
#[derive(Clone, Debug)]
pub(crate) struct NoticeSender(mpsc::Sender<SessionNotice>);

impl NoticeSender {
    /// Creates a channel for notices and returns both of its ends.
    pub(crate) fn channel() -> (Self, mpsc::Receiver<SessionNotice>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(sender), receiver)
    }

    /// Sends a warning: a notice about something that is not as it should be.
    pub(crate) fn warn(&self, text: String) {
        self.send_notice(NoticeLevel::Warning, text);
    }

    /// Sends a notice that is good to know.
    pub(crate) fn send_notice(&self, level: NoticeLevel, text: String) {
        // Full or closed: nobody reads any more.
        drop(self.0.try_send((level, text)));
    }
}
