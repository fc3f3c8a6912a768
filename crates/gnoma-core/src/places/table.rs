//! The places, as data. How they are written stands in [`super`].

use super::group::{Group, SecretVisibility, WriteProtection};

/// The places that hold something that should not be shown.
pub const SECRETS: &[Group<SecretVisibility>] = &[
    Group {
        kind: "an environment file",
        walls: SecretVisibility::NotForReading,
        names: ".env .env.* .env_* .env-* .env?copy* .env?(*) .env1 .env2 .env3 *.env .envrc .flaskenv .dev.vars",
    },
    Group {
        kind: "keys of ssh",
        walls: SecretVisibility::Hidden,
        names: ".ssh/ id_rsa id_dsa id_ecdsa id_ed25519 id_ecdsa_sk id_ed25519_sk",
    },
    Group {
        kind: "a key file",
        walls: SecretVisibility::NotForReading,
        names: "*.pem *.key *.p8 *.p12 *.pfx *.jks *.keystore *.ppk *.kdb *.kdbx *.1pux *.agekey \
                *.keytab private.asc *private-key.asc *private_key.asc *secret-key.asc *secret_key.asc \
                secret.asc wallet.dat",
    },
    Group {
        kind: "stored credentials",
        walls: SecretVisibility::Hidden,
        names: ".netrc _netrc .pgpass pgpass.conf .my.cnf .mylogin.cnf .pypirc .git-credentials \
                .config/git/credentials .boto .s3cfg .vault-token .dockercfg .docker/config.json \
                .aws/credentials .aws/sso/ .aws/cli/cache/ .azure/ .config/gcloud/ .oci/ \
                .databrickscfg .kube/ .config/gh/hosts.yml .config/hub .config/glab-cli/ \
                .config/rclone/ .config/doctl/ .config/stripe/ .fly/config.yml .config/heroku/ \
                .terraform.d/credentials.tfrc.json .gem/credentials .cargo/credentials \
                .cargo/credentials.toml .composer/auth.json .codex/auth.json \
                .claude/.credentials.json .gemini/oauth_creds.json \
                .local/share/opencode/auth.json .config/openai/ .huggingface/token \
                .cache/huggingface/token .snowsql/config .config/op/ .config/containers/auth.json \
                .config/gopass/ .config/Bitwarden?CLI/ .pulumi/credentials.json \
                .config/ngrok/ .ngrok2/ .config/1Password/",
    },
    // Programs that build and test read these on every run, from the home too.
    Group {
        kind: "stored credentials",
        walls: SecretVisibility::NotForReading,
        names: ".npmrc .htpasswd .aws/config kubeconfig .terraformrc .m2/settings.xml \
                .m2/settings-security.xml .gradle/gradle.properties .bundle/config \
                .nuget/NuGet.Config .claude.json .dockerconfigjson .sentryclirc .netlify/state.json \
                .vault_pass .vault_pass.* .vault-pass .vault_password .vault_password.* vault_pass \
                vault_pass.txt vault-pass.txt vault_password.txt rclone.conf accessKeys.csv *_accessKeys.csv \
                rootkey.csv kubeconfig.yaml kubeconfig.yml *.kubeconfig storageState.json \
                playwright/.auth/ credentials credentials.json credentials.yml \
                credentials.yaml credentials.toml client_secret*.json service-account*.json \
                service_account*.json application_default_credentials.json secrets.json \
                secrets.yml secrets.yaml secrets.toml secret.json secret.yml secret.yaml \
                *.tfvars terraform.tfvars.json *.tfstate *.tfstate.backup config/database.yml \
                wp-config.php local.settings.json appsettings.secrets.json \
                .Xauthority .ICEauthority",
    },
    // Without it no command of git would run.
    Group { kind: "stored credentials", walls: SecretVisibility::Seen, names: ".git/config" },
    Group {
        kind: "a key store",
        walls: SecretVisibility::Hidden,
        names: ".gnupg/ .password-store/ .local/share/keyrings/ .local/share/kwalletd/ \
                Library/Keychains/ .config/sops/age/ .config/solana/ .ethereum/keystore/ \
                .bitcoin/ .electrum/",
    },
    Group {
        kind: "a browser's profile",
        walls: SecretVisibility::Hidden,
        names: ".mozilla/ .thunderbird/ .config/google-chrome/ .config/chromium/ \
                .config/BraveSoftware/ .config/microsoft-edge/ .config/vivaldi/ \
                Library/Application?Support/Google/Chrome/ \
                Library/Application?Support/Firefox/ \
                Library/Application?Support/BraveSoftware/ Library/Cookies/ Library/Safari/ \
                AppData/Local/Google/Chrome/ AppData/Local/Microsoft/Edge/ \
                AppData/Roaming/Mozilla/ snap/firefox/ .var/app/org.mozilla.firefox/",
    },
    Group {
        kind: "a history of what was typed",
        walls: SecretVisibility::Hidden,
        names: ".bash_history .zsh_history .zhistory .histfile .history .sh_history .ksh_history \
                .local/share/fish/fish_history fish_history .python_history .node_repl_history \
                .psql_history .mysql_history .sqlite_history .rediscli_history .irb_history \
                .viminfo ConsoleHost_history.txt",
    },
    Group {
        kind: "secrets of the system",
        walls: SecretVisibility::Seen,
        names: "/etc/shadow /etc/shadow- /etc/gshadow /etc/gshadow- /etc/master.passwd \
                /etc/sudoers /etc/sudoers.d/ /etc/security/opasswd /etc/ssh/ssh_host_*_key \
                /etc/ssl/private/ /etc/pki/tls/private/ /etc/krb5.keytab /etc/wireguard/ \
                /etc/NetworkManager/system-connections/ /etc/wpa_supplicant/ /etc/openvpn/ \
                /etc/kubernetes/admin.conf /etc/rancher/ /run/secrets/ /var/run/secrets/ \
                /run/credentials/ /var/lib/kubelet/ /var/lib/docker/ /Library/Keychains/",
    },
    Group { kind: "keys of ssh", walls: SecretVisibility::NotForReading, names: "ssh_host_*_key" },
    Group {
        kind: "a browser's profile",
        walls: SecretVisibility::NotForReading,
        names: "Login?Data key3.db key4.db",
    },
    Group {
        kind: "memory and environment of a process",
        walls: SecretVisibility::Seen,
        names: "/proc/*/environ /proc/*/mem /proc/*/task/ /proc/*/fd/ /proc/*/root/ /proc/*/cwd/ \
                /proc/*/map_files/ /proc/kcore /proc/keys /proc/kmsg",
    },
    Group { kind: "gnoma's own files", walls: SecretVisibility::NotForReading, names: ".gnoma/" },
];

