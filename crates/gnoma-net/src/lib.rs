//! The only crate that opens network connections.
//!
//! Time-outs, proxies, certificate roots and redirects are decided here, once. What is sent is up to
//! the caller: no JSON, no retries, no provider names.

mod body;
mod error;
mod gzip;
mod proxy;
pub mod redirect;
pub mod retry_wait;
mod stream;
mod trust;

use std::{
    borrow::Cow,
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_core::Stream;
use gnoma_core::{
    Secret, bounded_file, sync::Mutex, system_error::without_numbers, task::box_future,
    tool::BoxFuture,
};
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Method;
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject as _},
};

use crate::{
    body::Pieces,
    error::{UNANSWERED, to_net_error},
    trust::ServerTrust,
};
pub use crate::{
    error::{NetError, NetErrorKind},
    gzip::{DamagedGzip, gzip_head},
    proxy::unusable_proxies,
    stream::ByteStream,
    trust::CertificateFault,
};

/// The options for making connections.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Longest wait for a connection.
    pub connect_timeout: Duration,
    /// Longest silence before and between pieces of an answer. Models that think, and local ones that
    /// read a long prompt, are silent for minutes.
    pub idle_timeout: Duration,
    /// File with certificate authorities that are trusted beside those that browsers trust, in PEM.
    pub ca_file: Option<PathBuf>,
}

impl Default for HttpOptions {
    fn default() -> Self {
        let (connect_timeout, idle_timeout) = (Duration::from_secs(10), Duration::from_secs(300));
        Self { connect_timeout, idle_timeout, ca_file: None }
    }
}

/// A request to a server.
#[derive(Debug)]
pub struct HttpRequest {
    /// The address that the request goes to.
    pub url: String,
    /// Header names and values; values may be keys.
    pub headers: Vec<(Cow<'static, str>, Secret<String>)>,
    /// `Some` makes it a POST of these pieces, in order; they are sent without being copied together.
    pub body: Option<Vec<Bytes>>,
}

/// The answer's head, and its body as a stream.
pub struct Reply {
    /// The HTTP status of the answer.
    pub status: u16,
    headers: reqwest::header::HeaderMap,
    body: ByteStream,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Reply {
    /// Headers whose values are text: names in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
    }

    /// A header's value, when there is one and it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The body, piece by piece as it is read. Dropping it closes the connection.
    #[must_use]
    pub fn into_body(self) -> ByteStream {
        self.body
    }

    /// The body at once, cut at `limit` bytes.
    ///
    /// # Errors
    /// When the connection breaks before anything has arrived; later, what is there is returned.
    pub async fn into_bytes(self, limit: usize) -> Result<Vec<u8>, NetError> {
        match self.into_bytes_until_broken(limit).await {
            (all, Some(error)) if all.is_empty() => Err(error),
            (all, _) => Ok(all),
        }
    }

