//! Turns settings into the crates' own options. The only place that sees both.

use std::{io::ErrorKind, net::IpAddr, path::Path, time::Duration};

use gnoma_config::{
    LoadedConfig, Protocol as Wire, Sources, env,
    settings::{Network, Provider, ValueSource},
    toml,
};
use gnoma_core::protocol::SessionSpec;
use gnoma_llm::{KNOWN, Profile, Protocol};
use gnoma_net::{Http, HttpOptions};

use crate::{Folders as _, HostError, Notices, Result, foreign_settings};

/// Finds the folders of a spec and loads the settings that apply to it.
///
/// # Errors
/// A folder is not a folder, or the settings cannot be used.
pub fn load_settings(spec: SessionSpec, notices: &Notices) -> Result<(SessionSpec, LoadedConfig)> {
    let spec = resolve_folders(spec)?;
    if let Some(trouble) = spec.environment.home_trouble() {
        notices.warning(&trouble);
    }
    let loaded = gnoma_config::load_settings(&setting_sources(&spec))
        .map_err(|error| HostError::usage(format!("invalid configuration\n{error}")))?;
    for finding in &loaded.findings {
        let text = finding.to_string();
        notices.warning(text.strip_prefix("warning: ").unwrap_or(&text));
    }
    for said in ignored_controls(&spec) {
        notices.warning(said);
    }
    for said in gnoma_net::unusable_proxies(|name| spec.environment.get(name)) {
        notices.warning(said);
    }
    Ok((spec, loaded))
}

/// The settings that hold without any file, where the files cannot be used: what depends on none of them can still be
/// checked.
///
/// # Errors
/// A folder is not a folder, or the environment sets something wrong.
pub fn load_without_files(spec: SessionSpec) -> Result<(SessionSpec, LoadedConfig)> {
    let spec = resolve_folders(spec)?;
    let no_files = gnoma_config::Sources {
        config_dir: Path::new("/nonexistent").to_owned(),
        project_root: None,
        profile: None,
        flags: Vec::new(),
        ..setting_sources(&spec)
    };
    let loaded = gnoma_config::load_settings(&no_files)
        .map_err(|error| HostError::usage(format!("invalid configuration\n{error}")))?;
    Ok((spec, loaded))
}

/// Lists the project's settings that have no effect, a sentence each.
#[must_use]
pub fn ignored_controls(spec: &SessionSpec) -> Vec<String> {
    let root = gnoma_config::project_root(&spec.folder, &spec.environment.config_dir());
    foreign_settings::ignored_controls(root.as_deref().unwrap_or(&spec.folder))
}

/// A spec with its folders as they are without symbolic links.
///
/// # Errors
/// A folder is none.
pub fn resolve_folders(mut spec: SessionSpec) -> Result<SessionSpec> {
    let folders = std::iter::once(&mut spec.folder).chain(&mut spec.more_folders);
    for folder in folders {
        *folder = match folder.canonicalize() {
            Ok(real) if real.is_dir() => real,
            found => {
                let is_there = folder.symlink_metadata().is_ok();
                let why =
                    describe_folder_error(folder, found.err().map(|error| error.kind()), is_there);
                return Err(HostError::usage(why));
            }
        };
    }
    Ok(spec)
}

/// Describes why it is impossible to work in a folder.
fn describe_folder_error(folder: &Path, error: Option<ErrorKind>, is_there: bool) -> String {
    let shown = folder.display();
    match error {
        // What is left of a deleted folder can still be looked at.
        Some(ErrorKind::NotFound) if folder == Path::new(".") => {
            "the current folder was deleted; change to another one".to_owned()
        }
        Some(ErrorKind::PermissionDenied) => {
            format!("cannot work in `{shown}`: you may not open it or a folder above it")
        }
        _ if is_there => format!("cannot work in `{shown}`: not a folder"),
        _ => format!("cannot work in `{shown}`: there is no such folder"),
    }
}

