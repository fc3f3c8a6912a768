//! The server's side: takes connections, checks who is there, and carries lines both ways.

use std::{io, sync::Arc, time::Duration};

use gnoma_core::{
    lines::{Line, LineReader},
    protocol::{Client, Greeting, Hello, Reply, RequestError, RequestErrorKind, ServerMessage},
    task::box_future,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream, unix::OwnedReadHalf},
    task::JoinSet,
    time::timeout,
};

use crate::codec;

/// Connections at once; one more is refused.
const MAX_CONNECTIONS: usize = 256;
/// The time that a client may take to say hello.
const HELLO_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Bytes that are written at once, where so many wait.
const WRITE_BYTES: usize = 64 << 10;
/// Wait after the system refused a connection, as it does when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The functions that a server needs from its host.
pub trait Server: Send + Sync + 'static {
    /// The program and its version, for people.
    fn program(&self) -> String;

    /// Connects a client of that name; [`Hello::client`].
    fn connect_client(&self, client: &str) -> Client;
}

/// Serves whoever connects, until it is dropped.
pub async fn serve_clients(listener: &UnixListener, server: Arc<dyn Server>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if connections.len() < MAX_CONNECTIONS => {
                    let server = Arc::clone(&server);
                    connections.spawn(box_future(async move {
                        // A client that leaves in the middle is its own affair.
                        let _left = serve_client(stream, &*server).await;
                    }));
                }
                Ok((stream, _)) => turn_away(&stream),
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => (),
        }
    }
}

async fn serve_client(mut stream: UnixStream, server: &dyn Server) -> io::Result<()> {
    if let Err(error) = may_connect(&stream) {
        return refuse_client(&mut stream, error).await;
    }
    let mut reader = LineReader::default();
    let mut lines = Vec::new();
    let first = timeout(HELLO_PATIENCE, first_line(&mut stream, &mut reader, &mut lines)).await;
    let Ok(first) = first else {
        let cause = "the client has not said which version it speaks";
        return refuse_client(&mut stream, RequestError::new(RequestErrorKind::Malformed, cause))
            .await;
    };
    let first = match first {
        Ok(line) => line,
        Err(_) if reader.is_within_line() => {
            return refuse_client(&mut stream, half_a_line()).await;
        }
        Err(error) => return Err(error),
    };
    let (Hello { client, .. }, version) = match codec::parse_hello(&first) {
        Ok(hello) => hello,
        Err(error) => return refuse_client(&mut stream, error).await,
    };
    let (program, pid) = (server.program(), std::process::id());
    let mut out = Vec::new();
    codec::encode_message(&Greeting::Welcome { version, program, pid }, &mut out);
    stream.write_all(&out).await?;
    relay_messages(stream, reader, lines, server.connect_client(&client)).await
}

/// Says to one connection too many why it is closed. Nobody waits for it to listen.
fn turn_away(stream: &UnixStream) {
    let cause = format!("{MAX_CONNECTIONS} clients are already connected");
    let mut out = Vec::new();
    let error = RequestError::new(RequestErrorKind::Busy, cause);
    codec::encode_message(&Greeting::Refused(error), &mut out);
    // It is new, so that there is room for a line.
    let _gone = stream.try_write(&out);
}

async fn refuse_client(stream: &mut UnixStream, error: RequestError) -> io::Result<()> {
    let mut out = Vec::new();
    codec::encode_message(&Greeting::Refused(error), &mut out);
    stream.write_all(&out).await
}

/// The first line, and what else has come with it.
pub(crate) async fn first_line(
    stream: &mut UnixStream,
    reader: &mut LineReader,
    rest: &mut Vec<Line>,
) -> io::Result<Line> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut lines = reader.push(buffer.get(..count).unwrap_or_default()).into_iter();
        if let Some(first) = lines.next() {
            rest.extend(lines);
            return Ok(first);
        }
    }
}

/// Carries requests and messages until one side leaves.
async fn relay_messages(
    stream: UnixStream,
    reader: LineReader,
    lines: Vec<Line>,
    client: Client,
) -> io::Result<()> {
    let (input, mut output) = stream.into_split();
    let (errors, mut unreadable) = tokio::sync::mpsc::channel(1);
    let (requests, mut messages) = client.into_halves();
    let mut reading = JoinSet::new();
    reading.spawn(box_future(read_requests(input, reader, lines, requests, errors)));
    let mut out = Vec::new();
    loop {
        let message = tokio::select! {
            biased;
            Some(message) = unreadable.recv() => message,
            message = messages.next() => match message {
                Some(message) => message,
                None => return Ok(()),
            },
        };
        codec::write_message(message, &mut out);
        while out.len() < WRITE_BYTES
            && let Some(message) = messages.try_next()
        {
            codec::write_message(message, &mut out);
        }
        output.write_all(&out).await?;
        out.clear();
    }
}

/// Reads requests until the client leaves. What cannot be read is answered at once and has no effect.
async fn read_requests(
    mut input: OwnedReadHalf,
    mut reader: LineReader,
    mut lines: Vec<Line>,
    requests: gnoma_core::protocol::Requests,
    errors: tokio::sync::mpsc::Sender<ServerMessage>,
) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        for line in lines.drain(..) {
            let passed = match codec::parse_request(&line) {
                Ok(message) => requests.forward(message).await.is_ok(),
                Err(unreadable) => errors.send(error_reply(unreadable)).await.is_ok(),
            };
            if !passed {
                return;
            }
        }
        match input.read(&mut buffer).await {
            Ok(0) if reader.is_within_line() => {
                let half = codec::UnreadableRequest {
                    id: gnoma_core::protocol::RequestId(0),
                    error: half_a_line(),
                };
                let _gone = errors.send(error_reply(half)).await;
                return;
            }
            Ok(count @ 1..) => lines = reader.push(buffer.get(..count).unwrap_or_default()),
            Ok(0) | Err(_) => return,
        }
    }
}

fn half_a_line() -> RequestError {
    let cause = "the connection ended in the middle of a line, which was not read";
    RequestError::new(RequestErrorKind::Malformed, cause)
}

fn error_reply(codec::UnreadableRequest { id, error }: codec::UnreadableRequest) -> ServerMessage {
    ServerMessage::Reply { id, result: Err::<Reply, _>(error) }
}

/// Only the user's own programs may connect, and none that a session has started: a command of a model
/// could answer its own questions otherwise.
fn may_connect(stream: &UnixStream) -> Result<(), RequestError> {
    let refused = |cause: &str| Err(RequestError::new(RequestErrorKind::Refused, cause));
    let Ok(peer) = stream.peer_cred() else {
        return refused("the system does not say who is connecting");
    };
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return refused("the server belongs to another user");
    }
    match peer.pid() {
        Some(pid) if is_descendant(pid) => refused("a session's command cannot control sessions"),
        _ => Ok(()),
    }
}

/// Reports whether a process was started by this one, directly or not. If the system does not tell, the answer is
/// no.
fn is_descendant(pid: i32) -> bool {
    /// More ancestors than any process has.
    const MAX_ANCESTORS: usize = 1_000;
    let own = i32::try_from(std::process::id()).unwrap_or_default();
    let mut pid = pid;
    // The process itself may connect to itself: a window of it is no command.
    for _ in 0..MAX_ANCESTORS {
        let Some(parent) = parent_of(pid) else { return false };
        if parent == own {
            return true;
        }
        if parent <= 1 {
            return false;
        }
        pid = parent;
    }
    false
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything, so what follows its end counts.
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}
