//! Opens sessions of projects: settings, stores and models become an engine.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use gnoma_core::{
    Command, Message, ModelRef, Tool,
    info::FoundProviders,
    protocol::{RequestError, SessionSpec},
    store::{SessionFacts, SessionId},
    sync::Mutex,
    tool::{BoxFuture, OpenFiles, Spawner},
};
use gnoma_engine::{LastRequest, Routes, Session as Engine, session::Options};
use gnoma_tools::Agent;

use crate::{
    Project, Result, agent,
    agents::{self, AgentPlace},
    blocking_work::off_loop,
    choice_lists,
    clock::Clock,
    extensions, facts,
    live::{BackgroundService, OpenedSession, Opener, PreparedSession, SessionOpening},
    mcp, providers, routing,
    services::{KnownAdditions, KnownRoutes, ProjectServices},
    session,
    session_resume::{self, ContinuedSession, ConversationUsage},
    session_stores::SessionStores,
    sessions,
    shared::ProcessResources,
};

/// Opens sessions of this machine's projects.
#[derive(Default)]
pub struct Projects {
    shared: ProcessResources,
    /// The project of the only session, if it is already loaded.
    project: Option<Project>,
    /// `true` if a failure on the way becomes the answer to the request.
    opens_whole: bool,
}

impl Projects {
    /// Opens sessions in a process with this clock.
    #[must_use]
    pub fn with_clock(clock: Clock) -> Self {
        Self { shared: ProcessResources::new(clock), ..Self::default() }
    }

    /// Opens sessions that are seen in an editor.
    #[must_use]
    pub fn in_editor(editor: Arc<dyn OpenFiles>) -> Self {
        Self { shared: ProcessResources::in_editor(editor), ..Self::default() }
    }

    /// Opens one session, for a single turn in a project that is already loaded. Failures become the reply to the
    /// request, and no models are discovered beside the turn. Notices go where `project` sends them.
    #[must_use]
    pub fn for_one_turn(project: Project) -> Self {
        Self { shared: project.shared.clone(), project: Some(project), opens_whole: true }
    }

    /// Opens sessions for a program. Failures become the reply to the request, and no models are discovered beside
    /// the sessions.
    #[must_use]
    pub fn for_driver(shared: ProcessResources) -> Self {
        Self { shared, project: None, opens_whole: true }
    }
}

impl Opener for Projects {
    fn open(
        &self,
        wanted: SessionOpening,
    ) -> BoxFuture<'static, Result<PreparedSession, RequestError>> {
        let (shared, project) = (self.shared.clone(), self.project.clone());
        let opens_whole = self.opens_whole;
        Box::pin(async move {
            Ok(match project {
                Some(project) => prepare_whole(wanted, project).await?,
                None if opens_whole => {
                    let (spec, notices) = (wanted.spec.clone(), wanted.notices.clone());
                    let project =
                        off_loop(|| async { Project::open(spec, notices, shared) }).await?;
                    let spec = project.spec.clone();
                    prepare_whole(SessionOpening { spec, ..wanted }, project).await?
                }
                None => prepare_session(wanted, shared).await?,
            })
        })
    }

    fn goes_on(&self, spec: SessionSpec) -> BoxFuture<'static, Result<SessionId, RequestError>> {
        let shared = self.shared.clone();
        Box::pin(async {
            Ok(off_loop(|| session_resume::find_stored_session(shared, spec)).await?)
        })
    }

    fn stored_sessions(
        &self,
        spec: SessionSpec,
        max: usize,
    ) -> BoxFuture<'static, Result<Vec<SessionFacts>, RequestError>> {
        let shared = self.shared.clone();
        Box::pin(async move {
            Ok(off_loop(move || sessions::stored_sessions(shared, spec, max)).await?)
        })
    }

    fn delete_session(
        &self,
        spec: SessionSpec,
        id: SessionId,
    ) -> BoxFuture<'static, Result<(), RequestError>> {
        let shared = self.shared.clone();
        Box::pin(async move { Ok(off_loop(move || sessions::delete(shared, spec, id)).await?) })
    }

    fn finish(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.shared.finish_background().await;
            self.shared.finish_telemetry().await;
        })
    }

    fn now_ms(&self) -> i64 {
        self.shared.clock().now_ms()
    }

    fn new_id(&self) -> SessionId {
        SessionId::new(self.shared.clock().session_id())
    }
}

async fn prepare_session(
    wanted: SessionOpening,
    shared: ProcessResources,
) -> Result<PreparedSession> {
    let SessionOpening { spec, session, carried, notices, spawner } = wanted;
    let opened = off_loop(|| async { open_project(Project::open(spec, notices, shared)?).await });
    let OpenableSession { mut prepared, making } =
        build_openable(opened.await?, session, carried, spawner);
    let found = providers::to_set_up(&making.project).await;
    prepared.info.found = found.map(|providers| FoundProviders { providers, ..Default::default() });
    prepared.opening = Box::pin(async move { Ok(making.open(true).await?.0) });
    Ok(prepared)
}