/// Returns the sources of the settings.
#[must_use]
pub fn setting_sources(spec: &SessionSpec) -> Sources {
    let text = |value: &String| toml::Value::String(value.clone());
    let said = &spec.overrides;
    let flags = [
        ("provider.default", said.provider.as_ref().map(text)),
        ("provider.model", said.model.as_ref().map(text)),
        ("permission.mode", said.mode.map(|mode| text(&mode.name().to_owned()))),
        ("permission.confirm_bypass", said.confirm_bypass.then_some(toml::Value::Boolean(true))),
        ("privacy.incognito", said.incognito.map(toml::Value::Boolean)),
        ("tools.max_rounds", said.max_rounds.map(|rounds| toml::Value::Integer(rounds.into()))),
    ];
    let config_dir = spec.environment.config_dir();
    Sources {
        project_root: gnoma_config::project_root(&spec.folder, &config_dir),
        config_dir,
        state_dir: spec.environment.state_dir(),
        profile: spec.profile.clone(),
        env: spec.environment.variables().clone(),
        flags: flags
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)))
            .collect(),
    }
}

/// Longest silence on a connection. The session decides which of the limits applies when.
pub fn silence_timeout(network: &Network) -> Duration {
    let first = network.first_byte_timeout.max(network.local_first_byte_timeout);
    network.idle_timeout.max(first)
}

/// Creates the pool of connections.
pub fn build_http(network: &Network) -> Http {
    Http::new(HttpOptions {
        connect_timeout: network.connect_timeout,
        idle_timeout: silence_timeout(network),
        ca_file: network.ca_file.clone(),
    })
}

/// Returns the profile that says how to reach the provider `name`: built in, configured, or both.
pub fn provider_profile(provider: &Provider, name: &str) -> Result<Profile, HostError> {
    let known = KNOWN.iter().find(|known| known.name == name);
    let endpoint = provider.endpoints.get(name);
    let wire = provider.protocols.get(name).map(|wire| to_protocol(*wire));
    let (wire, url) = match (known, endpoint) {
        (None, None) => return Err(unknown_provider(provider, name)),
        (Some(known), None) if known.base_url.is_empty() => {
            return Err(HostError::usage(format!(
                "`{name}` needs an address: set `provider.endpoints.{name}`"
            )));
        }
        (Some(known), None) => (wire.unwrap_or(known.protocol), known.base_url.to_owned()),
        (known, Some(url)) => {
            let wire =
                wire.unwrap_or_else(|| known.map_or(Protocol::OpenAi, |known| known.protocol));
            (wire, normalize_address(wire, url))
        }
    };
    let mut profile = Profile::new(name, wire, url);
    profile.key = provider.api_keys.get(name).cloned();
    let bearer = ValueSource::Variable(env::ANTHROPIC_AUTH_TOKEN.to_owned());
    profile.has_bearer_key = provider.key_sources.get(name) == Some(&bearer);
    let unset = provider.unset_keys.get(name).cloned();
    let is_unset = unset.is_some();
    if let Some(variable) = unset.or_else(|| env::key_variables(name).into_iter().next()) {
        profile.ignores_key_variable = provider.ignored_variables.contains(&variable);
        profile.key_variable = variable;
    }
    let by_command = || {
        let has_command = provider.key_commands.contains_key(name);
        has_command.then(|| format!("the command in `provider.key_commands.{name}`"))
    };
    let key_source = provider.key_sources.get(name).map(ToString::to_string);
    profile.key_source = match &profile.key {
        Some(_) => key_source.or_else(by_command),
        // The setting names a variable that is not set.
        None => {
            is_unset.then(|| key_source.unwrap_or_else(|| format!("`provider.api_keys.{name}`")))
        }
    };
    profile.address_source = provider.endpoint_sources.get(name).map(ToString::to_string);
    Ok(profile)
}

/// Names the source of the key that pays for a provider's calls: a variable, a setting, or none. Has no part of the key.
pub fn account_name(provider: &Provider, profile: &Profile) -> String {
    let name = &profile.name;
    match (&profile.key, provider.key_sources.get(name)) {
        (None, _) => "no key".to_owned(),
        (Some(_), Some(ValueSource::Variable(source) | ValueSource::Argument(source))) => {
            source.clone()
        }
        (Some(_), Some(ValueSource::Setting { key, .. })) => key.clone(),
        (Some(_), None) => format!("provider.key_commands.{name}"),
    }
}

