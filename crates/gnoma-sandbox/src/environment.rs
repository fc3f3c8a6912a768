//! The environment variables of commands in the sandbox: those that look like keys are removed, and one tells the
//! command who runs it. Pure.

use std::ffi::{OsStr, OsString};

use crate::policy::Policy;

/// Names that hold keys, and addresses of helpers that hand keys out. For [`crate::Policy::scrub`].
pub const SCRUBBED: [&str; 55] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "API_KEY",
    "API_KEY_*",
    "*_API_KEY_*",
    "TOKEN_*",
    "SSHPASS",
    "*_PW",
    "JWT",
    "*_JWT",
    "COOKIE",
    "*_COOKIE",
    "MNEMONIC",
    "*_MNEMONIC",
    "APIKEY",
    "ACCESS_TOKEN",
    "AUTH_TOKEN",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "*_KEY",
    "*_KEY_BASE",
    "*_CONNECTION_STRING",
    "OP_SESSION_*",
    "REDIS_URL",
    "MONGODB_URI",
    "MONGO_URL",
    "*_API_KEY",
    "*_APIKEY",
    "*_ACCESS_KEY",
    "*_ACCESS_KEY_ID",
    "*_SECRET",
    "*_SECRET_KEY",
    "*_TOKEN",
    "*_PAT",
    "*_PASSWORD",
    "*_PASSWD",
    "*_PASS",
    "*_PWD",
    "*_AUTHTOKEN",
    "PASS",
    "PASSPHRASE",
    "*_PASSPHRASE",
    "*_CREDENTIALS",
    "*_PRIVATE_KEY",
    "*_AUTH",
    "*_DSN",
    "*_WEBHOOK_URL",
    "DATABASE_URL",
    "PGPASSWORD",
    "MYSQL_PWD",
    "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// True if a variable of that name holds a key.
#[must_use]
pub fn is_scrubbed(name: &str) -> bool {
    SCRUBBED.iter().any(|pattern| matches_pattern(&name.to_ascii_uppercase(), pattern))
}

/// Tells programs that an agent runs them.
const MARKS: [(&str, &str); 3] = [("GNOMA", "1"), ("AGENT", "gnoma"), ("AI_AGENT", "gnoma")];

/// The variable in which git counts the settings that come from the environment.
const GIT_COUNT: &str = "GIT_CONFIG_COUNT";

/// Settings under which git runs nothing that a repository brings along. A variable beats every
/// file, so a repository cannot set them back.
const GIT_SETTINGS: [(&str, &str); 4] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.alternateRefsCommand", ""),
    ("protocol.ext.allow", "never"),
];

/// Without it any folder that looks like a repository is one.
const NO_BARE_REPOSITORY: (&str, &str) = ("safe.bareRepository", "explicit");

/// The repositories that git may use when it runs nothing that they bring along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GitHardening {
    /// Only those with a work tree.
    WithWorkTree,
    /// Also those without one.
    All,
}

impl GitHardening {
    /// The hardening under a policy.
    pub(crate) fn for_policy(policy: &Policy) -> Option<Self> {
        let kind = if policy.bare_repository { Self::All } else { Self::WithWorkTree };
        policy.git_hardening.then_some(kind)
    }
}

/// An environment variable, as its name and value.
pub(crate) type Variable = (OsString, OsString);

/// The environment of a command, made from the one gnoma has.
pub(crate) fn build_command_environment(
    inherited: impl Iterator<Item = Variable>,
    scrub: &[String],
    git: Option<GitHardening>,
) -> Vec<Variable> {
    let mut variables: Vec<Variable> =
        inherited.filter(|(name, _)| !is_covered(name, scrub)).collect();
    renumber_git_settings(&mut variables);
    for (name, value) in MARKS {
        set_variable(&mut variables, name, value);
    }
    if let Some(hardening) = git {
        harden_git(&mut variables, hardening);
    }
    variables
}