    /// The body at once, cut at `limit` bytes; and why its end is missing, where the connection broke before it.
    pub async fn into_bytes_until_broken(mut self, limit: usize) -> (Vec<u8>, Option<NetError>) {
        let (mut all, mut broken) = (Vec::new(), None);
        while all.len() < limit {
            match std::future::poll_fn(|cx| Pin::new(&mut self.body).poll_next(cx)).await {
                Some(Ok(piece)) => all.extend_from_slice(&piece),
                Some(Err(error)) => {
                    broken = Some(error);
                    break;
                }
                None => break,
            }
        }
        all.truncate(limit);
        (all, broken)
    }
}

/// A pool of connections. Cheap to clone; nothing is set up before the first request.
#[derive(Clone)]
pub struct Http {
    options: HttpOptions,
    clients: Arc<Clients>,
}

/// Most bytes of a file with certificate authorities; those that systems have are of some 200 KB.
const MAX_CA_BYTES: u64 = 16 << 20;

type Client = Mutex<Option<BuiltClient>>;

struct BuiltClient {
    client: reqwest::Client,
    /// The reason why the person's own certificate authorities are not among those that the client trusts. Does not
    /// concern plain HTTP.
    untrusting: Option<NetError>,
}

#[derive(Default)]
struct Clients {
    /// For this machine. A proxy that the environment names is for the world outside.
    direct: Client,
    /// The client for all other addresses.
    outside: Client,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Http {
    /// Makes a new pool of connections.
    #[must_use]
    pub fn new(options: HttpOptions) -> Self {
        Self { options, clients: Arc::default() }
    }

    /// The client for that address.
    fn client(&self, url: &str) -> Result<reqwest::Client, NetError> {
        let is_here = is_on_this_machine(url);
        let slot = if is_here { &self.clients.direct } else { &self.clients.outside };
        let mut slot = slot.lock();
        // A file of authorities may have been put right since.
        let usable = slot.take().filter(|built| built.untrusting.is_none() || is_plain(url));
        let built = match usable {
            Some(built) => built,
            None if is_here => build_client(&self.options, reqwest::ClientBuilder::no_proxy)?,
            None => build_client(&self.options, |client| client)?,
        };
        let BuiltClient { client, untrusting } = slot.insert(built);
        match untrusting {
            Some(error) if !is_plain(url) => Err(error.clone()),
            Some(_) | None => Ok(client.clone()),
        }
    }

    /// Sends `request` and waits for the answer's head, whatever its status.
    ///
    /// # Errors
    /// When no answer arrives: see [`NetErrorKind`].
    pub async fn send(&self, request: HttpRequest) -> Result<Reply, NetError> {
        let method = if request.body.is_some() { Method::POST } else { Method::GET };
        match self.send_once(&request, method.clone()).await {
            // A server may close a kept connection at the moment it is used again: nobody has heard
            // the request, and a new connection is due, not a wait.
            Err(error) if error.message.contains(UNANSWERED) => {
                self.send_once(&request, method).await
            }
            sent => sent,
        }
    }

    /// Sends a DELETE of what is at the request's address, and waits for the answer's head.
    ///
    /// # Errors
    /// When no answer arrives: see [`NetErrorKind`].
    pub async fn delete(&self, request: HttpRequest) -> Result<Reply, NetError> {
        self.send_once(&request, Method::DELETE).await
    }

    fn send_once<'a>(
        &'a self,
        request: &'a HttpRequest,
        method: Method,
    ) -> BoxFuture<'a, Result<Reply, NetError>> {
        box_future(async move {
            let client = self.client(&request.url)?;
            let mut builder = client.request(method, &request.url);
            if let Some(pieces) = &request.body {
                builder = builder.body(reqwest::Body::wrap(Pieces::new(pieces.clone())));
            }
            for (name, value) in &request.headers {
                let mut value = reqwest::header::HeaderValue::try_from(value.expose().as_str())
                    .map_err(|_| {
                        let message = format!(
                            "the value for header `{name}` contains characters that cannot be sent"
                        );
                        NetError::new(NetErrorKind::Invalid, message)
                    })?;
                value.set_sensitive(true);
                builder = builder.header(&**name, value);
            }
            let sent = builder.send().await;
            let response = sent.map_err(|error| to_net_error(&error, proxy_for(&request.url)))?;
            let status = response.status().as_u16();
            let headers = response.headers().clone();
            let is_packed = headers.get("content-encoding").is_some_and(|encoding| {
                ["gzip", "x-gzip"]
                    .iter()
                    .any(|name| encoding.as_bytes().eq_ignore_ascii_case(name.as_bytes()))
            });
            let body = ByteStream::new(response.bytes_stream());
            Ok(Reply { status, headers, body: if is_packed { body.with_gunzip() } else { body } })
        })
    }
}

/// The proxy that requests to that address take, without its password: what the HTTP library takes, too.
fn proxy_for(url: &str) -> Option<String> {
    if is_on_this_machine(url) {
        return None;
    }
    let proxy = Matcher::from_system().intercept(&url.parse().ok()?)?;
    let host = proxy.uri().authority()?;
    Some(format!("{}://{host}", proxy.uri().scheme_str().unwrap_or("http")))
}

fn is_plain(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.scheme() == "http")
}

