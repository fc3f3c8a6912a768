//! Opens sessions of projects: settings, stores and models become an engine.

use std::sync::{Arc, Mutex};

use gnoma_core::{
    Message,
    info::{FoundProviders, SessionInfo},
    protocol::RequestError,
    store::SessionId,
    tool::BoxFuture,
};
use gnoma_engine::Session as Engine;

use crate::{
    Project, Result, clock, facts,
    keeping::Kept,
    live::{Opened, Opener, Opening, Prepared},
    off_loop::off_loop,
    providers,
    resuming::{self, Used},
    routing,
    services::{KnownRoutes, ProjectServices, choices},
    session,
    shared::Shared,
};

/// Opens sessions of this machine's projects.
#[derive(Default)]
pub struct Projects {
    shared: Shared,
}

impl Opener for Projects {
    fn open(&self, wanted: Opening) -> BoxFuture<'static, Result<Prepared, RequestError>> {
        let shared = self.shared.clone();
        Box::pin(async move { Ok(prepare(wanted, shared).await?) })
    }

    fn now_ms(&self) -> i64 {
        clock::now_ms()
    }
}

async fn prepare(wanted: Opening, shared: Shared) -> Result<Prepared> {
    let Opening { spec, session, carried, notices } = wanted;
    let (project, continued) = off_loop(|| async {
        let project = Project::open(spec, notices)?.sharing(shared);
        project.refuse_whole_system()?;
        let continued = resuming::take(&project, &project.spec.start).await?;
        Ok((project, continued))
    })
    .await?;
    let store = continued.as_ref().map(|continued| Arc::clone(&continued.past.store));
    let kept = Kept::start(&project, store);
    let found = providers::to_set_up(&project.loaded.settings).await;
    let (stored, messages, used) = match continued {
        Some(continued) => (Some(continued.id), continued.history, continued.used),
        None => (None, carried, Used::default()),
    };
    // A session that is changed may have been stored under its id already.
    let is_new = session.is_none() && stored.is_none();
    let id =
        session.or_else(|| stored.clone()).unwrap_or_else(|| SessionId::new(clock::session_id()));
    let project = Arc::new(project);
    let routes = KnownRoutes::default();
    let info = info(&project, found, used);
    let making = Making {
        project: Arc::clone(&project),
        id: id.clone(),
        keeping: kept.keeping(stored.clone(), is_new.then(|| id.clone())),
        tools: kept.tool().into_iter().collect(),
        messages: messages.clone(),
        begun: kept.begun(),
        routes: Arc::clone(&routes),
        model: info.model.clone(),
    };
    let services = ProjectServices {
        project,
        begun: kept.begun(),
        continued: stored,
        model: info.model.clone(),
        routes,
        kept: Mutex::new(Some(kept)),
    };
    Ok(Prepared {
        id,
        parent: None,
        info,
        messages,
        opening: Box::pin(async move { Ok(making.open().await?) }),
        services: Arc::new(services),
    })
}

/// The rest of a session's making, which may need a network.
struct Making {
    project: Arc<Project>,
    id: SessionId,
    keeping: gnoma_engine::Keeping,
    tools: Vec<Arc<dyn gnoma_core::Tool>>,
    messages: Vec<Arc<Message>>,
    begun: crate::keeping::Begun,
    routes: KnownRoutes,
    model: Option<String>,
}

impl Making {
    async fn open(self) -> Result<Opened> {
        let wanted =
            routing::Wanted { begun: self.begun, grows: true, ..routing::Wanted::default() };
        let ready = routing::prepare(&self.project, &wanted).await?;
        let routes = Arc::clone(&ready.routes);
        let _is_first = self.routes.set(Arc::clone(&routes));
        let discovery = ready.discover();
        let mut options = session::options(&self.project, Arc::clone(&routes))?;
        options.id = self.id.to_string();
        options.keeping = self.keeping;
        options.tools.extend(self.tools);
        options.history = self.messages;
        let model = self.model;
        Ok(Opened {
            engine: Engine::spawn(options),
            beside: Box::new(discovery),
            models: Box::new(move || choices(&routes, model.as_deref())),
        })
    }
}

fn info(project: &Project, found: Option<Vec<String>>, used: Used) -> SessionInfo {
    let facts = facts::of(project);
    let settings = &project.loaded.settings;
    let set = |key: &str| {
        let set = project.loaded.explain(key).map_or("", |set| set.value.as_str());
        set.trim_matches('"').to_owned()
    };
    SessionInfo {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folder: facts.folder,
        branch: facts.branch,
        profile: facts.profile,
        incognito: facts.incognito,
        is_kept: !facts.incognito && settings.session.keep,
        model: facts.model,
        window: Some(facts.window).filter(|window| *window > 0),
        last_call: used.last_call,
        before: used.all,
        theme: set("tui.theme"),
        vim: set("tui.vim") == "true",
        found: found.map(|providers| FoundProviders { providers, ..FoundProviders::default() }),
    }
}
