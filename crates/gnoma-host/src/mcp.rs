//! A project's servers of the Model Context Protocol: which there are, where they run, and their tools in a
//! session.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use gnoma_config::{FileTrust, pin, settings::McpServer, trust::Store};
use gnoma_core::{
    Secret, Tool, bounded_file, duration, home,
    info::CommandInfo,
    protocol::{ClientServer, Environment, ServerAddress},
    quantity::describe_count,
    task::box_future,
    written_text,
};
use gnoma_engine::ToolUpdates;
use gnoma_extend::mcp::{
    CleanText, Definition, Keyring, ServerEnvironment, ServerNameError, ServerOptions,
    ServerOrigin, ServerPrompt, ServerReach, ServerReport, ServerSandbox, ServerState, Servers,
    ServersView, ToolMemory, check_server,
    limits::{MAX_FILE_BYTES, START_TIMEOUT},
    of_plugin, read_file,
};
use gnoma_guard::firewall::Firewall;
use gnoma_tools::Sandbox;
use tokio::{task::JoinSet, time::timeout};

pub use crate::mcp_edit::{NewServer, add_server, remove_server};
use crate::{Folders as _, Notices, Project, address_secrets, debug_log, guard_setup, plugins};

/// The file in a project's folder that names servers, as other programs write it.
const FILE: &str = ".mcp.json";
/// The window of a model that tells none, in tokens.
const USUAL_WINDOW: usize = 32_768;

/// The servers of a session, once it is open.
pub(crate) type KnownServers = Arc<OnceLock<ServersView>>;

/// Describes the state of a session's servers, for people.
pub(crate) fn describe_servers(servers: Option<&ServersView>) -> String {
    let standings = servers.map(ServersView::server_standings).unwrap_or_default();
    if standings.is_empty() {
        return "no MCP servers. `gnoma mcp add NAME -- COMMAND` adds one".to_owned();
    }
    standings.iter().map(|standing| describe_one(standing) + "\n").collect()
}

fn describe_one(ServerReport { definition, seen, tokens, .. }: &ServerReport) -> String {
    let state = match &seen.state {
        ServerState::Idle => "not started".to_owned(),
        ServerState::Starting => "starting".to_owned(),
        ServerState::Ready => "ready".to_owned(),
        ServerState::Failed(why) => format!("failed: {why}"),
    };
    let calls = u32::try_from(seen.calls).unwrap_or(u32::MAX);
    let mean = if calls == 0 { 0 } else { (seen.took / calls).as_millis() };
    let withheld = match seen.changed.len() {
        0 => String::new(),
        count => format!(", {count} withheld until `gnoma mcp approve {}`", definition.name),
    };
    format!(
        "{}: {state}; {}{withheld}, about {tokens} tokens; {calls} call{}, {} failed, {mean} ms each{}",
        definition.name,
        describe_count(seen.offered.len(), "tool"),
        if calls == 1 { "" } else { "s" },
        seen.failed,
        render_prompts(&seen.prompts),
    )
}

/// The prompts of a server, a line each.
fn render_prompts(all: &[ServerPrompt]) -> String {
    let line = |ServerPrompt { name, hint, about }: &ServerPrompt| {
        format!("\n  {}: {about}", format!("/{name} {hint}").trim_end())
    };
    all.iter().map(line).collect()
}

/// The running servers of a session; dropping it ends them.
pub(crate) struct RunningServers {
    _servers: Servers,
    _updating: JoinSet<()>,
}

/// The servers of a session that is being opened; `None` where none are configured.
///
/// `window`: that of the model that is asked first. Nothing is waited for.
pub(crate) fn open(project: &Project, window: Option<u32>) -> Option<Servers> {
    let definitions = server_definitions(project);
    if definitions.is_empty() {
        return None;
    }
    Some(Servers::start(server_options(project, definitions, window)))
}

/// Keeps the tools of a session as its servers have them, `own` are those besides, and tells of their
/// prompts.
pub(crate) fn follow_servers(
    servers: Servers,
    own: Vec<Arc<dyn Tool>>,
    updates: ToolUpdates,
    notices: Notices,
) -> RunningServers {
    let mut offers = servers.subscribe_offers(own);
    let glance = servers.weak_view();
    let mut updating = JoinSet::new();
    updating.spawn(box_future(async move {
        let mut told = Vec::new();
        tell_prompts(&glance, &notices, &mut told);
        while let Some((change, tools)) = offers.next().await {
            if !updates.send(tools).await {
                return;
            }
            offers.mark_published(change);
            tell_prompts(&glance, &notices, &mut told);
        }
    }));
    RunningServers { _servers: servers, _updating: updating }
}

