//! A server of a few lines, and clients that write bytes.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use gnoma_core::{
    Event,
    protocol::{
        Client, ClientMessage, Envelope, Epoch, Peer, Position, ProcessEvent, Reply, Request,
        RequestError, RequestErrorKind, ServerMessage, SessionSpec, SessionView,
    },
    store::SessionId,
    tool::BoxFuture,
};
use gnoma_web::{Access, Rights, Site, Token, serve_site};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

/// Nothing in these tests takes longer.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(30);
/// Number of the last event of the one session there is.
pub(crate) const LAST: u64 = 6;
const EPOCH: Epoch = Epoch(7);

/// Has one session of six events, and remembers what it was asked.
#[derive(Default)]
pub(crate) struct FakeHost {
    connections: Mutex<JoinSet<()>>,
    pub(crate) asked: Arc<Mutex<Vec<(String, ClientMessage)>>>,
}

impl Site for FakeHost {
    fn program_version(&self) -> String {
        "gnoma test".to_owned()
    }

    fn default_folder(&self) -> PathBuf {
        "/work".into()
    }

    fn client_name(&self) -> String {
        "unnamed".to_owned()
    }

    fn api_description(&self) -> Option<String> {
        Some("{\"openapi\":\"3.1.0\"}".to_owned())
    }

    fn connect_client(&self, name: String) -> BoxFuture<'_, Result<Client, RequestError>> {
        let (client, peer) = Client::new_pair();
        let attending = attend(name, peer, Arc::clone(&self.asked));
        self.connections.lock().unwrap().spawn(attending);
        Box::pin(async { Ok(client) })
    }

    fn complete_spec(&self, spec: SessionSpec) -> SessionSpec {
        SessionSpec { folder: self.default_folder(), ..spec }
    }
}

async fn attend(name: String, peer: Peer, asked: Arc<Mutex<Vec<(String, ClientMessage)>>>) {
    let Peer { mut requests, messages } = peer;
    while let Some(message) = requests.recv().await {
        asked.lock().unwrap().push((name.clone(), message.clone()));
        let known = message.session.as_ref().is_none_or(|id| id.as_str() == "s");
        let mut then = Vec::new();
        let result = match &message.request {
            _ if !known => Err(RequestError::new(RequestErrorKind::NoSession, "no session")),
            Request::List => Ok(Reply::Live(Vec::new())),
            Request::Status => Ok(Reply::Text("x".repeat(32 << 20))),
            Request::Attach { from } => {
                then = after(*from);
                Ok(Reply::Done)
            }
            Request::Watch => {
                let session = SessionId::new("s");
                then = vec![ServerMessage::Process(ProcessEvent::Opened { session })];
                Ok(Reply::Done)
            }
            _ => Ok(Reply::Done),
        };
        let reply = ServerMessage::Reply { id: message.id, result };
        for message in std::iter::once(reply).chain(then) {
            if messages.send(message).await.is_err() {
                return;
            }
        }
    }
}

pub(crate) fn envelope(seq: u64) -> Envelope {
    let session = SessionId::new("s");
    let event = Event::Text { text: format!("piece\n{seq}\n\n") };
    Envelope { session, epoch: EPOCH, parent: None, seq, at_ms: 5, event }
}

fn after(from: Option<Position>) -> Vec<ServerMessage> {
    let Some(from) = from.filter(|from| from.epoch == EPOCH && from.seq <= LAST) else {
        let mut view = SessionView::new(SessionId::new("s"), EPOCH, None);
        (1..=LAST).for_each(|seq| view.apply_envelope(&envelope(seq)));
        return vec![ServerMessage::Snapshot(Box::new(view))];
    };
    (from.seq + 1..=LAST).map(|seq| ServerMessage::Event(envelope(seq).into())).collect()
}

/// A server on a port of its own.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) host: Arc<FakeHost>,
    token: String,
    watching: String,
    _serving: JoinSet<()>,
}

/// An answer: its status, its head and its body.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answered {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Served {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = Token::from_random([9; 32]);
        let watching = token.for_watching().expose().to_owned();
        let access = Arc::new(Access::new(token.clone(), address));
        let host = Arc::new(FakeHost::default());
        let site: Arc<dyn Site> = Arc::<FakeHost>::clone(&host);
        let mut serving = JoinSet::new();
        serving.spawn(async move { serve_site(&listener, site, access).await });
        Self { address, host, token: token.expose().to_owned(), watching, _serving: serving }
    }

    pub(crate) fn token(&self, rights: Rights) -> &str {
        match rights {
            Rights::Steer => &self.token,
            Rights::Watch => &self.watching,
        }
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request as it stands, with the server's own name, and reads the answer until its end.
    pub(crate) async fn ask(&self, line: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        let mut stream = self.connect().await;
        stream.write_all((text + "\r\n").as_bytes()).await.unwrap();
        // Who is refused early may not be heard to the end.
        let _refused = stream.write_all(body).await;
        answered(stream).await
    }

    /// Sends a request of somebody with the token.
    pub(crate) async fn call(&self, path: &str, body: &str) -> Answered {
        let bearer = format!("Bearer {}", self.token(Rights::Steer));
        self.ask(&format!("POST {path}"), &[("Authorization", &bearer)], body.as_bytes()).await
    }

    /// Whether others are served as ever.
    pub(crate) async fn still_serves(&self) {
        assert_eq!(self.call("/api/v1/process/list", "").await.text(), "{\"live\":[]}");
    }
}

/// Reads an answer until the connection ends.
pub(crate) async fn answered(mut stream: TcpStream) -> Answered {
    let mut bytes = Vec::new();
    // A connection that is reset has said what it says.
    let read = timeout(MAX_WAIT, stream.read_to_end(&mut bytes)).await.expect("no end");
    assert!(read.is_ok() || !bytes.is_empty(), "nothing was said");
    let split = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(bytes.len());
    let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
    let body = bytes.get(split + 4..).unwrap_or_default().to_vec();
    Answered { status, head, body }
}
