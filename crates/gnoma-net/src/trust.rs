//! TLS trust: the root certificates of browsers, those of a person's own file, and the certificates in that file
//! themselves.
//!
//! `openssl req -x509` makes a certificate that is an authority and signs itself, and people put it into their
//! server. The library refuses an authority in the place of a server, and a server's certificate without the authority
//! that signed it. Trusted by name and byte, both are accepted here as other clients accept them, after every other
//! check: dates and the host's name.

use std::sync::Arc;

use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        VerifierBuilderError, WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    crypto::CryptoProvider,
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// The library's name for the refusal of an authority in the place of a server; it has no other sign.
const IS_AUTHORITY: &str = "CaUsedAsEndEntity";

/// The check of servers' certificates.
#[derive(Debug)]
pub(crate) struct ServerTrust {
    library: Arc<WebPkiServerVerifier>,
    /// The certificates of a person's own file.
    own: Vec<CertificateDer<'static>>,
}

impl ServerTrust {
    /// Trusts whom `roots` sign for, and the servers that show one of `own`.
    ///
    /// # Errors
    /// There are no roots.
    pub(crate) fn new(
        roots: RootCertStore,
        own: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let library =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
        Ok(Self { library, own })
    }
}

impl ServerCertVerifier for ServerTrust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.library.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The library has checked the dates before it comes to this.
            Err(error) if is_of_issuer(&error) && self.own.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.library.verify_tls12_signature(message, cert, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.library.verify_tls13_signature(message, cert, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.library.supported_verify_schemes()
    }
}

/// Reports whether the only fault of a certificate is its signer: the certificate itself, or an authority that is
/// not trusted.
fn is_of_issuer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(CertificateError::Other(other)) => {
            format!("{other:?}").contains(IS_AUTHORITY)
        }
        _ => false,
    }
}

/// The fault of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CertificateFault {
    /// The certificate is for another host, or names none.
    Host,
    /// The certificate has expired, or is not valid yet.
    Dates,
    /// The certificate is signed by nobody but itself.
    SelfSigned,
    /// The certificate is not signed by a trusted authority, or has another fault.
    Issuer,
}

impl CertificateFault {
    pub(crate) fn from_error(error: &CertificateError) -> Self {
        match error {
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Self::Host
            }
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Dates,
            CertificateError::Other(other) if format!("{other:?}").contains(IS_AUTHORITY) => {
                Self::SelfSigned
            }
            _ => Self::Issuer,
        }
    }
}

/// Returns a description of a certificate's fault, for people.
pub(crate) fn describe_certificate_error(error: &CertificateError) -> String {
    match error {
        CertificateError::UnknownIssuer => {
            "it is not signed by an authority that gnoma knows".to_owned()
        }
        CertificateError::Expired => {
            "it has expired, or the clock of this machine is wrong".to_owned()
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!(
                "it expired on {}, or the clock of this machine is wrong",
                format_date(*not_after)
            )
        }
        CertificateError::NotValidYet => {
            "it is not valid yet, or the clock of this machine is wrong".to_owned()
        }
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "it is valid from {} on, or the clock of this machine is wrong",
            format_date(*not_before)
        ),
        CertificateError::NotValidForName => "it is for another host".to_owned(),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => {
            "it names no host (it has no subjectAltName)".to_owned()
        }
        CertificateError::NotValidForNameContext { presented, .. } => {
            let hosts: Vec<&str> =
                presented.iter().map(|name| bare_name(name)).take(MAX_HOSTS).collect();
            format!("it is for another host: {}", hosts.join(", "))
        }
        CertificateError::Other(other) if format!("{other:?}").contains(IS_AUTHORITY) => {
            "it signed itself (self-signed)".to_owned()
        }
        other => other.to_string(),
    }
}

/// Most hosts of a certificate that are named.
const MAX_HOSTS: usize = 5;

/// A name as the library shows it, such as `DnsName("example.org")`, without what is around it.
fn bare_name(shown: &str) -> &str {
    let inner = shown.split_once('(').map_or(shown, |(_, inner)| inner.trim_end_matches(')'));
    inner.trim_matches('"')
}

