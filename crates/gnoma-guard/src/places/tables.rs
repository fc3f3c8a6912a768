//! Which names and folders matter, as data.
//!
//! A place is a run of names; `*` stands for any part of one. It is looked for at the end of a path, or
//! anywhere with all below it when it ends in `/`; a leading `/` ties it to the root. Names are
//! written in lower case, as paths are folded before they are compared.

use std::sync::LazyLock;

use super::spot::Name;
use crate::permission::meet::Dialect;

/// Names that matter wherever they stand.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) names: Vec<Name>,
    /// It begins at the root.
    pub(super) anchored: bool,
    /// All below it matters too.
    pub(super) below: bool,
    /// What it is, as the end of a sentence.
    pub(super) kind: &'static str,
}

/// What places are, and the places, with `?` for a blank in a name.
type Group = (&'static str, &'static str);

pub(super) fn secrets() -> &'static [Place] {
    static PLACES: LazyLock<Vec<Place>> = LazyLock::new(|| places(SECRETS));
    &PLACES
}

/// What matters only when it is changed.
pub(super) fn guarded() -> &'static [Place] {
    static PLACES: LazyLock<Vec<Place>> = LazyLock::new(|| places(GUARDED));
    &PLACES
}

fn places(groups: &[Group]) -> Vec<Place> {
    let of_group = |(kind, texts): &Group| {
        let kind = *kind;
        texts.split_whitespace().map(move |text| place(kind, text))
    };
    groups.iter().flat_map(of_group).collect()
}

fn place(kind: &'static str, text: &str) -> Place {
    let names = text.split('/').filter(|name| !name.is_empty());
    Place {
        names: names.map(|name| Name::new(name, Dialect::Rule)).collect(),
        anchored: text.starts_with('/'),
        below: text.ends_with('/'),
        kind,
    }
}

const SECRETS: &[Group] = &[
    ("an environment file", ".env .env.* *.env .envrc .dev.vars"),
    ("keys of ssh", ".ssh/ id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk"),
    (
        "a key file",
        "*.pem *.key *.p8 *.p12 *.pfx *.jks *.keystore *.ppk *.kdbx *.agekey *.keytab \
         wallet.dat",
    ),
    (
        "stored credentials",
        ".netrc _netrc .pgpass pgpass.conf .my.cnf .mylogin.cnf .npmrc .pypirc \
         .git-credentials .config/git/credentials .htpasswd .boto .s3cfg .vault-token \
         .dockercfg .docker/config.json .aws/credentials .aws/config .aws/sso/ \
         .aws/cli/cache/ .azure/ .config/gcloud/ .oci/ .databrickscfg .kube/ kubeconfig \
         .config/gh/hosts.yml .config/hub .config/glab-cli/ .config/rclone/ .config/doctl/ \
         .config/stripe/ .fly/config.yml .config/heroku/ .terraformrc \
         .terraform.d/credentials.tfrc.json .m2/settings.xml .m2/settings-security.xml \
         .gradle/gradle.properties .gem/credentials .bundle/config .cargo/credentials \
         .cargo/credentials.toml .composer/auth.json .nuget/nuget.config .codex/auth.json \
         .claude/.credentials.json .claude.json .gemini/oauth_creds.json \
         .local/share/opencode/auth.json .git/config credentials credentials.json \
         credentials.yml credentials.yaml credentials.toml client_secret*.json \
         service-account*.json service_account*.json application_default_credentials.json \
         secrets.json secrets.yml secrets.yaml secrets.toml secret.json secret.yml \
         secret.yaml .config/openai/ .huggingface/token .cache/huggingface/token \
         .snowsql/config .xauthority .iceauthority",
    ),
    (
        "a key store",
        ".gnupg/ .password-store/ .local/share/keyrings/ .local/share/kwalletd/ \
         library/keychains/ /library/keychains/ .config/sops/age/ .config/solana/ \
         .ethereum/keystore/ .bitcoin/ .electrum/",
    ),
    (
        "a browser's profile",
        ".mozilla/ .thunderbird/ .config/google-chrome/ .config/chromium/ \
         .config/bravesoftware/ .config/microsoft-edge/ .config/vivaldi/ \
         library/application?support/google/chrome/ library/application?support/firefox/ \
         library/application?support/bravesoftware/ library/cookies/ library/safari/ \
         appdata/local/google/chrome/ appdata/local/microsoft/edge/ \
         appdata/roaming/mozilla/ snap/firefox/ .var/app/org.mozilla.firefox/",
    ),
    (
        "a history of what was typed",
        ".bash_history .zsh_history .zhistory .histfile .history .sh_history .ksh_history \
         fish_history .python_history .node_repl_history .psql_history .mysql_history \
         .sqlite_history .rediscli_history .irb_history .viminfo consolehost_history.txt",
    ),
    (
        "secrets of the system",
        "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/master.passwd \
         /etc/sudoers /etc/sudoers.d/ /etc/security/opasswd /etc/ssh/ssh_host_*_key \
         /etc/ssl/private/ /etc/pki/tls/private/ /etc/krb5.keytab /etc/wireguard/ \
         /etc/networkmanager/system-connections/ /etc/wpa_supplicant/ /etc/openvpn/ \
         /etc/kubernetes/admin.conf /etc/rancher/ /run/secrets/ /var/run/secrets/ \
         /run/credentials/ /var/lib/kubelet/ /var/lib/docker/",
    ),
    (
        "memory and environment of a process",
        "/proc/*/environ /proc/*/mem /proc/*/task/ /proc/*/fd/ /proc/*/root/ /proc/*/cwd/ \
         /proc/*/map_files/ /proc/kcore /proc/keys /proc/kmsg",
    ),
    ("gnoma's own files", ".gnoma/"),
];

