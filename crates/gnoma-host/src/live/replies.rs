//! Replies that were given, so that a repeated request has no second effect. Pure except for the channels of
//! waiting connections.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hasher as _},
    io,
};

use gnoma_core::protocol::{ClientMessage, Reply, RequestError, RequestId};
use tokio::sync::oneshot;

/// Clients whose replies are kept; then those of the one that asked longest ago go.
const MAX_CLIENTS: usize = 64;
/// Replies that are kept of a client.
const MAX_REPLIES: usize = 256;

/// The outcome of a request.
pub(super) type ReplyOutcome = Result<Reply, RequestError>;

/// The replies that clients were given.
#[derive(Default)]
pub(super) struct Replies {
    clients: HashMap<String, ClientReplies>,
    /// Names of the clients, the one that asked last at the end.
    order: VecDeque<String>,
}

#[derive(Default)]
struct ClientReplies {
    replies: VecDeque<(RequestId, Fingerprint, ReplyOutcome)>,
    pending: HashMap<RequestId, UnansweredRequest>,
}

struct UnansweredRequest {
    request: Fingerprint,
    waiting: Vec<oneshot::Sender<ReplyOutcome>>,
}

/// Tells a request from another one under its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    pub(super) fn from_message(message: &ClientMessage) -> Self {
        struct Hashing(DefaultHasher);
        impl io::Write for Hashing {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.write(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut hashing = Hashing(DefaultHasher::new());
        // Nothing in the protocol fails to encode; what did would differ from nothing.
        let _infallible = serde_json::to_writer(&mut hashing, message);
        Self(hashing.0.finish())
    }
}

/// The known state of a request.
pub(super) enum RequestRecord {
    /// The request is new.
    New,
    /// The request is already being answered; this receiver gets the same outcome.
    Pending(oneshot::Receiver<ReplyOutcome>),
    /// The request was already answered like this.
    Answered(ReplyOutcome),
    /// The request's id belongs to another request.
    Other,
}

impl Replies {
    /// Begins a request of a client, and returns what is known of it.
    pub(super) fn begin_request(
        &mut self,
        client: &str,
        id: RequestId,
        request: Fingerprint,
    ) -> RequestRecord {
        self.order.retain(|name| name != client);
        self.order.push_back(client.to_owned());
        if self.order.len() > MAX_CLIENTS {
            self.order.pop_front().map(|oldest| self.clients.remove(&oldest));
        }
        let given = self.clients.entry(client.to_owned()).or_default();
        if let Some((_, known, outcome)) = given.replies.iter().find(|(known, ..)| *known == id) {
            return if *known == request {
                RequestRecord::Answered(outcome.clone())
            } else {
                RequestRecord::Other
            };
        }
        if let Some(pending) = given.pending.get_mut(&id) {
            if pending.request != request {
                return RequestRecord::Other;
            }
            let (tell, told) = oneshot::channel();
            pending.waiting.push(tell);
            return RequestRecord::Pending(told);
        }
        given.pending.insert(id, UnansweredRequest { request, waiting: Vec::new() });
        RequestRecord::New
    }

    /// A request of a client is answered.
    pub(super) fn end_request(&mut self, client: &str, id: RequestId, outcome: &ReplyOutcome) {
        let Some(given) = self.clients.get_mut(client) else { return };
        let Some(UnansweredRequest { request, waiting }) = given.pending.remove(&id) else {
            return;
        };
        for waiting in waiting {
            let _gone = waiting.send(outcome.clone());
        }
        if given.replies.len() == MAX_REPLIES {
            given.replies.pop_front();
        }
        given.replies.push_back((id, request, outcome.clone()));
    }
}

#[cfg(test)]
mod tests {
    use gnoma_core::{protocol::Request, store::SessionId};

    use super::*;

    fn cancel(id: u64, session: &str) -> Fingerprint {
        let session = Some(SessionId::new(session));
        Fingerprint::from_message(&ClientMessage {
            id: RequestId(id),
            session,
            request: Request::Cancel,
        })
    }

    #[test]
    fn a_repeated_request_gets_its_first_reply() {
        let mut replies = Replies::default();
        let text = |text: &str| Ok(Reply::Text(text.to_owned()));
        let (id, request) = (RequestId(1), cancel(1, "s"));
        assert!(matches!(replies.begin_request("a", id, request), RequestRecord::New));
        let RequestRecord::Pending(mut told) = replies.begin_request("a", id, request) else {
            panic!("new")
        };
        replies.end_request("a", id, &text("done"));
        assert_eq!(told.try_recv().unwrap(), text("done"));
        let RequestRecord::Answered(outcome) = replies.begin_request("a", id, request) else {
            panic!("new")
        };
        assert_eq!(outcome, text("done"));
        assert!(
            matches!(replies.begin_request("b", id, request), RequestRecord::New),
            "another client's"
        );
    }

    #[test]
    fn reused_request_id_with_another_request_is_rejected() {
        let mut replies = Replies::default();
        let id = RequestId(1);
        replies.begin_request("a", id, cancel(1, "s"));
        assert!(
            matches!(replies.begin_request("a", id, cancel(1, "t")), RequestRecord::Other),
            "under way"
        );
        replies.end_request("a", id, &Ok(Reply::Done));
        assert!(
            matches!(replies.begin_request("a", id, cancel(1, "t")), RequestRecord::Other),
            "answered"
        );
        assert!(matches!(
            replies.begin_request("a", id, cancel(1, "s")),
            RequestRecord::Answered(_)
        ));
    }

    #[test]
    fn remembered_request_replies_are_bounded() {
        let mut replies = Replies::default();
        for client in 0..2 * MAX_CLIENTS {
            for id in 0..2 * MAX_REPLIES as u64 {
                let client = client.to_string();
                replies.begin_request(&client, RequestId(id), Fingerprint(id));
                replies.end_request(&client, RequestId(id), &Ok(Reply::Done));
            }
        }
        assert_eq!((replies.clients.len(), replies.order.len()), (MAX_CLIENTS, MAX_CLIENTS));
        assert!(replies.clients.values().all(|given| given.replies.len() == MAX_REPLIES));
    }
}
