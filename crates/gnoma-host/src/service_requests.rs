//! Answers the requests of a session that its project answers: lists, changes, export, settings.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use crate::{
    Folders as _, HostError, Project, Result, changes,
    choice_lists::{arm_choices, profile_choices, provider_choices},
    export, extension_lists, extensions, first_start, mcp, memory,
    project_history::ProjectHistory,
    providers, rewind_candidates, rule, schedules, sessions, setting, tasks,
};
use gnoma_config::{paths, pin, project_root, trust};
use gnoma_core::{
    home,
    info::Choice,
    lifecycle::Lifecycle,
    protocol::{ChangesSince, Reply, Request, RewindPoint, SessionSpec, TaskRequest, Topic},
    session::Scope,
    store::{ResultId, ResultStore as _, SessionId, SessionStore, StoreErrorKind},
};
use gnoma_engine::{LastRequest, Routes};
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

/// The data that a request is answered from.
pub(crate) struct ServiceContext {
    pub(crate) project: Arc<Project>,
    pub(crate) stored: Option<SessionId>,
    /// The store that holds the session: no other may write to it.
    pub(crate) store: Option<Arc<dyn SessionStore>>,
    pub(crate) model: Option<String>,
    pub(crate) routes: KnownRoutes,
    pub(crate) gauge: Arc<LastRequest>,
    pub(crate) added: KnownAdditions,
    pub(crate) servers: mcp::KnownServers,
}

impl ServiceContext {
    pub(crate) async fn answer(self, request: Request) -> Result<Reply> {
        let project = &*self.project;
        Ok(match request {
            Request::KeepRule { rule, scope, dry_run } => {
                Reply::Text(keep_rule(project, &rule, scope, dry_run)?)
            }
            Request::Trust => Reply::Text(trust_project(project)?),
            Request::Points => Reply::Points(self.rewind_points().await?),
            Request::Changes => self.describe_changes(ChangesSince::Turn).await?,
            Request::SessionChanges => self.describe_changes(ChangesSince::Start).await?,
            Request::CommitChanges => self.describe_changes(ChangesSince::Commit).await?,
            Request::Files { max } => self.list_files(max).await,
            Request::Export { path } => Reply::Text(self.export_session(&path).await?),
            Request::Rename { title } => self.rename_session(&title).await?,
            Request::Search { words, max } => {
                Reply::Hits(sessions::search_sessions(project, &words, max).await?)
            }
            Request::Stored { max } => self.list_stored(max).await?,
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
            Request::Task(request) => self.answer_task_request(&request)?,
            Request::Memory(request) => {
                Reply::Text(memory::answer_request(project, self.stored.as_ref(), &request)?)
            }
            _ => return Err(HostError::usage("unknown request")),
        })
    }

    fn answer_task_request(&self, request: &TaskRequest) -> Result<Reply> {
        match request {
            TaskRequest::Schedules => Ok(Reply::Text(schedules::describe_schedules(&self.project))),
            request => tasks::answer_request(&self.project, request),
        }
    }

    async fn list_files(&self, max: usize) -> Reply {
        let folder = self.project.spec.folder.clone();
        let listed = tokio::task::spawn_blocking(move || file_names(&folder, max)).await;
        Reply::Text(listed.unwrap_or_default())
    }

    async fn rename_session(&self, title: &str) -> Result<Reply> {
        let id = self.stored_session()?;
        let store = self.store.as_deref().ok_or_else(not_saved)?;
        Ok(Reply::Text(sessions::rename_open(store, id, title, self.project.now_ms()).await?))
    }

    async fn list_stored(&self, max: usize) -> Result<Reply> {
        let mut all = sessions::list_sessions(&self.project).await?;
        all.truncate(max.min(MAX_STORED));
        Ok(Reply::Stored(all))
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

    async fn describe_changes(&self, since: ChangesSince) -> Result<Reply> {
        let Some(id) = &self.stored else { return Ok(Reply::Text(String::new())) };
        let changes = changes::changes_since(&self.project, id.as_str(), since).await?;
        let about = || format!("{}\n", changes.about.join("\n"));
        Ok(Reply::Text(about() + &changes::shorten_diff(changes.text)))
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