/// The places that decide over later runs of this or other programs, so that only changing them matters.
pub const GUARDED: &[Group<WriteProtection>] = &[
    // Git runs hooks and what its configuration names; submodules keep theirs below `modules`.
    Group {
        kind: "inside git's own folder",
        walls: WriteProtection::Always,
        names: ".git/hooks/ .git/config .git/config.worktree .git/modules/",
    },
    // Committing writes to the rest of it. A repository without a work tree is named like `x.git`.
    Group {
        kind: "inside git's own folder",
        walls: WriteProtection::Never,
        names: ".git/ *.git/hooks/ *.git/config",
    },
    Group {
        kind: "which git reads on every run",
        walls: WriteProtection::AtHome,
        names: ".gitconfig .config/git/",
    },
    Group {
        kind: "which version control reads on every run",
        walls: WriteProtection::Present,
        names: ".githooks/ .husky/ .hg/hgrc .jj/repo/config.toml",
    },
    Group {
        kind: "settings of a coding agent",
        walls: WriteProtection::Always,
        names: ".gnoma/ .claude/ .codex/ .cursor/ .gemini/ .kiro/ .opencode/ .windsurf/ .mcp.json \
                opencode.json",
    },
    Group {
        kind: "settings of a coding agent",
        walls: WriteProtection::Present,
        names: ".continue/ .roo/ .cline/ .kilocode/ opencode.jsonc .config/opencode/ .crush/ \
                crush.json .crush.json .goose/ .config/goose/ .vibe/ .qwen/ .amazonq/ .junie/ \
                .trae/ .copilot/ .pi/ .amp/ .openhands/ .aider.conf.yml .config/github-copilot/ \
                .agents/ .factory/ .augment/ .github/hooks/ .github/agents/",
    },
    Group {
        kind: "settings of an editor that runs them",
        walls: WriteProtection::Always,
        names: ".vscode/ .idea/",
    },
    Group {
        kind: "settings of an editor that runs them",
        walls: WriteProtection::Present,
        names: ".zed/ .fleet/ .devcontainer/ .devcontainer.json *.code-workspace .exrc .vimrc .nvimrc \
                .nvim.lua .lvimrc .vim/ .config/nvim/ .emacs .emacs.d/ .dir-locals.el .helix/ .theia/ \
                .nova/",
    },
    Group {
        kind: "which a shell runs when it starts",
        walls: WriteProtection::AtHome,
        names: ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc \
                .zshenv .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .logout \
                .config/fish/ .inputrc .direnvrc Microsoft.PowerShell_profile.ps1",
    },
    // Present: so many folders would be held on their own at a home that has none of them.
    Group {
        kind: "which a shell runs when it starts",
        walls: WriteProtection::Present,
        names: ".bash_completion .bashrc.d/ .bash.d/ .bash_it/ .bash-it/ .zshrc.d/ .oh-my-zsh/ .oh-my-bash/ \
                .zprezto/ .zpreztorc .zim/ .zimrc .zinit/ .antigen/ .p10k.zsh .fzf.bash .fzf.zsh .zsh_aliases \
                .aliases .xonshrc .rc.elv .config/zsh/ .config/bash/ .config/nushell/ .config/xonsh/ \
                .config/elvish/ .config/powershell/ .config/starship.toml .config/direnv/ \
                .local/share/bash-completion/ .local/share/zinit/ .local/share/fish/vendor_conf.d/ \
                .local/share/omf/ .config/tmux/ .config/kitty/ .config/alacritty/ .config/wezterm/ .wezterm.lua",
    },
    Group {
        kind: "which is run or read at log-in",
        walls: WriteProtection::AtHome,
        names: ".pam_environment .xinitrc .xprofile .xsession .xsessionrc .config/autostart/ \
                .config/environment.d/ .config/systemd/ .local/share/systemd/ \
                Library/LaunchAgents/ Library/LaunchDaemons/",
    },
    Group {
        kind: "which a tool obeys on every run",
        walls: WriteProtection::Present,
        names: ".curlrc .wgetrc .gdbinit .lldbinit .tmux.conf .screenrc .rpmmacros .config/pip/ \
                .pip/ .docker/",
    },
    // Tools write these themselves.
    Group {
        kind: "which a tool obeys on every run",
        walls: WriteProtection::Never,
        names: ".cargo/config .cargo/config.toml rust-toolchain rust-toolchain.toml .mvn/ mvnw mvnw.cmd \
                gradle/wrapper/ gradlew gradlew.bat .mise.toml mise.toml \
                .mise.local.toml mise.local.toml .mise/ .config/mise/ .rtx.toml \
                .tool-versions .asdfrc .rvmrc .yarnrc .yarnrc.yml .yarn/releases/ .yarn/plugins/ \
                .pnpmfile.cjs bunfig.toml .bazeliskrc .pdbrc sitecustomize.py usercustomize.py",
    },
    Group {
        kind: "which an interpreter runs when it starts here",
        walls: WriteProtection::Never,
        names: ".irbrc .pryrc .byebugrc .Rprofile .Renviron .ghci .octaverc",
    },
    // They name what hooks of version control run, or where it fetches from.
    Group {
        kind: "which version control obeys",
        walls: WriteProtection::Never,
        names: ".gitmodules .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml \
                lefthook.toml .lefthook.yml .lefthook.yaml .lefthook.toml lefthook-local.yml \
                .lefthook-local.yml .overcommit.yml .simple-git-hooks.json .huskyrc .huskyrc.json \
                .huskyrc.js .lintstagedrc .lintstagedrc.*",
    },
    // Rules that agents take for their person's word.
    Group {
        kind: "rules of a coding agent",
        walls: WriteProtection::Present,
        names: ".cursorrules .clinerules/ .windsurfrules .roorules .roorules-* .kilocoderules .goosehints \
                .rules .roomodes .agent/rules/ .aiassistant/rules/ .augment-guidelines \
                .github/copilot-instructions.md",
    },
    // Version control changes those with the rest of a checkout.
    Group {
        kind: "instructions of a coding agent",
        walls: WriteProtection::Never,
        names: "AGENTS.md AGENTS.override.md AGENTS.local.md AGENT.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md \
                CRUSH.md CRUSH.local.md CODEX.md COPILOT.md WARP.md JULES.md AMP.md KIMI.md IFLOW.md \
                .github/instructions/ .github/prompts/ .github/chatmodes/",
    },
    Group {
        kind: "which decides what your programs are",
        walls: WriteProtection::AtHome,
        names: "~/.local/bin/ ~/bin/ ~/.cargo/bin/ ~/.cargo/config.toml ~/.npmrc",
    },
    // Of version managers, which choose the programs, and where package managers install them.
    Group {
        kind: "which decides what your programs are",
        walls: WriteProtection::Present,
        names: "~/.nvm/ ~/.volta/ ~/.fnm/ ~/.local/share/fnm/ ~/.nodenv/ ~/.nodebrew/ ~/n/bin/ ~/.n/bin/ \
                ~/.pyenv/ ~/.rye/ ~/.rbenv/ ~/.rvm/ ~/.sdkman/ ~/.jenv/ ~/.jabba/ ~/.asdf/ \
                ~/.local/share/mise/ ~/.local/share/rtx/ ~/.proto/ ~/.goenv/ ~/.gvm/ ~/.phpenv/ ~/.phpbrew/ \
                ~/.plenv/ ~/.perlbrew/ ~/.tfenv/ ~/.tgenv/ ~/.dvm/ ~/.bun/bin/ ~/.deno/bin/ ~/.dotnet/ ~/go/bin/ \
                ~/.npm-global/ ~/.yarn/bin/ ~/.config/yarn/global/ ~/.local/share/pnpm/bin/ \
                ~/.composer/vendor/bin/ ~/.config/composer/vendor/bin/ ~/.rustup/toolchains/ ~/.rustup/settings.toml \
                ~/.cargo/env ~/.ghcup/ ~/.cabal/bin/ ~/.stack/programs/ ~/.opam/ ~/.juliaup/ ~/.elan/ ~/.swiftly/ \
                ~/.krew/bin/ ~/.linuxbrew/ ~/.nix-profile ~/.nix-defexpr/ ~/.fzf/ ~/.local/sbin/ ~/sbin/ \
                ~/.local/share/applications/ ~/.local/share/pipx/ ~/.local/share/uv/tools/ ~/.config/pypoetry/ \
                ~/miniconda3/ ~/anaconda3/ ~/miniforge3/ ~/mambaforge/ ~/.condarc",
    },
    // Whatever manages programs at home keeps them so.
    Group {
        kind: "which decides what your programs are",
        walls: WriteProtection::Never,
        names: "~/.*/bin/ ~/.*/shims/ ~/.local/share/*/bin/ ~/.local/share/*/shims/ ~/.local/opt/",
    },
];

