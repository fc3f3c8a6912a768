//! Reads the answer to a message: a document, or a stream of events that may have to be continued.

use std::{future::poll_fn, pin::Pin, sync::Arc, time::Duration};

use futures_util::Stream as _;
use gnoma_core::{sync::Mutex, task::box_future};
use gnoma_net::{ByteStream, NetError, Reply};
use serde_json::Value;
use tokio::{task::JoinSet, time::sleep};

use super::{
    super::{
        error::CallError,
        limits::{
            MAX_MESSAGE_BYTES, MAX_RESUME_WAIT, MAX_RESUMES, MAX_SERVER_REQUESTS, RESUME_WAIT,
        },
        wire::{
            json,
            rpc::{self, RpcError, ServerRpcMessage},
            sse::{Event, Events},
        },
    },
    post::{self, Message, net_error, page_title},
    state::HttpShared,
};

/// The tasks that answer a server's requests. They end with it.
pub(super) type AnswerTasks = Mutex<JoinSet<()>>;

/// The receiver of a server's messages.
pub(super) struct Inbox<'a> {
    pub(super) shared: &'a Arc<HttpShared>,
    pub(super) answering: &'a AnswerTasks,
}

/// The way in which a stream of events ended.
pub(super) enum StreamEnd {
    /// With what was waited for.
    Answer(Result<Value, CallError>),
    /// Without it; why, if the connection broke. The flag says whether anything came.
    Open(Option<NetError>, bool),
}

