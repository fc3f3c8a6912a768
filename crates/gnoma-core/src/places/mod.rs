//! Places of a file system that matter, in one table for all who keep them: permissions, file tools
//! and the walls around commands.
//!
//! A place is a run of names as programs write them; case does not count. `*` and `?` stand for parts
//! of one name. It is looked for at the end of a path, or anywhere with all below it when it ends in
//! `/`; a leading `/` ties it to the root, a leading `~/` to the home. Whoever needs more than names,
//! such as links or a shell's patterns, brings it along; nothing here touches a disk.

mod group;
mod local;
mod rebuilt;
mod shape;
mod table;

use std::{
    collections::HashMap,
    path::{Component, Path},
    sync::LazyLock,
};

use crate::glob::glob_matches;

pub use group::{Group, SecretVisibility, WriteProtection};
pub use local::{
    HOME_SETTINGS, LocalPlaces, OWN_FILES, PROGRAM_FOLDER, RuledPaths, is_program, original_path,
};
pub use rebuilt::{CACHE_MARK, REBUILT_FOLDERS, is_output_beside};
pub use shape::{NameShape, name_shape};
pub use table::{
    CACHES, CACHES_BY_VARIABLE, CONFIGURED_BY_VARIABLE, EXAMPLES, GUARDED, PROGRAMS, SECRETS,
    SHOWN_AT_HOME, TOOL_CHAINS, WORKED_ON_AT_HOME,
};

/// True if these entries make a folder a git repository by itself, regardless of its name, or the part that several
/// repositories share.
#[must_use]
pub fn makes_repository(has: impl Fn(&str) -> bool) -> bool {
    has("objects") && has("refs") || has("HEAD") && has("commondir")
}

/// Returns the places at home that hold secrets and are hidden from commands, as paths below the home.
pub fn hidden_at_home() -> impl Iterator<Item = &'static str> {
    let hidden = SECRETS.iter().filter(|group| group.walls == SecretVisibility::Hidden);
    hidden.flat_map(Group::names).filter_map(below_home)
}

/// Returns the places at home that hold secrets and that commands without approval do not open, as paths below the
/// home.
pub fn secrets_at_home() -> impl Iterator<Item = &'static str> {
    let kept = SECRETS.iter().filter(|group| group.walls != SecretVisibility::Seen);
    kept.flat_map(Group::names).filter_map(below_home)
}

/// Returns the places of the system that hold secrets, as paths from the root; the last name may have a `*`.
pub fn secrets_of_system() -> impl Iterator<Item = &'static str> {
    SECRETS.iter().flat_map(Group::names).filter(|name| name.starts_with('/'))
}

/// Returns the places at home that commands cannot change, as paths below the home.
pub fn held_at_home(hold: WriteProtection) -> impl Iterator<Item = &'static str> {
    GUARDED
        .iter()
        .filter(move |group| group.walls == hold)
        .flat_map(Group::names)
        .filter_map(below_home)
}

/// Returns the places in a folder of the workspace that commands cannot change, as paths below it.
pub fn write_protected_names(hold: WriteProtection) -> impl Iterator<Item = &'static str> {
    GUARDED
        .iter()
        .filter(move |group| group.walls == hold)
        .flat_map(Group::names)
        .filter(|name| !name.starts_with('~'))
        .filter_map(below_home)
}

/// The path below a folder that a place must be at there; `None` when that is not one path.
fn below_home(name: &'static str) -> Option<&'static str> {
    let is_one = !name.starts_with('/') && !name.contains(['*', '?']);
    is_one.then(|| name.trim_start_matches("~/").trim_end_matches('/'))
}

/// A secret that a path leads to, by its names alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The description of the secret, as the end of a sentence.
    pub kind: &'static str,
    /// The visibility of the secret for commands.
    pub sight: SecretVisibility,
}

/// Returns the secret that the absolute or relative `path` holds, if it holds one that should not be shown.
#[must_use]
pub fn find_secret(path: &Path) -> Option<Secret> {
    static PLACES: LazyLock<PreparedPlaces<Secret>> = LazyLock::new(|| {
        PreparedPlaces::new(SECRETS, |group| Secret { kind: group.kind, sight: group.walls })
    });
    let mut names = path_names(path);
    let is_example = |last: &String| EXAMPLES.iter().any(|example| glob_matches(example, last));
    if names.last().is_some_and(is_example) {
        return None;
    }
    if let Some(secret) = PLACES.find_without_home(&names, path.has_root()) {
        return Some(*secret);
    }
    let last = names.last_mut()?;
    if let NameShape::Secret(kind) = name_shape(last) {
        return Some(Secret { kind, sight: SecretVisibility::NotForReading });
    }
    // A copy holds what the original does.
    *last = shape::numbered_original_of(last)?;
    let is_example = names.last().is_some_and(is_example);
    PLACES.find_without_home(&names, path.has_root()).filter(|_| !is_example).copied()
}

