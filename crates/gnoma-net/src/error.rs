//! Network errors: DNS, connection refused, TLS certificates, time-outs, and how each is recognized.

use std::{error::Error as _, fmt};

use gnoma_core::system_error::without_numbers;

use crate::trust::{CertificateFault, describe_certificate_error};

/// rustls's words for an answer that is no TLS; it has no other sign.
const NO_TLS: &str = "received corrupt message of type InvalidContentType";
/// rustls's words for a server that ends a connection because the client sent no certificate.
const NO_CLIENT_CERTIFICATE: &str = "received fatal alert: CertificateRequired";
/// hyper's words for an answer that is no HTTP, such as an alert of TLS.
const NO_HTTP: &str = "invalid HTTP version parsed";
/// The standard library's words for a name that gives no address; the system's stand behind them.
const NO_NAME: &str = "failed to lookup address information: ";
/// The same in ours.
const UNKNOWN_HOST: &str = "the host name was not found";
/// hyper's words for a connection that ended without a byte of an answer; it has no other sign.
const CLOSED_UNHEARD: &str = "connection closed before message completed";
/// The same in ours.
pub(crate) const UNANSWERED: &str = "the server closed the connection before it answered";

/// The words of the HTTP library for a proxy that makes no connection, and what they mean.
const PROXY_WORDS: &[(&str, &str)] = &[
    ("tunnel error: unsuccessful", "the proxy refused to connect"),
    ("tunnel error: proxy authorization required", "the proxy wants a name and a password"),
    ("tunnel error: unexpected end of file", "the proxy closed the connection"),
];
/// The reason why an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetErrorKind {
    /// The address is no URL we can use, or a header is not sendable.
    Invalid,
    /// No connection could be made.
    Connect,
    /// The proxy that the environment names could not be reached, or makes no connection.
    Proxy,
    /// The server's certificate is not one to trust.
    Certificate,
    /// The server wants a certificate of its client, which gnoma cannot send.
    ClientCertificate,
    /// The file of certificate authorities that are to be trusted cannot be used.
    Authorities,
    /// Connected, then silent for too long, or the connection took too long.
    Timeout,
    /// The connection broke during the exchange.
    Broken,
    /// TLS was wanted of a server that speaks none.
    NoTls,
    /// The server that answered does not speak HTTP; it may require TLS.
    NoHttp,
}

/// A failed exchange. The text names the address without its query.
#[derive(Clone, Debug)]
pub struct NetError {
    /// The kind of the failure.
    pub kind: NetErrorKind,
    /// The fault of the server's certificate, if that is the reason.
    pub certificate_fault: Option<CertificateFault>,
    pub(crate) message: String,
}

impl NetError {
    pub(crate) fn new(kind: NetErrorKind, message: String) -> Self {
        Self { kind, certificate_fault: None, message }
    }
}

