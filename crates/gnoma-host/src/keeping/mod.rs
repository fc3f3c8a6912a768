//! What of a session outlives it: opens the stores beside the work, and hands them to the engine.
//!
//! Opening takes milliseconds that nobody should wait for, so threads do it from the program's start;
//! whoever needs a store first waits for what is left of them. In incognito nothing is opened, so no
//! file and no folder is made.

mod begun;
mod files;
mod late;
mod result_store;
mod tidy;

use std::sync::Arc;

use gnoma_core::{
    Tool,
    store::{Checkpoints, ResultStore, SessionId, SessionStore},
};
use gnoma_engine::Keeping;
use gnoma_store::Store;

pub use self::begun::Begun;
use self::{
    files::Files,
    late::{Late, LateStore},
    result_store::LateResultStore,
};
use crate::{Notices, Project, clock::Clock, shared::Workplace};

/// The stores of one run. Empty where nothing may be kept.
#[derive(Default)]
pub struct Kept {
    store: Option<Late<Store>>,
    files: Option<Arc<Files>>,
    begun: Begun,
    clock: Clock,
    tidying: Option<tidy::Tidying>,
}

impl Kept {
    /// Begins to open what the settings want kept. `store`: the one of a session that is continued.
    #[must_use]
    pub fn start(project: &Project, store: Option<Arc<Store>>) -> Self {
        let Project { keeping, firewall, places, notices, shared, .. } = project;
        let clock = shared.clock().clone();
        if keeping.privacy.incognito {
            return Self { clock, ..Self::default() };
        }
        let open = || {
            let (options, notices) = (places.store(firewall, notices), Notices::clone(notices));
            let shared = shared.clone();
            Late::opening(move || {
                let opened = shared.store(options.clone())?;
                if let Some(rescued) = opened.rescued {
                    notices.warning(rescued);
                }
                Ok(Arc::new(opened.store))
            })
        };
        let store = match store {
            Some(store) => Some(Late::ready(store)),
            None => keeping.session.keep.then(open),
        };
        let begun = Begun::default();
        let files = files(project, &begun);
        let tidying = Some(tidy::Tidying::new(&keeping.session, Arc::clone(&begun)));
        Self { store, files, begun, clock, tidying }
    }

    /// The session's id in its store.
    pub fn begun(&self) -> Begun {
        Arc::clone(&self.begun)
    }

    /// What the engine gets. `continued`: the session of the store that goes on; `id`: what a new one is
    /// called, unless it `is_reopened` and one of that id is stored already.
    pub fn keeping(
        &self,
        continued: Option<SessionId>,
        id: Option<SessionId>,
        is_reopened: bool,
    ) -> Keeping {
        let begun = self.begun();
        let store = self.session_store(id, is_reopened).map(|store| (store, continued));
        let (files, clock) = (self.files.clone(), self.clock.clone());
        Keeping {
            store,
            begun: Box::new(move |id| drop(begun.set(id.clone()))),
            result_store: self.result_store(),
            checkpoints: files.map(|files| -> Arc<dyn Checkpoints> { files }),
            now_ms: Box::new(move || clock.now_ms()),
            ..Keeping::default()
        }
    }

    /// The store that has the session in hand. `id`: what the session that is begun first is called.
    pub(crate) fn session_store(
        &self,
        id: Option<SessionId>,
        is_reopened: bool,
    ) -> Option<Arc<dyn SessionStore>> {
        let store = self.store.clone()?;
        Some(Arc::new(LateStore { store, id: id.into(), is_reopened }))
    }

    /// The tool that reads back what was too large for the conversation.
    pub fn tool(&self) -> Option<Arc<dyn Tool>> {
        self.result_store().map(gnoma_tools::read_result)
    }

    fn result_store(&self) -> Option<Arc<dyn ResultStore>> {
        let store = self.store.clone()?;
        Some(Arc::new(LateResultStore { store, begun: self.begun() }))
    }

    /// Forgets what is too old or too much. For the end of a run: nobody waits for it long.
    pub async fn tidy(self) {
        if let Some(tidying) = self.tidying {
            tidying.run(self.store, self.files, self.clock.now_ms()).await;
        }
    }
}

fn files(Project { keeping, places, shared, .. }: &Project, begun: &Begun) -> Option<Arc<Files>> {
    let settings = &keeping.checkpoints;
    let root = places.workspace.clone().filter(|_| settings.enabled)?;
    let of = Workplace { vault: places.vault.clone(), root, options: places.checkpoints(settings) };
    Some(Arc::new(Files::opening(shared.clone(), of, Arc::clone(begun))))
}
