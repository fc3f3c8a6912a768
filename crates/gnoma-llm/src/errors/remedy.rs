//! What a person can do about a failure: one sentence for each [`Remedy`] of the kinds' table, with the
//! setting or variable that the key and the address came from.

use gnoma_core::{ErrorKind, error_policy::Remedy};
use gnoma_net::{CertificateFault, NetErrorKind};

use super::keys;
use crate::{Profile, Protocol};

/// The beginning of the hint for a model that does not exist.
pub(super) const LISTS_MODELS: &str = "`gnoma models` lists the models";

/// Returns the remedy for a failure of `kind`, told with `status` where there was one.
pub(super) fn of_kind(profile: &Profile, kind: ErrorKind, status: Option<u16>) -> Option<String> {
    let (name, url) = (&profile.name, &profile.base_url);
    let remedy = kind.policy().remedy;
    if profile.is_own_server()
        && let Some(said) = of_own_server(profile, remedy, status)
    {
        return Some(said);
    }
    Some(match remedy {
        Remedy::Key if profile.key.is_none() => missing_key(profile),
        Remedy::Key => format!(
            "`{name}` rejected the key: check {}.{}",
            profile.key_place(),
            keys::describe_wrong_key(profile)
        ),
        Remedy::Access if profile.key.is_none() => {
            format!("`{name}` may want a key. {}", missing_key(profile))
        }
        Remedy::Access => format!(
            "`{name}` knows the key but does not allow this. Check whether your account, its organization and \
             the country you connect from may use this model, or use another provider with --provider."
        ),
        Remedy::ModelName => match &profile.address_source {
            // The commonest way to set up a gateway; most of them speak Chat Completions only.
            Some(place) if profile.protocol == Protocol::Responses => format!(
                "{LISTS_MODELS} of `{name}`. The address is {url}, from {place}. If the server there speaks Chat \
                 Completions and not the Responses API, set `provider.protocols.{name}` to `compatible`."
            ),
            Some(place) => {
                format!("{LISTS_MODELS} of `{name}`. The address is {url}, from {place}.")
            }
            None => format!("{LISTS_MODELS} of `{name}`. The address is {url}."),
        },
        Remedy::Shorten => {
            "Start a new session, compact this one (/compact at its prompt), or choose a model with a larger window."
                .to_owned()
        }
        Remedy::Quota => format!("Top up or raise the limit at `{name}`, or use another provider."),
        Remedy::Wait if status == Some(429) => {
            retry_in("a minute")
        }
        Remedy::Wait => "Retry later, or use another provider with --provider.".to_owned(),
        Remedy::Report => format!(
            "The problem is on the side of `{name}`. Retry later, or use another provider with --provider."
        ),
        Remedy::Request => format!(
            "`{name}` does not accept this request, and will not the next time. Use another model with --model, \
             or start a new session if something in this one is the reason."
        ),
        Remedy::Patience if status.is_some() => {
            format!("`{name}` took too long. Retry later, or use another model with --model.")
        }
        Remedy::Patience => of_connection(profile, NetErrorKind::Timeout),
        Remedy::Network | Remedy::Certificate | Remedy::Address | Remedy::Nothing => return None,
    })
}

/// Returns the remedy for a limit of the rate of requests.
pub(super) fn retry_in(time: &str) -> String {
    format!("Retry in {time}, or use another provider with --provider.")
}

/// Returns the remedy where people run the server themselves, if it is another than at a vendor.
fn of_own_server(profile: &Profile, remedy: Remedy, status: Option<u16>) -> Option<String> {
    let (name, url) = (&profile.name, &profile.base_url);
    Some(match remedy {
        Remedy::Shorten => {
            "Start a new session, compact this one (/compact at its prompt), or start the server with a larger window."
                .to_owned()
        }
        Remedy::Access if profile.key.is_some() => format!(
            "`{name}` refuses the key of {} for this, or a proxy before {url} does. Check what the key may do, and the \
             log of the server.",
            profile.key_place()
        ),
        Remedy::Wait if status != Some(429) => format!(
            "The server at {url}, or a proxy before it, is not ready; it may still be loading the model. Retry \
             later, or use another provider with --provider."
        ),
        Remedy::Report => format!(
            "The problem is on the side of `{name}`: the log of the server at {url} says more. Retry later, or \
             use another provider with --provider."
        ),
        Remedy::Request => format!(
            "The server at {url} refuses the request for the reason above. If that does not help, its log says more: \
             check that it serves this model with tools, and that `provider.protocols.{name}` is the protocol that it \
             speaks."
        ),
        Remedy::Patience if status.is_some() => format!(
            "The server at {url}, or a proxy before it, stopped waiting for the model. Raise its time-out (nginx: \
             `proxy_read_timeout`), or use a smaller model."
        ),
        _ => return None,
    })
}

