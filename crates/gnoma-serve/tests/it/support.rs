//! A server of a few lines, and clients that write bytes.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use gnoma_core::{
    Event,
    protocol::{
        Client, Envelope, Epoch, Greeting, Peer, Reply, Request, RequestError, RequestErrorKind,
        RequestId, ServerMessage, VERSION,
    },
    store::SessionId,
};
use gnoma_serve::{Line, LineReader, Place, Server, codec, serve_clients};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    task::JoinSet,
    time::timeout,
};

/// Nothing in these tests takes longer.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(30);

/// Lists nothing, knows no session, and tells everything to whoever attaches.
#[derive(Default)]
struct FakeHost {
    connections: Mutex<JoinSet<()>>,
}

impl Server for FakeHost {
    fn program(&self) -> String {
        "gnoma test".to_owned()
    }

    fn connect_client(&self, _: &str) -> Client {
        let (client, peer) = Client::new_pair();
        self.connections.lock().unwrap().spawn(attend(peer));
        client
    }
}

async fn attend(peer: Peer) {
    let Peer { mut requests, messages } = peer;
    while let Some(message) = requests.recv().await {
        let result = match &message.request {
            Request::List => Ok(Reply::Live(Vec::new())),
            Request::Watch => Ok(Reply::Done),
            _ => Err(RequestError::new(RequestErrorKind::NoSession, "there is no such session")),
        };
        if messages.send(ServerMessage::Reply { id: message.id, result }).await.is_err() {
            return;
        }
        // Who watches is flooded until it leaves.
        if message.request != Request::Watch {
            continue;
        }
        loop {
            let text = "x".repeat(10_000);
            let envelope = Envelope {
                session: SessionId::new("s"),
                epoch: Epoch(1),
                parent: None,
                seq: 1,
                at_ms: 0,
                event: Event::Text { text },
            };
            if messages.send(ServerMessage::Event(envelope.into())).await.is_err() {
                return;
            }
        }
    }
}

/// A server on a socket of its own.
pub(crate) struct Served {
    pub(crate) place: Place,
    pub(crate) folder: TempDir,
    _serving: JoinSet<()>,
}

impl Served {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let place = Place::from_dirs(folder.path().to_str(), None);
        let held = place.listen().unwrap();
        let mut serving = JoinSet::new();
        serving.spawn(
            async move { serve_clients(&held.listener, Arc::new(FakeHost::default())).await },
        );
        Self { place, folder, _serving: serving }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.place.socket_path()
    }

    /// A connection that has said nothing.
    pub(crate) async fn silent(&self) -> Raw {
        Raw {
            stream: UnixStream::connect(self.socket()).await.unwrap(),
            reader: LineReader::default(),
            lines: Vec::new(),
        }
    }

    /// A connection that has said hello.
    pub(crate) async fn raw(&self) -> Raw {
        let mut raw = self.silent().await;
        raw.hello(VERSION).await;
        assert!(matches!(raw.greeting().await, Greeting::Welcome { .. }));
        raw
    }

    /// Others are served as ever.
    pub(crate) async fn still_serves(&self) {
        let mut raw = self.raw().await;
        raw.write(b"{\"id\":1,\"request\":\"list\"}\n").await;
        assert_eq!(raw.reply().await, (RequestId(1), Ok(Reply::Live(Vec::new()))));
    }
}

/// A client that writes bytes and reads lines.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    reader: LineReader,
    lines: Vec<Line>,
}

impl Raw {
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        timeout(MAX_WAIT, self.stream.write_all(bytes)).await.unwrap().unwrap();
    }

    pub(crate) async fn hello(&mut self, version: u32) {
        let hello = format!("{{\"version\":{version},\"program\":\"test\",\"client\":\"c\"}}\n");
        self.write(hello.as_bytes()).await;
    }

    /// The next line; `None` once the server has ended the connection.
    pub(crate) async fn line(&mut self) -> Option<Line> {
        let mut buffer = vec![0; 4096];
        while self.lines.is_empty() {
            let read = self.stream.read(&mut buffer);
            let count =
                timeout(MAX_WAIT, read).await.expect("the server says nothing").unwrap_or(0);
            if count == 0 {
                return None;
            }
            self.lines = self.reader.push(&buffer[..count]);
        }
        Some(self.lines.remove(0))
    }

    pub(crate) async fn greeting(&mut self) -> Greeting {
        codec::parse_greeting(&self.line().await.expect("no greeting")).unwrap()
    }

    pub(crate) async fn reply(&mut self) -> (RequestId, Result<Reply, RequestError>) {
        match codec::parse_message(&self.line().await.expect("no reply")).unwrap().unwrap() {
            ServerMessage::Reply { id, result } => (id, result),
            other => panic!("{other:?}"),
        }
    }

    /// The next reply is this error.
    pub(crate) async fn expect(&mut self, id: u64, kind: RequestErrorKind) -> RequestError {
        let (told, result) = self.reply().await;
        let error = result.unwrap_err();
        assert_eq!((told, error.kind), (RequestId(id), kind), "{error}");
        error
    }
}
