//! What a session's project does for it besides the conversation, on threads of their own: no stream waits for a disk.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{
    Folders as _, HostError, Project, Result,
    blocking_work::off_loop,
    changes, child,
    choice_lists::{arm_choices, profile_choices, provider_choices},
    export, extension_lists, extensions, facts, first_start,
    isolation::{self, IsolatedCopy},
    live::{
        Change, ChildOpening, MergePreview, OpenedSession, PreparedSession, Services,
        SessionChangeResult,
    },
    mcp, memory,
    observers::{ObservedSession, SessionObservers},
    project_history::ProjectHistory,
    providers, reopen_changes, rewind_candidates, rule, schedules, session_resume,
    session_stores::{BegunSessionId, SessionStores},
    sessions, setting,
    tasks::{self, SessionTaskFiles},
    usage,
};
use gnoma_config::{paths, pin, project_root, trust};
use gnoma_core::{
    home,
    info::Choice,
    lifecycle::Lifecycle,
    protocol::{
        ChangesSince, Reply, Request, RequestError, RewindPoint, SessionSpec, TaskRequest, Topic,
    },
    session::Scope,
    store::{ResultId, ResultStore as _, SessionId, SessionStore, StoreErrorKind},
    sync::Mutex,
    tool::{BoxFuture, ChildMerge, Isolation},
};
use gnoma_engine::{CheckpointReadiness, LastRequest, Routes};
use gnoma_tools::file_names;

/// Most models that are offered.
const MAX_MODELS: usize = 500;
/// Most stored sessions in a reply.
const MAX_STORED: usize = 1_000;
/// Most bytes of a stored result in a reply.
const MAX_OUTPUT_BYTES: u32 = 1 << 20;

/// The models that a session can choose from, once they are known.
pub(crate) type KnownRoutes = Arc<OnceLock<Arc<Routes>>>;

/// The lifecycle handlers that users added to a session, once it is open.
pub(crate) type KnownAdditions = Arc<OnceLock<Arc<dyn Lifecycle>>>;

/// The services of one session.
pub(crate) struct ProjectServices {
    pub(crate) project: Arc<Project>,
    pub(crate) begun: BegunSessionId,
    /// The stored session that continues.
    pub(crate) continued: Option<SessionId>,
    /// The model that is asked first, as far as that is known.
    pub(crate) model: Option<String>,
    pub(crate) routes: KnownRoutes,
    /// The gauge of what the session's model is sent.
    pub(crate) gauge: Arc<LastRequest>,
    pub(crate) added: KnownAdditions,
    pub(crate) servers: mcp::KnownServers,
    pub(crate) kept: Mutex<Option<SessionStores>>,
    /// The copy that the session works in.
    pub(crate) copy: Arc<Mutex<Option<IsolatedCopy>>>,
}

impl Services for ProjectServices {
    fn observers(&self, session: ObservedSession) -> SessionObservers {
        SessionObservers::open(&self.project, session, usage::cap_level_reader(&self.project))
    }