/// Names that look like secrets and are made to be shown.
pub const EXAMPLES: &[&str] = &[
    ".env?*.py",
    ".env?*.sh",
    ".env?*.js",
    ".env?*.ts",
    ".env?*.rs",
    ".env.example",
    ".env.*.example",
    ".env.sample",
    ".env.*.sample",
    ".env.template",
    ".env.dist",
    ".env.defaults",
    ".env.schema",
    ".env?example",
    ".env?sample",
    ".env?template",
    ".env?dist",
    ".env?defaults",
    ".env?schema",
    "example.env",
    "sample.env",
    "template.env",
    "*.pub",
    // Certificates are for everybody; what holds a key as well is named for that, or for its server.
    "cert.pem",
    "*-cert.pem",
    "*_cert.pem",
    "*.cert.pem",
    "*.crt.pem",
    "cacert.pem",
    "ca.pem",
    "*-ca.pem",
    "ca-bundle.pem",
    "chain.pem",
    "fullchain.pem",
];

/// Folders of the home that programs keep what they have fetched in: everybody's to read, and
/// commands may write there. Not the whole of `.cache`: shells source files from it.
pub const CACHES: &[&str] = &[
    ".cache/bazel",
    ".cache/ccache",
    ".cache/deno",
    ".cache/go-build",
    ".cache/mypy",
    ".cache/node",
    ".cache/pip",
    ".cache/pypoetry/cache",
    ".cache/sccache",
    ".cache/typescript",
    ".cache/uv",
    ".cache/yarn",
    ".cargo/registry",
    ".cargo/git",
    ".npm/_cacache",
    ".npm/_logs",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    ".bun/install/cache",
    "go/pkg/mod",
    ".gradle/caches",
    ".gradle/daemon",
    ".gradle/native",
    ".gradle/notifications",
    ".gradle/workers",
    ".gradle/wrapper",
    ".m2/repository",
    ".nuget/packages",
];

