//! Why an exchange failed, and how that is found out.

use std::{error::Error as _, fmt};

/// rustls's words for an answer that is no TLS; it has no other sign.
const NO_TLS: &str = "received corrupt message of type InvalidContentType";
/// hyper's words for an answer that is no HTTP, such as an alert of TLS.
const NO_HTTP: &str = "invalid HTTP version parsed";

/// Why an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetErrorKind {
    /// The address is no URL we can use, or a header is not sendable.
    Invalid,
    /// No connection could be made.
    Connect,
    /// Connected, then silent for too long, or the connection took too long.
    Timeout,
    /// The connection broke.
    Broken,
    /// TLS was wanted of a server that speaks none.
    NoTls,
    /// What answered does not speak HTTP; it may want TLS.
    NoHttp,
}

/// A failed exchange. The text names the address without its query.
#[derive(Clone, Debug)]
pub struct NetError {
    /// What kind.
    pub kind: NetErrorKind,
    pub(crate) message: String,
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NetError {}

/// What the HTTP library's error means.
pub(crate) fn explain(error: &reqwest::Error) -> NetError {
    // A connection that takes too long to be made is none.
    let kind = if error.is_connect() {
        NetErrorKind::Connect
    } else if error.is_timeout() {
        NetErrorKind::Timeout
    } else if error.is_builder() {
        NetErrorKind::Invalid
    } else {
        NetErrorKind::Broken
    };
    // The innermost cause is the one that says something.
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
    }
    let cause = cause.map(ToString::to_string).unwrap_or_default();
    let kind = match kind {
        NetErrorKind::Connect if cause.contains(NO_TLS) => NetErrorKind::NoTls,
        NetErrorKind::Broken if cause.contains(NO_HTTP) => NetErrorKind::NoHttp,
        kind => kind,
    };
    let what = match kind {
        NetErrorKind::Timeout => "no answer in time",
        NetErrorKind::Connect => "cannot connect",
        NetErrorKind::Invalid => "unusable address",
        NetErrorKind::Broken => "the connection broke",
        NetErrorKind::NoTls => "the server does not speak TLS",
        NetErrorKind::NoHttp => "the server does not speak HTTP",
    };
    let mut message = what.to_owned();
    if let Some(url) = error.url() {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = url.host_str().unwrap_or("?");
        message = format!("{message} ({}://{host}{port}{})", url.scheme(), url.path());
    }
    let is_said = matches!(kind, NetErrorKind::NoTls | NetErrorKind::NoHttp);
    if !is_said && !cause.is_empty() {
        // The system's number says nothing that its words do not.
        let words = cause.split(" (os error ").next().unwrap_or(&cause);
        message = format!("{message}: {words}");
    }
    NetError { kind, message }
}
