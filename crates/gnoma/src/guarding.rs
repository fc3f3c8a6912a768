//! Turns settings into what guards a session: firewall, permissions, walls.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Result;
use gnoma_config::{
    Loaded, Settings, Standing,
    settings::{About, Action, Sandbox, SandboxNetwork, SecretAction},
};
use gnoma_core::Secret;
use gnoma_engine::Place;
use gnoma_guard::{
    firewall::{self, Allowed, Entry, Firewall, Policy},
    permission::{self, Origin, Permissions, Rule},
    privacy::Privacy,
    secrets,
};
use gnoma_sandbox::{Readable, SCRUBBED, launcher};

use crate::{clock, report::Misuse, surroundings::Surroundings};

/// Folders of the home that programs keep what they have fetched in; commands may write there.
const CACHES: [&str; 12] = [
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".npm",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    ".bun/install/cache",
    "go/pkg/mod",
    ".gradle/caches",
    ".m2/repository",
    ".nuget/packages",
    ".ivy2/cache",
];

/// What commands cannot read unless their verdict says so, below the home.
const HIDDEN: [&str; 23] = [
    ".ssh",
    ".gnupg",
    ".aws/credentials",
    ".aws/sso",
    ".azure",
    ".config/gcloud",
    ".config/gh/hosts.yml",
    ".kube",
    ".docker/config.json",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".vault-token",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".local/share/keyrings",
    ".password-store",
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
    ".thunderbird",
];

/// What is kept of the session.
pub(crate) fn privacy(settings: &Settings) -> Privacy {
    if settings.privacy.incognito {
        Privacy::Incognito { local_only: settings.privacy.local_only }
    } else {
        Privacy::Normal
    }
}

/// What stands between secrets and everything that leaves.
pub(crate) fn firewall(settings: &Settings, around: &Surroundings) -> Result<Arc<Firewall>> {
    // 32 bits keep placeholders short, and a page that wants to name one has to guess them.
    const PLACEHOLDER_BITS: u32 = 32;
    let Search { scanner, policy, allowed } = search(settings, around)?;
    let first_placeholder = clock::random() >> (u64::BITS - PLACEHOLDER_BITS);
    Ok(Arc::new(Firewall::new(firewall::Options { scanner, policy, allowed, first_placeholder })))
}

/// What is looked for, and what is done about it.
pub(crate) struct Search {
    pub scanner: secrets::Scanner,
    pub policy: Policy,
    pub allowed: Vec<Allowed>,
}

/// What the settings say about secrets.
pub(crate) fn search(settings: &Settings, around: &Surroundings) -> Result<Search> {
    let security = &settings.security;
    let mut entries = Vec::new();
    let mut extra = Vec::new();
    for (number, pattern) in (1..).zip(&security.patterns) {
        let name = if pattern.name.is_empty() {
            format!("pattern-{number}")
        } else {
            pattern.name.clone()
        };
        entries.push(Entry {
            rule: Some(name.clone()),
            action: secret_action(&pattern.action),
            ..Entry::default()
        });
        extra.push(secrets::Rule::pattern(name, &pattern.regex));
    }
    entries.extend(security.actions.iter().map(entry));
    let options =
        secrets::Options { extra, known: known(settings, around), ..secrets::Options::default() };
    let scanner = secrets::Scanner::new(options)
        .map_err(|error| Misuse(format!("`security.patterns` cannot be used: {error}")))?;
    let allowed = security
        .allow
        .iter()
        .map(|text| Allowed::parse(text).map_err(|why| Misuse(format!("`security.allow`: {why}"))));
    let allowed = allowed.collect::<Result<_, _>>()?;
    Ok(Search { scanner, policy: Policy { entries }, allowed })
}

fn entry(action: &SecretAction) -> Entry {
    let glob = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    Entry {
        rule: glob(&action.rule),
        provider: glob(&action.provider),
        path: glob(&action.path),
        action: secret_action(&action.action),
    }
}

/// The schema has seen to it that it is one of these.
fn secret_action(name: &str) -> firewall::Action {
    match name {
        "block" => firewall::Action::Block,
        "warn" => firewall::Action::Warn,
        "allow" => firewall::Action::Allow,
        _ => firewall::Action::Redact,
    }
}