/// Folders of the home with a dot that hold data, programs that [`GUARDED`] knows, and what people work on.
pub const WORKED_ON_AT_HOME: &[&str] = &[".local", ".dotfiles", ".worktrees"];

/// Folders of the home with programs and libraries that were installed: everybody's to read, and
/// nobody's to write.
pub const TOOL_CHAINS: &[&str] = &[
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
    ".cache/pypoetry",
    ".bun/install",
    ".deno",
    ".pub-cache",
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

/// Folders of the home, and git's own settings, that commands which run unasked see besides
/// [`CACHES`] and [`TOOL_CHAINS`]: nothing that holds a token.
pub const SHOWN_AT_HOME: &[&str] = &[
    ".gitconfig",
    ".gitignore",
    ".gitignore_global",
    ".gitattributes",
    ".config/git/config",
    ".config/git/ignore",
    ".config/git/attributes",
    ".cargo/config.toml",
    ".cargo/env",
    ".local/bin",
    ".local/share/pipx",
    ".local/state/nix",
    ".nix-profile",
    ".volta",
    ".terminfo",
    ".tool-versions",
    ".config/ripgrep",
    ".config/bat",
    ".config/fd",
];

/// Folders of the system with programs, what they need, and what they say about the machine.
pub const PROGRAMS: &[&str] = &[
    "/bin",
    "/boot",
    "/etc",
    "/gnu",
    "/home/linuxbrew/.linuxbrew",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/run/booted-system",
    "/run/current-system",
    "/run/opengl-driver",
    "/run/wrappers",
    "/sbin",
    "/snap",
    "/sys",
    "/usr",
    "/var/cache/fontconfig",
    "/var/cache/ldconfig",
    "/var/cache/man",
    "/var/lib/apk",
    "/var/lib/apt",
    "/var/lib/dpkg",
    "/var/lib/pacman",
    "/var/lib/rpm",
    // macOS
    "/Applications",
    "/Library",
    "/System",
    "/private/etc",
    "/private/var/db/dyld",
];

/// Variables that say where [`CACHES`] lie, each with what of such a folder is one (`.` for all of it).
pub const CACHES_BY_VARIABLE: &[(&str, &str)] = &[
    ("CCACHE_DIR", "."),
    ("COMPOSER_CACHE_DIR", "."),
    ("GOCACHE", "."),
    ("GRADLE_USER_HOME", "caches daemon native notifications workers wrapper"),
    ("NUGET_PACKAGES", "."),
    ("PIP_CACHE_DIR", "."),
    ("SCCACHE_DIR", "."),
    ("UV_CACHE_DIR", "."),
    ("YARN_CACHE_FOLDER", "."),
    ("npm_config_cache", "."),
];

/// Variables that say where tool chains and their caches lie, each with what of such a folder commands
/// that run unasked see (`.` for all of it): not where tokens are kept.
pub const CONFIGURED_BY_VARIABLE: &[(&str, &str)] = &[
    ("ANDROID_HOME", "."),
    ("ANDROID_SDK_ROOT", "."),
    ("ASDF_DATA_DIR", "."),
    ("ASDF_DIR", "."),
    ("BAT_CONFIG_PATH", "."),
    ("BUN_INSTALL", "bin install"),
    ("CARGO_HOME", "bin config config.toml env git registry"),
    ("CONDA_PREFIX", "."),
    ("DENO_DIR", "."),
    ("DENO_INSTALL_ROOT", "."),
    ("DOTNET_ROOT", "."),
    ("FLUTTER_ROOT", "."),
    ("FNM_DIR", "."),
    ("GEM_HOME", "."),
    ("GIT_CONFIG_GLOBAL", "."),
    ("GOMODCACHE", "."),
    ("GOPATH", "bin pkg"),
    ("GOROOT", "."),
    ("GRADLE_HOME", "."),
    ("JAVA_HOME", "."),
    ("M2_HOME", "."),
    ("MAVEN_HOME", "."),
    ("MISE_DATA_DIR", "."),
    ("NVM_DIR", "."),
    ("N_PREFIX", "bin lib n"),
    ("OPAMROOT", "."),
    ("PIPX_HOME", "."),
    ("PNPM_HOME", "."),
    ("PYENV_ROOT", "."),
    ("RBENV_ROOT", "."),
    ("RIPGREP_CONFIG_PATH", "."),
    ("RUSTUP_HOME", "."),
    ("SDKMAN_DIR", "."),
    ("UV_CACHE_DIR", "."),
    ("UV_PYTHON_INSTALL_DIR", "."),
    ("UV_TOOL_DIR", "."),
    ("VIRTUAL_ENV", "."),
    ("VOLTA_HOME", "."),
];