/// The day of a moment, such as `2026-11-28`.
fn format_date(moment: UnixTime) -> String {
    let seconds = i64::try_from(moment.as_secs()).unwrap_or(i64::MAX);
    let day = jiff::Timestamp::from_second(seconds).map(|moment| moment.to_string());
    let day = day.unwrap_or_default();
    day.split('T').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::pki_types::pem::PemObject as _;

    use super::*;

    /// 2030, when the certificate of this test is valid, and 2200, when it is not.
    const VALID_S: u64 = 1_900_000_000;
    const EXPIRED_S: u64 = 7_258_118_400;

    fn verify(trusted: bool, host: &str, at_s: u64) -> Result<(), String> {
        verify_pem(SELF_SIGNED_AUTHORITY, trusted, host, at_s)
    }

    fn verify_pem(pem: &str, trusted: bool, host: &str, at_s: u64) -> Result<(), String> {
        let own = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        if trusted {
            roots.add(own.clone()).unwrap();
        }
        let all = if trusted { vec![own.clone()] } else { Vec::new() };
        let trust = ServerTrust::new(roots, all, provider).unwrap();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(at_s));
        match trust.verify_server_cert(&own, &[], &name, &[], now) {
            Ok(_) => Ok(()),
            Err(Error::InvalidCertificate(error)) => Err(describe_certificate_error(&error)),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn self_signed_authority_is_accepted_once_it_is_trusted() {
        for host in ["models.internal", "gpu.lab.internal", "127.0.0.1"] {
            assert_eq!(verify(true, host, VALID_S), Ok(()), "{host}");
            assert_eq!(
                verify(false, host, VALID_S),
                Err("it signed itself (self-signed)".to_owned())
            );
        }
    }

    #[test]
    fn trusted_certificate_is_refused_for_another_host_and_after_its_end() {
        let other = verify(true, "elsewhere.example", VALID_S).unwrap_err();
        assert!(other.contains("models.internal, *.lab.internal"), "{other}");
        let expired = verify(true, "models.internal", EXPIRED_S).unwrap_err();
        assert!(expired.contains("expired on 2126-11-04"), "{expired}");
        let early = verify(true, "models.internal", 1_000_000_000).unwrap_err();
        assert!(early.contains("valid from 2026-11-28"), "{early}");
    }

    #[test]
    fn trusted_certificate_of_a_server_needs_no_authority() {
        let host = "models.internal";
        assert_eq!(verify_pem(SIGNED_LEAF, true, host, VALID_S), Ok(()));
        let unknown = verify_pem(SIGNED_LEAF, false, host, VALID_S).unwrap_err();
        assert!(unknown.contains("not signed by an authority"), "{unknown}");
        let other = verify_pem(SIGNED_LEAF, true, "elsewhere.example", VALID_S).unwrap_err();
        assert!(other.contains("models.internal"), "{other}");
        let expired = verify_pem(SIGNED_LEAF, true, host, EXPIRED_S).unwrap_err();
        assert!(expired.contains("expired on"), "{expired}");
    }

    /// A server's certificate of a root that is not here.
    const SIGNED_LEAF: &str = "\
-----BEGIN CERTIFICATE-----
MIIBqjCCAVCgAwIBAgITRXOAlRr6g7Qx0gI/sq0Zzxp/8DAKBggqhkjOPQQDAjAa
MRgwFgYDVQQDDA9nbm9tYS10ZXN0LXJvb3QwIBcNMjYxMTI4MjIwNTI5WhgPMjEy
NjExMDQyMjA1MjlaMA8xDTALBgNVBAMMBGxlYWYwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASRruMZxR7g31xlnJ0skyx9YlN9HXXOLZvEIvWhsuWOktjL/O7mg/m2
PdF45W6b3dQu1AqJgIREkJ6g4EoKjvpEo34wfDAaBgNVHREEEzARgg9tb2RlbHMu
aW50ZXJuYWwwCQYDVR0TBAIwADATBgNVHSUEDDAKBggrBgEFBQcDATAdBgNVHQ4E
FgQU476NX2AkSuEdeWDm2bhHSGWN8RMwHwYDVR0jBBgwFoAUd8OfBBWX8gz+lXQe
TKcgY4USNTkwCgYIKoZIzj0EAwIDSAAwRQIhAKs/vSa06iaIswjhJHn/T3qivVI9
cDw4/Hj6OEbjZEIkAiAkxpl3opxIcp2ZUNiucLmPLHq+zJhAduTYy4cVzuNtYw==
-----END CERTIFICATE-----
";

    /// Made with `openssl req -x509`, with names; nothing is signed with it.
    const SELF_SIGNED_AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBtDCCAVugAwIBAgIUL3tQD1Hzt9oYLC6EZslv0RcgvHAwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKZ25vbWEtdGVzdDAgFw0yNjExMjgxNzM5NDVaGA8yMTI2MTEw
NDE3Mzk0NVowFTETMBEGA1UEAwwKZ25vbWEtdGVzdDBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABBkrjW8TnVHNjrCGNhQX4HejQAFFxXa3n+yrdkC+Cnjyn1jnKNjm
tjvXKIbJoLOyFiTNiRINYENJ466Oi12mYOijgYYwgYMwHQYDVR0OBBYEFL4wSW4g
OgHCVnk2Kp3QGiq809NuMB8GA1UdIwQYMBaAFL4wSW4gOgHCVnk2Kp3QGiq809Nu
MA8GA1UdEwEB/wQFMAMBAf8wMAYDVR0RBCkwJ4IPbW9kZWxzLmludGVybmFsgg4q
LmxhYi5pbnRlcm5hbIcEfwAAATAKBggqhkjOPQQDAgNHADBEAiBlxRT0USt4kjiI
mpI1Yot1LL+EDuJWAN8oWjo3iHDzrQIgFT6brKlUvEP5kvt4jLaEd13o0alGxsKy
muquVuKwiJw=
-----END CERTIFICATE-----
";
}
