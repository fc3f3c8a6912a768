//! Decides which files of the workspace hold secrets: by their names, and where these leave a doubt by what they hold.

use std::{
    fs::{self, Metadata},
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Component, Path},
};

use gnoma_core::places::{self, NameShape, SecretVisibility, name_shape};

use crate::fs::open;

/// Largest file whose content is looked at.
const MAX_BYTES: u64 = 16 << 10;
/// Smallest file that a key fits into.
const MIN_BYTES: u64 = 16;
/// Letters of a value that only a secret has.
const MIN_VALUE: usize = 16;
/// Letters of a value that counts where its name says that it is one.
const MIN_NAMED_VALUE: usize = 8;

/// Folders that tools fill with other people's work, in lower case.
const DEPENDENCIES: [&str; 17] = [
    ".bundle",
    ".nox",
    ".tox",
    ".venv",
    "__pycache__",
    "_build",
    "bower_components",
    "carthage",
    "deps",
    "dist-packages",
    "node_modules",
    "pods",
    "site-packages",
    "target",
    "third_party",
    "vendor",
    "venv",
];
/// Parts of paths that lead to what is made for tests and examples.
const MADE_TO_BE_SHOWN: [&str; 12] = [
    "bench",
    "demo",
    "doc",
    "dummy",
    "example",
    "fake",
    "fixture",
    "localhost",
    "mock",
    "sample",
    "snakeoil",
    "test",
];
/// The beginnings of private keys.
const KEY_MARKS: [&str; 4] =
    ["PRIVATE KEY BLOCK-----", "PRIVATE KEY-----", "PuTTY-User-Key-File-", "AGE-SECRET-KEY-1"];
/// Settings that hold the key of an account, without quotes and marks between words, in lower case.
const KEY_SETTINGS: [&str; 4] =
    ["awssecretaccesskey", "secretaccesskey", "privatekeyid", "clientsecret"];
/// Words in the name of a value that is secret.
const VALUE_WORDS: [&str; 7] = ["token", "secret", "passw", "key", "auth", "credential", "pwd"];

/// The suspicion about an entry that its name raises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Suspicion {
    /// The entry holds a secret.
    Secret,
    /// The entry is a secret if it holds a private key.
    IfKey,
    /// The entry is a secret if it holds a private key or values that look like secrets.
    IfSecretValues,
    /// The name raises no suspicion.
    None,
}

/// A file whose content decided, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    place: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn from_metadata(facts: &Metadata) -> Self {
        Self {
            place: (facts.dev(), facts.ino()),
            size: facts.size(),
            changed: (facts.ctime(), facts.ctime_nsec()),
        }
    }
}

/// Reports whether a folder below the workspace is full of dependencies, the work of other people.
pub(super) fn is_of_dependencies(below: &Path) -> bool {
    let is_one = |part: Component<'_>| {
        let name = part.as_os_str().to_string_lossy().to_ascii_lowercase();
        DEPENDENCIES.contains(&name.as_str())
    };
    below.components().any(is_one)
}

/// Returns the suspicion that a file's path below the workspace raises. Files that dependencies bring for their own
/// tests are public knowledge.
pub(super) fn assess_path(below: &Path, is_dependency: bool) -> Suspicion {
    let known = places::find_secret(below);
    let is_hidden = known.is_some_and(|secret| secret.sight != SecretVisibility::Seen);
    let name = below.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    if is_dependency {
        if is_made_to_be_shown(below) {
            return Suspicion::None;
        }
        let is_text_key = [".pem", ".key", ".crt"].iter().any(|end| name.ends_with(end));
        return match (is_hidden, name_shape(&name)) {
            // Many certificates and public keys are called like that.
            (true, _) if is_text_key => Suspicion::IfKey,
            (true, _) => Suspicion::Secret,
            (false, NameShape::Doubtful) => Suspicion::IfSecretValues,
            (false, _) => Suspicion::None,
        };
    }
    match (is_hidden, name_shape(&name)) {
        (true, _) => Suspicion::Secret,
        (false, _) if known.is_some() => Suspicion::None,
        (false, NameShape::Doubtful) => Suspicion::IfSecretValues,
        (false, NameShape::Data | NameShape::Secret(_)) => Suspicion::IfKey,
        (false, NameShape::Plain) => Suspicion::None,
    }
}