impl NetError {
    /// Reports whether the name of the host gave no address.
    #[must_use]
    pub fn is_unknown_host(&self) -> bool {
        self.kind == NetErrorKind::Connect && self.message.contains(UNKNOWN_HOST)
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for NetError {}

/// Converts the HTTP library's error into one that names its cause. `proxy` is the proxy that the request took.
pub(crate) fn to_net_error(error: &reqwest::Error, proxy: Option<String>) -> NetError {
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
    let mut distrust = cause.and_then(certificate_error);
    while let Some(deeper) = cause.and_then(std::error::Error::source) {
        cause = Some(deeper);
        distrust = distrust.or_else(|| certificate_error(deeper));
    }
    let cause = match &distrust {
        Some(distrust) => describe_certificate_error(distrust),
        None => cause.map(ToString::to_string).unwrap_or_default(),
    };
    let kind = refine_kind(kind, &cause, distrust.is_some(), proxy.is_some());
    let mut message = describe_kind(kind).to_owned();
    if let Some(proxy) = proxy.filter(|_| kind == NetErrorKind::Proxy) {
        message = format!("{message} {proxy}");
    }
    if let Some(url) = error.url() {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = url.host_str().unwrap_or("?");
        message = format!("{message} ({}://{host}{port}{})", url.scheme(), url.path());
    }
    if !includes_cause(kind) && !cause.is_empty() {
        message = format!("{message}: {}", in_words(&without_numbers(&cause)));
    }
    let certificate_fault = distrust.as_ref().map(CertificateFault::from_error);
    NetError { kind, certificate_fault, message }
}

/// Returns the kind of a failure that the words of its cause, the server's certificate or a proxy make more exact.
fn refine_kind(
    kind: NetErrorKind,
    cause: &str,
    is_distrusted: bool,
    has_proxy: bool,
) -> NetErrorKind {
    match kind {
        NetErrorKind::Connect if cause.contains(NO_TLS) => NetErrorKind::NoTls,
        // A server of TLS 1.3 looks at the client's certificate after the connection is made.
        NetErrorKind::Connect | NetErrorKind::Broken if cause.contains(NO_CLIENT_CERTIFICATE) => {
            NetErrorKind::ClientCertificate
        }
        NetErrorKind::Connect if is_distrusted => NetErrorKind::Certificate,
        NetErrorKind::Connect if has_proxy => NetErrorKind::Proxy,
        NetErrorKind::Broken if cause.contains(NO_HTTP) => NetErrorKind::NoHttp,
        kind => kind,
    }
}

/// Reports whether the description of a kind already says what the cause would.
fn includes_cause(kind: NetErrorKind) -> bool {
    matches!(
        kind,
        NetErrorKind::NoTls
            | NetErrorKind::NoHttp
            | NetErrorKind::ClientCertificate
            | NetErrorKind::Timeout
    )
}

/// Returns a description of what has failed.
fn describe_kind(kind: NetErrorKind) -> &'static str {
    match kind {
        NetErrorKind::Timeout => "no answer in time",
        NetErrorKind::Connect => "cannot connect",
        NetErrorKind::Proxy => "cannot connect through the proxy",
        NetErrorKind::Certificate => "the server's certificate is not trusted",
        NetErrorKind::ClientCertificate => {
            "the server wants a client certificate, which gnoma cannot send"
        }
        NetErrorKind::Authorities => "cannot read the certificate authorities",
        NetErrorKind::Invalid => "unusable address",
        NetErrorKind::Broken => "the connection broke",
        NetErrorKind::NoTls => "the server does not speak TLS",
        NetErrorKind::NoHttp => "the server does not speak HTTP",
    }
}

/// A cause as people say it.
fn in_words(cause: &str) -> String {
    if let Some((_, system)) = cause.split_once(NO_NAME) {
        return format!("{UNKNOWN_HOST} ({system})");
    }
    if cause.contains(CLOSED_UNHEARD) {
        return UNANSWERED.to_owned();
    }
    if cause.contains("relative URL without a base") {
        return "it does not begin with http:// or https://".to_owned();
    }
    if let Some((_, words)) = PROXY_WORDS.iter().find(|(begin, _)| cause.starts_with(begin)) {
        return (*words).to_owned();
    }
    cause.to_owned()
}

/// Returns the fault of a server's certificate, if that is why an exchange failed. Errors of streams wrap each
/// other, and their sources leave out what they wrap.
fn certificate_error(
    error: &(dyn std::error::Error + 'static),
) -> Option<rustls::CertificateError> {
    if let Some(rustls::Error::InvalidCertificate(error)) = error.downcast_ref() {
        return Some(error.clone());
    }
    let inner = error.downcast_ref::<std::io::Error>()?.get_ref()?;
    certificate_error(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_error_is_found_within_errors_of_streams() {
        let error = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        let wrapped = std::io::Error::other(std::io::Error::other(error));
        assert_eq!(certificate_error(&wrapped), Some(rustls::CertificateError::UnknownIssuer));
        assert_eq!(certificate_error(&std::io::Error::other("else")), None);
    }

    #[test]
    fn connection_error_causes_are_described_in_plain_words() {
        for (cause, words) in [
            ("Connection refused", "Connection refused"),
            (
                "failed to lookup address information: Name or service not known",
                "the host name was not found (Name or service not known)",
            ),
            ("tunnel error: unsuccessful", "the proxy refused to connect"),
            ("connection closed before message completed", UNANSWERED),
            ("relative URL without a base", "it does not begin with http:// or https://"),
        ] {
            assert_eq!(in_words(cause), words);
        }
    }
}
