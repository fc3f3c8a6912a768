//! Replies that were given, so that a request that comes again has no second effect. Pure but for the
//! channels that waiting connections hold.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use gnoma_core::protocol::{Reply, RequestError, RequestId};
use tokio::sync::oneshot;

/// Clients whose replies are kept; then those of the one that asked longest ago go.
const MAX_CLIENTS: usize = 64;
/// Replies that are kept of a client.
const MAX_REPLIES: usize = 256;

/// What comes of a request.
pub(super) type Outcome = Result<Reply, RequestError>;

/// The replies, for a moment.
pub(super) fn locked(replies: &Mutex<Replies>) -> MutexGuard<'_, Replies> {
    replies.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The replies that clients were given.
#[derive(Default)]
pub(super) struct Replies {
    clients: HashMap<String, Given>,
    /// Names of the clients, the one that asked last at the end.
    order: VecDeque<String>,
}

#[derive(Default)]
struct Given {
    replies: VecDeque<(RequestId, Outcome)>,
    pending: HashMap<RequestId, Vec<oneshot::Sender<Outcome>>>,
}

/// What is known of a request.
pub(super) enum Known {
    /// It is new.
    New,
    /// It is being answered; so will this be.
    Pending(oneshot::Receiver<Outcome>),
    /// It was answered like this.
    Answered(Outcome),
}

impl Replies {
    /// A client asks.
    pub(super) fn begin(&mut self, client: &str, id: RequestId) -> Known {
        self.order.retain(|name| name != client);
        self.order.push_back(client.to_owned());
        if self.order.len() > MAX_CLIENTS {
            self.order.pop_front().map(|oldest| self.clients.remove(&oldest));
        }
        let given = self.clients.entry(client.to_owned()).or_default();
        if let Some((_, outcome)) = given.replies.iter().find(|(known, _)| *known == id) {
            return Known::Answered(outcome.clone());
        }
        if let Some(waiting) = given.pending.get_mut(&id) {
            let (tell, told) = oneshot::channel();
            waiting.push(tell);
            return Known::Pending(told);
        }
        given.pending.insert(id, Vec::new());
        Known::New
    }

    /// A request of a client is answered.
    pub(super) fn end(&mut self, client: &str, id: RequestId, outcome: &Outcome) {
        let Some(given) = self.clients.get_mut(client) else { return };
        for waiting in given.pending.remove(&id).unwrap_or_default() {
            let _gone = waiting.send(outcome.clone());
        }
        if given.replies.len() == MAX_REPLIES {
            given.replies.pop_front();
        }
        given.replies.push_back((id, outcome.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_request_gets_its_first_reply() {
        let mut replies = Replies::default();
        let text = |text: &str| Ok(Reply::Text(text.to_owned()));
        assert!(matches!(replies.begin("a", RequestId(1)), Known::New));
        let Known::Pending(mut told) = replies.begin("a", RequestId(1)) else { panic!("new") };
        replies.end("a", RequestId(1), &text("done"));
        assert_eq!(told.try_recv().unwrap(), text("done"));
        let Known::Answered(outcome) = replies.begin("a", RequestId(1)) else { panic!("new") };
        assert_eq!(outcome, text("done"));
        assert!(matches!(replies.begin("b", RequestId(1)), Known::New), "another client's");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut replies = Replies::default();
        for client in 0..2 * MAX_CLIENTS {
            for id in 0..2 * MAX_REPLIES as u64 {
                let client = client.to_string();
                replies.begin(&client, RequestId(id));
                replies.end(&client, RequestId(id), &Ok(Reply::Done));
            }
        }
        assert_eq!((replies.clients.len(), replies.order.len()), (MAX_CLIENTS, MAX_CLIENTS));
        assert!(replies.clients.values().all(|given| given.replies.len() == MAX_REPLIES));
    }
}
