//! The stores of a session: opens them beside the work, and hands them to the engine.
//!
//! Opening takes milliseconds, so threads do it from the program's start; the first use of a store waits for the
//! rest. In incognito nothing is opened, so no file and no folder is created.

mod begun_session;
mod files;
mod late_opening;
mod result_store;
mod retention_job;

use std::sync::Arc;

use gnoma_core::{
    Tool,
    store::{Checkpoints, ResultStore, SessionId, SessionStore, StoreError, StoreErrorKind},
    sync::Mutex,
};
use gnoma_engine::PersistenceOptions;
use gnoma_store::Store;

pub use self::begun_session::BegunSessionId;
use self::{
    files::{LateCheckpoints, NoCheckpoints},
    late_opening::{LateOpening, LateStore},
    result_store::LateResultStore,
};
use crate::{Notices, Project, clock::Clock, shared::WorkspaceKey};

/// The stores of one run. Empty if nothing may be saved.
#[derive(Default)]
pub struct SessionStores {
    store: Option<LateOpening<Store>>,
    files: Option<Arc<LateCheckpoints>>,
    /// The reason why the folder has no checkpoints although the settings want them.
    no_checkpoints: Option<Arc<NoCheckpoints>>,
    begun: BegunSessionId,
    clock: Clock,
    tidying: Option<retention_job::RetentionJob>,
    /// The person knows already that nothing can be saved.
    is_told: bool,
    /// The session that starts this one, and what that one calls it, where another one does.
    parent: Option<(SessionId, String)>,
}

impl SessionStores {
    /// Begins to open what the settings want kept. `store`: the one of a session that is continued.
    #[must_use]
    pub fn start(project: &Project, store: Option<Arc<Store>>) -> Self {
        let kept = Self::conversation_only(project, store);
        if project.is_incognito() {
            return kept;
        }
        let files = checkpoint_files(project, &kept.begun);
        let settings = &project.keeping.checkpoints;
        let hindrance = project.places.checkpoint_hindrance(settings).filter(|_| settings.enabled);
        let no_checkpoints = hindrance.map(|why| Arc::new(NoCheckpoints { why }));
        let tidying =
            retention_job::RetentionJob::new(&project.keeping.session, Arc::clone(&kept.begun));
        Self { files, no_checkpoints, tidying: Some(tidying), ..kept }
    }

    /// Opens the stores of a session that the stored session `parent` starts under a name: its files are saved with those
    /// of its parent.
    pub(crate) fn for_child(
        project: &Project,
        store: Option<Arc<Store>>,
        parent: Option<(SessionId, String)>,
    ) -> Self {
        match parent {
            Some(_) => Self { parent, ..Self::conversation_only(project, store) },
            None => Self { clock: project.shared.clock().clone(), ..Self::default() },
        }
    }

    /// The conversation, and large results.
    fn conversation_only(project: &Project, store: Option<Arc<Store>>) -> Self {
        let Project { keeping, firewall, places, notices, shared, .. } = project;
        let clock = shared.clock().clone();
        if keeping.privacy.incognito {
            return Self { clock, ..Self::default() };
        }
        let open = || {
            let (options, notices) =
                (places.store_options(firewall, notices), Notices::clone(notices));
            let (shared, origin) = (shared.clone(), project.save_folder_origin());
            LateOpening::begin_opening(move || {
                let opened = shared
                    .open_store(options.clone())
                    .map_err(|error| with_origin(error, origin.as_deref()))?;
                if let Some(rescued) = opened.rescued {
                    notices.warning(rescued);
                }
                Ok(Arc::new(opened.store))
            })
        };
        let store = match store {
            Some(store) => Some(LateOpening::from_value(store)),
            None => keeping.session.keep.then(open),
        };
        Self { store, clock, is_told: project.knows_nothing_is_saved(), ..Self::default() }
    }

    /// The session's id in its store.
    pub fn session_id_cell(&self) -> BegunSessionId {
        Arc::clone(&self.begun)
    }

    /// Returns what the engine needs to save its work. `continued`: the stored session that continues; `id`: the id
    /// of a new one, unless it `is_reopened` and one with that id is already stored.
    pub fn to_keeping(
        &self,
        continued: Option<SessionId>,
        id: Option<SessionId>,
        is_reopened: bool,
    ) -> PersistenceOptions {
        let begun = self.session_id_cell();
        let store = self.session_store(id, is_reopened).map(|store| (store, continued));
        let (files, clock) = (self.files.clone(), self.clock.clone());
        let none = || self.no_checkpoints.clone().map(|none| -> Arc<dyn Checkpoints> { none });
        PersistenceOptions {
            store,
            begun: Box::new(move |id| drop(begun.set(id.clone()))),
            result_store: self.result_store(),
            checkpoints: files.map(|files| -> Arc<dyn Checkpoints> { files }).or_else(none),
            is_told: self.is_told,
            now_ms: Box::new(move || clock.now_ms()),
            ..PersistenceOptions::default()
        }
    }

    /// The store that holds the session. `id`: what the session that is begun first is called.
    pub(crate) fn session_store(
        &self,
        id: Option<SessionId>,
        is_reopened: bool,
    ) -> Option<Arc<dyn SessionStore>> {
        let store = self.store.clone()?;
        let parent = self.parent.clone();
        Some(Arc::new(LateStore { store, id: Mutex::new(id), parent, is_reopened }))
    }

    /// Reports whether the conversation is saved.
    pub(crate) fn is_saving(&self) -> bool {
        self.store.is_some()
    }

    /// The tool that reads back what was too large for the conversation.
    pub fn read_result_tool(&self) -> Option<Arc<dyn Tool>> {
        self.result_store().map(gnoma_tools::read_result)
    }

    fn result_store(&self) -> Option<Arc<dyn ResultStore>> {
        let store = self.store.clone()?;
        Some(Arc::new(LateResultStore { store, begun: self.session_id_cell() }))
    }

    /// Deletes stored data that is too old or too large, at the end of a run. Takes only a short time.
    pub async fn remove_old_data(self) {
        if let Some(tidying) = self.tidying {
            tidying.run(self.store, self.files, self.clock.now_ms()).await;
        }
    }
}

/// Adds to an error of a folder what names that folder: a person can change it there.
fn with_origin(error: StoreError, origin: Option<&str>) -> StoreError {
    match origin {
        Some(origin) if matches!(error.kind, StoreErrorKind::Io | StoreErrorKind::ReadOnly) => {
            StoreError::new(error.kind, format!("{}; {origin} names the folder", error.sentence))
        }
        Some(_) | None => error,
    }
}

fn checkpoint_files(project: &Project, begun: &BegunSessionId) -> Option<Arc<LateCheckpoints>> {
    let of = checkpoint_workplace(project)?;
    Some(Arc::new(LateCheckpoints::begin_opening(project, of, Arc::clone(begun))))
}

/// The files that are kept of a project, and how.
pub(crate) fn checkpoint_workplace(
    Project { keeping, places, .. }: &Project,
) -> Option<WorkspaceKey> {
    let settings = &keeping.checkpoints;
    let root = places.workspace.clone().filter(|_| settings.enabled)?;
    Some(WorkspaceKey {
        vault: places.vault.clone(),
        root,
        options: places.checkpoint_options(settings),
    })
}