/// Names the span that the command is a part of.
pub(crate) fn set_span(variables: &mut Vec<Variable>, policy: &crate::Policy) {
    if let Some(span) = &policy.traceparent {
        set_variable(variables, "TRACEPARENT", span);
    }
}

/// Variables that name folders of the machine for files that need not last.
const TEMPORARY: [&str; 4] = ["TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR"];

/// Tells a command where its temporary files go, and git to make none that it can do without.
#[cfg(target_os = "linux")]
pub(crate) fn set_temporary(variables: &mut Vec<Variable>, folder: &std::path::Path) {
    variables.retain(|(name, _)| TEMPORARY.iter().all(|known| name != known));
    variables.push(("TMPDIR".into(), folder.into()));
    set_variable(variables, "GIT_OPTIONAL_LOCKS", "0");
    set_caches(variables, folder);
}

/// Caches without which programs do nothing or warn, and the variables that name them.
#[cfg(target_os = "linux")]
const CACHES: [(&str, &str); 12] = [
    ("BLACK_CACHE_DIR", "black"),
    ("CCACHE_DIR", "ccache"),
    ("DENO_DIR", "deno"),
    ("GOCACHE", "go-build"),
    ("GOLANGCI_LINT_CACHE", "golangci-lint"),
    ("HELM_CACHE_HOME", "helm"),
    ("PIP_CACHE_DIR", "pip"),
    ("POETRY_CACHE_DIR", "pypoetry"),
    ("PRE_COMMIT_HOME", "pre-commit"),
    ("STATICCHECK_CACHE", "staticcheck"),
    ("UV_CACHE_DIR", "uv"),
    ("YARN_CACHE_FOLDER", "yarn"),
];

/// The parts of npm's cache, below the home, and the variables that name another. Where npm can write neither it ends
/// with an error.
#[cfg(target_os = "linux")]
const NPM_CACHE: [&str; 2] = [".npm/_cacache", ".npm/_logs"];
#[cfg(target_os = "linux")]
const NPM_VARIABLES: [&str; 2] = ["npm_config_cache", "NPM_CONFIG_CACHE"];

/// Over a cache that is not there yet nothing can be layered, and a command cannot make it: it finds one among
/// its temporary files.
#[cfg(target_os = "linux")]
fn set_caches(variables: &mut Vec<Variable>, folder: &std::path::Path) {
    let named = |variables: &[Variable], name: &str| {
        let found = variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| std::path::PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let home = named(variables, "HOME");
    let lacks_npm = |home: &std::path::PathBuf| {
        let is_named = NPM_VARIABLES.iter().any(|name| named(variables, name).is_some());
        !is_named && NPM_CACHE.iter().any(|part| !home.join(part).exists())
    };
    if home.as_ref().is_some_and(lacks_npm) {
        set_variable(variables, NPM_VARIABLES[0], &folder.join("npm").to_string_lossy());
    }
    let caches = || home.map(|home| home.join(".cache"));
    let Some(caches) = named(variables, "XDG_CACHE_HOME").or_else(caches) else { return };
    for (name, cache) in CACHES {
        if named(variables, name).is_none() && !caches.join(cache).exists() {
            set_variable(variables, name, &folder.join(cache).to_string_lossy());
        }
    }
}

fn is_covered(name: &OsStr, scrub: &[String]) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    scrub.iter().any(|pattern| matches_pattern(&name, &pattern.to_ascii_uppercase()))
}

/// True if `pattern` covers `name`. A pattern that is only a star covers everything.
fn matches_pattern(name: &str, pattern: &str) -> bool {
    match (pattern.strip_prefix('*'), pattern.strip_suffix('*')) {
        (None, None) => name == pattern,
        (Some(end), None) => name.ends_with(end),
        (None, Some(start)) => name.starts_with(start),
        (Some(_), Some(_)) => name.contains(pattern.trim_matches('*')),
    }
}