    fn answer_request(&self, request: Request) -> BoxFuture<'static, Result<Reply, RequestError>> {
        let asked = ServiceContext {
            project: Arc::clone(&self.project),
            stored: self.stored_id(),
            store: self.store(),
            model: self.model.clone(),
            routes: Arc::clone(&self.routes),
            gauge: Arc::clone(&self.gauge),
            added: Arc::clone(&self.added),
            servers: Arc::clone(&self.servers),
        };
        Box::pin(async { Ok(off_loop(|| asked.answer(request)).await?) })
    }

    fn check_change(&self, change: Change) -> BoxFuture<'static, Result<(), RequestError>> {
        let (project, stored) = (Arc::clone(&self.project), self.stored_id());
        Box::pin(async {
            Ok(off_loop(|| reopen_changes::check_change(project, stored, change)).await?)
        })
    }

    fn apply_change(
        &self,
        change: Change,
    ) -> BoxFuture<'static, Result<SessionChangeResult, RequestError>> {
        let (project, stored) = (Arc::clone(&self.project), self.stored_id());
        Box::pin(async {
            Ok(off_loop(|| reopen_changes::apply_change(project, stored, change)).await?)
        })
    }

    fn prepare_child(
        &self,
        wanted: ChildOpening,
    ) -> BoxFuture<'static, Result<(SessionSpec, PreparedSession), RequestError>> {
        let (parent, routes) = (Arc::clone(&self.project), Arc::clone(&self.routes));
        let session = self.stored_id();
        // One whose parent is not saved is not either.
        let stored = session.clone().filter(|_| self.is_saved());
        Box::pin(async {
            let copy = match wanted.task.isolation {
                Isolation::Shared => None,
                Isolation::Worktree => {
                    let named = (wanted.id.as_str(), &*wanted.task.name);
                    let session = session.map(|id| id.to_string());
                    let waits = isolation::must_be_whole(&wanted.task, routes.get());
                    Some(IsolatedCopy::create_copy(&parent, named, session, waits).await?)
                }
            };
            let prepared =
                move || async move { prepared_child(&parent, stored, &routes, wanted, copy).await };
            Ok(off_loop(prepared).await?)
        })
    }

    fn task_files(&self) -> Option<SessionTaskFiles> {
        Some(SessionTaskFiles::new(Arc::clone(&self.project), self.stored_id()))
    }

    fn merge_next(&self) -> BoxFuture<'static, ()> {
        let place = Arc::clone(&self.copy);
        Box::pin(async move {
            let Some(keeper) = place.lock().as_ref().and_then(IsolatedCopy::waits_to_merge) else {
                return;
            };
            let next = keeper.lock_merges().await;
            if let Some(copy) = place.lock().as_mut() {
                copy.merges_next(next);
            }
        })
    }

    fn files_ready(&self) -> Option<CheckpointReadiness> {
        let copy = self.copy.lock();
        copy.as_ref().and_then(IsolatedCopy::files_ready)
    }

    fn bring_up(&self) -> BoxFuture<'static, Option<Result<MergePreview, String>>> {
        let place = Arc::clone(&self.copy);
        Box::pin(async move {
            let mut copy = place.lock().take()?;
            let brought = copy.bring_up().await;
            *place.lock() = Some(copy);
            Some(brought)
        })
    }

    fn merge_changes(&self, why_not: Option<String>) -> BoxFuture<'static, Option<ChildMerge>> {
        let copy = self.copy.lock().take();
        Box::pin(async move { Some(copy?.merge_changes(why_not).await) })
    }

    fn is_saved(&self) -> bool {
        let kept = self.kept.lock();
        kept.as_ref().is_some_and(SessionStores::is_saving)
    }

    fn unchanged_spec(&self, spec: SessionSpec) -> SessionSpec {
        reopen_changes::going_on(spec, self.stored_id().as_ref())
    }

    fn remove_old_data(&self) -> BoxFuture<'static, ()> {
        let kept = self.kept.lock().take();
        Box::pin(async move {
            if let Some(kept) = kept {
                kept.remove_old_data().await;
            }
        })
    }
}

impl ProjectServices {
    /// The session's id in the store, once it has one.
    fn stored_id(&self) -> Option<SessionId> {
        self.begun.get().or(self.continued.as_ref()).cloned()
    }

    /// The store that holds the session.
    fn store(&self) -> Option<Arc<dyn SessionStore>> {
        let kept = self.kept.lock();
        kept.as_ref().and_then(|kept| kept.session_store(None, false))
    }
}