/// True if a folder holds secrets in all its files, regardless of their names.
#[must_use]
pub fn is_secret_folder(path: &Path) -> bool {
    /// No rule about the end of a path is about this name.
    const INSIDE: &str = "\u{1}";
    find_secret(&path.join(INSIDE)).is_some_and(|secret| secret.sight != SecretVisibility::Seen)
}

/// Returns a description of the absolute or relative `path` if its names say that changing it needs a person's
/// approval. Places of the home are found below `homes`, which are absolute. [`LocalPlaces::guard_reason`] knows more.
#[must_use]
pub fn guard_reason<P: AsRef<Path>>(path: &Path, homes: &[P]) -> Option<&'static str> {
    static PLACES: LazyLock<PreparedPlaces<&str>> =
        LazyLock::new(|| PreparedPlaces::new(GUARDED, |group| group.kind));
    let homes: Vec<_> = homes.iter().map(|home| path_names(home.as_ref())).collect();
    PLACES.find_from(&path_names(path), path.has_root(), &homes).copied()
}

/// True if programs of the person may read the absolute `path` when they start. These are names that begin with a
/// dot directly in a home, with all below them, apart from caches and folders that people work in.
#[must_use]
pub fn is_home_setting<P: AsRef<Path>>(path: &Path, homes: &[P]) -> bool {
    homes.iter().any(|home| {
        let below = path.strip_prefix(home.as_ref()).ok();
        let first = below.and_then(|below| below.components().next());
        let is_dotted = matches!(first, Some(Component::Normal(name))
            if name.as_encoded_bytes().starts_with(b"."));
        is_dotted && !below.is_some_and(is_plain_at_home)
    })
}

/// True if a path below the home is in a folder with a dot that holds no settings.
#[must_use]
pub fn is_plain_at_home(below: &Path) -> bool {
    CACHES.iter().chain(WORKED_ON_AT_HOME).any(|folder| below.starts_with(folder))
}

fn path_names(path: &Path) -> Vec<String> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_string_lossy().to_ascii_lowercase()),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// A place of a table, ready for comparing: searches ask about every file.
struct PreparedPlace<T> {
    names: Vec<String>,
    start: PlaceStart,
    below: bool,
    meaning: T,
}

/// The point from which the names of a place are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceStart {
    Anywhere,
    Root,
    Home,
}

/// All of a table, found by the name they begin with.
struct PreparedPlaces<T> {
    all: Vec<PreparedPlace<T>>,
    /// Those whose first name has no pattern, by it.
    by_name: HashMap<String, Vec<usize>>,
    /// The places whose first name has a pattern.
    by_pattern: Vec<usize>,
}

impl<T> PreparedPlaces<T> {
    fn new<W>(table: &'static [Group<W>], meaning: impl Fn(&Group<W>) -> T) -> Self {
        let mut places = Self { all: Vec::new(), by_name: HashMap::new(), by_pattern: Vec::new() };
        for group in table {
            places.all.extend(group.names().map(|text| {
                let (start, rest) = match text.strip_prefix("~/") {
                    Some(rest) => (PlaceStart::Home, rest),
                    None if text.starts_with('/') => (PlaceStart::Root, text),
                    None => (PlaceStart::Anywhere, text),
                };
                PreparedPlace {
                    names: rest
                        .split('/')
                        .filter(|name| !name.is_empty())
                        .map(str::to_ascii_lowercase)
                        .collect(),
                    start,
                    below: text.ends_with('/'),
                    meaning: meaning(group),
                }
            }));
        }
        for (number, place) in places.all.iter().enumerate() {
            match place.names.first() {
                Some(name) if !name.contains(['*', '?']) => {
                    places.by_name.entry(name.clone()).or_default().push(number);
                }
                Some(_) | None => places.by_pattern.push(number),
            }
        }
        places
    }

