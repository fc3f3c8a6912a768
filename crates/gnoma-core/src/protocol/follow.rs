//! A session for a front end that may lose nothing: every event once and in order. What it was too slow
//! for is read from the messages before what follows is shown. Pure: whoever holds it sends the requests.

use std::{collections::VecDeque, sync::Arc};

use super::{
    Reply, Request, RequestError, RequestErrorKind, ServerMessage, SessionView,
    shown_progress::ShownProgress,
};
use crate::{message::Message, session::Event};

/// Messages that are read at once.
const MAX_PAGE: u32 = 200;

/// Follows one session from the first snapshot on.
#[derive(Debug, Default)]
pub struct Follower {
    seen: ShownProgress,
    /// The events that come next.
    events: VecDeque<Event>,
    behind: Option<MissedMessages>,
}

/// Some messages were missed and are being read.
#[derive(Debug)]
struct MissedMessages {
    view: Box<SessionView>,
    /// The last page first.
    pages: Vec<Vec<Arc<Message>>>,
    /// The messages that arrived while missed messages were read; no more than may wait in a connection.
    later: VecDeque<ServerMessage>,
}

impl Follower {
    /// True if the session has begun, or has ended already.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.seen.has_begun()
    }

    /// The next event, if it is there already.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Takes in an event or a snapshot of the session. Where messages are missing, the request that reads
    /// them: its reply goes to [`apply_reply`](Self::apply_reply).
    pub fn apply_message(&mut self, message: ServerMessage) -> Option<Request> {
        match (&mut self.behind, message) {
            (_, ServerMessage::Reply { .. } | ServerMessage::Process(_)) => None,
            (Some(behind), message) => {
                behind.later.push_back(message);
                None
            }
            (None, ServerMessage::Event(envelope)) => {
                self.seen.apply_envelope(&envelope, &mut self.events);
                None
            }
            (None, ServerMessage::Snapshot(view)) => {
                if self.seen.missed_messages(&view).is_empty() {
                    self.seen.catch_up(&view, Vec::new(), &mut self.events);
                    return None;
                }
                Some(self.read_before(view, Vec::new(), VecDeque::new(), None))
            }
        }
    }

    /// Takes in the reply to a request that read messages; gives the next request where there are more.
    ///
    /// # Errors
    /// The messages cannot be had.
    pub fn apply_reply(
        &mut self,
        result: Result<Reply, RequestError>,
    ) -> Result<Option<Request>, RequestError> {
        let Some(MissedMessages { view, mut pages, later }) = self.behind.take() else {
            return Ok(None);
        };
        let Reply::History { first, messages, .. } = result? else {
            let cause = "the session host did not send the missed events";
            return Err(RequestError::new(RequestErrorKind::Failed, cause));
        };
        let is_all = first <= self.seen.missed_messages(&view).start || messages.is_empty();
        pages.push(messages);
        if !is_all {
            return Ok(Some(self.read_before(view, pages, later, Some(first))));
        }
        let messages = pages.into_iter().rev().flatten().collect();
        self.seen.catch_up(&view, messages, &mut self.events);
        let mut next = None;
        for message in later {
            next = self.apply_message(message).or(next);
        }
        Ok(next)
    }

    /// Asks for the messages that were missed before the one of that number.
    fn read_before(
        &mut self,
        view: Box<SessionView>,
        pages: Vec<Vec<Arc<Message>>>,
        later: VecDeque<ServerMessage>,
        before: Option<u64>,
    ) -> Request {
        let missed = self.seen.missed_messages(&view);
        let before = before.unwrap_or(missed.end);
        let max = u32::try_from(before.saturating_sub(missed.start)).unwrap_or(MAX_PAGE);
        self.behind = Some(MissedMessages { view, pages, later });
        Request::History { before: Some(before), max: max.min(MAX_PAGE) }
    }
}