/// Tells of the prompts of all servers, where they are others than those that were told.
fn tell_prompts(glance: &ServersView, notices: &Notices, told: &mut Vec<CommandInfo>) {
    let command = |ServerPrompt { name, hint, about }: ServerPrompt| CommandInfo {
        name,
        hint,
        about,
        origin: "mcp".to_owned(),
    };
    let all = glance.server_standings().into_iter().flat_map(|standing| standing.seen.prompts);
    let prompts: Vec<CommandInfo> = all.map(command).collect();
    if prompts != *told {
        told.clone_from(&prompts);
        notices.publish_prompts(prompts);
    }
}

/// The project's servers, none of them started, for who looks at them.
#[must_use]
pub fn idle_servers(project: &Project) -> Servers {
    Servers::start_on_demand(server_options(project, server_definitions(project), None))
}

/// The time servers may take to answer before a notice says that they are waited for.
const SILENCE: Duration = Duration::from_secs(2);

/// Connects to the server of that name and says how it is then; a notice tells of a long wait.
pub async fn connect_server(project: &Project, name: &str) -> Vec<ServerReport> {
    let servers = idle_servers(project);
    let connecting = servers.connect_all(Some(name));
    tokio::pin!(connecting);
    if let Ok(standings) = timeout(SILENCE, &mut connecting).await {
        return standings;
    }
    let most = duration::format_duration(START_TIMEOUT);
    project.notices.info(format_args!("waiting for the MCP server `{name}`, up to {most}"));
    connecting.await
}

/// The connections over which servers are reached that are no programs.
#[must_use]
pub fn http_client(project: &Project) -> gnoma_net::Http {
    project.shared.http(&project.routing.network)
}

/// The person's keyring, for the tokens of servers.
#[must_use]
pub fn token_keyring(project: &Project) -> Option<Keyring> {
    let variables: Vec<_> = project.environment().variables().clone().into_iter().collect();
    Keyring::from_variables(&variables)
}

fn server_options(
    project: &Project,
    definitions: Vec<Definition>,
    window: Option<u32>,
) -> ServerOptions {
    let (notices, firewall) = (project.notices.clone(), Arc::clone(&project.firewall));
    let clean = stderr_cleaner(&project.firewall);
    let is_kept = !project.is_incognito();
    let state = project.environment().state_dir();
    ServerOptions {
        definitions,
        around: process_surroundings(project),
        memory: if is_kept { ToolMemory::in_state(&state) } else { ToolMemory::default() },
        tell: Arc::new(move |is_warning, text| {
            // A server's words are part of it.
            let text = firewall.redact_text(&text).into_owned();
            if is_warning { notices.warning(text) } else { notices.info(text) }
        }),
        clean,
        window: window.and_then(|window| usize::try_from(window).ok()).unwrap_or(USUAL_WINDOW),
    }
}

/// Takes secrets, and what would steer a terminal, out of what servers write to their standard error.
fn stderr_cleaner(firewall: &Arc<Firewall>) -> CleanText {
    let firewall = Arc::clone(firewall);
    Arc::new(move |text| {
        let text = firewall.redact_text(text);
        text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).collect()
    })
}

/// The configured servers that may be used. A notice names the others.
#[must_use]
pub fn server_definitions(project: &Project) -> Vec<Definition> {
    let (definitions, faults) = find_servers(project);
    faults.into_iter().for_each(|fault| project.notices.warning(fault));
    definitions
}

/// Returns the servers of the settings that are turned off.
#[must_use]
pub fn disabled_servers(project: &Project) -> Vec<Definition> {
    let servers = project.mcp_servers.iter().filter(|server| !server.enabled);
    servers.filter_map(|server| to_definition(project, server).ok()).collect()
}

/// The configured servers that may be used, and a sentence for each of the others.
#[must_use]
pub fn find_servers(project: &Project) -> (Vec<Definition>, Vec<String>) {
    let (mut definitions, mut faults) = (Vec::new(), Vec::new());
    let driver = project.shared.driver();
    let only_its = driver.is_some_and(|driver| driver.has_only_its_servers());
    let its = driver.map(|driver| driver.mcp_servers()).unwrap_or_default();
    let settings = project.mcp_servers.iter().filter(|server| server.enabled && !only_its);
    for server in settings.chain(&its) {
        match to_definition(project, server) {
            Ok(definition) => definitions.push(definition),
            Err(why) => faults.push(format!("`mcp_servers.{}` is not used: {why}", server.name)),
        }
    }
    if !only_its {
        definitions.extend(project_definitions(project, &mut faults));
        definitions.extend(plugin_definitions(project, &mut faults));
    }
    for server in &project.spec.mcp_servers {
        match client_definition(server) {
            Ok(definition) => {
                // The person's client means this session; a server of the settings is for all.
                definitions.retain(|known| known.name != definition.name);
                definitions.push(definition);
            }
            Err(why) => faults.push(format!("MCP server `{}` is not used: {why}", server.name)),
        }
    }
    (definitions, faults)
}

