//! Turns settings into what guards a session: permissions, sandbox, trials. `firewall_setup` makes the firewall.

use std::{
    ffi::OsString,
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_config::{
    FileTrust,
    settings::{self, Action, RuleSubject, Sandbox, SandboxNetwork, SandboxSettings},
};
use gnoma_core::{
    home,
    places::{self as core_places, CACHES, LocalPlaces, RuledPaths, WriteProtection},
    protocol::{Environment, SessionSpec},
};
use gnoma_engine::GatePlace;
use gnoma_guard::{
    permission::{self, Origin, Permissions, Rule},
    privacy::Privacy,
};
use gnoma_sandbox::{ReadScope, SCRUBBED, Strength, Support, launcher};
use gnoma_tools::Trials;

pub use crate::firewall_setup::{Keys, SecretSearch, build_firewall, secret_search};
use crate::{
    Folders as _, HostError, Result,
    places::{Places, resolve_path},
    project_settings::GuardSettings,
    readable_places,
    repositories::{BelongingRepositories, RepositoriesOnDisk, ServicePlaces, named_by_settings},
    trust_check::project_trust,
};

/// Returns the privacy of the session, which says what is saved of it.
pub fn to_privacy(settings: settings::Privacy) -> Privacy {
    if settings.incognito {
        Privacy::Incognito { local_only: settings.local_only }
    } else {
        Privacy::Normal
    }
}

/// Reports whether a variable is a provider's key: by its name, or by its value if the configuration takes a key
/// from it.
pub(crate) fn is_key(provider: &settings::Provider, name: &str, value: &str) -> bool {
    let mut keys = provider.api_keys.values();
    name.ends_with("_API_KEY")
        || name.ends_with("_AUTH_TOKEN")
        || keys.any(|key| key.expose() == value)
}

/// The tools whose rules have a pattern in brackets.
const PATTERN_TOOLS: [&str; 9] =
    ["bash", "web", "mcp", "agent", "skill", "fs.read", "fs.write", "fs.edit", "fs.list"];

/// The tool that a rule probably means, if its name is none of those that take a pattern.
fn misspelled_tool(rule: &str) -> Option<&'static str> {
    let (name, _) = rule.split_once('(')?;
    let name = name.trim();
    let is_known = PATTERN_TOOLS.contains(&name) || name.starts_with("fs.");
    gnoma_config::nearest_name(name, PATTERN_TOOLS.into_iter()).filter(|_| !is_known)
}

/// Reads the exceptions from the permission mode.
///
/// # Errors
/// A rule cannot be read: why, and where it is.
pub fn parse_permissions(settings: &GuardSettings) -> Result<Permissions> {
    let rules = settings.permission.rules.iter().map(|rule| -> Result<Rule> {
        let action = match rule.action {
            Action::Allow => permission::RuleAction::Allow,
            Action::Ask => permission::RuleAction::Ask,
            Action::Deny => permission::RuleAction::Deny,
        };
        let (tool, read) = match &rule.about {
            RuleSubject::Rule(text) => (text, Rule::parse(action, text, Origin::User)),
            RuleSubject::Text { tool, pattern } => {
                (tool, Rule::from_config(action, tool, pattern, Origin::User))
            }
        };
        read.map_err(|error| {
            // A command alone is a frequent slip.
            if tool.contains(' ') && !tool.contains(['(', '"', '\'']) {
                let place = &rule.place;
                let text = tool.escape_debug();
                return HostError::usage(format!(
                    "cannot use `permission.rules` ({place}): `{text}` is not a rule; write it as `bash({text})`"
                ));
            }
            let near = misspelled_tool(tool);
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let place = &rule.place;
            HostError::usage(format!("cannot use `permission.rules` ({place}): {error}{near}"))
        })
    });
    let permissions = Permissions::new(rules.collect::<Result<_>>()?);
    Ok(if settings.permission.confirm_bypass { permissions.confirm_bypass() } else { permissions })
}

/// The folder of the layers within the state folder, and within a repository's own.
const TRIALS: &str = "trials";

/// Returns the place of the layers over a workspace in the state folder.
pub(crate) fn trial_layers(environment: &Environment, root: &Path) -> PathBuf {
    let key = gnoma_store::project_key(&root.display().to_string());
    environment.state_dir().join(TRIALS).join(key)
}