fn is_on_this_machine(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[expect(clippy::disallowed_methods, reason = "this is the one place that builds a client")]
fn build_client(
    options: &HttpOptions,
    more: fn(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<BuiltClient, NetError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let ((roots, own), untrusting) = match root_certificates(options.ca_file.as_deref()) {
        Ok(roots) => (roots, None),
        Err(error) => (root_certificates(None)?, Some(error)),
    };
    let invalid = |message| NetError::new(NetErrorKind::Invalid, message);
    let trust = ServerTrust::new(roots, own, Arc::clone(&provider))
        .map_err(|error| invalid(error.to_string()))?;
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| invalid(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust))
        .with_no_client_auth();
    let client = more(reqwest::Client::builder())
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("gnoma/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry keys in headers to wherever the answer points.
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(options.connect_timeout)
        .read_timeout(options.idle_timeout)
        .build()
        .map_err(|error| to_net_error(&error, None))?;
    Ok(BuiltClient { client, untrusting })
}

/// Returns the reason why a file of certificate authorities cannot be used; `None` if it can.
#[must_use]
pub fn authorities_fault(file: &Path) -> Option<NetError> {
    root_certificates(Some(file)).err()
}

/// Whom certificates may be signed by, and the certificates of the person's own file.
fn root_certificates(
    more: Option<&Path>,
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), NetError> {
    let mut own = Vec::new();
    let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = more {
        let unread = |why: &dyn fmt::Display| {
            let why = why.to_string();
            let words = without_numbers(&why);
            let path = path.display();
            let message = format!("cannot read certificate authorities from `{path}`: {words}");
            NetError::new(NetErrorKind::Authorities, message)
        };
        let text =
            bounded_file::read_existing(path, MAX_CA_BYTES).map_err(|error| unread(&error))?;
        let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        own = all.map_err(|error| unread(&error))?;
        let (added, _) = roots.add_parsable_certificates(own.iter().cloned());
        if added == 0 {
            return Err(unread(&"it has no certificate in PEM"));
        }
    }
    Ok((roots, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_urls_are_recognized_as_this_machine() {
        for (url, is_here) in [
            ("http://localhost:11434/api/chat", true),
            ("http://127.0.0.1:8080/v1", true),
            ("http://127.8.9.1/v1", true),
            ("http://[::1]:8080/v1", true),
            ("https://localhost.example.com/v1", false),
            ("http://192.168.1.4:8080/v1", false),
            ("no address", false),
        ] {
            assert_eq!(is_on_this_machine(url), is_here, "{url}");
        }
    }

    #[test]
    fn custom_ca_file_adds_root_certificates_and_fails_without_any() {
        let folder = tempfile::tempdir().unwrap();
        let said = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            root_certificates(Some(&path))
                .map(|(roots, _)| roots.len())
                .map_err(|error| error.to_string())
        };
        let known = root_certificates(None).unwrap().0.len();
        assert_eq!(said("own.pem", OWN_AUTHORITY), Ok(known + 1));
        for text in
            ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            assert!(said("none.pem", text).is_err_and(|why| why.contains("none.pem")), "{text}");
        }
        assert!(root_certificates(Some(&folder.path().join("missing"))).is_err());
        assert!(root_certificates(Some(folder.path())).is_err(), "no file");
    }

    #[test]
    fn unreadable_ca_file_fails_https_and_not_plain_http() {
        let ca_file = Some(PathBuf::from("/nonexistent/ca.pem"));
        let http = Http::new(HttpOptions { ca_file, ..HttpOptions::default() });
        for plain in ["http://127.0.0.1:11434/api", "http://gpu.example:8080/v1"] {
            assert!(http.client(plain).is_ok(), "{plain}");
        }
        for secure in ["https://127.0.0.1:8443/v1", "https://api.example/v1"] {
            let kind = http.client(secure).map_err(|error| error.kind).err();
            assert_eq!(kind, Some(NetErrorKind::Authorities), "{secure}");
        }
    }

    #[test]
    fn repaired_ca_file_is_reloaded_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let ca_file = folder.path().join("own.pem");
        let options = HttpOptions { ca_file: Some(ca_file.clone()), ..HttpOptions::default() };
        let http = Http::new(options);
        assert!(http.client("https://api.example/v1").is_err(), "it is not there yet");
        std::fs::write(&ca_file, OWN_AUTHORITY).unwrap();
        assert!(http.client("https://api.example/v1").is_ok());
    }

    /// A certificate made for this test, with which nothing is signed.
    const OWN_AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBgDCCASegAwIBAgIUXAXilnQ6/UnQI+SowcbLVBQBi5MwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKZ25vbWEtdGVzdDAgFw0yNjExMjgwNTMxNTBaGA8yMTI2MTEw
NDA1MzE1MFowFTETMBEGA1UEAwwKZ25vbWEtdGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABKEbHgq/oRbiQpp3xd36zsMomZU0SUHXBCdsM6brHktHeaFp6t5x
Jxgejr+k5yz0lCkqqcblgCRCixyNywzI8GyjUzBRMB0GA1UdDgQWBBScs09wtgAp
B0j4F3HDgZx6iqExRzAfBgNVHSMEGDAWgBScs09wtgApB0j4F3HDgZx6iqExRzAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0cAMEQCIDt8KKJw/odl2r124eC0
hhH5Hh1wEOQpCDEoxtx90BVYAiBanJZh0VmoMDc4Jcd5XGGptm2CJQZ1Bn/9M2a4
yfDqEg==
-----END CERTIFICATE-----
";
}