/// The paths that follow a provider's address in the address of a request.
const REQUESTS: &[&str] = &["/chat/completions", "/responses", "/messages", "/models", "/api/chat"];

/// An endpoint as the dialect needs it. People copy addresses with and without the version, and those of
/// requests.
fn normalize_address(wire: Protocol, url: &str) -> String {
    let url = url.split('#').next().unwrap_or(url).trim_end_matches('/');
    let url = REQUESTS.iter().find_map(|request| url.strip_suffix(request)).unwrap_or(url);
    let url = url.trim_end_matches('/');
    let host_only = url.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    match wire {
        Protocol::Ollama => url.strip_suffix("/v1").unwrap_or(url).to_owned(),
        Protocol::Google if host_only => format!("{url}/v1beta"),
        Protocol::Mistral | Protocol::Anthropic | Protocol::OpenAi | Protocol::Responses
            if host_only =>
        {
            format!("{url}/v1")
        }
        Protocol::Mistral
        | Protocol::Anthropic
        | Protocol::OpenAi
        | Protocol::Responses
        | Protocol::Google => url.to_owned(),
    }
}

/// Reports whether an address leads only to this machine.
pub fn is_this_machine(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    let host = match host_and_port.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((address, _)) => address,
        None => host_and_port.split(':').next().unwrap_or_default(),
    };
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reports whether a provider is a server that users run themselves, on this machine. The provider's name says how
/// to speak to it; only its address says where the data ends up.
pub fn is_own_here(profile: &Profile) -> bool {
    profile.local && is_this_machine(&profile.base_url)
}

/// Reports whether data that is sent to a provider stays on this machine, as far as names and addresses show: a
/// local server with a vendor's name passes the data on to the vendor.
pub fn stays_here(profile: &Profile) -> bool {
    let is_vendor = KNOWN.iter().any(|known| known.name == profile.name && !known.local);
    !is_vendor && is_this_machine(&profile.base_url)
}

fn to_protocol(wire: Wire) -> Protocol {
    match wire {
        Wire::Mistral => Protocol::Mistral,
        Wire::Anthropic => Protocol::Anthropic,
        Wire::OpenAi | Wire::Compatible => Protocol::OpenAi,
        Wire::Responses => Protocol::Responses,
        Wire::Google => Protocol::Google,
        Wire::Ollama => Protocol::Ollama,
    }
}

fn unknown_provider(provider: &Provider, name: &str) -> HostError {
    let known = KNOWN.iter().map(|known| known.name);
    let is_own = |name: &&str| KNOWN.iter().all(|known| known.name != *name);
    let configured = provider.endpoints.keys().map(String::as_str).filter(is_own);
    let names: Vec<_> = known.chain(configured).collect();
    let is_word = |(word, _): &&(&str, &str)| word.eq_ignore_ascii_case(name);
    let vendor = env::VENDOR_WORDS.iter().find(is_word).map(|(_, vendor)| *vendor);
    let near = vendor.or_else(|| gnoma_config::nearest_name(name, names.iter().copied()));
    let near = near.map_or("known".to_owned(), |near| format!("did you mean `{near}`? Known"));
    let is_default = provider.default.as_deref() == Some(name);
    let source = provider.default_source.as_ref().filter(|_| is_default);
    let source = source.map_or_else(String::new, |source| format!(", set by {source}"));
    HostError::usage(format!(
        "unknown provider `{name}`{source}; {near}: {}. For another server, set `provider.endpoints.{name}` to its address",
        names.join(", ")
    ))
}

/// Reports whether a provider cannot be asked because its key is missing.
pub fn needs_key(provider: &Provider, profile: &Profile) -> bool {
    let is_hosted = KNOWN.iter().any(|known| known.name == profile.name && !known.local);
    is_hosted && !provider.endpoints.contains_key(&profile.name) && profile.key.is_none()
}