/// Runs a session's commands on trial; `None` without a sandbox. The layers go into the session's memory, where
/// it has some; otherwise to the state folder, to git's own folder, beside the workspace, or to the runtime folder, whichever
/// works first. `copies`: see [`GatePlace::copies`].
#[must_use]
pub fn build_trials(
    settings: &GuardSettings,
    places: &Places,
    spec: &SessionSpec,
    copies: Vec<(PathBuf, PathBuf)>,
    rules: Option<Arc<dyn RuledPaths>>,
) -> Option<Arc<Trials>> {
    if settings.sandbox.mode == Sandbox::Off {
        return None;
    }
    let root = resolve_path(&spec.folder);
    let key = gnoma_store::project_key(&root.display().to_string());
    let mut folders = vec![trial_layers(&spec.environment, &root)];
    let git = root.join(".git");
    folders.extend(git.is_dir().then(|| git.join("gnoma").join(TRIALS)));
    let beside = root.file_name().map(|name| format!(".{}.gnoma-trials", name.to_string_lossy()));
    folders.extend(beside.and_then(|name| Some(root.parent()?.join(name))));
    // The user's own, and in memory.
    let runtime = spec.environment.get("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute());
    folders.extend(runtime.map(|folder| folder.join("gnoma").join(TRIALS).join(&key)));
    let roots = spec_roots(spec);
    let updated = settings.sandbox.build_output.clone();
    let memory = places.memory.clone();
    let trials = Trials::new(launcher::ITSELF.into(), roots.collect(), folders)
        .with_scratch(readable_places::scratch_place(&spec.environment, memory.clone()));
    let trials = match memory {
        Some(memory) => trials.in_memory(memory),
        None => trials,
    };
    let local = local_places(places, spec, copies, rules);
    Some(Arc::new(trials.with_updated_folders(updated).with_local_places(local)))
}

/// The places of this machine that need a person to be changed. `copies`: see [`GatePlace::copies`].
pub(crate) fn local_places(
    places: &Places,
    spec: &SessionSpec,
    copies: Vec<(PathBuf, PathBuf)>,
    rules: Option<Arc<dyn RuledPaths>>,
) -> LocalPlaces {
    let home = spec.environment.home();
    let homes: Vec<_> = home.iter().cloned().chain(home.as_deref().map(resolve_path)).collect();
    let copied = copies.iter().map(|(_, original)| original.clone());
    let worked_on: Vec<_> = spec_roots(spec).chain(copied).collect();
    LocalPlaces {
        works_at_home: homes.iter().any(|home| worked_on.iter().any(|it| home.starts_with(it))),
        homes,
        own: own_folders(places, &spec.environment).iter().map(|own| resolve_path(own)).collect(),
        programs: program_folders(spec),
        copies,
        rules,
    }
}

/// The folders of the workspace, links followed.
fn spec_roots(spec: &SessionSpec) -> impl Iterator<Item = PathBuf> {
    std::iter::once(&spec.folder).chain(&spec.more_folders).map(|path| resolve_path(path))
}

/// The folders in which programs are searched for, and those that settings of the workspace's repositories name, links
/// followed. One that holds the workspace says nothing about the files in it.
fn program_folders(spec: &SessionSpec) -> Vec<PathBuf> {
    let path = spec.environment.get("PATH").unwrap_or_default();
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    let roots = std::iter::once(&spec.folder).chain(&spec.more_folders);
    let of_git = roots.flat_map(|root| named_by_settings(root));
    let folders =
        folders.chain(of_git).take(MAX_PROGRAM_FOLDERS).map(|folder| resolve_path(&folder));
    folders.filter(|folder| !spec.folder.starts_with(folder)).collect()
}

/// Describes the place where a session works.
#[must_use]
pub fn gate_place(
    settings: &GuardSettings,
    places: &Places,
    spec: &SessionSpec,
    trials: Option<Arc<Trials>>,
    rules: Option<Arc<dyn RuledPaths>>,
) -> GatePlace {
    let services = ServicePlaces::from_environment(&spec.environment);
    let roots =
        std::iter::once(&spec.folder).chain(&spec.more_folders).map(|path| resolve_path(path));
    let belonging = BelongingRepositories::new(spec.environment.home());
    let repositories = RepositoriesOnDisk::new(services, trials.clone())
        .of_workspace(roots.collect(), belonging)
        .with_rules(rules);
    GatePlace {
        can_try: Box::new(move || {
            trials.as_ref().is_some_and(|all| all.unavailable_reason().is_none())
        }),
        cwd: spec.folder.clone(),
        roots: std::iter::once(&spec.folder).chain(&spec.more_folders).cloned().collect(),
        home: spec.environment.home(),
        config_dirs: own_folders(places, &spec.environment),
        programs: program_folders(spec),
        copies: Vec::new(),
        // Without a file there is nothing that would need trust.
        trusted: matches!(settings.trust, None | Some(FileTrust::Trusted)),
        sandboxed: settings.sandbox.mode != Sandbox::Off,
        network_is_walled: network_is_walled(&settings.sandbox),
        resolve: Box::new(resolve_path),
        list: Box::new(names_in),
        repositories: Box::new(repositories),
    }
}

/// Most folders of programs that are looked at.
const MAX_PROGRAM_FOLDERS: usize = 256;
/// Most names of a folder that a pattern of a command is compared with.
const MAX_NAMES: usize = 10_000;

/// The names in a folder; `None` where they cannot be told or are too many.
fn names_in(folder: &Path) -> Option<Vec<OsString>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Some(Vec::new());
        }
        Err(_) => return None,
    };
    let names: Result<Vec<_>, _> =
        entries.take(MAX_NAMES + 1).map(|entry| entry.map(|entry| entry.file_name())).collect();
    names.ok().filter(|names| names.len() <= MAX_NAMES)
}

