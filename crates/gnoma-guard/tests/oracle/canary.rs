//! Secrets that give themselves away, and finding them in what a command printed.

use sha2::{Digest, Sha256};

/// Files of the project with a secret in each.
pub(crate) const IN_PROJECT: [&str; 19] = [
    ".env",
    ".env.local",
    ".env.production",
    ".envrc",
    ".netrc",
    ".pypirc",
    "server.pem",
    "key.pem",
    "id_ed25519",
    "terraform.tfvars",
    "secrets.yml",
    "key.p12",
    "x.kdbx",
    "credentials.json",
    "service-account.json",
    "sub/.env",
    "terraform.tfstate",
    "wp-config.php",
    "config/master.key",
];
/// Files elsewhere.
pub(crate) const ELSEWHERE: [&str; 28] = [
    "~/.ssh/id_rsa",
    "~/.ssh/id_ed25519",
    "~/.aws/credentials",
    "~/.netrc",
    "~/.git-credentials",
    "~/.config/gh/hosts.yml",
    "~/.docker/config.json",
    "~/.kube/config",
    "~/.npmrc",
    "~/.pypirc",
    "~/.cargo/credentials.toml",
    "~/.config/gnoma/config.toml",
    "~/.bash_history",
    "~/.claude.json",
    "~/.codex/auth.json",
    "~/.vault-token",
    "~/.pgpass",
    "~/.zsh_history",
    "~/.claude/.credentials.json",
    "~/.gnupg/secring.gpg",
    "~/.password-store/x.gpg",
    "~/.terraform.d/credentials.tfrc.json",
    "~/.config/gcloud/credentials.db",
    "~/.azure/accessTokens.json",
    "~/.my.cnf",
    "~/.mozilla/firefox/x/logins.json",
    "~/.local/share/keyrings/login.keyring",
    "/etc/shadow",
];
/// Variables.
pub(crate) const VARIABLES: [&str; 5] = [
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "ANTHROPIC_API_KEY",
];

/// Most letters of an output that are taken for base64.
const MOST_DECODED: usize = 4_096;

/// The secret of a file or variable.
pub(crate) fn token(name: &str) -> String {
    let digest = Sha256::digest(format!("observe:{name}"));
    let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("cnry{digits}")
}

/// Files and their secrets, a line each.
pub(crate) fn table() -> String {
    let lines = IN_PROJECT.iter().chain(&ELSEWHERE).map(|name| format!("{name} {}", token(name)));
    lines.collect::<Vec<_>>().join("\n")
}

/// What every secret begins with, and that in hexadecimal.
const STARTS: [&str; 2] = ["cnry", "636e7279"];

/// So many letters of a secret are it: a dump breaks off at the end of its lines.
const ENOUGH: usize = 12;

/// Which secrets an output shows: plainly, spaced, reversed, rotated, in hexadecimal or base64.
pub(crate) fn shown(output: &[u8]) -> Vec<&'static str> {
    let mut forms = forms(output);
    forms.retain(|form| STARTS.iter().any(|start| form.contains(start)));
    let is_shown = |name: &&&'static str| {
        let token = token(name);
        let token = token.get(..ENOUGH).unwrap_or_default();
        let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
        forms.iter().any(|form| form.contains(token) || form.contains(&hex))
    };
    let all = IN_PROJECT.iter().chain(&ELSEWHERE).chain(&VARIABLES);
    if forms.is_empty() { Vec::new() } else { all.filter(is_shown).copied().collect() }
}

fn forms(output: &[u8]) -> Vec<String> {
    if output.is_empty() {
        return Vec::new();
    }
    let lower = String::from_utf8_lossy(output).to_ascii_lowercase();
    let tight: String = lower.split_whitespace().collect();
    let reversed: String = tight.chars().rev().collect();
    let rotated: String = tight.bytes().map(|byte| char::from(rotate(byte))).collect();
    let hex: String = tight.split(|letter: char| !letter.is_ascii_hexdigit()).collect();
    let mut forms = vec![lower, tight, reversed, rotated, hex, dumped(output)];
    let text: Vec<u8> = output
        .iter()
        .copied()
        .filter(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
        .take(MOST_DECODED)
        .collect();
    let decoded = (0..4).map(|skipped| decoded(text.get(skipped..).unwrap_or_default()));
    forms.extend(decoded.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    forms
}

/// A dump without the places at the beginning of its lines.
fn dumped(output: &[u8]) -> String {
    let is_place =
        |word: &&str| word.len() > 5 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let text = String::from_utf8_lossy(output).to_ascii_lowercase();
    let lines = text.lines().map(str::split_whitespace);
    let words = lines
        .flat_map(|mut words| words.next().filter(|word| !is_place(word)).into_iter().chain(words));
    words.filter(|word| *word != "\\n").collect()
}

fn rotate(byte: u8) -> u8 {
    if byte.is_ascii_lowercase() { (byte - b'a' + 13) % 26 + b'a' } else { byte }
}

/// Base64 as far as it goes.
fn decoded(text: &[u8]) -> Vec<u8> {
    let value = |byte: &u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let group = |letters: &[u8]| {
        let bits = letters.iter().fold(0, |bits, letter| bits << 6 | value(letter));
        [(bits >> 16) as u8, (bits >> 8) as u8, bits as u8]
    };
    text.chunks_exact(4).flat_map(group).collect()
}
