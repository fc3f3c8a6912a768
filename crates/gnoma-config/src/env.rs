//! Environment variables that set something, and the names of those that hold keys.
//!
//! The environment comes in as a map; nothing here reads the process.

use std::collections::BTreeSet;

pub use crate::expand::Environment;
use crate::{
    finding::{Finding, Origin, Place, Report, Severity},
    key::KeyPath,
    layer::{Layer, MergedLayers},
    reader::{ReadFrom, Reader},
    schema::{ROWS, Row},
    tree::{Node, Tree},
};

/// The variables that may hold a provider's key; the first that is set wins.
pub const KEYS: &[(&str, &[&str])] = &[
    ("mistral", &["MISTRAL_API_KEY"]),
    ("anthropic", &["ANTHROPIC_API_KEY", "ANTHROPICS_API_KEY", ANTHROPIC_AUTH_TOKEN]),
    ("openai", &["OPENAI_API_KEY"]),
    ("google", &["GEMINI_API_KEY", "GOOGLE_API_KEY"]),
    ("openrouter", &["OPENROUTER_API_KEY"]),
    ("groq", &["GROQ_API_KEY"]),
    ("deepseek", &["DEEPSEEK_API_KEY"]),
    ("xai", &["XAI_API_KEY"]),
];

/// The variable of a key that is sent as `Authorization: Bearer`: Claude Code has it for gateways, beside
/// `ANTHROPIC_BASE_URL`.
pub const ANTHROPIC_AUTH_TOKEN: &str = "ANTHROPIC_AUTH_TOKEN";

/// The variable that holds a provider's address.
pub const ENDPOINTS: &[(&str, &str)] = &[
    ("anthropic", "ANTHROPIC_BASE_URL"),
    ("openai", "OPENAI_BASE_URL"),
    ("google", "GOOGLE_GEMINI_BASE_URL"),
    ("ollama", OLLAMA_HOST),
];

/// Words by which people know vendors and their models, in capitals, and the provider that is meant.
pub const VENDOR_WORDS: &[(&str, &str)] = &[
    ("OPENROUTER", "openrouter"),
    ("OPENAI", "openai"),
    ("CHATGPT", "openai"),
    ("ANTHROPIC", "anthropic"),
    ("CLAUDE", "anthropic"),
    ("MISTRAL", "mistral"),
    ("GEMINI", "google"),
    ("GENAI", "google"),
    ("GROQ", "groq"),
    ("DEEPSEEK", "deepseek"),
    ("GROK", "xai"),
    ("XAI", "xai"),
];

/// Ollama's own variable; unlike the others it need not be a full address.
const OLLAMA_HOST: &str = "OLLAMA_HOST";
/// The port on which Ollama listens by default.
const OLLAMA_PORT: u16 = 11434;

/// Variables that stand for one key.
const CHOICES: [(&str, &str); 3] = [
    ("GNOMA_PROVIDER", "provider.default"),
    ("GNOMA_MODEL", "provider.model"),
    ("SSL_CERT_FILE", "network.ca_file"),
];

/// The beginning of the names of variables that are meant for gnoma.
const OWN_PREFIX: &str = "GNOMA_";

/// The names of the variables that may hold the key of `provider`, best first.
#[must_use]
pub fn key_variables(provider: &str) -> Vec<String> {
    match KEYS.iter().find(|(name, _)| *name == provider) {
        Some((_, variables)) => variables.iter().map(|&variable| variable.to_owned()).collect(),
        None => vec![format!("{}_API_KEY", upper_snake(provider))],
    }
}

/// The variables that set the key of these names, best first.
#[must_use]
pub fn variables_of(names: &[&str]) -> Vec<String> {
    match names {
        ["provider", "api_keys", provider] => key_variables(provider),
        ["provider", "endpoints", provider] => {
            let known = ENDPOINTS.iter().filter(|(name, _)| name == provider);
            known.map(|(_, variable)| (*variable).to_owned()).collect()
        }
        names => {
            let key = names.join(".");
            let known = CHOICES.iter().filter(|(_, of)| *of == key);
            known.map(|(variable, _)| (*variable).to_owned()).collect()
        }
    }
}

/// A key as it is sent, of one as people copy it: with the quotes of a shell, or with the word that stands
/// before it in a header.
#[must_use]
pub fn bare_key(written: &str) -> &str {
    let is_around = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}');
    let mut key = written.trim_matches(is_around);
    for quote in ['"', '\''] {
        let inner = key.strip_prefix(quote).and_then(|inner| inner.strip_suffix(quote));
        key = inner.unwrap_or(key).trim_matches(is_around);
    }
    let bare = key.split_once(' ').filter(|(word, _)| word.eq_ignore_ascii_case("bearer"));
    bare.map_or(key, |(_, bare)| bare.trim())
}

fn upper_snake(name: &str) -> String {
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect()
}

