//! What the first start offers, and how to interpret an address that a person entered.

use gnoma_core::protocol::{ConnectBy, Connection, FoundProviders};

use crate::picker::Row;

/// A server that people run themselves, and how to start it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LocalServer {
    /// The provider to use it as.
    pub provider: &'static str,
    /// The default address of the server.
    pub address: &'static str,
    /// The instructions, a line each.
    pub steps: &'static [&'static str],
}

/// Those that the first start tells about.
pub(super) const LOCAL_SERVERS: [LocalServer; 2] = [
    LocalServer {
        provider: "ollama",
        address: "http://localhost:11434",
        steps: &[
            "Start Ollama in another terminal:",
            "  ollama serve              (if it is not running yet)",
            "  ollama pull qwen3:8b      (once; any model that can call tools)",
        ],
    },
    LocalServer {
        provider: "llamacpp",
        address: "http://localhost:8080/v1",
        steps: &[
            "Start llama.cpp in another terminal, with a model that can call tools:",
            "  llama-server -m MODEL.gguf --jinja -c 32768",
        ],
    },
];

/// The provider that has no address of its own.
pub(super) const WITHOUT_ADDRESS: &str = "azure";
/// The form of the address of that provider.
pub(super) const AZURE_ADDRESS: &str = "https://NAME.openai.azure.com/openai/v1";
/// The form of the address of another server.
pub(super) const SERVER_ADDRESS: &str = "http://localhost:8000/v1";

/// A choice at the beginning of the guided start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    Ready(Connection),
    /// A key for this provider is to be entered.
    Key(String),
    /// The address of this provider is to be entered, and a key.
    AddressAndKey(String),
    /// A key for this provider at this address is to be entered.
    KeyAt {
        provider: String,
        address: String,
    },
    /// The address of this provider is to be entered anew.
    AddressOf {
        provider: String,
        address: String,
    },
    /// Instructions for starting this server are shown.
    Local(LocalServer),
    /// The address of a server is to be entered, and a key where it wants one.
    Other,
    /// An explanation of how a key is entered where what is typed here would be seen.
    Elsewhere,
    Demo,
    /// A provider is to be removed.
    Remove,
}

/// Returns whether a provider is a server that wants no key.
pub(super) fn is_keyless(provider: &str) -> bool {
    LOCAL_SERVERS.iter().any(|local| local.provider == provider)
}

/// Returns the offers where providers are set up already: `existing` are those, each with its address.
pub(super) fn offers_again(
    found: &FoundProviders,
    existing: &[(String, String)],
    keys_are_seen: bool,
) -> Vec<(Row, Choice)> {
    let mut offers = Vec::new();
    for (name, address) in existing.iter().filter(|_| !keys_are_seen) {
        let is_hosted = found.providers.contains(name);
        let (provider, address) = (name.clone(), address.clone());
        offers.push(match (address.is_empty(), is_hosted) {
            (true, true) => (Row::new(name, "set up: enter another key"), Choice::Key(provider)),
            (true, false) => {
                let about = "set up: enter its address and key again";
                (Row::new(name, about), Choice::AddressAndKey(provider))
            }
            (false, _) if is_keyless(name) => {
                let about = format!("set up at {address}: enter its address again");
                (Row::new(name, about), Choice::AddressOf { provider, address })
            }
            (false, _) => {
                let about = format!("set up at {address}: enter its key or address again");
                (Row::new(name, about), Choice::KeyAt { provider, address })
            }
        });
    }
    let is_new = |choice: &Choice| match choice {
        Choice::Key(name)
        | Choice::AddressAndKey(name)
        | Choice::KeyAt { provider: name, .. }
        | Choice::AddressOf { provider: name, .. } => {
            existing.iter().all(|(existing, _)| existing != name)
        }
        Choice::Demo => false,
        _ => true,
    };
    offers.extend(self::list_offers(found, keys_are_seen).into_iter().filter(|(_, it)| is_new(it)));
    if !existing.is_empty() {
        offers.push((Row::new("remove", "remove a provider that is set up"), Choice::Remove));
    }
    offers
}

/// Returns the offers of the first start. Where `keys_are_seen`, no key can be entered.
pub(super) fn list_offers(found: &FoundProviders, keys_are_seen: bool) -> Vec<(Row, Choice)> {
    let mut offers = Vec::new();
    for key in &found.keys {
        let by = ConnectBy::Variable(key.variable.clone());
        let ready = Choice::Ready(Connection { provider: key.provider.clone(), by, model: None });
        offers.push((Row::new(&key.provider, format!("the key in {}", key.variable)), ready));
    }
    for server in &found.servers {
        let about = format!("{} · {} models", server.address, server.models);
        let by = ConnectBy::Address(server.address.clone());
        let provider = server.provider.clone();
        let ready = Choice::Ready(Connection { provider, by, model: None });
        offers.push((Row::new(&server.provider, about), ready));
    }
    if keys_are_seen {
        let about = "with a key: how to enter it without showing it";
        offers.push((Row::new("hosted provider", about), Choice::Elsewhere));
    } else {
        offers.extend(found.providers.iter().map(|provider| hosted_offer(provider)));
    }
    let is_running =
        |local: &LocalServer| found.servers.iter().any(|server| server.provider == local.provider);
    let stopped = LOCAL_SERVERS.into_iter().filter(|local| !is_running(local));
    offers.extend(stopped.map(|local| {
        (Row::new(local.provider, "on this machine: how to start it"), Choice::Local(local))
    }));
    let about = "OpenAI-compatible: its address, and a key if it needs one";
    offers.push((Row::new("another server", about), Choice::Other));
    let about = "no provider needed: a scripted turn shows how it works";
    offers.push((Row::new("demo", about), Choice::Demo));
    offers
}