fn missing_key(profile: &Profile) -> String {
    let (name, setting) = (&profile.name, profile.describe_key_setting());
    if let Some(place) = &profile.key_source {
        let variable = &profile.key_variable;
        return format!(
            "{place} takes the key for `{name}` from {variable}, which is not set: {setting}."
        );
    }
    format!("No key for `{name}` is set: {setting}, or set `provider.api_keys.{name}`.")
}

/// Returns the remedy where the address does not lead to what was asked for.
pub(super) fn wrong_address(profile: &Profile) -> String {
    let asked = profile.url_for(profile.request_path());
    if profile.has_vendor_address() {
        let name = &profile.name;
        return format!(
            "gnoma asked {asked}, its own address for `{name}`: a proxy or a login page between you and it may have \
             answered."
        );
    }
    let (name, place) = (&profile.name, profile.address_place());
    let usual = profile.describe_usual_address();
    format!(
        "The address of `{name}` may be wrong: gnoma asked {asked}.{usual} Change it in {place}."
    )
}

/// Returns the remedy where a certificate is not trusted for `fault`.
pub(super) fn of_certificate(profile: &Profile, fault: Option<CertificateFault>) -> String {
    let (url, place) = (&profile.base_url, profile.address_place());
    match fault {
        Some(CertificateFault::Host) => format!(
            "Write a host that the certificate names into {place}, now {url}, or make a certificate with this host as \
             subjectAltName. Otherwise do not send a key: somebody may be intercepting the connection."
        ),
        Some(CertificateFault::Dates) => format!(
            "Check this machine's clock. If it is right, the server at {url} needs a new certificate."
        ),
        Some(CertificateFault::Issuer) | None => of_connection(profile, NetErrorKind::Certificate),
    }
}

/// Returns the remedy where no model server answered, but something before it or at another address.
pub(super) fn of_page(
    profile: &Profile,
    kind: ErrorKind,
    status: Option<u16>,
    is_page: bool,
) -> Option<String> {
    let (name, url) = (&profile.name, &profile.base_url);
    match kind {
        ErrorKind::NotFound | ErrorKind::BadRequest if is_page || status == Some(405) => {
            Some(wrong_address(profile))
        }
        ErrorKind::Forbidden if is_page => Some(format!(
            "A proxy or firewall may have answered in place of {url}: open that address in a browser. If it was \
             `{name}`, check what your account may use."
        )),
        ErrorKind::Auth if is_page && profile.key.is_some() => Some(format!(
            "A proxy or firewall may have answered in place of {url}. If not, `{name}` rejected the key: check \
             {}.",
            profile.key_place()
        )),
        _ => None,
    }
}

/// Returns the remedy where no answer came.
pub(super) fn of_connection(profile: &Profile, kind: NetErrorKind) -> String {
    let (name, url, place) = (&profile.name, &profile.base_url, profile.address_place());
    match kind {
        NetErrorKind::NoTls => format!("Use http:// instead of https:// in {place}, now {url}."),
        NetErrorKind::NoHttp => format!(
            "Check {place}, now {url}. If the server expects TLS, use https:// instead of http://."
        ),
        NetErrorKind::Certificate => format!(
            "Check the address in {place}, now {url}, and this machine's clock. If your company's proxy or a server of \
             your own signed the certificate, set `network.ca_file` (or SSL_CERT_FILE) to the PEM file with its \
             certificate authority. Otherwise do not send a key: somebody may be intercepting the connection."
        ),
        NetErrorKind::Authorities => {
            "Set `network.ca_file` (or SSL_CERT_FILE) to a PEM file with certificates, or unset it.".to_owned()
        }
        NetErrorKind::Connect if profile.local => format!("Is the server of `{name}` running at {url}?"),
        NetErrorKind::Connect if profile.is_own_server() => {
            format!("Check that the server of `{name}` runs at {url}, the address in {place}, and the network.")
        }
        NetErrorKind::Connect => match &profile.address_source {
            Some(place) => format!("Check the network and the address in {place} ({url})."),
            None => "Check the network and the provider's address.".to_owned(),
        },
        NetErrorKind::Proxy => "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names this proxy. Check that it runs and that its \
                                address is right (http://NAME:PASSWORD@HOST:PORT), or add the provider's host to \
                                NO_PROXY to connect without it. Behind socks5:// names are looked up here; socks5h:// \
                                leaves that to the proxy."
            .to_owned(),
        NetErrorKind::Invalid => format!("Check {place} and the key."),
        NetErrorKind::Timeout => {
            "Raise `network.idle_timeout` if the model needs longer to think or read.".to_owned()
        }
        NetErrorKind::Broken => format!("Retry later, or check the network and the server at {url}."),
    }
}
