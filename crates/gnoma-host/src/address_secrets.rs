//! Credentials in addresses (connection strings): in variables such as `DATABASE_URL` and `HTTPS_PROXY`, in the
//! remotes of a repository, and in the settings of package managers. They are known values from the start, and
//! variables that hold one are kept from what did not ask for them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_core::{bounded_file, protocol::Environment};
use gnoma_guard::{
    firewall::Firewall,
    secrets::{Scanner, address_credentials, basic_password},
};

use crate::Folders as _;

/// Most bytes of a file that is read for credentials.
const MAX_FILE_BYTES: u64 = 64 << 10;
/// Most folders above the one a session works in that are searched for a repository.
const MAX_FOLDERS_ABOVE: usize = 32;
/// Names of variables that lead to a file with credentials.
const NAMED_FILES: [&str; 5] =
    ["NETRC", "PIP_CONFIG_FILE", "NPM_CONFIG_USERCONFIG", "GIT_CONFIG_GLOBAL", "PGPASSFILE"];
/// Files below the home.
const AT_HOME: [&str; 17] = [
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pip/pip.conf",
    ".config/pip/pip.conf",
    ".config/uv/uv.toml",
    ".git-credentials",
    ".config/git/credentials",
    ".gitconfig",
    ".config/git/config",
    ".docker/config.json",
    ".pgpass",
    ".my.cnf",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".cargo/credentials.toml",
];
/// Files of a project.
const IN_PROJECT: [&str; 7] =
    [".npmrc", ".yarnrc.yml", ".netrc", ".pypirc", "pip.conf", "uv.toml", "auth.json"];
/// Words without which a file holds no credentials, unless it is a list of them or has an address with some.
const SIGNS: [&str; 7] =
    ["password", "passwd", "token", "_auth", "\"auth\"", "extraheader", "secret"];
/// A file that is a list of credentials without a word about them.
const BARE_LIST: &str = "pgpass";
/// Fewest bytes of a variable's value that is searched for a secret.
const MIN_SECRET_BYTES: usize = 16;
/// The rule that values are known by.
const RULE: &str = "address-credentials";

/// Reports whether a variable holds an address with credentials, or a header with some.
fn has_credentials(value: &str) -> bool {
    !address_credentials(value).is_empty() || header_credentials(value).is_some()
}

/// The credentials of an `Authorization` header, as git takes one by `http.extraheader`.
fn header_credentials(value: &str) -> Option<&str> {
    let (name, value) = value.split_once(':')?;
    let (_, credentials) = value.trim().split_once(' ')?;
    name.trim().eq_ignore_ascii_case("authorization").then_some(credentials.trim())
}

/// Returns the variables for programs that run unasked: those that `is_given`, without addresses that hold credentials.
pub(crate) fn without_credentials(
    environment: &Environment,
    is_given: impl Fn(&str, &str) -> bool,
) -> Vec<(String, String)> {
    let all = environment.variables().iter();
    let given = all.filter(|(name, value)| is_given(name, value) && !has_credentials(value));
    let mut given = given.map(|(name, value)| (name.clone(), value.clone())).collect();
    gnoma_sandbox::renumber_git_settings(&mut given);
    given
}

/// The variables that hold one.
pub(crate) fn credential_variables(environment: &Environment) -> Vec<String> {
    let all = environment.variables().iter();
    all.filter(|(_, value)| has_credentials(value)).map(|(name, _)| name.clone()).collect()
}

/// The variables whose value the firewall takes for a secret, whatever their names are.
pub(crate) fn variables_by_value(
    firewall: &Firewall,
    variables: &BTreeMap<String, String>,
) -> Vec<String> {
    // Shorter ones are found by their names alone, and a path is a place.
    let may_be_secret = |value: &str| value.len() >= MIN_SECRET_BYTES && !value.starts_with('/');
    let candidates = variables.iter().filter(|(_, value)| may_be_secret(value));
    let is_secret = |(name, value): &(&String, &String)| {
        let line = format!("{name}={value}");
        firewall.redact_text(&line) != line
    };
    candidates.filter(is_secret).map(|(name, _)| name.clone()).collect()
}

/// Has a scanner know the credentials in addresses that a session in `folder` starts with.
pub(crate) fn learn_credentials(scanner: &Scanner, environment: &Environment, folder: &Path) {
    let rule: Arc<str> = RULE.into();
    let learn_password = |credentials: &str| {
        if let Some(password) = basic_password(credentials) {
            scanner.learn_secret(&rule, &password);
        }
    };
    for value in environment.variables().values() {
        for secret in address_credentials(value).into_iter().filter_map(|span| value.get(span)) {
            scanner.learn_secret(&rule, secret);
        }
        if let Some(credentials) = header_credentials(value) {
            scanner.learn_secret(&rule, credentials);
            learn_password(credentials);
        }
    }
    for path in credential_files(environment, folder) {
        let Some(text) = read_text_start(&path).filter(|text| may_hold_any(&path, text)) else {
            continue;
        };
        let found = scanner.scan(text.as_bytes());
        for secret in found.iter().filter_map(|it| text.get(it.start..it.end)) {
            scanner.learn_secret(&rule, secret);
            learn_password(secret.split_whitespace().next_back().unwrap_or_default());
        }
    }
}

