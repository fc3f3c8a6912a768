//! What a person can do about a failure: one sentence for each [`Remedy`] of the kinds' table, with the
//! setting or variable that the key and the address came from.

use gnoma_core::{ErrorKind, error::is_fault_behind_proxy, error_policy::Remedy};
use gnoma_net::{CertificateFault, NetErrorKind};

use super::keys;
use crate::{Profile, Protocol, host::host_of};

/// The beginning of the hint for a model that does not exist.
pub(super) const LISTS_MODELS: &str = "`gnoma models` lists the models";
/// The beginning of the hint for a 404 of an address that a person has set.
pub(super) const MODEL_OR_ADDRESS: &str = "Either the model or the address is wrong.";

/// Returns the remedy for a failure of `kind`, told with `status` where there was one.
pub(super) fn of_kind(profile: &Profile, kind: ErrorKind, status: Option<u16>) -> Option<String> {
    let name = &profile.name;
    let remedy = kind.policy().remedy;
    if profile.is_own_server()
        && let Some(said) = of_own_server(profile, remedy, status)
    {
        return Some(said);
    }
    Some(match remedy {
        Remedy::Key => of_key(profile),
        Remedy::Access => of_access(profile),
        Remedy::ModelName => of_missing_model(profile, status),
        Remedy::Shorten => {
            "Start a new session, compact this one (/compact at its prompt), or choose a model with a larger window."
                .to_owned()
        }
        Remedy::Quota => format!(
            "Top up or raise the limit at `{name}`, or use another provider with --provider."
        ),
        Remedy::Wait if status == Some(429) => retry_in("a minute"),
        Remedy::Wait => "Retry later, or use another provider with --provider.".to_owned(),
        Remedy::Report => format!(
            "The problem is on the side of `{name}`. Retry later, or use another provider with --provider."
        ),
        Remedy::Request => format!(
            "`{name}` refuses this request, and would refuse it again. Use another model with --model, or start a new \
             session if something in this one is the reason."
        ),
        Remedy::Patience if status.is_some() => {
            format!("`{name}` took too long. Retry later, or use another model with --model.")
        }
        Remedy::Patience => of_connection(profile, NetErrorKind::Timeout),
        Remedy::Network | Remedy::Certificate | Remedy::Address | Remedy::Nothing => return None,
    })
}

/// Returns the remedy for a key that is missing or wrong.
fn of_key(profile: &Profile) -> String {
    if profile.key.is_none() {
        return missing_key(profile);
    }
    let (name, place) = (&profile.name, profile.key_place());
    format!("`{name}` rejected the key: check {place}.{}", keys::describe_wrong_key(profile))
}

/// Returns the remedy where the provider does not allow a request.
fn of_access(profile: &Profile) -> String {
    let name = &profile.name;
    if profile.key.is_none() {
        return format!("`{name}` may want a key. {}", missing_key(profile));
    }
    format!(
        "`{name}` knows the key but does not allow this. Check whether your account, its organization and the country \
         you connect from may use this model, or use another provider with --provider."
    )
}

/// Returns the remedy for a limit of the rate of requests.
pub(super) fn retry_in(time: &str) -> String {
    format!("Retry in {time}, or use another provider with --provider.")
}

/// Returns the remedy where a model does not exist, or the address leads to nothing.
fn of_missing_model(profile: &Profile, status: Option<u16>) -> String {
    let (name, url) = (&profile.name, &profile.base_url);
    let Some(place) = &profile.address_source else {
        return format!(
            "{LISTS_MODELS} of `{name}`: choose one with --model. The address is {url}."
        );
    };
    // The commonest way to set up a gateway; most of them speak Chat Completions only.
    let protocol = match profile.protocol {
        Protocol::Responses => format!(
            " If the server there speaks Chat Completions and not the Responses API, set `provider.protocols.{name}` to \
             `compatible`."
        ),
        _ => String::new(),
    };
    if status == Some(404) {
        return format!(
            "{MODEL_OR_ADDRESS} Choose one of `gnoma models` with --model, or correct the address {url} in \
             {place}.{protocol}"
        );
    }
    format!(
        "{LISTS_MODELS} of `{name}`: choose one with --model. The address is {url}, from {place}.{protocol}"
    )
}

/// Returns the remedy where people run the server themselves, if it is another than at a vendor.
fn of_own_server(profile: &Profile, remedy: Remedy, status: Option<u16>) -> Option<String> {
    let (name, server) = (&profile.name, profile.describe_server());
    let comma = if profile.address_source.is_some() { "," } else { "" };
    Some(match remedy {
        Remedy::Shorten => {
            "Start a new session, compact this one (/compact at its prompt), or start the server with a larger window."
                .to_owned()
        }
        Remedy::Access if profile.key.is_some() => format!(
            "{}, or a proxy before it, does not allow this with {}; the key itself may be right. Check what the key may \
             do, and the log of the server.",
            capitalize(&server),
            profile.describe_key()
        ),
        Remedy::Quota if status == Some(402) => format!(
            "{}{comma} wants payment. Check the account behind it, or use another provider with --provider.",
            capitalize(&server)
        ),
        Remedy::Quota => format!(
            "Check the account behind {server}{comma} or use another provider with --provider."
        ),
        Remedy::Wait | Remedy::Patience => return of_waiting(&server, remedy, status),
        Remedy::Report => format!(
            "The problem is on the side of {server}: its log says more. Retry later, or use another provider with \
             --provider."
        ),
        Remedy::Request => format!(
            "{}{comma} refuses the request for the reason above. If that does not help, its log says more: check that \
             it serves this model with tools, and that it speaks {} (change it with `provider.protocols.{name}`).",
            capitalize(&server),
            profile.protocol.describe()
        ),
        _ => return None,
    })
}

