//! Turns settings about secrets into the search for them and the firewall that keeps them in.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use gnoma_config::settings::{SecretAction, SecretPattern};
use gnoma_core::{Secret, protocol::Environment};
use gnoma_guard::{
    firewall::{self, AllowEntry, AllowedHash, Firewall, FirewallOptions, Policy},
    secrets,
    vault::LEAST_NUMBER,
};

use crate::{HostError, Result, address_secrets, project_settings::GuardSettings};

/// The rule for text that only reads like a secret.
const LIKELY_SECRET: &str = "high-entropy";

/// The firewall between secrets and everything that leaves. `random` must be unpredictable bits, so that nobody can
/// guess a placeholder.
pub fn build_firewall(
    settings: &GuardSettings,
    keys: &Keys,
    (environment, folder): (&Environment, &Path),
    random: u64,
) -> Result<Arc<Firewall>> {
    // 32 bits keep placeholders short, and a page that wants to name one has to guess them.
    const PLACEHOLDER_BITS: u32 = 32;
    let SecretSearch { scanner, policy, allowed } =
        secret_search(settings, keys, environment, folder)?;
    let first_placeholder = LEAST_NUMBER + (random >> (u64::BITS - PLACEHOLDER_BITS));
    Ok(Arc::new(Firewall::new(FirewallOptions { scanner, policy, allowed, first_placeholder })))
}

/// Returns a firewall that lets no secret pass, whatever the settings allow.
///
/// # Errors
/// The patterns of secrets in the settings cannot be used.
pub(crate) fn strict_firewall(
    settings: &GuardSettings,
    keys: &Keys,
    environment: &Environment,
    folder: &Path,
) -> Result<Firewall> {
    let search = secret_search(settings, keys, environment, folder)?;
    Ok(Firewall::new(FirewallOptions {
        scanner: search.scanner,
        policy: Policy::default(),
        allowed: Vec::new(),
        first_placeholder: 1,
    }))
}

/// The secrets that are searched for, and what is done about them.
pub struct SecretSearch {
    /// The scanner that finds secrets.
    pub scanner: secrets::Scanner,
    /// The action for each kind of secret.
    pub policy: Policy,
    /// Values that are no secrets, whatever they look like.
    pub allowed: Vec<AllowedHash>,
}

/// API keys by provider name.
pub type Keys = BTreeMap<String, Secret<String>>;

/// Returns the search that the settings about secrets define, including the secrets that a session in `folder`
/// starts with.
pub fn secret_search(
    settings: &GuardSettings,
    keys: &Keys,
    environment: &Environment,
    folder: &Path,
) -> Result<SecretSearch> {
    let security = &settings.security;
    let mut entries = Vec::new();
    let mut extra = Vec::new();
    if !security.redact_high_entropy {
        let rule = Some(LIKELY_SECRET.to_owned());
        entries.push(AllowEntry {
            rule,
            action: firewall::FirewallAction::Warn,
            ..AllowEntry::default()
        });
    }
    let named_patterns = || (1..).zip(&security.patterns).map(name_pattern);
    for (name, pattern) in named_patterns() {
        entries.push(AllowEntry {
            rule: Some(name.clone()),
            action: secret_action(&pattern.action),
            ..AllowEntry::default()
        });
        extra.push(secrets::SecretRule::from_pattern(name, &pattern.regex));
    }
    entries.extend(security.actions.iter().map(to_allow_entry));
    let options = secrets::ScannerOptions {
        extra,
        known: known_secrets(keys, environment),
        ..secrets::ScannerOptions::default()
    };
    let scanner = secrets::Scanner::new(options).map_err(|error| {
        let wrong = named_patterns().find(|(name, _)| *name == error.rule());
        let place = wrong.map_or_else(String::new, |(_, pattern)| format!(" ({})", pattern.place));
        HostError::usage(format!("cannot use `security.patterns`{place}: {error}"))
    })?;
    address_secrets::learn_credentials(&scanner, environment, folder);
    let allowed = security.allow.iter().map(|text| {
        AllowedHash::parse(text).map_err(|why| HostError::usage(format!("`security.allow`: {why}")))
    });
    let allowed = allowed.collect::<Result<_, _>>()?;
    Ok(SecretSearch { scanner, policy: Policy { entries }, allowed })
}

/// A pattern with its name; one without a name is named by its number.
fn name_pattern((number, pattern): (u32, &SecretPattern)) -> (String, &SecretPattern) {
    let name = &pattern.name;
    let name = if name.is_empty() { format!("pattern-{number}") } else { name.clone() };
    (name, pattern)
}

fn to_allow_entry(action: &SecretAction) -> AllowEntry {
    let glob = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    AllowEntry {
        rule: glob(&action.rule),
        provider: glob(&action.provider),
        path: glob(&action.path),
        action: secret_action(&action.action),
    }
}

/// The schema has seen to it that it is one of these.
fn secret_action(name: &str) -> firewall::FirewallAction {
    match name {
        "block" => firewall::FirewallAction::Block,
        "warn" => firewall::FirewallAction::Warn,
        "allow" => firewall::FirewallAction::Allow,
        _ => firewall::FirewallAction::Redact,
    }
}

/// Secrets that are known by their value: configured keys, and what variables for keys hold.
fn known_secrets(keys: &Keys, environment: &Environment) -> Vec<(String, Secret<String>)> {
    let configured = keys.iter().map(|(name, key)| (format!("key-{name}"), key.clone()));
    let inherited = environment
        .variables()
        .iter()
        .filter(|(name, value)| holds_secret(name, value))
        .map(|(name, value)| {
            (format!("env-{}", name.to_lowercase().replace('_', "-")), Secret::new(value.clone()))
        });
    configured.chain(inherited).collect()
}

/// Reports whether a variable holds a secret: its name must say so, and its value must not be an ordinary word,
/// which would be blanked wherever it occurs.
fn holds_secret(name: &str, value: &str) -> bool {
    const SOCKETS: [&str; 3] = ["SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS"];
    gnoma_sandbox::is_scrubbed(name) && !SOCKETS.contains(&name) && !is_ordinary_word(value)
}

/// Reports whether a value is a word, or a name of a few words, such as `production` or `my-app`. More words count
/// as a passphrase.
fn is_ordinary_word(value: &str) -> bool {
    const PHRASE_WORDS: usize = 4;
    let is_word = value.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'-');
    is_word && value.split('-').filter(|word| !word.is_empty()).count() < PHRASE_WORDS
}
