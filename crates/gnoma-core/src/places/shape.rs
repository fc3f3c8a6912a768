//! Secrets that are told by the shape of a name instead of the whole name: copies of known files, keys with a purpose
//! in the name, accounts of services.

/// Ends that editors, people and programs give to a copy of a file.
const COPY_ENDS: [&str; 22] = [
    "~",
    ".bak",
    "_bak",
    "-bak",
    ".backup",
    "_backup",
    "-backup",
    ".old",
    "_old",
    "-old",
    ".orig",
    ".save",
    ".sav",
    ".copy",
    " copy",
    "_copy",
    "-copy",
    " (copy)",
    ".prev",
    ".disabled",
    ".swp",
    ".swo",
];
/// Longest number of a copy.
const MAX_NUMBER_DIGITS: usize = 3;
/// Most ends of one name that are taken off.
const MAX_ENDS: usize = 3;
/// Kinds of keys that ssh names its files for.
const SSH_KINDS: [&str; 5] = ["rsa", "dsa", "ecdsa", "ed25519", "xmss"];
/// The words that the names of account files contain, without marks between words.
const ACCOUNTS: [&str; 4] =
    ["serviceaccount", "firebaseadminsdk", "applicationdefaultcredentials", "clientsecret"];
/// Words for what is secret.
const SECRET_WORDS: [&str; 22] = [
    "apikey",
    "apikeys",
    "auth",
    "cred",
    "credential",
    "credentials",
    "creds",
    "key",
    "keys",
    "login",
    "logins",
    "oauth",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pat",
    "private",
    "secret",
    "secrets",
    "token",
    "tokens",
];
/// Words of names that are made to be shown.
const EXAMPLE_WORDS: [&str; 10] = [
    "dist", "dummy", "example", "examples", "fake", "mock", "sample", "schema", "stub", "template",
];
/// Ends of files that hold data and no program.
const DATA_ENDS: [&str; 17] = [
    "",
    "cfg",
    "conf",
    "csv",
    "db",
    "env",
    "ini",
    "json",
    "json5",
    "plist",
    "properties",
    "toml",
    "tsv",
    "txt",
    "xml",
    "yaml",
    "yml",
];

/// The meaning of a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameShape {
    /// The file holds a secret.
    Secret(&'static str),
    /// The file may hold a secret: its content tells.
    Doubtful,
    /// The file holds data, perhaps a key.
    Data,
    /// The name says nothing about the file.
    Plain,
}

/// The name without the ends of a copy; `None` where it has none. In lower case.
pub(super) fn original_of(name: &str) -> Option<String> {
    without_ends(name, |rest| COPY_ENDS.iter().find_map(|end| rest.strip_suffix(end)))
}

/// The name without the ends of a copy and the number of one, as in `.env2`, `server.key.1`, `.env copy 2`; `None`
/// where it has neither. In lower case.
pub(super) fn numbered_original_of(name: &str) -> Option<String> {
    without_ends(name, |rest| {
        COPY_ENDS.iter().find_map(|end| rest.strip_suffix(end)).or_else(|| without_number(rest))
    })
}

fn without_ends<'n>(name: &'n str, shorten: impl Fn(&'n str) -> Option<&'n str>) -> Option<String> {
    let mut rest = name;
    for _ in 0..MAX_ENDS {
        rest = shorten(rest).filter(|rest| !rest.is_empty()).unwrap_or(rest);
    }
    (rest != name).then(|| rest.to_owned())
}

/// Without `.1`, ` 2`, ` (3)`, and of an environment file without digits right behind its name.
fn without_number(name: &str) -> Option<&str> {
    let open = name.strip_suffix(')').unwrap_or(name);
    let rest = open.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if rest.len() == open.len() || open.len() - rest.len() > MAX_NUMBER_DIGITS {
        return None;
    }
    if open.len() < name.len() {
        return rest.strip_suffix(" (");
    }
    rest.strip_suffix(['.', ' ']).or_else(|| (rest == ".env").then_some(rest))
}