fn hosted_offer(provider: &str) -> (Row, Choice) {
    if provider == WITHOUT_ADDRESS {
        let about = "enter the address of your resource, and a key";
        return (Row::new(provider, about), Choice::AddressAndKey(provider.to_owned()));
    }
    (Row::new(provider, "enter a key"), Choice::Key(provider.to_owned()))
}

/// An address as it was meant: with a scheme, and without the path of a call. `None` if it is none.
pub(super) fn normalize_address(entered: &str) -> Option<String> {
    let entered = entered.trim();
    let (scheme, rest) = match entered.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, entered),
    };
    let rest = rest.trim_end_matches('/');
    let rest = ["/chat/completions", "/models", "/responses"]
        .iter()
        .find_map(|path| rest.strip_suffix(path))
        .unwrap_or(rest);
    let scheme = match scheme.map(str::to_ascii_lowercase).as_deref() {
        Some("http") => "http",
        Some("https") => "https",
        Some(_) => return None,
        None if is_near(address_host(rest)) => "http",
        None => "https",
    };
    (!address_host(rest).is_empty()).then(|| format!("{scheme}://{rest}"))
}

/// The same address without TLS, where it has it.
pub(super) fn without_tls(address: &str) -> Option<String> {
    address.strip_prefix("https://").map(|rest| format!("http://{rest}"))
}

/// A name for the server at `address` that none of `taken` has.
pub(super) fn name_of(address: &str, taken: &[String]) -> String {
    let host = address_host(address);
    let labels: Vec<&str> = host.split('.').collect();
    let label = match labels.as_slice() {
        _ if is_near(host) && (host.contains([':', '.']) || host == "localhost") => "local",
        ["api" | "www" | "llm" | "ai" | "openai", second, _, ..] => second,
        [first, ..] => first,
        [] => "",
    };
    let mut name: String = label
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .filter(|c| c.is_ascii_alphanumeric() || *c == '-')
        .collect();
    if name.is_empty() {
        name.push_str("server");
    }
    let is_taken = taken.contains(&name)
        || LOCAL_SERVERS.iter().any(|local| local.provider == name)
        || ["lmstudio", "vllm"].contains(&name.as_str());
    if is_taken {
        name.push_str("-server");
    }
    let free = (2..).map(|number| format!("{name}-{number}")).find(|name| !taken.contains(name));
    free.filter(|_| taken.contains(&name)).unwrap_or(name)
}

/// The host of an address, without brackets and port.
fn address_host(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let authority = authority.rsplit('@').next().unwrap_or_default();
    match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or_default(),
    }
}

/// Reports whether a host is this machine or one beside it, where servers rarely have certificates.
fn is_near(host: &str) -> bool {
    let has_no_domain = !host.contains('.');
    has_no_domain || host.parse::<std::net::IpAddr>().is_ok() || host.ends_with(".local")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setup_address_is_normalized_as_copied() {
        for (entered, is) in [
            ("http://gpu:8000/v1/", Some("http://gpu:8000/v1")),
            ("localhost:8000", Some("http://localhost:8000")),
            ("192.168.1.7:8000/v1", Some("http://192.168.1.7:8000/v1")),
            ("llm.example.com/v1", Some("https://llm.example.com/v1")),
            ("https://x.example/v1/chat/completions", Some("https://x.example/v1")),
            ("ftp://x", None),
            ("http://", None),
            ("", None),
        ] {
            assert_eq!(normalize_address(entered).as_deref(), is, "{entered}");
        }
        assert_eq!(without_tls("https://gpu:1/v1").as_deref(), Some("http://gpu:1/v1"));
        assert_eq!(without_tls("http://gpu:1/v1"), None);
    }

    #[test]
    fn server_name_comes_from_its_host_and_avoids_provider_names() {
        let taken = ["openai".to_owned(), "mistral".to_owned()];
        for (address, name) in [
            ("http://localhost:8000/v1", "local"),
            ("http://127.0.0.1:8000/v1", "local"),
            ("http://[::1]:8000/v1", "local"),
            ("http://gpu:8000/v1", "gpu"),
            ("https://api.together.xyz/v1", "together"),
            ("https://llm.example.com/v1", "example"),
            ("https://mistral.corp.example/v1", "mistral-server"),
            ("http://ollama:11434/v1", "ollama-server"),
        ] {
            assert_eq!(name_of(address, &taken), name, "{address}");
        }
    }
}