/// Secrets that are known by their value: configured keys, and what variables for keys hold.
fn known(settings: &Settings, around: &Surroundings) -> Vec<(String, Secret<String>)> {
    let configured = settings.provider.api_keys.iter();
    let configured = configured.map(|(name, key)| (format!("key-{name}"), key.clone()));
    let inherited =
        around.env.iter().filter(|(name, _)| holds_secret(name)).map(|(name, value)| {
            (format!("env-{}", name.to_lowercase().replace('_', "-")), Secret::new(value.clone()))
        });
    configured.chain(inherited).collect()
}

/// Whether a variable of that name holds a secret rather than a path or an address.
fn holds_secret(name: &str) -> bool {
    const ENDS: [&str; 9] = [
        "_API_KEY",
        "_APIKEY",
        "_TOKEN",
        "_SECRET",
        "_SECRET_KEY",
        "_ACCESS_KEY",
        "_PASSWORD",
        "_PASSPHRASE",
        "_PAT",
    ];
    ENDS.iter().any(|end| name.ends_with(end))
}

/// Exceptions from the mode.
pub(crate) fn permissions(settings: &Settings) -> Result<Permissions> {
    let rules = settings.permission.rules.iter().map(|rule| {
        let action = match rule.action {
            Action::Allow => permission::Action::Allow,
            Action::Ask => permission::Action::Ask,
            Action::Deny => permission::Action::Deny,
        };
        match &rule.about {
            About::Rule(text) => Rule::parse(action, text, Origin::User),
            About::Text { tool, pattern } => Rule::configured(action, tool, pattern, Origin::User),
        }
    });
    let rules = rules
        .collect::<Result<_, _>>()
        .map_err(|error| Misuse(format!("`permission.rules` cannot be used: {error}")))?;
    let permissions = Permissions::new(rules);
    Ok(if settings.permission.confirm_bypass { permissions.confirm_bypass() } else { permissions })
}

/// Where a session works; `folders` are those besides `cwd`.
pub(crate) fn place(
    loaded: &Loaded,
    around: &Surroundings,
    cwd: &Path,
    folders: Vec<PathBuf>,
) -> Place {
    Place {
        cwd: cwd.to_owned(),
        roots: std::iter::once(cwd.to_owned()).chain(folders).collect(),
        home: around.home(),
        config_dirs: vec![around.config_dir(), around.state_dir()],
        // Without a file there is nothing that would need trust.
        trusted: matches!(loaded.project, None | Some(Standing::Trusted)),
        sandboxed: loaded.settings.sandbox.mode != Sandbox::Off,
        resolve: Box::new(resolve),
    }
}

/// What cannot be resolved stays as it is: whoever opens it will fail in the same way.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    gnoma_tools::resolve(path).unwrap_or_else(|_| path.to_owned())
}

/// Walls around commands.
pub(crate) fn sandbox(
    settings: &Settings,
    around: &Surroundings,
    trusted: bool,
) -> gnoma_tools::Sandbox {
    let sandbox = &settings.sandbox;
    if sandbox.mode == Sandbox::Off {
        return gnoma_tools::Sandbox::Off;
    }
    let home = around.home().unwrap_or_default();
    let mut writable = vec![PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    writable.extend(around.var("TMPDIR").map(PathBuf::from));
    writable.extend(CACHES.iter().map(|name| home.join(name)));
    writable.extend(sandbox.writable.iter().map(|path| below_home(path, &home)));
    writable.retain(|path| path.is_absolute());
    let mut hidden: Vec<_> = HIDDEN.iter().map(|name| home.join(name)).collect();
    hidden.extend([around.config_dir(), around.state_dir()]);
    hidden.retain(|path| path.is_absolute());
    let policy = gnoma_sandbox::Policy {
        writable,
        readable: Readable::Except(hidden),
        network: sandbox.network == SandboxNetwork::Always,
        scrub: SCRUBBED.map(str::to_owned).to_vec(),
        // Whoever trusts a project also trusts the hooks of its repository.
        git_hardening: !trusted,
        ..gnoma_sandbox::Policy::default()
    };
    gnoma_tools::Sandbox::Walled {
        launcher: launcher::ITSELF.into(),
        policy: Box::new(policy),
        required: sandbox.mode == Sandbox::Required,
        network_on_grant: sandbox.network != SandboxNetwork::Never,
    }
}

fn below_home(path: &str, home: &Path) -> PathBuf {
    match path.strip_prefix("~/") {
        Some(rest) => home.join(rest),
        None => PathBuf::from(path),
    }
}