/// Prepares a session so far that nothing is left to fail.
async fn prepare_whole(wanted: SessionOpening, project: Project) -> Result<PreparedSession> {
    let SessionOpening { spec, session, carried, spawner, .. } = wanted;
    let opened = off_loop(|| async { open_project(Project { spec, ..project }).await });
    let OpenableSession { mut prepared, making } =
        build_openable(opened.await?, session, carried, spawner);
    let (opened, model) = making.open(false).await?;
    prepared.info.model = Some(model.to_string());
    prepared.opening = Box::pin(std::future::ready(Ok(opened)));
    Ok(prepared)
}

/// What a session is made from, as far as this machine alone says it.
struct OpenedProject {
    project: Project,
    continued: Option<ContinuedSession>,
    agent: Option<Agent>,
}

/// Looks up what a project's spec names: the agent that the session works as, and the session that it continues.
///
/// # Errors
/// There is no such agent or session, or it cannot be used.
async fn open_project(project: Project) -> Result<OpenedProject> {
    project.refuse_whole_system()?;
    let agent = agent::selected_agent(&project)?;
    let continued = session_resume::resume_session(&project, &project.spec.start).await?;
    Ok(OpenedProject { project, continued, agent })
}

/// A session of which only what needs a network is to be made.
struct OpenableSession {
    prepared: PreparedSession,
    making: SessionBuilder,
}

fn build_openable(
    OpenedProject { project, continued, agent }: OpenedProject,
    session: Option<SessionId>,
    carried: Vec<Arc<Message>>,
    spawner: Arc<dyn Spawner>,
) -> OpenableSession {
    let measured = continued.as_ref().and_then(|continued| continued.measured);
    let store = continued.as_ref().map(|continued| Arc::clone(&continued.past.store));
    let kept = SessionStores::start(&project, store);
    let (stored, messages, notes, used, resumed) = match continued {
        Some(ContinuedSession { id, history, notes, used, resumed, .. }) => {
            (Some(id), history, notes, used, Some(resumed))
        }
        None => (None, carried, Vec::new(), ConversationUsage::default(), None),
    };
    let (is_new, is_reopened) = (stored.is_none(), session.is_some());
    let new_id = || SessionId::new(project.shared.clock().session_id());
    let id = session.or_else(|| stored.clone()).unwrap_or_else(new_id);
    let project = Arc::new(project);
    extensions::report_problems(&project);
    let (routes, gauge) = (KnownRoutes::default(), Arc::<LastRequest>::default());
    let servers = mcp::KnownServers::clone(&project.servers);
    let (added, info) = (KnownAdditions::default(), facts::session_info(&project, used, resumed));
    let making = SessionBuilder {
        project,
        id: id.clone(),
        keeping: kept.to_keeping(stored.clone(), is_new.then(|| id.clone()), is_reopened),
        tools: kept.read_result_tool().into_iter().collect(),
        messages: messages.clone(),
        measured,
        begun: kept.session_id_cell(),
        routes,
        gauge,
        added,
        servers,
        model: info.model.clone(),
        spawner,
        agent,
    };
    let services = Arc::new(making.build_services(stored, kept));
    let opening = Box::pin(std::future::pending());
    let prepared = PreparedSession { id, info, messages, notes, opening, services };
    OpenableSession { prepared, making }
}

/// The tools of other programs' agents.
fn agent_tools(project: &Arc<Project>) -> Vec<Arc<dyn Tool>> {
    let all = &project.routing.agents;
    if all.iter().next().is_none() {
        return Vec::new();
    }
    let mut around = mcp::process_surroundings(project);
    // A person's own program connects as it does elsewhere, through a proxy that wants a password too.
    let variables = project.environment().variables();
    let inherited =
        variables.iter().filter(|(name, value)| mcp::is_inherited(project, name, value));
    around.environment = inherited.map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut reading = around.clone();
    if let Some(enclosure) = &mut reading.enclosure {
        let SessionSpec { folder, more_folders, .. } = &project.spec;
        let is_work = |path: &PathBuf| path == folder || more_folders.contains(path);
        enclosure.policy.writable.retain(|path| !is_work(path));
    }
    let absolute = {
        let project = Arc::clone(project);
        Box::new(move |path: &str| mcp::absolute_path(&project, Path::new(path)))
    };
    let place = AgentPlace { around, reading, absolute, files: session::plain_files(project) };
    agents::build_tools(all.iter(), place)
}

/// The services beside a session: the search for models of this machine, and MCP servers.
struct SessionCompanions {
    discovery: Option<routing::Discovery>,
    _servers: Option<mcp::RunningServers>,
}

impl BackgroundService for SessionCompanions {
    fn set_used(&self, is_used: bool) {
        self.discovery.iter().for_each(|discovery| discovery.set_used(is_used));
    }
}