/// Reads the shape of a file's name; in lower case.
#[must_use]
pub fn name_shape(name: &str) -> NameShape {
    let original = original_of(name);
    let name = original.as_deref().unwrap_or(name);
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() => (stem, end),
        _ => (name, ""),
    };
    let words: Vec<&str> = words_of(stem).collect();
    let has = |list: &[&str]| words.iter().any(|word| list.contains(word));
    let letters: String = stem.chars().filter(char::is_ascii_alphanumeric).collect();
    if end == "pub" || has(&EXAMPLE_WORDS) || EXAMPLE_WORDS.contains(&end) {
        return NameShape::Plain;
    }
    if is_ssh_key(stem, &words, end) {
        return NameShape::Secret("keys of ssh");
    }
    let is_account = ACCOUNTS.iter().any(|account| letters.contains(account));
    if (is_account && matches!(end, "json" | "p12")) || name.ends_with(".tfvars.json") {
        return NameShape::Secret("stored credentials");
    }
    if has(&["credentials", "creds"]) && matches!(end, "csv" | "json" | "txt" | "ini" | "db") {
        return NameShape::Secret("stored credentials");
    }
    if matches!(end, "token" | "secret" | "creds" | "credentials" | "passwd" | "password") {
        return NameShape::Doubtful;
    }
    match (DATA_ENDS.contains(&end), has(&SECRET_WORDS)) {
        (true, true) => NameShape::Doubtful,
        (true, false) => NameShape::Data,
        (false, _) if original.is_some() => NameShape::Data,
        (false, _) => NameShape::Plain,
    }
}

/// `id_rsa_work`, `github_ed25519`: named by ssh, and for a purpose.
fn is_ssh_key(stem: &str, words: &[&str], end: &str) -> bool {
    let is_kind = |word: Option<&&str>| word.is_some_and(|word| SSH_KINDS.contains(word));
    let is_named_by_ssh = stem.starts_with("id_") && is_kind(words.get(1));
    is_named_by_ssh || (end.is_empty() && words.len() > 1 && is_kind(words.last()))
}

/// The words of a name, between marks.
fn words_of(stem: &str) -> impl Iterator<Item = &str> {
    stem.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_file_names_are_recognized_by_shape_and_backup_suffix() {
        for name in [
            "id_rsa_work",
            "id_ed25519-github",
            "github_rsa",
            "serviceaccountkey.json",
            "my-service-account.json",
            "shop-firebase-adminsdk-a1b2c.json",
            "credentials.csv",
            "aws_credentials.csv",
            "prod.tfvars.json",
            "id_rsa.bak",
            "service_account.json.old",
        ] {
            assert!(matches!(name_shape(name), NameShape::Secret(_)), "{name}");
        }
        for name in [
            "token.json",
            "auth.json",
            "api_key.txt",
            "passwords.txt",
            "deploy_key",
            "prod-secrets.yaml",
        ] {
            assert_eq!(name_shape(name), NameShape::Doubtful, "{name}");
        }
        for name in [
            "id_rsa.pub",
            "credentials.example.json",
            "auth.rs",
            "token.ts",
            "tokenizer.py",
            "main.rs",
            "serviceaccount.go",
            "credentials.sample.csv",
            "keyboard.js",
        ] {
            assert_eq!(name_shape(name), NameShape::Plain, "{name}");
        }
        assert_eq!(name_shape("package.json"), NameShape::Data);
        assert_eq!(original_of(".env.bak"), Some(".env".to_owned()));
        assert_eq!(original_of("server.key.old~"), Some("server.key".to_owned()));
        assert_eq!(original_of("bak"), None);
        for (name, original) in [
            (".env2", Some(".env")),
            (".env copy", Some(".env")),
            (".env copy 2", Some(".env")),
            (".env (copy)", Some(".env")),
            (".env (1)", Some(".env")),
            ("server.key.1", Some("server.key")),
            ("terraform.tfstate.12.backup", Some("terraform.tfstate")),
            ("id_rsa.20260101", None),
            ("report2", None),
            ("2", None),
            (".1", None),
            (" (1)", None),
        ] {
            assert_eq!(numbered_original_of(name).as_deref(), original, "{name}");
        }
    }
}