/// A session that one of the project `parent`, `stored` under that id, with these `routes` starts.
async fn prepared_child(
    parent: &Project,
    stored: Option<SessionId>,
    routes: &KnownRoutes,
    mut wanted: ChildOpening,
    copy: Option<IsolatedCopy>,
) -> Result<(SessionSpec, PreparedSession)> {
    let Some(known) = routes.get() else {
        return Err(HostError::failure("the session has no models yet"));
    };
    let (spec, notices) = (&wanted.task.spec, wanted.notices.clone());
    let mut project = child::build_project(parent, spec, notices, copy.as_ref())?;
    project.holder = parent.holder.for_elf(&wanted.task.name);
    project.elf = Some(child::hook_agent(&wanted));
    let project = Arc::new(project);
    let continued = match &wanted.task.resume {
        Some(id) => Some(session_resume::take_child(&project, stored.as_ref(), id).await?),
        None => None,
    };
    if let Some(copy) = &copy {
        wanted.task.prompt = format!("{}\n\n{}", wanted.task.prompt, copy.elf_prompt());
    }
    let (id, spec, name) = (wanted.id.clone(), project.spec.clone(), wanted.task.name.clone());
    let store = continued.as_ref().map(|continued| Arc::clone(&continued.past.store));
    let kept = SessionStores::for_child(&project, store, stored.map(|parent| (parent, name)));
    let begun = kept.session_id_cell();
    let used = continued.as_ref().map(|continued| continued.used).unwrap_or_default();
    let mut info = facts::session_info(&project, used, None);
    let gauge = Arc::<LastRequest>::default();
    let goes_on = continued.as_ref().map(|continued| continued.id.clone());
    let (messages, notes) =
        continued.as_ref().map(|it| (it.history.clone(), it.notes.clone())).unwrap_or_default();
    let going_on = child::ContinuedState {
        history: messages.clone(),
        measured: continued.and_then(|continued| continued.measured),
        keeping: kept.to_keeping(goes_on.clone(), Some(id.clone()), false),
        reader: kept.read_result_tool().filter(|_| project.shared.driver().is_none()),
        gauge: Arc::clone(&gauge),
        ready: copy.as_ref().and_then(IsolatedCopy::files_ready),
    };
    let (engine, arm) = child::build_engine(&project, wanted, known, going_on)?;
    info.model = arm.map(|arm| arm.to_string()).or(info.model);
    let (all, current) = (Arc::clone(known), info.model.clone());
    let models = Box::new(move || arm_choices(&all, current.as_deref()));
    let opened = OpenedSession { engine, beside: Box::new(()), models, jobs: Arc::new(|| 0) };
    let services = ProjectServices {
        model: info.model.clone(),
        project,
        begun,
        continued: goes_on,
        routes: Arc::clone(routes),
        gauge,
        added: KnownAdditions::default(),
        servers: mcp::KnownServers::default(),
        kept: Mutex::new(Some(kept)),
        copy: Arc::new(Mutex::new(copy)),
    };
    let opening = Box::pin(std::future::ready(Ok(opened)));
    let services = Arc::new(services);
    Ok((spec, PreparedSession { id, info, messages, notes, opening, services }))
}

/// The data that a request is answered from.
struct ServiceContext {
    project: Arc<Project>,
    stored: Option<SessionId>,
    /// The holder of the session: nobody else may write to it.
    store: Option<Arc<dyn SessionStore>>,
    model: Option<String>,
    routes: KnownRoutes,
    gauge: Arc<LastRequest>,
    added: KnownAdditions,
    servers: mcp::KnownServers,
}