/// The rest of a session's making, which may need a network.
struct SessionBuilder {
    project: Arc<Project>,
    id: SessionId,
    keeping: gnoma_engine::PersistenceOptions,
    tools: Vec<Arc<dyn Tool>>,
    messages: Vec<Arc<Message>>,
    measured: Option<gnoma_engine::resume::MeasuredPrefix>,
    begun: crate::session_stores::BegunSessionId,
    routes: KnownRoutes,
    gauge: Arc<LastRequest>,
    added: KnownAdditions,
    servers: mcp::KnownServers,
    model: Option<String>,
    spawner: Arc<dyn Spawner>,
    /// The agent as which the session works.
    agent: Option<Agent>,
}

impl SessionBuilder {
    /// The services of the session, of which this is the rest.
    fn build_services(&self, continued: Option<SessionId>, kept: SessionStores) -> ProjectServices {
        ProjectServices {
            project: Arc::clone(&self.project),
            begun: kept.session_id_cell(),
            continued,
            model: self.model.clone(),
            routes: Arc::clone(&self.routes),
            gauge: Arc::clone(&self.gauge),
            added: KnownAdditions::clone(&self.added),
            servers: Arc::clone(&self.servers),
            kept: Mutex::new(Some(kept)),
            copy: Arc::default(),
        }
    }

    /// Opens the engine; also returns the model that is asked first. If `grows`, models of servers on this machine
    /// are looked for beside it.
    async fn open(mut self, grows: bool) -> Result<(OpenedSession, ModelRef)> {
        let wanted = routing::RoutesRequest {
            begun: Arc::clone(&self.begun),
            grows,
            ..routing::RoutesRequest::default()
        };
        let ready = routing::prepare_routes(&self.project, &wanted).await?;
        let (routes, first) = (Arc::clone(&ready.routes), ready.model.clone());
        let _is_first = self.routes.set(Arc::clone(&routes));
        let discovery = grows.then(|| ready.start_discovery()).flatten();
        let (project, model) = (Arc::clone(&self.project), self.model.take());
        let (known_servers, agent) = (Arc::clone(&self.servers), self.agent.take());
        let mut options = self.build_options(&routes)?;
        let asked =
            routes.arms().iter().find(|arm| arm.id == first).and_then(|arm| arm.context_window);
        let servers = mcp::open(&project, asked);
        if let Some(servers) = &servers {
            let _is_first = known_servers.set(servers.weak_view());
        }
        let pinned = agent.map(|agent| apply_agent(&project, agent, &routes, &mut options));
        let pinned = pinned.transpose()?.flatten();
        let own = options.tools.clone();
        if let Some(servers) = &servers {
            options.tools = servers.offered_tools(&own);
        }
        // Not held: what they run ends with the engine.
        let tools: Vec<_> = own.iter().map(Arc::downgrade).collect();
        let engine = Engine::spawn(options);
        if pinned.is_some() {
            engine.send_command(Command::Pin { arm: pinned });
        }
        let notices = project.notices.clone();
        let servers = servers
            .map(|servers| mcp::follow_servers(servers, own, engine.tool_updates(), notices));
        let running = |tool: &Weak<dyn Tool>| tool.upgrade().map_or(0, |it| it.background_jobs());
        let opened = OpenedSession {
            engine,
            beside: Box::new(SessionCompanions { discovery, _servers: servers }),
            models: Box::new(move || choice_lists::arm_choices(&routes, model.as_deref())),
            jobs: Arc::new(move || tools.iter().map(running).sum()),
        };
        Ok((opened, first))
    }

    /// Builds the options of the engine.
    fn build_options(self, routes: &Arc<Routes>) -> Result<Options> {
        let project = &self.project;
        let mut options =
            session::session_options(project, self.id.to_string(), Arc::clone(routes))?;
        if let Some(added) = &options.lifecycle {
            let _is_first = self.added.set(Arc::clone(added));
        }
        options.keeping = self.keeping;
        options.tools.extend(session::elf_tools(project));
        options.tools.extend(agent_tools(project));
        options.tools.extend(self.tools);
        options.history = self.messages;
        options.spawner = Some(self.spawner);
        options.measured = self.measured;
        options.gauge = self.gauge;
        Ok(options)
    }
}

/// Lets a session work as an agent; returns the model that the agent wants. A model and a mode that were asked for by
/// name take precedence.
fn apply_agent(
    project: &Project,
    agent: Agent,
    routes: &Routes,
    options: &mut Options,
) -> Result<Option<ModelRef>> {
    let (overrides, notices) = (&project.spec.overrides, &project.notices);
    let pinned = match overrides.model {
        Some(_) => None,
        None => agent::wanted_arm(&agent, routes, notices),
    };
    if overrides.mode.is_none() {
        options.mode = agent::stricter_mode(options.mode, agent.mode);
    }
    agent::apply(agent, options, notices)?;
    Ok(pinned)
}
