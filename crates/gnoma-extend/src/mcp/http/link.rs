//! The connection to a server over HTTP: requests, sessions, cancellation.

use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use gnoma_core::{
    Secret,
    sync::{Mutex, MutexGuard},
    task::box_future,
};
use gnoma_net::{Http, HttpRequest};
use serde_json::{Map, Value, json};
use tokio::{sync::oneshot, task::JoinSet, time::timeout};

use super::{
    super::{
        error::CallError,
        handler::Handler,
        limits::STREAM_WAIT,
        oauth::Authorizer,
        version::{self, STATELESS},
        wire::rpc::{self, INVALID_REQUEST, RequestParams, RpcError},
    },
    answer::{AnswerTasks, Inbox},
    events, headers,
    post::{self, Message, is_session_lost, lacks_handshake},
    state::HttpShared,
};

/// The method of the handshake.
const INITIALIZE: &str = "initialize";
/// Codes of refusals of a lost session after which the server has not worked on the request: that of servers made with
/// the official SDKs, and JSON-RPC's own for a request that is not valid.
const NOT_BEGUN: [i64; 2] = [-32001, INVALID_REQUEST];
/// The method of a call of a tool.
const CALL: &str = "tools/call";

/// A request to a server.
pub(crate) struct OutgoingRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) params: &'a RequestParams,
    /// Headers for this request.
    pub(crate) headers: &'a [(String, String)],
    /// `true` if the request is sent on the wire without a handshake.
    pub(crate) is_stateless: bool,
}

/// The connection. Dropped, it ends.
pub(crate) struct HttpLink {
    shared: Arc<HttpShared>,
    answering: AnswerTasks,
    /// Cancellations that are being told, and the server's own stream.
    tasks: Mutex<JoinSet<()>>,
    /// Held while a new session is begun.
    reopening: tokio::sync::Mutex<()>,
    /// No new session could be begun in the place of a lost one.
    has_ended: AtomicBool,
}

/// A request that waits for its answer; dropped before that, the server is told.
struct WaitingRequest<'a> {
    link: &'a HttpLink,
    id: u64,
    is_over: bool,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut params = Map::new();
        params.insert("requestId".to_owned(), self.id.into());
        params.insert("reason".to_owned(), json!("the answer is not needed any more"));
        let body = Some(rpc::notification_line("notifications/cancelled", &params));
        let shared = Arc::clone(&self.link.shared);
        self.link.running_tasks().spawn(box_future(async move {
            let message = Message { body, headers: &[], is_repeatable: false };
            // A server that cannot be told has ended.
            post::post_message(&shared, &message).await.map(drop).ok();
        }));
    }
}

