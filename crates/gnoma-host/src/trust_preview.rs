//! The preview of `gnoma trust`: commands, hooks, servers and settings that a trusted project would use.

use std::path::{Path, PathBuf};

use gnoma_config::{paths, pin};
use gnoma_core::{bounded_file, protocol::Environment};
use gnoma_extend::{
    ExtendPlaces, ExtensionSource,
    commands::inline_commands,
    hooks,
    mcp::{self, Definition, ServerFile, ServerReach},
    plugins::{PluginPlaces, find_plugins},
    tasks::parse_task,
};

use crate::{Folders as _, mcp::read_server_file, repositories::find_hook_programs};

/// The folder of a project's tasks.
const TASKS: &str = ".gnoma/tasks";
/// Most bytes of a file that is searched for commands.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// One part of what trust allows: a heading, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustSection {
    /// In plural, without a colon.
    pub heading: &'static str,
    /// The lines of the section, each about one thing.
    pub lines: Vec<String>,
}

/// Lists what trust in the project at `root` allows, apart from the settings in its own file, whose content is
/// `settings`.
///
/// # Errors
/// A file of the project cannot be read.
pub fn trust_preview(
    root: &Path,
    settings: &[u8],
    environment: &Environment,
) -> std::io::Result<Vec<TrustSection>> {
    let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let places = trusted_places(&real, environment);
    let ServerFile { servers, faults, .. } = project_servers(&places, environment);
    let hooks::FoundHooks { hooks, faults: unread, .. } = hooks::read_hook_files(&places);
    let acting = pin::list_acting_files(&real, settings)?;
    let sections = [
        TrustSection { heading: "Hooks that run", lines: hook_lines(hooks, &places) },
        TrustSection {
            heading: "MCP servers that start",
            lines: servers.iter().map(server_line).collect(),
        },
        TrustSection {
            heading: "Variables and headers that these servers get",
            lines: servers.iter().flat_map(environment_lines).collect(),
        },
        TrustSection {
            heading: "Shell commands in slash commands, skills and tasks",
            lines: command_lines(&real, &acting),
        },
        TrustSection {
            heading: "Hooks of git, which git runs when models use it",
            lines: git_hooks(&real),
        },
        TrustSection {
            heading: "Trust ends when one of these files changes",
            lines: pinned_lines(&real, &acting),
        },
        TrustSection {
            heading: "Commands that name what they run only when they run, which trust does not cover",
            lines: pin::unpinned_commands(&real, settings)?,
        },
        TrustSection {
            heading: "What cannot be read, and is not used until it changes",
            lines: faults.into_iter().chain(unread).collect(),
        },
    ];
    Ok(sections.into_iter().filter(|section| !section.lines.is_empty()).collect())
}

/// Returns the places of a project's extensions as they are once it is trusted.
fn trusted_places(root: &Path, environment: &Environment) -> ExtendPlaces {
    ExtendPlaces {
        home: environment.home(),
        config_dir: environment.config_dir(),
        project: root.to_owned(),
        cwd: root.to_owned(),
        roots: vec![root.to_owned()],
        is_trusted: true,
        plugins: project_plugins(root, environment),
    }
}

/// Lists the files whose change ends trust.
fn pinned_lines(root: &Path, acting: &[PathBuf]) -> Vec<String> {
    // The settings are among them: trust in a project is trust in its settings as they are.
    let own = Some(paths::project_file(root)).filter(|file| file.exists());
    let own = own.iter().map(|file| file.strip_prefix(root).unwrap_or(file));
    let pinned = own.chain(acting.iter().map(PathBuf::as_path));
    pinned.map(|path| path.display().to_string()).collect()
}

fn project_plugins(
    root: &Path,
    environment: &Environment,
) -> Vec<std::sync::Arc<gnoma_extend::PluginPlace>> {
    let folder = root.join(".gnoma/plugins");
    let found = find_plugins(&PluginPlaces {
        user: environment.plugins_dir(),
        state: environment.state_dir(),
        project: Some(folder).filter(|folder| folder.is_dir()),
        is_trusted: true,
        enabled: Vec::new(),
        disabled: Vec::new(),
    });
    found.active.into_iter().filter(|plugin| plugin.by == ExtensionSource::Project).collect()
}

fn hook_lines(hooks: Vec<hooks::Hook>, places: &ExtendPlaces) -> Vec<String> {
    let hooks = hooks.into_iter().filter(|it| it.by == ExtensionSource::Project);
    let line = |hook: hooks::Hook| {
        let origin = hook.origin.strip_prefix(&places.project).unwrap_or(&hook.origin);
        format!("{}: {} ({})", hook.event, hook.to_line(), origin.display())
    };
    hooks.map(line).collect()
}

fn project_servers(places: &ExtendPlaces, environment: &Environment) -> ServerFile {
    let variable = |name: &str| environment.get(name).map(str::to_owned);
    let path = places.project.join(".mcp.json");
    let mut all = match read_server_file(&path) {
        Ok(Some(text)) => mcp::read_file(path, &text, &variable),
        Ok(None) => ServerFile::default(),
        Err(error) => {
            let fault = format!("`{}` cannot be read: {error}", path.display());
            ServerFile { faults: vec![fault], ..ServerFile::default() }
        }
    };
    for plugin in &places.plugins {
        let ServerFile { servers, faults, .. } = mcp::of_plugin(plugin, &variable);
        all.servers.extend(servers);
        all.faults.extend(faults);
    }
    all
}

fn server_line(server: &Definition) -> String {
    let network = if server.network { ", with network" } else { "" };
    let writable: Vec<String> =
        server.writable.iter().map(|path| path.display().to_string()).collect();
    let writable = match &*writable {
        [] => String::new(),
        folders => format!(", writes {}", folders.join(", ")),
    };
    format!("{}: {}{network}{writable}", server.name, server.to_line())
}

/// The names alone: values may be secrets of the person.
fn environment_lines(server: &Definition) -> Vec<String> {
    let names: Vec<String> = match &server.reach {
        ServerReach::Process { env, .. } => env.keys().cloned().collect(),
        ServerReach::Http { headers, .. } => headers.keys().cloned().collect(),
    };
    names.into_iter().map(|name| format!("{}: {name}", server.name)).collect()
}

fn command_lines(root: &Path, acting: &[PathBuf]) -> Vec<String> {
    let mut lines = Vec::new();
    for below in acting.iter().filter(|path| path.extension().is_some_and(|it| it == "md")) {
        let text = read_text_start(&root.join(below)).unwrap_or_default();
        let commands = inline_commands(&text).into_iter();
        lines.extend(commands.map(|command| format!("{}: {command}", below.display())));
        if below.starts_with(TASKS)
            && let Some(name) = below.file_stem().and_then(|name| name.to_str())
            && let Ok(task) = parse_task(name, &text)
        {
            lines.extend(
                task.shell_commands().map(|command| format!("{}: {command}", below.display())),
            );
        }
    }
    lines
}

/// The programs in the folder of the repository's hooks.
fn git_hooks(root: &Path) -> Vec<String> {
    let shown = |path: PathBuf| path.strip_prefix(root).unwrap_or(&path).display().to_string();
    find_hook_programs(root).into_iter().map(shown).collect()
}

fn read_text_start(path: &Path) -> Option<String> {
    let bytes = bounded_file::read_start(path, MAX_FILE_BYTES).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