/// Numbers the settings of git that come by the environment without gaps, where one of a key and a value has been
/// taken out: git refuses to run at a gap. <https://git-scm.com/docs/git-config#Documentation/git-config.txt-GITCONFIGCOUNT>
pub fn renumber_git_settings<T: From<String> + AsRef<OsStr>>(variables: &mut Vec<(T, T)>) {
    let mut take = |name: String| {
        let at = variables.iter().position(|(known, _)| known.as_ref() == OsStr::new(&name))?;
        Some(variables.swap_remove(at).1)
    };
    let names = |at: usize| (format!("GIT_CONFIG_KEY_{at}"), format!("GIT_CONFIG_VALUE_{at}"));
    let Some(count) = take(GIT_COUNT.to_owned()) else { return };
    let count = count.as_ref().to_str().and_then(|count| count.parse::<u16>().ok());
    let count = count.unwrap_or_default();
    let pairs = (0..usize::from(count)).map(|at| {
        let (key, value) = names(at);
        (take(key), take(value))
    });
    let whole: Vec<_> = pairs.filter_map(|(key, value)| key.zip(value)).collect();
    variables.push((GIT_COUNT.to_owned().into(), whole.len().to_string().into()));
    for (at, (key, value)) in whole.into_iter().enumerate() {
        let (name_of_key, name_of_value) = names(at);
        variables.extend([(name_of_key.into(), key), (name_of_value.into(), value)]);
    }
}

