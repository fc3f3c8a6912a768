//! What a server and its connections share.

use std::sync::{
    Mutex,
    atomic::{AtomicU64, AtomicUsize},
};

use tokio::sync::watch;

use super::{reply::Reply, request::Request};
use crate::lock_ignoring_poison;

pub(super) type Responder = Box<dyn Fn(&Request) -> Reply + Send + Sync>;

/// The state that the server and its connections share.
pub(super) struct ServerState {
    pub(super) respond: Responder,
    pub(super) requests: Mutex<Vec<Request>>,
    pub(super) connections: AtomicUsize,
    pub(super) bytes_sent: AtomicU64,
    pub(super) clients_gone: watch::Sender<usize>,
}

impl ServerState {
    /// Notes the request and asks the script.
    pub(super) fn answer_request(&self, request: Request) -> Reply {
        let reply = (self.respond)(&request);
        lock_ignoring_poison(&self.requests).push(request);
        reply
    }
}