/// Returns an error that says what to do about a missing key.
pub fn missing_key(profile: &Profile) -> HostError {
    let name = &profile.name;
    HostError::usage(format!(
        "no key for `{name}`. Do one of these:
  {}
  `gnoma providers add {name}`, which asks for the key and saves it
  --provider NAME with one that is set up (`gnoma providers` lists them)",
        profile.describe_key_setting(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gateway_auth_token_is_sent_as_bearer_header() {
        let has_bearer_key = |variable: &str| {
            let sources = Sources {
                config_dir: "/nonexistent".into(),
                env: [(variable.to_owned(), "k".to_owned())].into(),
                ..Sources::default()
            };
            let provider = gnoma_config::load_settings(&sources).unwrap().settings.provider;
            let profile = provider_profile(&provider, "anthropic").unwrap();
            assert_eq!(account_name(&provider, &profile), variable);
            assert!(profile.key.is_some_and(|key| key.expose() == "k"), "{variable}");
            profile.has_bearer_key
        };
        assert!(has_bearer_key("ANTHROPIC_AUTH_TOKEN"));
        assert!(!has_bearer_key("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn working_folder_error_says_deleted_only_if_it_was() {
        for (folder, error, is_there, said) in [
            (".", Some(ErrorKind::NotFound), true, "was deleted"),
            (".", Some(ErrorKind::PermissionDenied), true, "you may not open it"),
            (".", Some(ErrorKind::Other), true, "not a folder"),
            ("a", Some(ErrorKind::NotFound), false, "there is no such folder"),
            ("a", None, true, "not a folder"),
        ] {
            let told = describe_folder_error(Path::new(folder), error, is_there);
            assert!(told.contains(said), "{told}");
        }
    }

    #[test]
    fn provider_endpoint_urls_are_normalized() {
        let cases = [
            (Protocol::Anthropic, "https://x.y/", "https://x.y/v1"),
            (Protocol::OpenAi, "http://localhost:8080", "http://localhost:8080/v1"),
            (Protocol::OpenAi, "http://localhost:8080/v1/", "http://localhost:8080/v1"),
            (
                Protocol::OpenAi,
                "https://x/openai/deployments/d?v=1",
                "https://x/openai/deployments/d?v=1",
            ),
            (Protocol::OpenAi, "http://x/v1/chat/completions", "http://x/v1"),
            (Protocol::OpenAi, "http://x/v1/models/", "http://x/v1"),
            (Protocol::Responses, "http://x/v1/responses", "http://x/v1"),
            (Protocol::Anthropic, "https://x/v1/messages", "https://x/v1"),
            (Protocol::Ollama, "http://x:11434/api/chat", "http://x:11434"),
            (Protocol::OpenAi, "http://x/v1#top", "http://x/v1"),
            (Protocol::Google, "https://g", "https://g/v1beta"),
            (Protocol::Ollama, "http://localhost:11434/v1", "http://localhost:11434"),
        ];
        for (wire, written, meant) in cases {
            assert_eq!(normalize_address(wire, written), meant);
        }
    }

    #[test]
    fn loopback_server_counts_as_local_unless_it_is_named_like_a_vendor() {
        let stays = |name: &str, url: &str| stays_here(&Profile::new(name, Protocol::OpenAi, url));
        for url in ["http://127.0.0.1:8000/v1", "http://localhost:1/v1", "http://[::1]:1/v1"] {
            assert!(stays("mine", url) && stays("llamacpp", url), "{url}");
            assert!(!stays("openai", url), "{url}");
        }
        assert!(!stays("mine", "http://192.168.0.7/v1") && !stays("ollama", "https://x.example"));
    }

    #[test]
    fn only_loopback_is_this_machine() {
        for here in [
            "http://localhost:11434",
            "http://127.0.0.1:8080/v1",
            "http://[::1]:1/",
            "http://127.9.9.9",
        ] {
            assert!(is_this_machine(here), "{here}");
        }
        for elsewhere in [
            "https://api.example.com/v1",
            "http://192.168.0.7:11434",
            "http://localhost.example.com",
            "http://localhost:1@example.com/v1",
            "http://example.com\\@localhost/",
            "http://[2001:db8::1]:8080",
            "http://example.com/#@localhost",
            "",
        ] {
            assert!(!is_this_machine(elsewhere), "{elsewhere}");
        }
    }
}