const GUARDED: &[Group] = &[
    ("inside git's own folder", ".git/"),
    ("which git reads on every run", ".gitconfig .config/git/ .githooks/ .husky/"),
    (
        "settings of a coding agent",
        ".claude/ .cursor/ .codex/ .gemini/ .mcp.json .windsurf/ .continue/ .roo/ .cline/ \
         .kilocode/ .opencode/ opencode.json opencode.jsonc .config/opencode/ .crush/ \
         crush.json .crush.json .goose/ .config/goose/ .vibe/ .qwen/ .amazonq/ .kiro/ \
         .junie/ .trae/ .copilot/ .pi/ .openhands/ .aider.conf.yml .config/github-copilot/",
    ),
    (
        "settings of an editor that runs them",
        ".vscode/ .idea/ .zed/ .fleet/ .devcontainer/ *.code-workspace .exrc .vimrc .nvimrc \
         .nvim.lua .vim/ .config/nvim/ .emacs .emacs.d/ .dir-locals.el",
    ),
    (
        "which a shell runs when it starts",
        ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc \
         .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout \
         .config/fish/ .inputrc .direnvrc microsoft.powershell_profile.ps1",
    ),
    (
        "which is run or read at log-in",
        ".pam_environment .xinitrc .xprofile .xsession .xsessionrc .config/autostart/ \
         .config/environment.d/ .config/systemd/ .local/share/systemd/ \
         library/launchagents/ library/launchdaemons/",
    ),
    (
        "which a tool obeys on every run",
        ".curlrc .wgetrc .gdbinit .lldbinit .tmux.conf .screenrc .rpmmacros .config/pip/ \
         .pip/ .docker/",
    ),
];

/// Folders of the system. A workspace within one is the user's own.
pub(super) const SYSTEM: &[&str] = &[
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/boot",
    "/efi",
    "/dev",
    "/proc",
    "/sys",
    "/snap",
    "/nix",
    "/System",
    "/Library",
    "/Applications",
    "/private/etc",
    "/Windows",
    "/var/spool",
    "/var/lib",
    "/var/run",
    "/run",
    "/opt",
];

/// Names that look like environment files and are made to be shown.
pub(super) const EXAMPLES: &[&str] = &[
    ".env.example",
    ".env.*.example",
    ".env.sample",
    ".env.*.sample",
    ".env.template",
    ".env.dist",
    ".env.defaults",
    ".env.schema",
    "example.env",
    "sample.env",
    "template.env",
    "*.pub",
    "cacert.pem",
];

/// Folders whose certificates and examples are for everybody.
pub(super) const PUBLIC: &[&str] =
    &["/usr", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust", "/etc/ca-certificates"];

/// Folders that programs use for what need not last.
pub(super) const TEMPORARY: &[&str] =
    &["/tmp", "/var/tmp", "/dev/shm", "/private/tmp", "/private/var/tmp", "/private/var/folders"];

/// Where people keep their own.
pub(super) const PEOPLE: &[&str] =
    &["/home", "/root", "/Users", "/mnt", "/media", "/Volumes", "/run/media", "/run/user", "/net"];

/// Memory, disks and terminals as they are.
pub(super) const RAW: &[&str] = &["/dev"];

/// Devices that hold nothing, and the command's own inlets and outlets.
pub(super) const SINKS: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/tty",
];

/// Folders in a home that hold what was downloaded for everybody.
pub(super) const CACHES: &[&str] = &[
    ".cargo/registry",
    ".cargo/git",
    ".cargo/bin",
    ".rustup",
    "go/pkg",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".sdkman",
    ".asdf",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    ".local/share/pnpm",
    ".m2/repository",
    ".gradle/caches",
    ".npm/_cacache",
    ".cache/pip",
    ".cache/uv",
    ".cache/go-build",
    ".cache/yarn",
    ".cache/pypoetry",
    ".bun/install",
    ".deno",
    ".pub-cache",
    ".nuget/packages",
    ".conda/pkgs",
    "miniconda3",
    "anaconda3",
    ".gem/ruby",
    ".julia/packages",
    ".opam",
    ".ghcup",
    ".cabal/packages",
    ".stack/snapshots",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::permission::meet::fold;

    #[test]
    fn places_are_written_as_paths_are_compared() {
        for (kind, texts) in SECRETS.iter().chain(GUARDED) {
            for text in texts.split_whitespace() {
                assert_eq!(fold(text.trim_matches('/')), text.trim_matches('/'), "{kind}");
                assert!(!place(kind, text).names.is_empty(), "{kind}: {text}");
            }
        }
    }
}