/// Adds to what may already be there: settings that come by the environment are counted.
fn harden_git(variables: &mut Vec<Variable>, hardening: GitHardening) {
    let mut count = git_config_count(variables);
    let no_bare = (hardening == GitHardening::WithWorkTree).then_some(NO_BARE_REPOSITORY);
    for (key, value) in GIT_SETTINGS.into_iter().chain(no_bare) {
        set_variable(variables, &format!("GIT_CONFIG_KEY_{count}"), key);
        set_variable(variables, &format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    set_variable(variables, GIT_COUNT, &count.to_string());
}

fn git_config_count(variables: &[Variable]) -> usize {
    let count = variables.iter().find(|(name, _)| name == GIT_COUNT);
    count.and_then(|(_, value)| value.to_str()?.parse::<u16>().ok()).map_or(0, usize::from)
}

fn set_variable(variables: &mut Vec<Variable>, name: &str, value: &str) {
    variables.retain(|(known, _)| known != name);
    variables.push((name.into(), value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn git_config_environment_stays_consistent_if_one_setting_is_scrubbed() {
        let all = [
            ("GIT_CONFIG_COUNT", "3"),
            ("GIT_CONFIG_KEY_0", "url.https://user:secret@host/.insteadOf"),
            ("GIT_CONFIG_VALUE_0", "https://host/"),
            ("GIT_CONFIG_KEY_1", "user.name"),
            ("GIT_CONFIG_VALUE_1", "A"),
            ("GIT_CONFIG_KEY_2", "user.email"),
            ("GIT_CONFIG_VALUE_2", "a@b"),
            ("HOME", "/home/a"),
        ];
        let inherited = all.map(|(name, value)| (name.into(), value.into()));
        let scrub = ["GIT_CONFIG_KEY_0".to_owned()];
        let made = build_command_environment(inherited.into_iter(), &scrub, None);
        let value = |name: &str| {
            let found = made.iter().find(|(known, _)| known == name);
            found.and_then(|(_, value)| value.to_str())
        };
        assert_eq!(value("GIT_CONFIG_COUNT"), Some("2"));
        assert_eq!(value("GIT_CONFIG_KEY_0"), Some("user.name"));
        assert_eq!(value("GIT_CONFIG_VALUE_1"), Some("a@b"));
        assert_eq!(value("GIT_CONFIG_VALUE_2"), None);
        assert_eq!(value("HOME"), Some("/home/a"));
    }

    fn names(variables: &[(&str, &str)], scrub: &[&str]) -> Vec<String> {
        let scrub: Vec<String> = scrub.iter().map(ToString::to_string).collect();
        let inherited = variables.iter().map(|(name, value)| (name.into(), value.into()));
        build_command_environment(inherited, &scrub, None)
            .into_iter()
            .map(|(name, _)| name.into_string().unwrap())
            .filter(|name| MARKS.iter().all(|(mark, _)| mark != name))
            .collect()
    }

    #[test]
    fn api_key_and_token_variables_are_scrubbed_from_the_environment() {
        let kept = names(
            &[
                ("PATH", "/bin"),
                ("HOME", "/home/a"),
                ("OPENAI_API_KEY", "k"),
                ("github_token", "k"),
                ("AWS_SECRET_ACCESS_KEY", "k"),
                ("AWS_ACCESS_KEY_ID", "k"),
                ("SSH_AUTH_SOCK", "/tmp/agent"),
                ("LDAP_PWD", "k"),
                ("NPM_AUTHTOKEN", "k"),
                ("OLDPWD", "/"),
                ("TOKENIZERS_PARALLELISM", "1"),
                ("KEYBOARD", "de"),
                ("XAUTHORITY", "x"),
            ],
            &SCRUBBED,
        );
        assert_eq!(
            kept,
            ["PATH", "HOME", "OLDPWD", "TOKENIZERS_PARALLELISM", "KEYBOARD", "XAUTHORITY"]
        );
    }

    #[test]
    fn scrub_pattern_wildcard_matches_at_either_end_of_a_variable_name() {
        let variables = [("A_B_C", ""), ("B_C", ""), ("A_B", ""), ("C", "")];
        assert_eq!(names(&variables, &["A_*"]), ["B_C", "C"]);
        assert_eq!(names(&variables, &["*_C"]), ["A_B", "C"]);
        assert_eq!(names(&variables, &["*_B*"]), ["B_C", "C"]);
        assert_eq!(names(&variables, &["c"]), ["A_B_C", "B_C", "A_B"]);
        assert!(names(&variables, &["*"]).is_empty());
    }

    #[test]
    fn git_hardening_is_added_to_existing_git_config_environment() {
        let inherited = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "user.name"),
            ("GIT_CONFIG_VALUE_0", "A"),
        ];
        let inherited = || inherited.iter().map(|(name, value)| (name.into(), value.into()));
        let variables =
            build_command_environment(inherited(), &[], Some(GitHardening::WithWorkTree));
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_str().unwrap())
        };
        assert_eq!(value("GIT_CONFIG_KEY_0"), Some("user.name"));
        assert_eq!(value("GIT_CONFIG_KEY_1"), Some("core.hooksPath"));
        assert_eq!(value("GIT_CONFIG_VALUE_1"), Some("/dev/null"));
        assert_eq!(value("GIT_CONFIG_COUNT"), Some("6"));
        let in_bare_repository =
            build_command_environment(inherited(), &[], Some(GitHardening::All));
        assert!(!in_bare_repository.iter().any(|(_, value)| value == "safe.bareRepository"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn missing_tool_cache_directories_are_redirected_to_the_temporary_folder() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".cache/uv")).unwrap();
        let mut variables = vec![
            ("HOME".into(), home.path().into()),
            ("DENO_DIR".into(), home.path().join("deno").into()),
        ];
        set_temporary(&mut variables, std::path::Path::new("/tmp"));
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.to_str().unwrap())
        };
        assert_eq!(value("GOCACHE"), Some("/tmp/go-build"));
        assert_eq!(value("UV_CACHE_DIR"), None);
        assert_eq!(value("npm_config_cache"), Some("/tmp/npm"));
        assert!(value("DENO_DIR").unwrap().ends_with("/deno"));
        assert_ne!(value("DENO_DIR"), Some("/tmp/deno"));
    }

    #[test]
    fn command_environment_has_the_agent_variables() {
        let inherited = [("AGENT".into(), "someone".into())];
        let variables = build_command_environment(inherited.into_iter(), &[], None);
        assert!(variables.contains(&("AGENT".into(), "gnoma".into())));
        assert_eq!(variables.len(), MARKS.len());
    }
}