/// Reports whether the path below the folder of dependencies leads to files made for tests and examples.
fn is_made_to_be_shown(below: &Path) -> bool {
    let names: Vec<String> =
        below.iter().map(|part| part.to_string_lossy().to_ascii_lowercase()).collect();
    let is_dependency = |name: &String| DEPENDENCIES.contains(&name.as_str());
    let own = names.iter().rposition(is_dependency).map_or(0, |place| place + 1);
    let is_such = |name: &String| {
        let mut words = name.split(|letter: char| !letter.is_ascii_alphanumeric());
        words.any(|word| {
            let word = word.strip_suffix('s').unwrap_or(word);
            MADE_TO_BE_SHOWN.contains(&word)
        })
    };
    names.iter().skip(own).any(is_such)
}

/// Reports whether the content of a file makes it a secret. A file that cannot be read is no secret, because the
/// command cannot read it either.
pub(super) fn holds_secret(path: &Path, facts: &Metadata, suspicion: Suspicion) -> bool {
    if !facts.is_file() || !(MIN_BYTES..=MAX_BYTES).contains(&facts.size()) {
        return false;
    }
    let mut bytes = Vec::new();
    let read = open::open_file(path).map(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    if !matches!(read, Ok(Ok(_))) {
        return false;
    }
    let text = String::from_utf8_lossy(&bytes);
    holds_key(&text) || (suspicion == Suspicion::IfSecretValues && holds_secret_values(&text))
}

/// Reports whether a text is a private key, or the settings of an account with one.
fn holds_key(text: &str) -> bool {
    let has_mark = KEY_MARKS.iter().any(|mark| {
        // In a line of its own, or in a text of JSON; not in the middle of a sentence.
        text.lines().any(|line| {
            let line = line
                .trim_start_matches(|letter: char| !letter.is_ascii_alphabetic() && letter != '-');
            line.contains(mark)
                && (line.starts_with("-----BEGIN")
                    || line.starts_with(mark)
                    || line.contains("-----BEGIN"))
        })
    });
    has_mark
        || named_values(text)
            .any(|(name, value)| KEY_SETTINGS.contains(&name.as_str()) && value.len() >= MIN_VALUE)
}

/// A text without `${NAME}` and `{{ NAME }}`, which stand for values that are elsewhere.
fn without_placeholders(text: &str) -> String {
    let is_name = |text: &str| {
        text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_. ".contains(letter))
    };
    let mut kept = text.to_owned();
    for (begin, end) in [("${", "}"), ("{{", "}}")] {
        let mut parts = kept.split(begin);
        let first = parts.next().unwrap_or_default().to_owned();
        kept = parts.fold(first, |kept, part| match part.split_once(end) {
            Some((name, after)) if is_name(name) => kept + after,
            _ => kept + "\n" + part,
        });
    }
    kept
}

/// Reports whether values of a text look like secrets.
fn holds_secret_values(text: &str) -> bool {
    let text = &*without_placeholders(text);
    let is_plain = |value: &str| {
        let marks = ['{', '<', '$', '%'];
        value.bytes().all(|byte| byte.is_ascii_graphic())
            && !value.contains(marks)
            && !value.contains("://")
    };
    let has = |value: &str, kind: fn(&u8) -> bool| value.as_bytes().iter().any(kind);
    let is_dotted_word = |value: &str| value.contains('.') && !has(value, u8::is_ascii_digit);
    // Addresses, versions, dates and names of packages are no secrets.
    let is_random = |value: &str| {
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+=".contains(&byte);
        value.bytes().all(is_sign)
            && has(value, u8::is_ascii_digit)
            && has(value, u8::is_ascii_alphabetic)
    };
    let is_secret = |(name, value): (String, &str)| {
        let is_named = VALUE_WORDS.iter().any(|word| name.contains(word));
        let is_long = value.len() >= MIN_VALUE;
        let is_value = is_long || has(value, u8::is_ascii_digit);
        let is_named_value = is_named
            && value.len() >= MIN_NAMED_VALUE
            && is_value
            && !is_dotted_word(value)
            && !value.contains('/');
        is_plain(value) && (is_named_value || (is_long && is_random(value)))
    };
    named_values(text).any(is_secret)
}

/// The values of a text with their names, in the forms of settings, JSON and lists; a line that is one word has no name.
fn named_values(text: &str) -> impl Iterator<Item = (String, &str)> {
    let is_end = |letter: char| matches!(letter, ',' | ';' | '{' | '}' | '\n' | '\r' | '\t');
    text.split(is_end).map(|part| {
        let (name, value) = part.split_once(['=', ':']).unwrap_or(("", part));
        let name = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        (name.to_ascii_lowercase(), value.trim_matches([' ', '"', '\'']))
    })
}

/// The facts of an entry, where it is a file.
pub(super) fn facts_of_file(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok().filter(Metadata::is_file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_files_in_dependencies_are_secret_except_test_keys() {
        let suspicion =
            |path: &str| assess_path(Path::new(path), is_of_dependencies(Path::new(path)));
        for (path, expected) in [
            ("node_modules/a/test/server.key", Suspicion::None),
            (".venv/lib/python3.12/site-packages/tornado/test/test.key", Suspicion::None),
            ("node_modules/a/roots.pem", Suspicion::IfKey),
            ("node_modules/.env", Suspicion::Secret),
            ("target/debug/.env", Suspicion::Secret),
            ("target/debug/config/master.key", Suspicion::IfKey),
            ("node_modules/a/package.json", Suspicion::None),
            ("vendor/a/token.json", Suspicion::IfSecretValues),
            ("tests/server.key", Suspicion::Secret),
            ("id_rsa.bak", Suspicion::Secret),
            ("notes.txt", Suspicion::IfKey),
            ("main.rs", Suspicion::None),
            (".git/config", Suspicion::None),
        ] {
            assert_eq!(suspicion(path), expected, "{path}");
        }
    }

    #[test]
    fn secret_file_content_is_distinguished_from_translations() {
        let begin = ["-----BEGIN RSA ", "PRIVATE KEY-----"].concat();
        assert!(holds_key(&format!("Bag Attributes\n{begin}\nMIIE\n")));
        assert!(holds_key(&format!("{{\"private_key\": \"{begin}\\nMIIE\"}}")));
        assert!(holds_key("[default]\naws_secret_access_key = abcdefghijklmnopqrst\n"));
        assert!(!holds_key("-----BEGIN CERTIFICATE-----\nMIIE\n"));
        assert!(!holds_key("Look for PRIVATE KEY----- in the file\n"));
        for secret in [
            "{\"token\": \"abc12345\"}",
            "{\"access\": {\"refresh_token\": \"only-letters-but-long\"}}",
            "ghx_0123456789abcdefghij\n",
            "user: ada\npassword: hunter2000\n",
            "token: ${TOKEN:-ab12cd34ef56gh78}\n",
        ] {
            assert!(holds_secret_values(secret), "{secret}");
        }
        for plain in [
            "{\"token\": \"Token\", \"password\": \"Enter your password\", \"signIn\": \"Sign in\"}",
            "{\"color\": {\"primary\": \"#ff0000\"}, \"tokens\": {\"space\": \"4px\"}}",
            "password: ${PASSWORD_FROM_ENVIRONMENT_1}\n",
            "    - uses: actions/checkout@v4.1.0\n    - uses: actions/setup-node@v4\n",
            "apiVersion: rbac.authorization.k8s.io/v1\n",
            "{\"required\": \"errors.password.required\"}",
            "token_url: https://auth.example.com/oauth2/token\n",
        ] {
            assert!(!holds_secret_values(plain), "{plain}");
        }
    }
}
