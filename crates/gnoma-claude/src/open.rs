//! Opens the session that a program drives.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use gnoma_core::{
    json::from_hand,
    protocol::{SessionSpec, Start},
};
use gnoma_front::{AttachedSession, Children, ProcessEnvironment, report, session_resume};
use gnoma_guard::firewall::Firewall;
use gnoma_host::{
    HostError, Notices, ProcessResources, Project,
    clock::{self, Clock},
    extensions,
    live::Host,
    project_history::ProjectHistory,
    session_opening::Projects,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    agents::Agents,
    control::{ControlChannel, OutgoingMessage},
    driver::{self, Program, ProgramInit},
    error::DriverError,
    flags::Flags,
    ids, mcp, names,
    permission::Permission,
    start,
};

/// The settings and services with which a session is opened.
pub(super) struct OpenParameters {
    pub(super) flags: Flags,
    pub(super) spec: SessionSpec,
    pub(super) host: Arc<Host>,
    pub(super) program: Arc<Program>,
    pub(super) firewall: Arc<Firewall>,
    /// MCP servers in the program.
    pub(super) in_program: Vec<String>,
    /// The provider that is asked by default.
    pub(super) vendor: Option<String>,
    /// The id that the session will have, where it is new.
    pub(super) id: String,
    pub(super) outgoing: mpsc::Receiver<OutgoingMessage>,
}

impl OpenParameters {
    /// Prepares what is needed to open the session that `flags` ask for.
    ///
    /// # Errors
    /// They are wrong, or the settings cannot be used.
    pub(super) async fn new(flags: Flags, around: &ProcessEnvironment) -> Result<Self> {
        let usage = DriverError::into_usage_error;
        let mut spec = start::session_spec(&flags, around).map_err(usage)?;
        let servers = start::parse_mcp_servers(&flags.session.servers).map_err(usage)?;
        let (rules, faults) = driver::rules_from_flags(&flags.tools).map_err(usage)?;
        for fault in faults.iter().chain(&servers.faults) {
            report::print_line(format_args!("gnoma: {fault}"));
        }
        let project =
            Project::open(spec.clone(), Notices::without_sink(), ProcessResources::default())?;
        let vendor = project.routing.provider.default.clone();
        spec.overrides.model = requested_model(&flags, vendor.as_deref());
        let id = new_session_id(&flags, &project).await?;
        if let Start::Stored { id, .. } = &spec.start {
            require_stored_session(&project, id).await?;
        }
        let (control, outgoing) = ControlChannel::new();
        let permission = Permission::new(control.clone(), flags.tools.asks);
        permission.set_denies(flags.session.mode.as_deref() == Some("dontAsk"));
        let said = setup_from_flags(&flags, &id);
        let program = Program {
            control,
            permission,
            agents: agents_of(&flags, &project)?,
            tools: flags.tools.clone(),
            rules,
            servers: servers.others,
            only_these_servers: flags.session.only_these_servers,
            said: Mutex::new(said),
        };
        let program = Arc::new(program);
        let shared = ProcessResources::with_driver(clock_of(&id), Arc::clone(&program) as _);
        Ok(Self {
            flags,
            spec,
            host: Arc::new(Host::new(Projects::for_driver(shared))),
            program,
            firewall: Arc::clone(&project.firewall),
            in_program: servers.in_program,
            vendor,
            id,
            outgoing,
        })
    }
}

/// Returns the facts that the command line gives for the program; `id` is that of a new session.
fn setup_from_flags(flags: &Flags, id: &str) -> ProgramInit {
    let session = flags.session.resume.clone().unwrap_or_else(|| id.to_owned());
    ProgramInit { append: flags.session.append.clone(), session, ..ProgramInit::default() }
}

/// The sub-agents of files and of the command line.
fn agents_of(flags: &Flags, project: &Project) -> Result<Agents> {
    let (refused, files): (Vec<_>, Vec<_>) =
        extensions::defined_agents(project).into_iter().partition(|file| file.refusal.is_some());
    for why in refused.iter().filter_map(|file| file.refusal.as_ref()) {
        report::print_line(format_args!("gnoma: {why}"));
    }
    let agents = Agents::of_files(files.into_iter().map(Into::into).collect());
    if let Some(text) = &flags.session.agents {
        let defined: Value = from_hand(text).context("`--agents` is not JSON")?;
        agents.define_agents(&defined.as_object().cloned().unwrap_or_default());
    }
    Ok(agents)
}

/// The model that is asked for by name.
fn requested_model(flags: &Flags, vendor: Option<&str>) -> Option<String> {
    let wanted = flags.session.model.as_deref()?;
    let model = names::resolve_model(wanted, vendor);
    if model.is_none() {
        report::print_line(format_args!(
            "gnoma: `{wanted}` is not a model of this provider; gnoma chooses the model"
        ));
    }
    model.map(str::to_owned)
}

/// The id of a new session.
async fn new_session_id(flags: &Flags, project: &Project) -> Result<String, HostError> {
    let Some(id) = &flags.session.id else { return Ok(ids::random_uuid()) };
    let id = &id.to_ascii_lowercase();
    if !ids::is_uuid(id) {
        return Err(HostError::usage(format!("`--session-id` needs a UUID, not `{id}`")));
    }
    if flags.session.keeps_nothing {
        return Ok(id.clone());
    }
    let Ok(past) = ProjectHistory::open(project) else { return Ok(id.clone()) };
    match past.find_session(Some(id.as_str())).await {
        Ok(facts) if facts.id.as_str() == id => Err(HostError::usage(format!(
            "the session `{id}` exists already; `--resume` continues it"
        ))),
        Ok(_) | Err(_) => Ok(id.clone()),
    }
}

/// Looks for a stored session, before anything else is done.
async fn require_stored_session(project: &Project, id: &str) -> Result<(), HostError> {
    let found = match ProjectHistory::open(project) {
        Ok(past) => past.find_session(Some(id)).await.is_ok(),
        Err(_) => false,
    };
    if found {
        return Ok(());
    }
    Err(HostError::failure(format!("No conversation found with session ID: {id}")))
}

/// The system's clock; the first session has this id, the others have new ones.
fn clock_of(id: &str) -> Clock {
    let first = Mutex::new(Some(id.to_owned()));
    let next = move || {
        let first = first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.unwrap_or_else(ids::random_uuid)
    };
    Clock::new(clock::now_ms, clock::random_bits, next)
}

/// A session that is open.
pub(super) struct OpenSession {
    pub(super) main: AttachedSession,
    pub(super) children: Children,
}

/// Asks the servers in the program for their tools, and opens the session.
///
/// # Errors
/// Why there is no session.
pub(super) async fn open_session(
    host: Arc<Host>,
    program: Arc<Program>,
    spec: SessionSpec,
    in_program: Vec<String>,
) -> Result<OpenSession, DriverError> {
    let servers = mcp::connect_servers(&program.control, &in_program).await;
    for server in &servers {
        if let Some(fault) = &server.fault {
            report::print_line(format_args!(
                "gnoma: the MCP server `{}` failed: {fault}",
                server.name
            ));
        }
    }
    program.lock_session_setup().sdk_servers = servers;
    let mut client = host.connect("claude");
    let id = session_resume::open_session(&mut client, &spec).await;
    let id = id.map_err(HostError::from)?;
    let children = Children::watch_host(&host, "claude-agents", id.clone());
    let main = AttachedSession::join(client, id).await.map_err(DriverError::NotAttached)?;
    Ok(OpenSession { main, children })
}