/// Reads the settings that the environment makes. `below` are the layers under it: they name further providers.
pub(crate) fn environment_layer(
    env: &Environment,
    below: &MergedLayers,
    report: &mut Report,
) -> Layer {
    let mut layer = Layer::new();
    let ignored = below.texts_at("provider.ignored_variables");
    let filled = |env, variable: &str| {
        non_empty_variable(env, variable).filter(|_| !ignored.iter().any(|name| name == variable))
    };
    let mut set = |path: KeyPath, variable: &str, text: String| {
        let mut reader = Reader::new(Origin::Environment, ReadFrom::Variable(variable), report);
        reader.visit_path(&path, &Node { tree: Tree::Text(text), span: 0..0 });
        layer.append(&mut reader.into_layer());
    };
    for (variable, key) in CHOICES {
        if let Some(text) = filled(env, variable) {
            set(KeyPath::from_dotted(key), variable, text.to_owned());
        }
    }
    for (provider, variable) in ENDPOINTS {
        if let Some(text) = filled(env, variable) {
            let address =
                if *variable == OLLAMA_HOST { ollama_address(text) } else { text.to_owned() };
            set(KeyPath::from_dotted("provider.endpoints").with_name(provider), variable, address);
        }
    }
    for provider in known_providers(below) {
        let variables = key_variables(provider);
        if let Some((variable, key)) =
            variables.iter().find_map(|variable| Some((variable, filled(env, variable)?)))
        {
            set(
                KeyPath::from_dotted("provider.api_keys").with_name(provider),
                variable,
                key.to_owned(),
            );
        }
    }
    warn_unread_variables(env, report);
    layer
}

/// Warns of variables that are named after a setting, and that nothing reads.
fn warn_unread_variables(env: &Environment, report: &mut Report) {
    for variable in env.keys() {
        let Some(row) = unread_setting(variable) else { continue };
        let place = Place::Variable(variable.clone());
        let message = "is not set: nothing reads this variable";
        let finding = Finding::new(Severity::Warning, place, message);
        let hint = format!(
            "`gnoma config set {} VALUE` sets it; for one run, `gnoma --help` lists options",
            row.path
        );
        report.add(finding.with_key(row.path).with_hint(hint));
    }
}

/// Returns the setting that a variable which nothing reads is named after: `GNOMA_PERMISSION` and
/// `GNOMA_PERMISSION_MODE` mean `permission.mode`.
fn unread_setting(variable: &str) -> Option<&'static Row> {
    let name = variable.strip_prefix(OWN_PREFIX)?.to_lowercase();
    if CHOICES.iter().any(|(known, _)| *known == variable) {
        return None;
    }
    let mode = format!("{name}_mode");
    ROWS.iter().filter(|row| row.is_single()).find(|row| {
        let path = row.path.replace('.', "_");
        path == name || path == mode
    })
}

/// All providers that the tables here or a file's `provider.endpoints` name.
fn known_providers(below: &MergedLayers) -> BTreeSet<&str> {
    let known = KEYS.iter().map(|(provider, _)| *provider);
    let reachable = ENDPOINTS.iter().map(|(provider, _)| *provider);
    let configured = below.table_entries("provider.endpoints").map(|(provider, _)| provider);
    known.chain(reachable).chain(configured).collect()
}

/// An empty variable is as good as none.
fn non_empty_variable<'a>(env: &'a Environment, variable: &str) -> Option<&'a str> {
    env.get(variable).map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// The address that `OLLAMA_HOST` means: a URL, a host, or a host and a port.
fn ollama_address(text: &str) -> String {
    if text.contains("://") {
        return text.to_owned();
    }
    let (authority, path) = text.find('/').map_or((text, ""), |slash| text.split_at(slash));
    let (host, port) = split_port(authority);
    // The server is told to listen everywhere with the same variable; a client calls it at home.
    let host = match host.as_str() {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    let port = port.map_or_else(|| OLLAMA_PORT.to_string(), str::to_owned);
    format!("http://{host}:{port}{path}")
}

/// Host, with an IPv6 address in brackets, and port.
fn split_port(authority: &str) -> (String, Option<&str>) {
    if authority.matches(':').count() > 1 && !authority.starts_with('[') {
        return (format!("[{authority}]"), None);
    }
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host.to_owned(), Some(port)),
        Some(_) | None => (authority.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ollama_host_is_taken_in_all_its_forms() {
        let cases = [
            ("gpu", "http://gpu:11434"),
            ("gpu:8080", "http://gpu:8080"),
            ("http://gpu", "http://gpu"),
            ("https://gpu/ollama", "https://gpu/ollama"),
            ("gpu/ollama", "http://gpu:11434/ollama"),
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":8080", "http://127.0.0.1:8080"),
            ("::1", "http://[::1]:11434"),
            ("[::]:8080", "http://[::1]:8080"),
            ("[::1]", "http://[::1]:11434"),
        ];
        for (text, address) in cases {
            assert_eq!(ollama_address(text), address, "{text}");
        }
    }

    #[test]
    fn any_provider_has_a_key_variable() {
        assert_eq!(key_variables("google"), ["GEMINI_API_KEY", "GOOGLE_API_KEY"]);
        assert_eq!(key_variables("my-vllm.2"), ["MY_VLLM_2_API_KEY"]);
    }

    #[test]
    fn api_keys_are_normalized_as_copied() {
        for written in [
            "sk-1",
            " sk-1\r\n",
            "\"sk-1\"",
            "'sk-1'",
            "' sk-1 '",
            "Bearer sk-1",
            "bearer  sk-1",
            "\u{feff}sk-1\u{200b}",
        ] {
            assert_eq!(bare_key(written), "sk-1", "{written:?}");
        }
        for odd in ["\"sk-1", "sk 1", "a\"b\"", ""] {
            assert_eq!(bare_key(odd), odd);
        }
    }
}
