//! What all requests to a server over HTTP share.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use gnoma_core::{Secret, sync::Mutex};
use gnoma_net::Http;
use tokio::sync::watch;

use super::super::{handler::Handler, oauth::Authorizer};

/// The address of the server, and the session by which it knows this client.
#[derive(Clone, Debug)]
pub(super) struct ServerPlace {
    /// The address of the server, also after a redirect.
    pub(super) url: String,
    /// The session, if the server keeps one.
    pub(super) session: Option<String>,
    /// The version of the protocol that was agreed on by a handshake.
    pub(super) version: Option<String>,
}

/// The connection, as its requests see it.
pub(super) struct HttpShared {
    pub(super) http: Http,
    pub(super) handler: Handler,
    pub(super) authorizer: Authorizer,
    /// The headers that the server's configuration sends with each request.
    headers: Vec<(String, Secret<String>)>,
    pub(super) place: Mutex<ServerPlace>,
    /// Counts the sessions that were begun.
    pub(super) sessions: watch::Sender<u64>,
    next_id: AtomicU64,
}

impl HttpShared {
    pub(super) fn new(
        http: &Http,
        url: &str,
        headers: &BTreeMap<String, Secret<String>>,
        authorizer: Authorizer,
        handler: Handler,
    ) -> Arc<Self> {
        let place = ServerPlace { url: url.to_owned(), session: None, version: None };
        Arc::new(Self {
            http: http.clone(),
            handler,
            authorizer,
            headers: headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            place: Mutex::new(place),
            sessions: watch::Sender::new(0),
            next_id: AtomicU64::new(1),
        })
    }

    pub(super) fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns whether the server's entry says itself who asks.
    pub(super) fn has_own_authorization(&self) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }

    /// The headers of a request: those of the entry, of the session, and of who asks.
    pub(super) fn headers(
        &self,
        more: &[(String, String)],
        token: Option<&Secret<String>>,
    ) -> Vec<(Cow<'static, str>, Secret<String>)> {
        let plain =
            |name: &'static str, value: &str| (Cow::Borrowed(name), Secret::new(value.to_owned()));
        let ServerPlace { session, version, .. } = self.place.lock().clone();
        let mut headers: Vec<_> = self
            .headers
            .iter()
            .map(|(name, value)| (Cow::Owned(name.clone()), value.clone()))
            .collect();
        headers.extend(session.map(|session| plain("mcp-session-id", &session)));
        headers.extend(version.map(|version| plain("mcp-protocol-version", &version)));
        if let Some(token) = token {
            let value = format!("Bearer {}", token.expose());
            headers.push((Cow::Borrowed("authorization"), Secret::new(value)));
        }
        let more = more.iter();
        headers.extend(
            more.map(|(name, value)| (Cow::Owned(name.clone()), Secret::new(value.clone()))),
        );
        headers
    }
}
