//! Requests over HTTP, as bytes: a line with method and target, headers, an empty line, a body.

use std::{
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use gnoma_core::{
    protocol::{
        Client, ClientMessage, Peer, Reply, Request as Asked, RequestError, ServerMessage,
        SessionSpec,
    },
    session::PermissionMode,
    tool::BoxFuture,
};
use gnoma_web::{Access, Handler, ResponseBody, Site, Token};
use http_body::Body;
use hyper::Request;
use tokio::{
    runtime::Builder,
    task::JoinSet,
    time::{Duration, timeout},
};

/// What the tokens of links are made of here.
pub const RANDOM: [u8; 32] = [9; 32];
/// Where the server listens that is asked.
pub const ADDRESS: &str = "127.0.0.1:4666";
/// Most pieces of a stream that are read.
const MAX_PIECES: usize = 8;
/// How long the next one is waited for.
const PIECE_PATIENCE: Duration = Duration::from_millis(5);

/// A host that does nothing and remembers what it was asked.
#[derive(Default)]
struct IdleHost {
    asked: Arc<Mutex<Vec<ClientMessage>>>,
    attending: Mutex<JoinSet<()>>,
}

impl Site for IdleHost {
    fn program_version(&self) -> String {
        "gnoma".to_owned()
    }

    fn default_folder(&self) -> PathBuf {
        "/work".into()
    }

    fn api_description(&self) -> Option<String> {
        None
    }

    fn client_name(&self) -> String {
        "unnamed".to_owned()
    }

    fn connect_client(&self, _: String) -> BoxFuture<'_, Result<Client, RequestError>> {
        let (client, Peer { mut requests, messages }) = Client::new_pair();
        let asked = Arc::clone(&self.asked);
        let attend = async move {
            while let Some(message) = requests.recv().await {
                let id = message.id;
                asked.lock().unwrap_or_else(PoisonError::into_inner).push(message);
                let reply = ServerMessage::Reply { id, result: Ok(Reply::Done) };
                if messages.send(reply).await.is_err() {
                    return;
                }
            }
        };
        self.attending.lock().unwrap_or_else(PoisonError::into_inner).spawn(attend);
        Box::pin(async { Ok(client) })
    }

    fn complete_spec(&self, spec: SessionSpec) -> SessionSpec {
        spec
    }
}

/// Whatever is asked gets one response that browsers are told to be careful with. Nobody gets in without a token, and
/// what reaches the host is on the list.
pub fn request(input: &[u8]) {
    let Some(request) = read(input) else { return };
    let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    let host = Arc::new(IdleHost::default());
    let asked = Arc::clone(&host.asked);
    let token = Token::from_random(RANDOM);
    let shown = |token: &Token| {
        let mut values = request.headers().values().map(AsRef::<[u8]>::as_ref);
        let token = token.expose().as_bytes();
        values.any(|value| value.windows(token.len()).any(|part| part == token))
    };
    let (steers, watches) = (shown(&token), shown(&token.for_watching()));
    let is_stream = request.uri().path().ends_with("/events");
    let access = Arc::new(Access::new(token, ADDRESS.parse().expect("an address")));
    let handler = Handler::new(host, access);
    runtime.block_on(async {
        let response = handler.answer_request(request).await;
        for name in ["content-security-policy", "x-content-type-options", "cache-control"] {
            assert!(response.headers().contains_key(name), "{name} is missing");
        }
        assert!(response.headers().get("access-control-allow-origin").is_none());
        let (head, mut body) = response.into_parts();
        let mut bytes = Vec::new();
        for _ in 0..MAX_PIECES {
            let next = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
            let Ok(Some(Ok(frame))) = timeout(PIECE_PATIENCE, next).await else { break };
            bytes.extend(frame.into_data().unwrap_or_default());
        }
        let kind = head.headers.get("content-type").map(|kind| kind.as_bytes().to_vec());
        if kind.as_deref() == Some(b"application/json") {
            let value: serde_json::Value = serde_json::from_slice(&bytes).expect("it is no JSON");
            assert!(head.status.is_success() || value["cause"].is_string(), "{value}");
        }
    });
    for message in asked.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        assert!(steers || watches, "somebody without a token asked {message:?}");
        if is_stream {
            assert!(matches!(message.request, Asked::Attach { .. } | Asked::Watch));
        } else {
            is_carried(&message.request);
            assert!(steers || is_look(&message.request), "a watcher asked {message:?}");
        }
    }
}

fn is_look(request: &Asked) -> bool {
    matches!(
        request,
        Asked::List
            | Asked::Status
            | Asked::History { .. }
            | Asked::Output { .. }
            | Asked::Usage
            | Asked::Points
    )
}

fn is_carried(request: &Asked) {
    match request {
        Asked::SetMode { mode } => assert_ne!(*mode, PermissionMode::Bypass),
        Asked::Open(spec) | Asked::StoredIn { spec, .. } | Asked::Delete { spec, .. } => {
            assert!(spec.environment.variables().is_empty() && spec.mcp_servers.is_empty());
            assert!(spec.overrides.mode != Some(PermissionMode::Bypass));
            assert!(!spec.overrides.confirm_bypass && spec.umask.is_none());
            assert!(spec.profile.is_none());
        }
        Asked::SetSetting { key, value } => {
            assert!(gnoma_web::SETTINGS.contains(&key.as_str()) && !value.contains('$'));
        }
        Asked::KeepRule { dry_run, .. } => assert!(dry_run, "a rule is kept"),
        Asked::Trust
        | Asked::AddProvider(_)
        | Asked::TryProvider(_)
        | Asked::Shutdown
        | Asked::Watch
        | Asked::Attach { .. }
        | Asked::Detach => panic!("{request:?} is not for HTTP"),
        _ => (),
    }
}

/// A request, where the bytes are one that an HTTP server would hand on.
fn read(input: &[u8]) -> Option<Request<ResponseBody>> {
    let mut rest = input;
    let mut line = || {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (line, after) = rest.split_at(end);
        rest = after.get(1..)?;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    };
    let mut words = std::str::from_utf8(line()?).ok()?.splitn(2, ' ');
    let mut request = Request::builder().method(words.next()?).uri(words.next()?);
    while let Some(header) = line().filter(|line| !line.is_empty()) {
        let colon = header.iter().position(|byte| *byte == b':')?;
        let (name, value) = header.split_at(colon);
        request = request.header(name, value.get(1..)?.trim_ascii());
    }
    request.body(ResponseBody::from_bytes(Bytes::copy_from_slice(rest))).ok()
}