impl ServiceContext {
    async fn answer(self, request: Request) -> Result<Reply> {
        let project = &*self.project;
        Ok(match request {
            Request::KeepRule { rule, scope, dry_run } => {
                Reply::Text(keep_rule(project, &rule, scope, dry_run)?)
            }
            Request::Trust => Reply::Text(trust_project(project)?),
            Request::Points => Reply::Points(self.rewind_points().await?),
            Request::Changes => Reply::Text(self.describe_changes(ChangesSince::Turn).await?),
            Request::SessionChanges => {
                Reply::Text(self.describe_changes(ChangesSince::Start).await?)
            }
            Request::CommitChanges => {
                Reply::Text(self.describe_changes(ChangesSince::Commit).await?)
            }
            Request::Files { max } => {
                let folder = project.spec.folder.clone();
                let listed = tokio::task::spawn_blocking(move || file_names(&folder, max)).await;
                Reply::Text(listed.unwrap_or_default())
            }
            Request::Export { path } => Reply::Text(self.export_session(&path).await?),
            Request::Rename { title } => {
                let id = self.stored_session()?;
                let store = self.store.as_deref().ok_or_else(not_saved)?;
                Reply::Text(sessions::rename_open(store, id, &title, project.now_ms()).await?)
            }
            Request::Search { words, max } => {
                Reply::Hits(sessions::search_sessions(project, &words, max).await?)
            }
            Request::Stored { max } => {
                let mut all = sessions::list_sessions(project).await?;
                all.truncate(max.min(MAX_STORED));
                Reply::Stored(all)
            }
            Request::Output { result, from, max_bytes } => {
                self.read_output(result, from, max_bytes).await?
            }
            Request::Models { ask } => Reply::Choices(self.model_choices(ask).await),
            Request::Providers => Reply::Choices(provider_choices(project)),
            Request::Profiles => Reply::Choices(profile_choices(project)),
            Request::TryProvider(connection) => {
                Reply::Text(first_start::try_provider(project, connection).await?)
            }
            Request::AddProvider(connection) => {
                Reply::Text(first_start::add_provider(project, connection)?)
            }
            Request::RemoveProvider { provider } => {
                Reply::Text(providers::remove_provider(project, &provider)?)
            }
            Request::Settings => Reply::Settings(setting::list_settings(project)),
            Request::SetSetting { key, value } => {
                Reply::Text(setting::set_setting(project, &key, &value)?)
            }
            Request::Explain(topic) => self.explain_topic(topic),
            Request::Task(TaskRequest::Schedules) => {
                Reply::Text(schedules::describe_schedules(project))
            }
            Request::Task(request) => tasks::answer_request(project, &request)?,
            Request::Memory(request) => {
                Reply::Text(memory::answer_request(project, self.stored.as_ref(), &request)?)
            }
            _ => return Err(HostError::usage("unknown request")),
        })
    }

    fn stored_session(&self) -> Result<&SessionId> {
        let why = || match self.store {
            Some(_) => HostError::usage("nothing was said in this session yet"),
            None => not_saved(),
        };
        self.stored.as_ref().ok_or_else(why)
    }

    async fn rewind_points(&self) -> Result<Vec<RewindPoint>> {
        let Some(id) = &self.stored else { return Ok(Vec::new()) };
        let point = |rewind_candidates::RewindCandidate { turns, prompt, at_ms, files }| {
            RewindPoint { turns, prompt, at_ms: at_ms.unwrap_or_default(), files }
        };
        Ok(rewind_candidates::rewind_points(&self.project, id)
            .await?
            .into_iter()
            .map(point)
            .collect())
    }

    async fn describe_changes(&self, since: ChangesSince) -> Result<String> {
        let Some(id) = &self.stored else { return Ok(String::new()) };
        let changes = changes::changes_since(&self.project, id.as_str(), since).await?;
        let about = || format!("{}\n", changes.about.join("\n"));
        Ok(about() + &changes::shorten_diff(changes.text))
    }

    async fn export_session(&self, path: &Path) -> Result<String> {
        let id = self.stored_session()?;
        let named = PathBuf::from(format!("gnoma-{id}.md"));
        let path = if path.as_os_str().is_empty() { &named } else { path };
        let format = export::format_of(path)?;
        let SessionSpec { folder, environment, .. } = &self.project.spec;
        let file = home::expand(path, environment.home().as_deref(), folder);
        let id = export::export_to_file(&self.project, Some(id.as_str()), format, &file).await?;
        Ok(format!("exported {id} to {}", file.display()))
    }

    async fn read_output(&self, result: ResultId, from: u64, max_bytes: u32) -> Result<Reply> {
        let past = ProjectHistory::open(&self.project)?;
        let results = past.store.result_store(self.stored_session()?.clone());
        let max_bytes = max_bytes.min(MAX_OUTPUT_BYTES) as usize;
        let part =
            results.read_slice(result, from, max_bytes).await.map_err(|error| {
                match error.kind {
                    StoreErrorKind::NotFound => HostError::not_found(error.to_string()),
                    _ => error.into(),
                }
            })?;
        Ok(Reply::Output { text: part.text, next: part.next, total_bytes: part.total_bytes })
    }