/// The files that are there.
fn credential_files(environment: &Environment, folder: &Path) -> Vec<PathBuf> {
    let home = environment.home().filter(|home| home.is_absolute());
    let mut all: Vec<PathBuf> =
        home.iter().flat_map(|home| AT_HOME.map(|name| home.join(name))).collect();
    let named = NAMED_FILES.iter().filter_map(|name| environment.get(name));
    all.extend(named.map(PathBuf::from).filter(|path| path.is_absolute()));
    all.extend(IN_PROJECT.map(|name| folder.join(name)));
    all.extend(git_settings(folder));
    all.retain(|path| path.metadata().is_ok_and(|facts| facts.is_file() && facts.len() > 0));
    all
}

/// The settings of the repository that a folder is in, also where it is a linked work tree or a submodule.
fn git_settings(folder: &Path) -> Vec<PathBuf> {
    let above = folder.ancestors().take(MAX_FOLDERS_ABOVE);
    let Some(git) = above.map(|folder| folder.join(".git")).find(|git| git.exists()) else {
        return Vec::new();
    };
    let git = match read_text_start(&git) {
        None => git,
        Some(text) => {
            let led = text.trim().strip_prefix("gitdir:").unwrap_or_default().trim();
            git.parent().unwrap_or(folder).join(led)
        }
    };
    let common = read_text_start(&git.join("commondir")).map(|led| git.join(led.trim()));
    let own = [git.join("config"), git.join("config.worktree")];
    own.into_iter().chain(common.map(|common| common.join("config"))).collect()
}

/// The beginning of a file; a pipe is not waited for.
fn read_text_start(path: &Path) -> Option<String> {
    let bytes = bounded_file::read_start(path, MAX_FILE_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reports whether a file is worth a search, because a search prepares all rules and most files have no
/// credentials.
fn may_hold_any(path: &Path, text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let has_user = |line: &str| line.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    path.to_string_lossy().contains(BARE_LIST)
        || SIGNS.iter().any(|sign| lower.contains(sign))
        || lower.lines().any(has_user)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use gnoma_guard::secrets::ScannerOptions;

    use super::*;

    /// The texts in which a scanner that has learned finds something, of those given backwards.
    fn known(scanner: &Scanner, secrets: &[&str]) -> Vec<String> {
        let backwards = |secret: &&str| secret.chars().rev().collect::<String>();
        let texts =
            secrets.iter().map(|secret| (secret, format!("it is {} here", backwards(secret))));
        let found = texts.filter(|(_, text)| !scanner.scan(text.as_bytes()).is_empty());
        found.map(|(secret, _)| (*secret).to_owned()).collect()
    }

    #[test]
    fn credentials_in_urls_of_variables_and_settings_are_redacted_from_start() {
        let home = tempfile::tempdir().unwrap();
        let project = home.path().join("p/sub");
        let put = |name: &str, text: &str| {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        fs::create_dir_all(&project).unwrap();
        put(".netrc", "machine h.example login me password n3trcPassw0rdX\n");
        put(".npmrc", "//registry.example/:_authToken=Npm7oken81kq93Lm\n");
        put(
            ".config/pip/pip.conf",
            "[global]\nindex-url = https://ci:P1pIndexPw77q@pypi.example/simple\n",
        );
        put(
            "p/.git/config",
            "[remote \"origin\"]\n\turl = https://me:R3motePw55zt@git.example/a.git\n[http]\n\textraheader = AUTHORIZATION: basic bWU6SHE4enZUdzk5eDdMaw==\n",
        );
        let variables = BTreeMap::from([
            ("HOME".to_owned(), home.path().display().to_string()),
            ("DB_URL".to_owned(), "postgres://app:Dbk81qPwd44s@db:5432/app".to_owned()),
            ("HTTPS_PROXY".to_owned(), "http://me:Pr0xyPw66fd@proxy:3128".to_owned()),
            ("EDITOR".to_owned(), "vi".to_owned()),
        ]);
        let environment = Environment::new(variables);
        let secrets = [
            "n3trcPassw0rdX",
            "Npm7oken81kq93Lm",
            "P1pIndexPw77q",
            "R3motePw55zt",
            "Hq8zvTw99x7Lk",
            "Dbk81qPwd44s",
            "Pr0xyPw66fd",
        ];
        let scanner = Scanner::new(ScannerOptions::default()).unwrap();
        assert_eq!(known(&scanner, &secrets), [""; 0]);
        learn_credentials(&scanner, &environment, &project);
        assert_eq!(known(&scanner, &secrets), secrets);
        assert_eq!(super::credential_variables(&environment), ["DB_URL", "HTTPS_PROXY"]);
    }
}