/// A server that the client brings along: the person set it up there, as others do in the settings. A
/// client has no words for what a program may reach, so it may use the network.
fn client_definition(server: &ClientServer) -> Result<Definition, ServerNameError> {
    check_server(&server.name)?;
    let secrets = |values: &Environment| -> BTreeMap<String, Secret<String>> {
        let secret = |(name, value): (&String, &String)| (name.clone(), Secret::new(value.clone()));
        gnoma_core::sort::to_map(values.variables().iter().map(secret))
    };
    let reach = match &server.address {
        ServerAddress::Program { command, args, environment } => ServerReach::Process {
            command: command.clone(),
            args: args.clone(),
            env: secrets(environment),
        },
        ServerAddress::Http { url, headers } => {
            ServerReach::Http { url: url.clone(), headers: secrets(headers) }
        }
    };
    Ok(Definition {
        name: server.name.clone(),
        origin: ServerOrigin::Client,
        reach,
        cwd: None,
        timeout: None,
        network: true,
        writable: Vec::new(),
        replaces: BTreeMap::new(),
        path_args: BTreeMap::new(),
    })
}

/// The reason why an MCP server of the settings is not used.
#[derive(thiserror::Error)]
enum ServerSettingError {
    #[error(transparent)]
    Name(#[from] ServerNameError),
    #[error("it has both a `command` and a `url`; keep one of them")]
    TwoReaches,
    #[error("it has neither `command` nor `url`")]
    NoReach,
}

gnoma_core::debug_as_display!(ServerSettingError);

/// A server of the settings.
fn to_definition(project: &Project, server: &McpServer) -> Result<Definition, ServerSettingError> {
    check_server(&server.name)?;
    let reach = match (&server.command, &server.url) {
        (Some(_), Some(_)) => return Err(ServerSettingError::TwoReaches),
        (Some(command), None) => ServerReach::Process {
            command: command.clone(),
            args: server.args.clone(),
            env: server.env.clone(),
        },
        (None, Some(url)) => {
            ServerReach::Http { url: url.clone(), headers: server.headers.clone() }
        }
        (None, None) => return Err(ServerSettingError::NoReach),
    };
    Ok(Definition {
        name: server.name.clone(),
        origin: ServerOrigin::Configuration,
        reach,
        cwd: None,
        timeout: server.timeout,
        replaces: server.replaces.clone(),
        path_args: server.path_args.clone(),
        network: server.network,
        writable: server
            .writable
            .iter()
            .map(|path| absolute_path(project, Path::new(path)))
            .collect(),
    })
}

/// The servers of the plugins that are in force.
fn plugin_definitions(project: &Project, faults: &mut Vec<String>) -> Vec<Definition> {
    let mut servers = Vec::new();
    let variable = |name: &str| project.environment().get(name).map(str::to_owned);
    for plugin in &plugins::project_plugins(project).active {
        let found = of_plugin(plugin, &variable);
        let named = found.faults.iter().map(|it| format!("the plugin `{}`: {it}", plugin.name));
        faults.extend(named);
        servers.extend(found.servers);
    }
    for server in &mut servers {
        for path in &mut server.writable {
            *path = absolute_path(project, path);
        }
    }
    servers
}

pub(crate) fn absolute_path(project: &Project, path: &Path) -> PathBuf {
    absolute_in(project, &project.spec.folder, path)
}

/// A path as it is written in `folder`.
fn absolute_in(project: &Project, folder: &Path, path: &Path) -> PathBuf {
    home::expand(path, project.environment().home().as_deref(), folder)
}

/// Reads the project's file, if there is one. A file that cannot be read is reported as a fault.
fn read_project_file(path: &Path, faults: &mut Vec<String>) -> Option<String> {
    match read_server_file(path) {
        Ok(text) => text,
        Err(error) => {
            let why = match error.kind() {
                std::io::ErrorKind::InvalidData => "it is neither UTF-8 nor UTF-16 text".to_owned(),
                _ => error.to_string(),
            };
            faults.push(format!("`{FILE}` cannot be read: {why}"));
            None
        }
    }
}

/// The servers of the project's file, where the project is trusted.
fn project_definitions(project: &Project, faults: &mut Vec<String>) -> Vec<Definition> {
    let root = &project.places.project;
    let path = root.join(FILE);
    let Some(text) = read_project_file(&path, faults) else { return Vec::new() };
    let variable = |name: &str| project.environment().get(name).map(str::to_owned);
    let found = read_file(path, &text, &variable);
    if found.servers.is_empty() && found.faults.is_empty() {
        return Vec::new();
    }
    if found.is_broken {
        faults.extend(found.faults);
        return Vec::new();
    }
    let standing = acting_content_trust(project, root);
    if standing != FileTrust::Trusted {
        let why = match standing {
            FileTrust::Changed => "it, or what it runs, has changed since this folder was trusted",
            FileTrust::Unknown | FileTrust::Trusted => "this folder is not trusted",
        };
        faults.push(format!(
            "`{FILE}` defines MCP servers, but none was started because {why}. Read the file; if \
             you trust it, run `gnoma trust` in that folder"
        ));
        return Vec::new();
    }
    faults.extend(found.faults);
    let mut servers = found.servers;
    for server in &mut servers {
        for path in &mut server.writable {
            *path = absolute_path(project, path);
        }
        // Other programs start in the project's folder, also where a session is in one below it.
        server.cwd = server.cwd.take().map(|cwd| absolute_in(project, root, &cwd));
    }
    servers
}

/// Returns the user's trust in the project, including everything in it that acts.
fn acting_content_trust(project: &Project, root: &Path) -> FileTrust {
    let content = pin::read_config_content(root).ok().flatten();
    let store = Store::open(&project.environment().state_dir()).ok();
    content
        .zip(store)
        .map_or(FileTrust::Unknown, |(content, store)| store.file_trust(root, &content))
}

/// Reads a file of servers; `None` if there is none.
pub(crate) fn read_server_file(path: &Path) -> std::io::Result<Option<String>> {
    match bounded_file::read(path, MAX_FILE_BYTES) {
        // What is no file is none of servers.
        Err(_) if !path.is_file() => Ok(None),
        bytes => {
            let unreadable = |error| std::io::Error::new(std::io::ErrorKind::InvalidData, error);
            bytes?.map(written_text::decode).transpose().map_err(unreadable)
        }
    }
}

/// Reports whether started programs inherit a variable, which they do unless it is a key.
pub(crate) fn is_inherited(project: &Project, name: &str, value: &str) -> bool {
    !gnoma_sandbox::is_scrubbed(name)
        && !guard_setup::is_key(&project.routing.provider, name, value)
}

/// Describes where the servers run: in the session's folder, with what a command of the session may touch.
pub(crate) fn process_surroundings(project: &Project) -> ServerEnvironment {
    let Project { spec, guard, places, .. } = project;
    let environment = address_secrets::without_credentials(&spec.environment, |name, value| {
        is_inherited(project, name, value)
    });
    let roots: Vec<_> = std::iter::once(&spec.folder).chain(&spec.more_folders).cloned().collect();
    let enclosure = match guard_setup::build_sandbox(guard, places, spec, None) {
        Sandbox::Off => None,
        Sandbox::Walled { launcher, mut policy, required, network_on_grant, .. } => {
            policy.protected.extend(gnoma_tools::protected_paths(&roots));
            policy.writable.retain(|path| path.canonicalize().is_ok_and(|real| real == *path));
            policy.writable.extend(roots);
            policy.umask = spec.umask;
            let network_on_demand = network_on_grant;
            Some(ServerSandbox { launcher, policy: *policy, required, network_on_demand })
        }
    };
    ServerEnvironment {
        state: (!project.is_incognito()).then(|| spec.environment.state_dir()),
        keyring: token_keyring(project),
        http: http_client(project),
        cwd: spec.folder.clone(),
        environment,
        enclosure,
        reporter: debug_log::report_messages(project),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_server_file_in_utf16_or_with_cr_line_ends_is_decoded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let text = "// servers\n{}";
        let utf16 = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        for bytes in [utf16, text.replace('\n', "\r").into_bytes(), text.into()] {
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(read_server_file(&path).unwrap().as_deref(), Some(text));
        }
        std::fs::write(&path, b"{\"\xff\"}").unwrap();
        let error = read_server_file(&path).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        assert_eq!(read_server_file(&folder.path().join("none")).unwrap(), None);
    }
}