impl Inbox<'_> {
    /// Reads the answer to the request of that number.
    pub(super) async fn read_answer(&self, reply: Reply, id: u64) -> Result<Value, CallError> {
        let kind = reply.header("content-type").unwrap_or_default().to_lowercase();
        let status = reply.status;
        if kind.starts_with("text/event-stream") {
            return self.read_resumable_stream(reply.into_body(), id).await;
        }
        let (body, broken) = reply.into_bytes_until_broken(MAX_MESSAGE_BYTES + 1).await;
        if body.len() > MAX_MESSAGE_BYTES {
            let why = format!("it is larger than {MAX_MESSAGE_BYTES} bytes");
            return Err(CallError::Unreadable(why));
        }
        let text = String::from_utf8_lossy(&body);
        let start = text.trim_start_matches('\u{feff}').trim_start();
        if ["data:", "event:", "id:", ":"].iter().any(|field| start.starts_with(field)) {
            return self.whole_stream(start, id);
        }
        match (self.on_messages(&text, Some(id)), broken) {
            // The part that has come is no answer, because the rest is missing.
            (None | Some(Err(CallError::Unreadable(_))), Some(error)) => {
                return Err(net_error(error));
            }
            (Some(outcome), _) => return outcome,
            (None, None) => {}
        }
        let title = page_title(&text).map(|title| format!("a page titled `{title}`, "));
        let title = title.unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default();
        Err(CallError::Unreadable(match (text.trim().is_empty(), kind) {
            (true, _) => format!("HTTP {status} without content"),
            (false, "") => "it is no message of the protocol".to_owned(),
            (false, kind) => format!("{title}`{kind}` that is no message of the protocol"),
        }))
    }

    /// A stream of events that came as a document of another kind.
    fn whole_stream(&self, text: &str, id: u64) -> Result<Value, CallError> {
        let (mut events, mut whole) = (Events::default(), Vec::new());
        // The text is not larger than a message may be.
        events.push(text.as_bytes(), &mut whole).ok();
        whole.extend(events.finish_event());
        let answer = whole.iter().find_map(|event| self.on_messages(&event.data, Some(id)));
        answer.unwrap_or_else(|| Err(CallError::Broken(String::new())))
    }

    /// Reads events until the answer comes, and continues the stream where it breaks and the server can do that.
    async fn read_resumable_stream(&self, body: ByteStream, id: u64) -> Result<Value, CallError> {
        let mut events = Events::default();
        let mut body = body;
        let mut in_vain = 0;
        loop {
            let why = match self.read_events(body, Some(id), &mut events).await {
                StreamEnd::Answer(outcome) => return outcome,
                StreamEnd::Open(why, has_brought) => {
                    in_vain = if has_brought { 0 } else { in_vain + 1 };
                    why.map(|error| error.to_string()).unwrap_or_default()
                }
            };
            let Some(last) = events.last_id.clone().filter(|_| in_vain < MAX_RESUMES) else {
                return Err(CallError::Broken(why));
            };
            sleep(resume_wait(&events)).await;
            body = match resume_stream(self.shared, Some(&last)).await {
                Ok(body) => body,
                Err(CallError::SessionLost(_) | CallError::Status(..) | CallError::Refused(_)) => {
                    return Err(CallError::Broken(why));
                }
                Err(error) => return Err(error),
            };
        }
    }

    /// Reads events until the answer comes or the stream ends.
    pub(super) async fn read_events(
        &self,
        mut body: ByteStream,
        id: Option<u64>,
        events: &mut Events,
    ) -> StreamEnd {
        let mut has_brought = false;
        loop {
            let mut whole = Vec::new();
            let piece = poll_fn(|cx| Pin::new(&mut body).poll_next(cx)).await;
            let end = match piece {
                Some(Ok(piece)) => match events.push(&piece, &mut whole) {
                    Ok(()) => None,
                    Err(_too_large) => {
                        let why = format!("it is larger than {MAX_MESSAGE_BYTES} bytes");
                        return StreamEnd::Answer(Err(CallError::Unreadable(why)));
                    }
                },
                Some(Err(error)) => {
                    // The server sends an event that was cut off again.
                    events.finish_event();
                    Some(Some(error))
                }
                None => {
                    let last = events.finish_event();
                    whole.extend(last.filter(|event| json::parse_lenient(&event.data).is_some()));
                    Some(None)
                }
            };
            has_brought |= !whole.is_empty();
            if let Some(outcome) = whole.iter().find_map(|event| self.on_event(event, id)) {
                return StreamEnd::Answer(outcome);
            }
            if let Some(why) = end {
                return StreamEnd::Open(why, has_brought);
            }
        }
    }

    fn on_event(&self, event: &Event, id: Option<u64>) -> Option<Result<Value, CallError>> {
        let is_message = event.name.is_empty() || event.name == "message";
        (is_message && !event.data.trim().is_empty())
            .then(|| self.on_messages(&event.data, id))
            .flatten()
    }

    /// Takes in the messages of a text; gives the answer to that request if it is among them.
    fn on_messages(&self, text: &str, id: Option<u64>) -> Option<Result<Value, CallError>> {
        let mut answer = None;
        for message in rpc::parse_messages(text) {
            match message {
                ServerRpcMessage::Response(of, outcome) if Some(of) == id => {
                    answer = Some(outcome.map_err(CallError::Refused));
                }
                ServerRpcMessage::Unaddressed(result) if id.is_some() => {
                    answer = answer.or(Some(Ok(result)));
                }
                ServerRpcMessage::Orphan(error) if id.is_some() => {
                    answer = answer.or(Some(Err(CallError::Refused(error))));
                }
                ServerRpcMessage::Unreadable(of) if id.is_some() && (of.is_none() || of == id) => {
                    let why = "it is not valid JSON-RPC".to_owned();
                    answer = answer.or(Some(Err(CallError::Unreadable(why))));
                }
                ServerRpcMessage::Notification(method, params) => {
                    self.shared.handler.on_notification(&method, &params);
                }
                ServerRpcMessage::Request(id, method, params) => {
                    self.answer_request(id, method, params);
                }
                ServerRpcMessage::Response(..)
                | ServerRpcMessage::Orphan(_)
                | ServerRpcMessage::Unaddressed(_)
                | ServerRpcMessage::Unreadable(_)
                | ServerRpcMessage::Noise => {}
            }
        }
        answer
    }

    /// Answers a request of the server, beside everything else.
    fn answer_request(&self, id: Value, method: String, params: Value) {
        let shared = Arc::clone(self.shared);
        let mut answering = self.answering.lock();
        while answering.try_join_next().is_some() {}
        let is_too_much = answering.len() >= MAX_SERVER_REQUESTS;
        // A server that asks on without reading is not even told.
        if answering.len() >= 2 * MAX_SERVER_REQUESTS {
            return;
        }
        answering.spawn(box_future(async move {
            let outcome = if is_too_much {
                Err(RpcError::new(0, "too many requests at a time"))
            } else {
                shared.handler.answer_request(&method, &params).await
            };
            let body = Some(rpc::response_line(&id, outcome));
            let message = Message { body, headers: &[], is_repeatable: false };
            // A server that cannot be reached any more needs no answer.
            post::post_message(&shared, &message).await.map(drop).ok();
        }));
    }
}

/// Returns the time to wait before a stream is continued.
pub(super) fn resume_wait(events: &Events) -> Duration {
    let asked = events.retry_ms.map(Duration::from_millis);
    asked.unwrap_or(RESUME_WAIT).min(MAX_RESUME_WAIT)
}

/// Opens the server's stream of events, behind the last one that came.
pub(super) async fn resume_stream(
    shared: &Arc<HttpShared>,
    last: Option<&str>,
) -> Result<ByteStream, CallError> {
    let headers: Vec<_> =
        last.iter().map(|last| ("last-event-id".to_owned(), (*last).to_owned())).collect();
    let message = Message { body: None, headers: &headers, is_repeatable: true };
    Ok(post::post_message(shared, &message).await?.into_body())
}