    /// The models that the session can be pinned to, and those that the providers list besides.
    async fn model_choices(&self, ask: bool) -> Vec<Choice> {
        let current = self.model.as_deref();
        let routes = self.routes.get();
        let mut models = routes.map(|routes| arm_choices(routes, current)).unwrap_or_default();
        let listed = if ask { providers::list_models(&self.project).await } else { Vec::new() };
        for name in listed {
            if models.iter().all(|known| known.name != name) {
                let about = "reopens the session".to_owned();
                let current = current == Some(&*name);
                models.push(Choice { name, about, current, ..Choice::default() });
            }
        }
        models.truncate(MAX_MODELS);
        models
    }

    fn explain_topic(&self, topic: Topic) -> Reply {
        match topic {
            Topic::Routing => {
                let origin = self.project.explain_setting("provider.default").map(|set| set.origin);
                let origin = origin.map_or_else(String::new, setting::describe_choice);
                let text = match &self.model {
                    Some(model) => format!(
                        "Every call goes to {model}{origin}. Change it with /model or /provider"
                    ),
                    None => {
                        "The router chooses a model for each turn. /why says how it chose, and \
                             /model NAME pins one"
                            .to_owned()
                    }
                };
                Reply::Text(text)
            }
            Topic::Hooks => {
                let added = self.added.get();
                let mut told = added.map(|added| added.hooks_told()).unwrap_or_default();
                told.extend(extensions::idle_hooks(&self.project));
                Reply::Text(if told.is_empty() { "no hooks".to_owned() } else { told.join("\n") })
            }
            Topic::Context => {
                let found = extensions::load_instructions(&self.project.spec);
                let used = self.gauge.measure_window_use(found.text().trim_end());
                Reply::Window { used, sources: extensions::describe_context(&self.project) }
            }
            // The session answers that itself.
            Topic::Elfs => Reply::Text(String::new()),
            Topic::Summary => Reply::Text(self.gauge.summary().unwrap_or_default()),
            Topic::Cache => Reply::Text(self.gauge.describe_cache()),
            Topic::Mcp => Reply::Text(mcp::describe_servers(self.servers.get())),
            Topic::Agents => Reply::Text(extension_lists::render_agents(&self.project)),
            Topic::Skills => Reply::Text(extension_lists::render_skills(&self.project)),
            Topic::Plugins => Reply::Text(extension_lists::plugins_of(&self.project)),
            Topic::Instructions => Reply::Text(extensions::describe_context(&self.project)),
        }
    }
}

fn not_saved() -> HostError {
    HostError::usage("this session is not saved")
}

fn keep_rule(project: &Project, rule: &str, scope: Scope, dry_run: bool) -> Result<String> {
    if !dry_run {
        return rule::keep_rule(project, rule, scope);
    }
    if !rule.is_empty() {
        rule::keep_rule(project, rule, Scope::Session)?;
    }
    rule::rule_place(project, scope)
}

fn trust_project(project: &Project) -> Result<String> {
    let SessionSpec { folder, environment, .. } = &project.spec;
    let root = project_root(folder, &environment.config_dir()).unwrap_or_else(|| folder.clone());
    let unread = |error: &dyn std::fmt::Display| HostError::failure(error.to_string());
    let content =
        paths::read_config_file(&paths::project_file(&root)).map_err(|error| unread(&error))?;
    let is_set = content.is_some();
    let content = content.unwrap_or_default();
    let acting = pin::list_acting_files(&root, &content).map_err(|error| unread(&error))?;
    if !is_set && acting.is_empty() {
        let text = format!("{} has no settings that need trust", root.display());
        return Err(HostError::usage(text));
    }
    let store = trust::Store::open(&environment.state_dir());
    let mut store = store.map_err(|error| unread(&error))?;
    store.trust(&root, &content).map_err(|error| unread(&error))?;
    Ok(format!("{} is trusted until its settings change", root.display()))
}
