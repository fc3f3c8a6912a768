//! A server that is a program, spoken to by its standard input and output: a message is a line.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use gnoma_core::{sync::Mutex, task::box_future};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use tokio::{
    io::{
        AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader,
    },
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::{
    error::CallError,
    handler::Handler,
    limits::{MAX_MESSAGE_BYTES, MAX_SERVER_REQUESTS, MAX_UNSENT},
    wire::rpc::{self, RpcError, ServerRpcMessage},
};

/// The connection to a program. Dropped, it ends.
pub(super) struct Stdio {
    shared: Arc<StdioShared>,
    _tasks: JoinSet<()>,
}

struct StdioShared {
    next_id: AtomicU64,
    pending: Mutex<HashMap<u64, oneshot::Sender<Result<Value, CallError>>>>,
    lines: mpsc::Sender<String>,
    has_ended: AtomicBool,
}

impl StdioShared {
    /// Gives an answer to whoever waits for it; an answer that nobody waits for is nothing.
    fn resolve_request(&self, id: u64, outcome: Result<Value, CallError>) {
        if let Some(waiting) = self.pending.lock().remove(&id) {
            // Who has gone does not need it.
            waiting.send(outcome).ok();
        }
    }

    /// Fails the request that an unusable answer belongs to: the one it names, or the only one there is.
    fn fail_request(&self, id: Option<u64>, error: CallError) {
        match id {
            Some(id) => self.resolve_request(id, Err(error)),
            None => self.resolve_only(Err(error)),
        }
    }

    /// Gives an answer that names no request to the only one there is.
    fn resolve_only(&self, outcome: Result<Value, CallError>) {
        let only = {
            let pending = self.pending.lock();
            pending.keys().next().copied().filter(|_| pending.len() == 1)
        };
        if let Some(id) = only {
            self.resolve_request(id, outcome);
        }
    }

    fn mark_ended(&self) {
        self.has_ended.store(true, Ordering::Release);
        self.pending.lock().clear();
    }
}

/// A request that waits for its answer; dropped before that, it is cancelled.
struct WaitingRequest<'a> {
    shared: &'a StdioShared,
    id: u64,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        if self.shared.pending.lock().remove(&self.id).is_none() {
            return;
        }
        let mut params = Map::new();
        params.insert("requestId".to_owned(), self.id.into());
        params.insert("reason".to_owned(), json!("the answer is not needed any more"));
        let line = rpc::notification_line("notifications/cancelled", &params);
        // A program that reads nothing cannot be told.
        self.shared.lines.try_send(line).ok();
    }
}

impl Stdio {
    /// A connection over the program's ends.
    pub(super) fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        handler: Handler,
    ) -> Self {
        let (lines, unsent) = mpsc::channel(MAX_UNSENT);
        let shared = Arc::new(StdioShared {
            next_id: AtomicU64::new(1),
            pending: Mutex::default(),
            lines,
            has_ended: AtomicBool::new(false),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(box_future(write_lines(stdin, unsent)));
        tasks.spawn(box_future(read_lines(BufReader::new(stdout), Arc::clone(&shared), handler)));
        Self { shared, _tasks: tasks }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn request(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Value, CallError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let line = rpc::request_line(id, method, params);
        let (answer, answered) = oneshot::channel();
        self.shared.pending.lock().insert(id, answer);
        let waiting = WaitingRequest { shared: &self.shared, id };
        if !self.is_open() || self.shared.lines.send(line).await.is_err() {
            return Err(CallError::Ended);
        }
        let outcome = answered.await.unwrap_or(Err(CallError::Ended));
        drop(waiting);
        outcome
    }

    pub(super) async fn send_line(&self, line: String) -> Result<(), CallError> {
        self.shared.lines.send(line).await.map_err(|_| CallError::Ended)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.shared.has_ended.load(Ordering::Acquire)
    }
}

async fn write_lines(mut stdin: impl AsyncWrite + Unpin, mut unsent: mpsc::Receiver<String>) {
    while let Some(mut line) = unsent.recv().await {
        line.push('\n');
        if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read_lines(
    mut stdout: impl AsyncBufRead + Unpin,
    shared: Arc<StdioShared>,
    handler: Handler,
) {
    let mut answering = JoinSet::new();
    let mut line = Vec::new();
    while let Some(is_whole) = next_line(&mut stdout, &mut line).await {
        while answering.try_join_next().is_some() {}
        let text = String::from_utf8_lossy(&line);
        if !is_whole {
            let why = format!("it is larger than {MAX_MESSAGE_BYTES} bytes");
            shared.fail_request(rpc::find_id(&text), CallError::Unreadable(why));
            continue;
        }
        for message in rpc::parse_messages(&text) {
            on_message(message, &shared, &handler, &mut answering);
        }
    }
    shared.mark_ended();
}

fn on_message(
    message: ServerRpcMessage,
    shared: &Arc<StdioShared>,
    handler: &Handler,
    answering: &mut JoinSet<()>,
) {
    match message {
        ServerRpcMessage::Response(id, outcome) => {
            shared.resolve_request(id, outcome.map_err(CallError::Refused));
        }
        ServerRpcMessage::Notification(method, params) => handler.on_notification(&method, &params),
        ServerRpcMessage::Request(id, method, params) => {
            let (shared, handler) = (Arc::clone(shared), handler.clone());
            let is_too_much = answering.len() >= MAX_SERVER_REQUESTS;
            // A program that asks on without reading is not even told.
            if answering.len() >= 2 * MAX_SERVER_REQUESTS {
                return;
            }
            answering.spawn(box_future(async move {
                let outcome = if is_too_much {
                    Err(RpcError::new(0, "too many requests at a time"))
                } else {
                    handler.answer_request(&method, &params).await
                };
                // The program has ended where it cannot be told.
                shared.lines.send(rpc::response_line(&id, outcome)).await.ok();
            }));
        }
        ServerRpcMessage::Unreadable(id) => {
            shared.fail_request(id, CallError::Unreadable("it is not valid JSON-RPC".to_owned()));
        }
        ServerRpcMessage::Orphan(error) => shared.fail_request(None, CallError::Refused(error)),
        ServerRpcMessage::Unaddressed(result) => shared.resolve_only(Ok(result)),
        ServerRpcMessage::Noise => {}
    }
}

/// Reads a line; `false` where it is too long, and then its beginning. `None` at the end.
async fn next_line(stdout: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> Option<bool> {
    line.clear();
    let mut is_whole = true;
    loop {
        let Some(piece) = stdout.fill_buf().await.ok().filter(|piece| !piece.is_empty()) else {
            // A program may end without a line break behind its last answer, or in the middle of one.
            let is_message = serde_json::from_slice::<IgnoredAny>(line).is_ok();
            return is_message.then_some(is_whole);
        };
        let end = piece.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(piece.len());
        let room = MAX_MESSAGE_BYTES.saturating_sub(line.len());
        is_whole &= taken <= room;
        line.extend_from_slice(piece.get(..taken.min(room)).unwrap_or_default());
        stdout.consume(taken + usize::from(end.is_some()));
        if end.is_some() {
            return Some(is_whole);
        }
    }
}
