//! The services of a project for its sessions, on threads of their own: no stream waits for a disk.

use std::sync::Arc;

pub(crate) use crate::service_requests::{KnownAdditions, KnownRoutes};
use crate::{
    HostError, Project, Result,
    blocking_work::off_loop,
    child, facts,
    isolation::{self, IsolatedCopy},
    live::{
        Change, ChildOpening, CopyMergeError, MergePreview, PreparedSession, Services,
        SessionChangeResult,
    },
    mcp,
    observers::{ObservedSession, SessionObservers},
    reopen_changes,
    service_requests::ServiceContext,
    session_stores::{BegunSessionId, SessionStores},
    tasks::SessionTaskFiles,
    usage,
};
use gnoma_core::{
    protocol::{Reply, Request, RequestError, SessionSpec},
    store::{SessionId, SessionStore},
    sync::Mutex,
    tool::{BoxFuture, ChildMerge, Isolation},
};
use gnoma_engine::{CheckpointReadiness, LastRequest};

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
            let prepared = move || async move {
                prepare_child_session(&parent, stored, &routes, wanted, copy).await
            };
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

    fn bring_up(&self) -> BoxFuture<'static, Option<Result<MergePreview, CopyMergeError>>> {
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
        reopen_changes::continued_spec(spec, self.stored_id().as_ref())
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

/// Prepares a session that one of the project `parent`, `stored` under that id, with these `routes` starts.
async fn prepare_child_session(
    parent: &Project,
    stored: Option<SessionId>,
    routes: &KnownRoutes,
    mut wanted: ChildOpening,
    copy: Option<IsolatedCopy>,
) -> Result<(SessionSpec, PreparedSession)> {
    let known = routes.get().ok_or_else(|| HostError::failure("the session has no models yet"))?;
    let project = Arc::new(child::open_project(parent, &wanted, copy.as_ref())?);
    let past = child::hold_past(&project, stored.as_ref(), wanted.task.resume.as_deref()).await?;
    if let Some(copy) = &copy {
        wanted.task.prompt = format!("{}\n\n{}", wanted.task.prompt, copy.elf_prompt());
    }
    let (id, spec, name) = (wanted.id.clone(), project.spec.clone(), wanted.task.name.clone());
    let parent = stored.map(|parent| (parent, name));
    let kept = SessionStores::for_child(&project, past.store, parent);
    let mut info = facts::session_info(&project, past.used, None);
    let gauge = Arc::<LastRequest>::default();
    let state = child::ContinuedState {
        history: past.messages.clone(),
        measured: past.measured,
        keeping: kept.to_keeping(past.id.clone(), Some(id.clone()), false),
        reader: kept.read_result_tool().filter(|_| project.shared.driver().is_none()),
        gauge: Arc::clone(&gauge),
        ready: copy.as_ref().and_then(IsolatedCopy::files_ready),
    };
    let (engine, arm) = child::build_engine(&project, wanted, known, state)?;
    info.model = arm.map(|arm| arm.to_string()).or(info.model);
    let opened = child::opened_session(engine, known, info.model.clone());
    let services = ProjectServices {
        model: info.model.clone(),
        project,
        begun: kept.session_id_cell(),
        continued: past.id,
        routes: Arc::clone(routes),
        gauge,
        added: KnownAdditions::default(),
        servers: mcp::KnownServers::default(),
        kept: Mutex::new(Some(kept)),
        copy: Arc::new(Mutex::new(copy)),
    };
    let opening = Box::pin(std::future::ready(Ok(opened)));
    let (messages, notes, services) = (past.messages, past.notes, Arc::new(services));
    Ok((spec, PreparedSession { id, info, messages, notes, opening, services }))
}