/// Returns the remedy where the server of people themselves, or a proxy before it, is not ready.
fn of_waiting(server: &str, remedy: Remedy, status: Option<u16>) -> Option<String> {
    Some(match (remedy, status) {
        (Remedy::Wait, Some(429)) | (Remedy::Patience, None) => return None,
        (Remedy::Wait, Some(behind)) if is_fault_behind_proxy(behind) => format!(
            "A proxy answers in place of {server}. Check that the server runs; it may still be starting. Retry later, or \
             use another provider with --provider."
        ),
        (Remedy::Wait, _) => format!(
            "{}, or a proxy before it, is not ready; it may still be loading the model. Retry later, or use another \
             provider with --provider.",
            capitalize(server)
        ),
        _ => format!(
            "{}, or a proxy before it, stopped waiting for the model. Raise its time-out (nginx: \
             `proxy_read_timeout`), or use a smaller model.",
            capitalize(server)
        ),
    })
}

/// Returns a sentence that begins with `server`.
fn capitalize(server: &str) -> String {
    server.replacen("the ", "The ", 1)
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
        let (name, url) = (&profile.name, &profile.base_url);
        return format!(
            "gnoma asked {asked}, an address that it knows for `{name}`: a proxy or a login page in between may have \
             answered. Open {url} in a browser to see."
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
            "If the server is your own, make a certificate with this host as subjectAltName, or write a host that the \
             certificate names into {place}, now {url}. Otherwise do not send a key: somebody may be intercepting the \
             connection."
        ),
        Some(CertificateFault::Dates) => format!(
            "Check this machine's clock. If it is right, the server at {url} needs a new certificate."
        ),
        Some(CertificateFault::SelfSigned) => format!(
            "If the server at {url} is your own, trust it with `gnoma config set network.ca_file FILE` (or \
             SSL_CERT_FILE), where FILE has that same certificate in PEM. Otherwise check the address in {place}, and \
             do not send a key: somebody may be intercepting the connection."
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
        ErrorKind::Forbidden if is_page && profile.key.is_none() => Some(format!(
            "{} Or a proxy answered in place of {url}: open it in a browser.",
            missing_key(profile)
        )),
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

/// Returns the remedy where the host of the address does not exist.
pub(super) fn of_unknown_host(profile: &Profile) -> String {
    let host = host_of(&profile.base_url);
    match &profile.address_source {
        Some(place) => format!(
            "There is no host {host}: correct the address in {place}, or check the network."
        ),
        None if profile.has_vendor_address() => {
            format!("The name of {host} was not found: check the network and its name server.")
        }
        None => {
            format!("There is no host {host}: correct the address in {}.", profile.address_place())
        }
    }
}

/// Returns the remedy where no answer came.
pub(super) fn of_connection(profile: &Profile, kind: NetErrorKind) -> String {
    let (url, place) = (&profile.base_url, profile.address_place());
    match kind {
        NetErrorKind::NoTls => format!("Use http:// instead of https:// in {place}, now {url}."),
        NetErrorKind::NoHttp => format!(
            "Check {place}, now {url}. If the server expects TLS, use https:// instead of http://."
        ),
        NetErrorKind::Certificate => format!(
            "Check the address in {place}, now {url}, and this machine's clock. If your company's proxy or a server of \
             your own signed the certificate, trust its authority with `gnoma config set network.ca_file FILE` (or \
             SSL_CERT_FILE), where FILE has the authority's certificate in PEM. Otherwise do not send a key: somebody \
             may be intercepting the connection."
        ),
        NetErrorKind::ClientCertificate => format!(
            "Run a proxy that sends the certificate (nginx: `proxy_ssl_certificate`), and write the proxy's address \
             into {place}, now {url}."
        ),
        NetErrorKind::Authorities => {
            "Set `network.ca_file` (or SSL_CERT_FILE) to a PEM file with certificates, or unset it.".to_owned()
        }
        NetErrorKind::Connect => of_missing_server(profile),
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

/// Returns the remedy where nothing answers.
fn of_missing_server(profile: &Profile) -> String {
    let (name, url) = (&profile.name, &profile.base_url);
    match &profile.address_source {
        Some(place) if profile.local => {
            format!("Start the server of `{name}`, or correct its address {url} in {place}.")
        }
        None if profile.local => format!("Is the server of `{name}` running at {url}?"),
        Some(_) | None if profile.has_unknown_name() => {
            let place = profile.address_place();
            format!(
                "Check that the server of `{name}` runs at {url}, the address in {place}, and the network."
            )
        }
        Some(place) => format!(
            "Nothing answers at {url}, the address in {place}. Check that the server runs, and the address."
        ),
        None => "Check the network and the provider's address.".to_owned(),
    }
}

impl Protocol {
    /// Names the protocol for people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Self::Mistral => "Mistral's Chat Completions",
            Self::Anthropic => "Anthropic's Messages API",
            Self::OpenAi => "Chat Completions",
            Self::Responses => "the Responses API",
            Self::Google => "the Gemini API",
            Self::Ollama => "Ollama's own API",
        }
    }
}

impl Profile {
    /// Names the server by its address, and by the place that the address was set in: `the server at URL, from X`.
    pub(crate) fn describe_server(&self) -> String {
        match &self.address_source {
            Some(place) => format!("the server at {}, from {place}", self.base_url),
            None => format!("the server at {}", self.base_url),
        }
    }

    /// Names the key by its place: `the key in WORK_KEY`.
    pub(crate) fn describe_key(&self) -> String {
        match self.key_place() {
            command if command.starts_with("the command in ") => {
                format!("the key that {command} prints")
            }
            place => format!("the key in {place}"),
        }
    }
}
