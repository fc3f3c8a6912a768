//! The stdio transport of MCP: JSON-RPC messages as lines of a child process.

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
    process::Stderr,
    wire::rpc::{self, RequestParams, RpcError, ServerRpcMessage},
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
    /// Gives an answer to the request that waits for it; other answers are dropped.
    fn resolve_request(&self, id: u64, outcome: Result<Value, CallError>) {
        if let Some(waiting) = self.pending.lock().remove(&id) {
            // The request may have been cancelled.
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
    /// A connection over the program's ends. What it writes that is no message is added to `log`.
    pub(super) fn new(
        stdin: impl AsyncWrite + Send + Unpin + 'static,
        stdout: impl AsyncRead + Send + Unpin + 'static,
        handler: Handler,
        log: Stderr,
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
        let reading = read_lines(BufReader::new(stdout), Arc::clone(&shared), handler, log);
        tasks.spawn(box_future(reading));
        Self { shared, _tasks: tasks }
    }

    /// Sends a request and waits for its answer.
    pub(super) async fn request(
        &self,
        method: &str,
        params: &RequestParams,
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
    log: Stderr,
) {
    let mut answering = JoinSet::new();
    let mut line = Vec::new();
    let mut joiner = MessageJoiner::default();
    while let Some(is_whole) = next_line(&mut stdout, &mut line).await {
        while answering.try_join_next().is_some() {}
        let text = String::from_utf8_lossy(&line);
        if !is_whole {
            let why = format!("it is larger than {MAX_MESSAGE_BYTES} bytes");
            shared.fail_request(rpc::find_id(&text), CallError::Unreadable(why));
            continue;
        }
        for message in joiner.push_line(&text, &log) {
            on_message(message, &shared, &handler, &mut answering);
        }
    }
    joiner.log_rest(&log);
    shared.mark_ended();
}

/// Joins the lines of messages that a server writes over several lines.
#[derive(Default)]
struct MessageJoiner {
    /// The lines of a message that has begun.
    text: String,
    /// The number of its objects and lists that are open.
    open: usize,
}

impl MessageJoiner {
    /// Takes a line, and returns the messages that are complete with it. Lines that are none are added to `log`.
    fn push_line(&mut self, line: &str, log: &Stderr) -> Vec<ServerRpcMessage> {
        let messages = rpc::parse_messages(line);
        let is_message = |message: &ServerRpcMessage| *message != ServerRpcMessage::Noise;
        // Elements of a message over several lines can look like messages.
        let may_be_whole = self.text.is_empty() || line.contains("\"jsonrpc\"");
        if may_be_whole && messages.iter().any(is_message) {
            self.log_rest(log);
            return messages;
        }
        if self.text.is_empty() && !begins_document(line) {
            log.push_line(line);
            return Vec::new();
        }
        self.open = count_open(line, self.open);
        self.text.push_str(line);
        self.text.push('\n');
        let is_too_large = self.text.len() > MAX_MESSAGE_BYTES;
        if self.open > 0 && !is_too_large {
            return Vec::new();
        }
        let text = std::mem::take(self).text;
        let messages = rpc::parse_messages(&text);
        if !messages.iter().any(is_message) {
            log.push_line(&text);
        }
        messages
    }

    /// Adds the lines of a message that stays incomplete to `log`.
    fn log_rest(&mut self, log: &Stderr) {
        let rest = std::mem::take(self).text;
        if !rest.is_empty() {
            log.push_line(&rest);
        }
    }
}

/// Returns whether a line is the beginning of a JSON object or list that goes on.
fn begins_document(line: &str) -> bool {
    let parsed = serde_json::from_str::<IgnoredAny>(line);
    line.trim_start().starts_with(['{', '[']) && parsed.is_err_and(|error| error.is_eof())
}

/// Returns how many objects and lists are open after a line before which `open` of them were.
fn count_open(line: &str, mut open: usize) -> usize {
    let (mut is_string, mut is_escaped) = (false, false);
    for byte in line.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_string => is_escaped = true,
            b'"' => is_string = !is_string,
            b'{' | b'[' if !is_string => open += 1,
            b'}' | b']' if !is_string => open = open.saturating_sub(1),
            _ => {}
        }
    }
    open
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_stdio_reads_multi_line_messages_and_logs_other_lines() {
        let message = json!({"jsonrpc": "2.0", "id": 7, "result": {"a": ["}", {"b": "\\\"{"}], "c": [{"id": 7, "result": 1}, {"method": "GET"}]}});
        let whole = ServerRpcMessage::Response(7, Ok(message["result"].clone()));
        let pretty = serde_json::to_string_pretty(&message).unwrap();
        for (text, logged) in [
            (pretty.clone(), ""),
            (format!("Starting\n{pretty}"), "Starting\n"),
            (format!("{{ not json\n{pretty}\nbye"), "{ not json\nbye\n"),
            (format!("{{\nlog\n{message}"), "{\nlog\n"),
            (format!("[\n{message}"), "[\n"),
        ] {
            let (log, mut joiner) = (Stderr::default(), MessageJoiner::default());
            let messages: Vec<_> =
                text.lines().flat_map(|line| joiner.push_line(line, &log)).collect();
            assert_eq!(messages.len(), 1, "{text}");
            assert_eq!(messages[0], whole, "{text}");
            assert_eq!(log.text(), logged, "{text}");
        }
    }
}