    /// Returns the meaning of the first place that the names lead to, among those that are tied to no home.
    fn find_without_home(&self, names: &[String], has_root: bool) -> Option<&T> {
        self.find_from(names, has_root, &[])
    }

    /// Returns the meaning of the first place that the names lead to.
    fn find_from(&self, names: &[String], has_root: bool, homes: &[Vec<String>]) -> Option<&T> {
        let named = names.iter().filter_map(|name| self.by_name.get(name)).flatten();
        let numbers = named.chain(&self.by_pattern);
        let there = |number: &&usize| {
            self.all.get(**number).is_some_and(|place| place.is_at(names, has_root, homes))
        };
        let first = numbers.filter(there).min();
        first.and_then(|number| self.all.get(*number)).map(|place| &place.meaning)
    }
}

impl<T> PreparedPlace<T> {
    fn is_at(&self, names: &[String], has_root: bool, homes: &[Vec<String>]) -> bool {
        let Some(last) = names.len().checked_sub(self.names.len()) else { return false };
        let begins = |at: usize| {
            let window = names.iter().skip(at);
            self.names.iter().zip(window).all(|(one, two)| glob_matches(one, two))
        };
        let begins_at =
            |at: usize| (if self.below { at <= last } else { at == last }) && begins(at);
        match self.start {
            PlaceStart::Anywhere if self.below => (0..=last).any(begins),
            PlaceStart::Anywhere => begins(last),
            PlaceStart::Root => has_root && begins_at(0),
            PlaceStart::Home => homes
                .iter()
                .any(|home| has_root && names.starts_with(home) && begins_at(home.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn kind(path: &str) -> Option<&'static str> {
        find_secret(Path::new(path)).map(|secret| secret.kind)
    }

    #[test]
    fn secret_files_are_recognized_by_their_path() {
        for (path, expected) in [
            ("/home/ada/work/.env", Some("an environment file")),
            ("certs/Server.PEM", Some("a key file")),
            ("a/.env.example", None),
            ("id_rsa.pub", None),
            ("id_rsa", Some("keys of ssh")),
            (".ssh/known_hosts", Some("keys of ssh")),
            ("/home/ada/.aws/credentials", Some("stored credentials")),
            ("/etc/ssh/ssh_host_rsa_key", Some("secrets of the system")),
            ("etc/shadow", None),
            ("/x/etc/shadow", None),
            ("/run/secrets/db/password", Some("secrets of the system")),
            ("Library/Application Support/Firefox/a", Some("a browser's profile")),
            ("service-account-prod.json", Some("stored credentials")),
            (".env copy", Some("an environment file")),
            (".env (copy)", Some("an environment file")),
            (".env2", Some("an environment file")),
            (".env_prod", Some("an environment file")),
            (".env-prod", Some("an environment file")),
            (".env_example", None),
            (".env-sample", None),
            (".flaskenv", Some("an environment file")),
            (".vault_pass", Some("stored credentials")),
            ("vault_pass.txt", Some("stored credentials")),
            ("private.asc", Some("a key file")),
            ("server.key.1", Some("a key file")),
            ("terraform.tfstate.3.backup", Some("stored credentials")),
            ("ssh_host_ed25519_key", Some("keys of ssh")),
            ("accessKeys.csv", Some("stored credentials")),
            ("ada_accessKeys.csv", Some("stored credentials")),
            ("rootkey.csv", Some("stored credentials")),
            ("kubeconfig.yaml", Some("stored credentials")),
            ("storageState.json", Some("stored credentials")),
            ("playwright/.auth/user.json", Some("stored credentials")),
            ("Default/Login Data", Some("a browser's profile")),
            ("key4.db", Some("a browser's profile")),
            ("rclone.conf", Some("stored credentials")),
            (".sentryclirc", Some("stored credentials")),
            ("old.kdb", Some("a key file")),
            ("export.1pux", Some("a key file")),
            ("settings.py", None),
            ("settings.xml", None),
            ("signature.asc", None),
            ("admin.conf", None),
            ("env.d.ts", None),
            ("libssl.so.3", None),
            ("environment.rs", None),
            ("", None),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
    }

    #[test]
    fn startup_and_config_files_are_guarded_at_any_depth() {
        for (path, is_guarded) in [
            (".vscode/tasks.json", true),
            ("app/.vscode/tasks.json", true),
            ("a/My.code-workspace", true),
            ("sub/.git/config", true),
            (".hg/hgrc", true),
            (".cargo/config.toml", true),
            (".mvn/jvm.config", true),
            ("sub/.gitmodules", true),
            (".clinerules", true),
            (".clinerules/a.md", true),
            ("gradle/wrapper/gradle-wrapper.jar", true),
            ("gradle/libs.versions.toml", false),
            ("src/config.toml", false),
            ("sitecustomize.py", true),
            ("vscode/a", false),
            ("mise.local.toml", true),
            (".mise.local.toml", true),
            (".agent/rules/a.md", true),
            (".aiassistant/rules/a.md", true),
            (".augment-guidelines", true),
            (".agent/plan.md", false),
            (".github/workflows/ci.yml", false),
            (".gitlab-ci.yml", false),
        ] {
            assert_eq!(guard_reason::<&str>(Path::new(path), &[]).is_some(), is_guarded, "{path}");
        }
    }

    #[test]
    fn home_bin_and_shell_files_are_guarded_only_below_the_home() {
        for (path, is_guarded) in [
            ("/home/ada/.local/bin/tool", true),
            ("/home/Ada/BIN/t2", true),
            ("/home/ada/.cargo/bin", true),
            ("/home/ada/.nvm/nvm.sh", true),
            ("/home/ada/.newmanager/shims/node", true),
            ("/home/ada/work/bin/t2", false),
            ("/home/ada/work/.local/bin/tool", false),
            ("/home/ada/.local/share/app/data", false),
            ("/home/adam/bin/t2", false),
            ("bin/t2", false),
            ("~/bin/t2", false),
        ] {
            let found = guard_reason(Path::new(path), &["/home/ada"]);
            assert_eq!(found.is_some(), is_guarded, "{path}");
        }
    }

    #[test]
    fn dotfiles_at_home_are_settings_except_caches_and_projects() {
        for (path, is_setting) in [
            ("/home/ada/.psqlrc", true),
            ("/home/ada/.forward", true),
            ("/home/ada/.config/emacs/init.el", true),
            ("/home/ada/.config/Code/User/tasks.json", true),
            ("/home/ada/.ipython/profile_default/startup/a.py", true),
            ("/home/ada/.cache/prompt.zsh", true),
            ("/home/ada/.cargo/registry/a", false),
            ("/home/ada/.local/share/app/data", false),
            ("/home/ada/.dotfiles/vim", false),
            ("/home/ada/work/.config/x", false),
            ("/home/adam/.psqlrc", false),
            ("/home/ada", false),
            (".psqlrc", false),
        ] {
            assert_eq!(is_home_setting(Path::new(path), &["/home/ada"]), is_setting, "{path}");
        }
    }

    #[test]
    fn guarded_path_tables_have_no_duplicates() {
        let secrets = SECRETS.iter().flat_map(Group::names);
        let guarded = GUARDED.iter().flat_map(Group::names);
        let mut seen = HashSet::new();
        for place in secrets.chain(CACHES.iter().copied()).chain(TOOL_CHAINS.iter().copied()) {
            assert!(seen.insert(place.to_lowercase()), "{place}");
        }
        let mut seen = HashSet::new();
        for place in guarded {
            assert!(seen.insert(place.to_lowercase()), "{place}");
        }
    }

    #[test]
    fn sandbox_writable_caches_contain_no_secret_or_write_protected_path() {
        for cache in CACHES {
            let cache = Path::new("/home/ada").join(cache);
            assert_eq!(find_secret(&cache), None, "{}", cache.display());
            let held = [WriteProtection::Always, WriteProtection::AtHome, WriteProtection::Present]
                .into_iter();
            for place in held.flat_map(held_at_home).map(|name| Path::new("/home/ada").join(name)) {
                assert!(!cache.starts_with(&place) && !place.starts_with(&cache), "{cache:?}");
            }
        }
    }

    #[test]
    fn sandbox_hidden_and_write_protected_names_are_plain_relative_paths() {
        let holds = [WriteProtection::Always, WriteProtection::AtHome, WriteProtection::Present]
            .into_iter();
        let all_held = holds.flat_map(|hold| write_protected_names(hold).chain(held_at_home(hold)));
        for name in hidden_at_home().chain(all_held) {
            let plain =
                Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
            assert!(plain && !name.contains(['*', '~']) && !name.ends_with('/'), "{name}");
        }
    }
}
