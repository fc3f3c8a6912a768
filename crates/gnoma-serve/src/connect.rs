//! The client of a server's Unix socket: says hello and carries lines both ways, so that a front end holds the same
//! [`Client`] as beside a host in its own process.

use std::{io, path::Path, time::Duration};

use gnoma_core::{
    lines::{Line, LineReader, MAX_LINE_BYTES},
    protocol::{
        Client, Greeting, Hello, Peer, RequestError, RequestErrorKind, ServerMessage, VERSION,
    },
    task::box_future,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

use crate::{codec, server::first_line};

/// The time that a server may take to answer the first line.
const GREETING_PATIENCE: Duration = Duration::from_secs(3);
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// The reason why there is no connection.
#[derive(thiserror::Error)]
pub enum ConnectError {
    /// No server listens at the socket.
    #[error("no gnoma server is running")]
    NotRunning,
    /// The server does not take this client.
    #[error("{0}")]
    Refused(RequestError),
    /// The connection broke with this error.
    #[error("the server does not answer: {0}")]
    Io(#[from] io::Error),
}

gnoma_core::debug_as_display!(ConnectError);

/// Connects to the server at a socket. `client` names this client over all its connections.
///
/// # Errors
/// See [`ConnectError`].
pub async fn connect_to_server(
    socket: &Path,
    program: &str,
    client: &str,
) -> Result<Client, ConnectError> {
    let mut stream = UnixStream::connect(socket).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => ConnectError::NotRunning,
        _ => ConnectError::Io(error),
    })?;
    let (program, client) = (program.to_owned(), client.to_owned());
    let mut out = Vec::new();
    codec::encode_message(&Hello { version: VERSION, program, client }, &mut out);
    stream.write_all(&out).await?;
    let (mut reader, mut lines) = (LineReader::default(), Vec::new());
    let first = timeout(GREETING_PATIENCE, first_line(&mut stream, &mut reader, &mut lines)).await;
    let first = first.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    match codec::parse_greeting(&first).map_err(ConnectError::Refused)? {
        Greeting::Refused(error) => return Err(ConnectError::Refused(error)),
        Greeting::Welcome { .. } => (),
    }
    let (client, Peer { requests, messages }) = Client::new_pair();
    let (input, output) = stream.into_split();
    let mut carrier = JoinSet::new();
    carrier.spawn(box_future(write_requests(output, requests, messages.downgrade())));
    carrier.spawn(box_future(read_messages(input, reader, lines, messages)));
    Ok(client.carried_by(carrier))
}

async fn write_requests(
    mut output: OwnedWriteHalf,
    mut requests: mpsc::Receiver<gnoma_core::protocol::ClientMessage>,
    messages: mpsc::WeakSender<ServerMessage>,
) {
    let mut out = Vec::new();
    while let Some(message) = requests.recv().await {
        out.clear();
        codec::encode_message(&message, &mut out);
        if out.len() > MAX_LINE_BYTES {
            // The server would not read it, so it is answered here.
            let cause = format!("this is more than {} MB and was not sent", MAX_LINE_BYTES >> 20);
            let result = Err(RequestError::new(RequestErrorKind::Invalid, cause));
            out = Vec::new();
            // Not kept open: its end is how the client learns that the server has gone.
            let Some(messages) = messages.upgrade() else { return };
            let _gone = messages.send(ServerMessage::Reply { id: message.id, result }).await;
            continue;
        }
        if output.write_all(&out).await.is_err() {
            return;
        }
    }
}

/// A server that sends what cannot be read is not talked to any more.
async fn read_messages(
    mut input: OwnedReadHalf,
    mut reader: LineReader,
    mut lines: Vec<Line>,
    messages: mpsc::Sender<ServerMessage>,
) {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        for line in lines.drain(..) {
            let message = match codec::parse_message(&line) {
                Ok(Some(message)) => message,
                Ok(None) => continue,
                Err(_) => return,
            };
            if messages.send(message).await.is_err() {
                return;
            }
        }
        match input.read(&mut buffer).await {
            Ok(count @ 1..) => lines = reader.push(buffer.get(..count).unwrap_or_default()),
            Ok(0) | Err(_) => return,
        }
    }
}