impl HttpLink {
    pub(crate) fn new(
        http: &Http,
        url: &str,
        headers: &BTreeMap<String, Secret<String>>,
        authorizer: Authorizer,
        handler: Handler,
    ) -> Self {
        Self {
            shared: HttpShared::new(http, url, headers, authorizer, handler),
            answering: AnswerTasks::default(),
            tasks: Mutex::default(),
            reopening: tokio::sync::Mutex::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Returns whether it can still be used.
    pub(crate) fn is_open(&self) -> bool {
        !self.has_ended.load(Ordering::Acquire)
    }

    fn running_tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks
    }

    /// Sends a request and reads its answer. Where the server has lost the session, a new one is begun and the
    /// request sent again: the server has not worked on it.
    pub(crate) async fn send_request(
        &self,
        outgoing: &OutgoingRequest<'_>,
    ) -> Result<Value, CallError> {
        let session = *self.shared.sessions.borrow();
        match self.request_once(outgoing).await {
            Err(error) if session > 0 && is_lost(&error) => {
                self.restart_session(session).await?;
                // A refusal with status 200 may be a tool's words about a session of its own: the call may have run.
                let may_have_run = matches!(
                    &error,
                    CallError::Refused(said) if !NOT_BEGUN.contains(&said.code) && !is_unbegun(said)
                );
                if may_have_run && outgoing.method == CALL {
                    return Err(error);
                }
                self.request_once(outgoing).await
            }
            outcome => outcome,
        }
    }

    async fn request_once(&self, outgoing: &OutgoingRequest<'_>) -> Result<Value, CallError> {
        let OutgoingRequest { method, params, headers, is_stateless } = outgoing;
        let id = self.shared.next_id();
        let mut all = headers.to_vec();
        if *is_stateless {
            all.push(("mcp-protocol-version".to_owned(), STATELESS.to_owned()));
            all.extend(headers::method_headers(method, &params.fields));
        }
        let is_repeatable = ![CALL, INITIALIZE].contains(method);
        let body = Some(rpc::request_line(id, method, params));
        let message = Message { body, headers: &all, is_repeatable };
        // On the wire without a handshake the end of the connection says it.
        let is_over = *is_stateless || *method == INITIALIZE;
        let mut waiting = WaitingRequest { link: self, id, is_over };
        let outcome = self.post_and_read(&message, id).await;
        waiting.is_over = true;
        outcome
    }

    async fn post_and_read(&self, message: &Message<'_>, id: u64) -> Result<Value, CallError> {
        let inbox = Inbox { shared: &self.shared, answering: &self.answering };
        let reply = post::post_message(&self.shared, message).await?;
        if let Some(session) = reply.header("mcp-session-id") {
            self.shared.place.lock().session = Some(session.to_owned());
        }
        inbox.read_answer(reply, id).await
    }

    /// Begins a session, and gives what the server says of itself.
    pub(crate) async fn start_session(&self) -> Result<Value, CallError> {
        {
            let mut place = self.shared.place.lock();
            (place.session, place.version) = (None, None);
        }
        let params = version::initialize_params();
        let outgoing = OutgoingRequest {
            method: INITIALIZE,
            params: &params,
            headers: &[],
            is_stateless: false,
        };
        let answer = self.request_once(&outgoing).await?;
        let spoken = version::ServerInfo::from_answer(&answer, false).version;
        self.shared.place.lock().version = Some(spoken);
        self.send_notification("notifications/initialized").await?;
        self.shared.sessions.send_modify(|count| *count += 1);
        Ok(answer)
    }

    /// Begins a new session in the place of the one of that number, unless somebody else has.
    async fn restart_session(&self, lost: u64) -> Result<(), CallError> {
        let _alone = self.reopening.lock().await;
        if *self.shared.sessions.borrow() != lost {
            return Ok(());
        }
        if let Err(error) = self.start_session().await {
            self.has_ended.store(true, Ordering::Release);
            return Err(error);
        }
        self.shared.handler.list_may_have_changed();
        Ok(())
    }

    async fn send_notification(&self, method: &str) -> Result<(), CallError> {
        let body = Some(rpc::notification_line(method, &Map::new()));
        let message = Message { body, headers: &[], is_repeatable: true };
        match post::post_message(&self.shared, &message).await {
            // Servers need not take it.
            Ok(_) | Err(CallError::Status(..) | CallError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Follows what the server tells on a stream of its own. Questions that it asks before the stream is open are lost,
    /// so that is waited for, but not for long.
    pub(crate) async fn follow_events(&self) {
        let (opened, is_open) = oneshot::channel();
        let shared = Arc::clone(&self.shared);
        self.running_tasks().spawn(box_future(events::follow_events(shared, opened)));
        // A server that does not answer has no stream.
        timeout(STREAM_WAIT, is_open).await.ok();
    }

    /// Ends the session, if there is one.
    pub(crate) async fn close(&self) {
        let place = self.shared.place.lock().clone();
        if place.session.is_none() {
            return;
        }
        let token = self.shared.authorizer.token().await.ok().flatten();
        let headers = self.shared.headers(&[], token.as_ref());
        let request = HttpRequest { url: place.url, headers, body: None };
        // A server that has ended needs no word.
        self.shared.http.delete(request).await.map(drop).ok();
    }
}

/// Returns whether a request failed because the server does not know the session. With status 200 only the errors of
/// servers themselves count: others may be a tool's words about something of its own.
fn is_lost(error: &CallError) -> bool {
    const OF_SERVERS: RangeInclusive<i64> = -32001..=-32000;
    match error {
        CallError::SessionLost(_) => true,
        CallError::Refused(error) => {
            let is_of_server = OF_SERVERS.contains(&error.code) || error.code == INVALID_REQUEST;
            is_unbegun(error) || (is_of_server && is_session_lost(0, Some(error), &error.message))
        }
        _ => false,
    }
}

/// Returns whether a server refuses a request because no handshake came before it, so that it has not worked on it.
fn is_unbegun(error: &RpcError) -> bool {
    /// Servers of several SDKs refuse with these codes: the request is not there yet, or its parameters are not valid yet.
    const CODES: [i64; 2] = [-32002, -32602];
    CODES.contains(&error.code) && lacks_handshake(&error.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_error_about_a_missing_handshake_means_a_lost_session() {
        for (code, said, is_so) in [
            (-32002, "Server not initialized", true),
            (-32602, "Received request before initialization was complete", true),
            (-32001, "Session not found", true),
            (-32600, "Session expired or terminated", true),
            (-32600, "Invalid Request", false),
            (-32602, "invalid params: session id unknown", false),
            (-32002, "Resource not found", false),
            (-32603, "database not initialized", false),
        ] {
            assert_eq!(is_lost(&CallError::Refused(RpcError::new(code, said))), is_so, "{said}");
        }
    }
}