/// The folders that belong to gnoma alone.
fn own_folders(places: &Places, environment: &Environment) -> Vec<PathBuf> {
    let (config, state) = (environment.config_dir(), environment.state_dir());
    let elsewhere = Some(places.vault.clone()).filter(|vault| !vault.starts_with(&state));
    [config, state].into_iter().chain(elsewhere).collect()
}

/// Builds the sandbox around commands.
pub fn build_sandbox(
    settings: &GuardSettings,
    places: &Places,
    spec: &SessionSpec,
    trials: Option<Arc<Trials>>,
) -> gnoma_tools::Sandbox {
    let sandbox = &settings.sandbox;
    if sandbox.mode == Sandbox::Off {
        return gnoma_tools::Sandbox::Off;
    }
    let environment = &spec.environment;
    let home = environment.home().unwrap_or_default();
    let at_home = core_places::hidden_at_home().filter_map(|name| place_at_home(&home, name));
    let hidden: Vec<_> = at_home.chain(own_folders(places, environment)).collect();
    let plugins = Some(environment.plugins_dir()).filter(|folder| folder.exists());
    let policy = gnoma_sandbox::Policy {
        writable: writable_places(sandbox, environment, &home),
        protected: hidden.iter().cloned().chain(held_at_home(&home)).chain(plugins).collect(),
        readable: ReadScope::Except(hidden),
        network: sandbox.network == SandboxNetwork::Always,
        scrub: SCRUBBED.map(str::to_owned).to_vec(),
        // Trust in a project includes the hooks of its repository.
        git_hardening: settings.trust.unwrap_or_else(|| project_trust(spec)) != FileTrust::Trusted,
        ..gnoma_sandbox::Policy::default()
    };
    let readable: Vec<_> = expand_paths(&sandbox.readable, &home).collect();
    gnoma_tools::Sandbox::Walled {
        launcher: launcher::ITSELF.into(),
        policy: Box::new(policy),
        required: sandbox.mode == Sandbox::Required,
        trials,
        network_on_grant: sandbox.network != SandboxNetwork::Never,
        too_wide: vec![resolve_path(&home)],
        repositories: Arc::new(BelongingRepositories::new(environment.home())),
        reading: Box::new(readable_places::reading_places(
            environment,
            &readable,
            places.memory.clone(),
        )),
    }
}

/// Returns the place of that name in the home folder; `None` if the home is unknown.
fn place_at_home(home: &Path, name: &str) -> Option<PathBuf> {
    Some(home.join(name)).filter(|path| path.is_absolute())
}

/// Returns the paths of settings, with `~` replaced by the home folder.
fn expand_paths(paths: &[String], home: &Path) -> impl Iterator<Item = PathBuf> {
    paths.iter().map(move |path| home::expand(path, Some(home), Path::new("")))
}

/// Returns the folders outside the workspace that commands may write in, links followed.
fn writable_places(
    sandbox: &SandboxSettings,
    environment: &Environment,
    home: &Path,
) -> Vec<PathBuf> {
    let mut writable = vec![PathBuf::from("/tmp"), PathBuf::from("/var/tmp")];
    let temporary = environment.get("TMPDIR").map(PathBuf::from);
    // What is below those is the session's.
    let is_apart = |path: &PathBuf| !["/tmp", "/var/tmp"].iter().any(|it| path.starts_with(it));
    writable.extend(temporary.filter(is_apart));
    writable.extend(CACHES.iter().filter_map(|name| place_at_home(home, name)));
    writable.extend(readable_places::caches_by_variable(environment));
    writable.extend(expand_paths(&sandbox.writable, home));
    // Found once: a link that takes such a place later leads nowhere.
    let mut writable: Vec<_> = writable.iter().map(|path| resolve_path(path)).collect();
    writable.retain(|path| path.is_absolute() && !resolve_path(home).starts_with(path));
    writable
}

/// Lists the files below the home that decide over later runs of other programs: they are read-only even if the
/// home itself is the workspace.
fn held_at_home(home: &Path) -> impl Iterator<Item = PathBuf> {
    let all =
        [WriteProtection::Always, WriteProtection::AtHome, WriteProtection::Present].into_iter();
    let all = all.flat_map(|hold| core_places::held_at_home(hold).map(move |name| (hold, name)));
    let found = all.map(move |(hold, name)| (hold, home.join(name)));
    // What must not be made is held without being there.
    let found = found.filter(|(hold, path)| {
        *hold != WriteProtection::Present || path.symlink_metadata().is_ok()
    });
    found.map(|(_, path)| path).filter(|path| path.is_absolute())
}

/// Returns a check of whether the sandbox keeps a command off the network unless the network was granted. The check
/// is made when a secret is about to be handed to a command.
fn network_is_walled(sandbox: &SandboxSettings) -> Box<dyn Fn() -> bool + Send + Sync> {
    let wanted = sandbox.mode != Sandbox::Off && sandbox.network != SandboxNetwork::Always;
    Box::new(move || wanted && Support::detect().strength == Strength::Full)
}
