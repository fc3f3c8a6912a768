//! What the next session is made of, and making it. What a person changes in a running one changes
//! the plan, and the next session goes on with the same conversation.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use anyhow::Result;
use gnoma_core::{
    Message, ModelRef, Role,
    protocol::{SessionSpec, Start},
    store::SessionId,
};
use gnoma_engine::{Arm, Routes, Session as Engine};
use gnoma_host::{
    HostError, Project, facts,
    keeping::{Begun, Kept},
    providers, redo,
    rewind::{self, Outcome, Part, Rewind, Target},
    routing, session,
};
use gnoma_tui::{desk::Found, status::Facts, theme, wish::Again};

use super::link::{Line, Opening};
use crate::{
    args::TurnArgs, continuing, demo, lowering::Asked, report, surroundings::Surroundings,
};

/// See the module.
#[derive(Clone)]
pub(super) struct Plan {
    spec: SessionSpec,
    /// The person wants to choose a session of a list.
    chooses: bool,
    /// A conversation that is not kept and goes on.
    said: Vec<Arc<Message>>,
    /// The names that mean a provider.
    providers: Vec<String>,
}

/// What became of a change.
pub(super) struct Step {
    /// The conversation on the screen goes on.
    pub is_same: bool,
    /// What was said in the session is to be shown.
    pub shows_past: bool,
    /// For people.
    pub told: Result<String, String>,
}

impl Step {
    const SAME: Self = Self { is_same: true, shows_past: false, told: Ok(String::new()) };
    const NEW: Self = Self { is_same: false, shows_past: false, told: Ok(String::new()) };

    /// Everything stays as it was.
    pub(super) fn refused(error: &anyhow::Error) -> Self {
        Self { told: Err(format!("{error:#}")), ..Self::SAME }
    }
}

/// A session that is open, as the rest of the front end needs to know it.
#[derive(Clone)]
pub(super) struct Session {
    pub project: Arc<Project>,
    pub facts: Facts,
    /// No provider is there to be asked.
    pub found: Option<Found>,
    begun: Begun,
    continued: Option<SessionId>,
    /// Which models the session can ask, once it is open.
    routes: Arc<OnceLock<Arc<Routes>>>,
}

impl Session {
    /// Its id in the store, once it has one.
    pub(super) fn id(&self) -> Option<SessionId> {
        self.begun.get().or(self.continued.as_ref()).cloned()
    }

    /// The models that the session changes to by itself.
    pub(super) fn arms(&self) -> Vec<ModelRef> {
        let arms = self.routes.get().map(|routes| routes.arms());
        arms.iter().flat_map(|arms| arms.iter()).map(Arm::name).collect()
    }

    /// Tokens of a model's context window, where that is known.
    pub(super) fn window(&self, model: &str) -> Option<u64> {
        let arms = self.routes.get()?.arms();
        let arm = arms.iter().find(|arm| arm.name().to_string() == model)?;
        arm.context_window.map(u64::from)
    }

    pub(super) fn folder(&self) -> String {
        self.project.places.project.display().to_string()
    }

    /// Whether what is said is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.keeps_words() && self.project.loaded.settings.session.keep
    }

    /// Whether anything may be kept.
    pub(super) fn keeps_words(&self) -> bool {
        !self.project.loaded.settings.privacy.incognito
    }

    pub(super) fn theme(&self) -> String {
        let value = self.project.loaded.explain("tui.theme").map_or("", |set| set.value.as_str());
        known_theme(value.trim_matches('"'))
    }

    pub(super) fn is_set(&self, key: &str) -> bool {
        self.project.loaded.explain(key).is_some_and(|set| set.value == "true")
    }
}

impl Plan {
    pub(super) fn of(args: &TurnArgs, around: &Surroundings) -> Self {
        let Asked { spec, chooses, .. } = Asked::of(args, around);
        let spec = SessionSpec { interactive: true, ..spec };
        Self { spec, chooses, said: Vec::new(), providers: Vec::new() }
    }

    /// Takes over what the session that ends has come to.
    pub(super) fn remember(&mut self, line: &Line, session: &Session) {
        self.providers = providers::named(&session.project.loaded.settings);
        self.said = line.said().to_vec();
        self.spec.overrides.mode = line.mode().or(self.spec.overrides.mode);
    }

    /// The same again: the session of that id, or the conversation that is not kept.
    pub(super) fn staying(&self, id: Option<SessionId>) -> Self {
        let mut plan = Self { chooses: false, ..self.clone() };
        plan.spec.start = id.map_or(Start::New, |id| stored(id.to_string()));
        plan
    }

    /// Makes the session. What needs a network comes later, by the line.
    pub(super) async fn session(&self, around: &Surroundings) -> Result<(Session, Line)> {
        let mut project = Project::open(self.spec.clone(), report::notices())?;
        project.refuse_whole_system()?;
        let continued = continuing::take(&mut project, self.chooses, around).await?;
        let store = continued.as_ref().map(|continued| Arc::clone(&continued.past.store));
        let kept = Kept::start(&project, store);
        let used = continued.as_ref().map(|continued| continued.used).unwrap_or_default();
        let found = providers::to_set_up(&project.loaded.settings).await;
        let session = Session {
            facts: Facts { last_call: used.last_call, before: used.all, ..shown(&project) },
            found: found.map(|providers| Found { providers, ..Found::default() }),
            begun: kept.begun(),
            continued: continued.as_ref().map(|continued| continued.id.clone()),
            routes: Arc::default(),
            project: Arc::new(project),
        };
        let said = match &continued {
            Some(continued) => continued.history.clone(),
            None => self.said.clone(),
        };
        let mut line = Line::new(opening(&session, &kept, said.clone()), said, kept);
        if session.found.is_some() {
            // The face shows what to do about it.
            line.keep_quiet();
        }
        Ok((session, line))
    }

    /// Changes the plan. `id`: the session that has just ended.
    pub(super) async fn follow(
        &mut self,
        again: Again,
        id: Option<SessionId>,
        around: &Surroundings,
    ) -> Step {
        *self = self.staying(id.clone());
        let changed = match again {
            Again::New => Ok(self.begin()),
            Again::Resume(id) => {
                let newest = Start::Newest { fork: false };
                self.spec.start = id.map_or(newest, stored);
                Ok(Step { shows_past: true, ..Step::NEW })
            }
            Again::Fork => self.forked(),
            Again::Model(name) => Ok(self.ask_model(name)),
            Again::Provider(name) => {
                self.spec.overrides.provider = Some(name);
                self.spec.overrides.model = None;
                Ok(Step::SAME)
            }
            Again::Profile(name) => {
                self.spec.profile = Some(name);
                Ok(self.begin())
            }
            Again::Incognito(incognito) => {
                self.spec.overrides.incognito = Some(incognito);
                Ok(self.hidden(incognito))
            }
            Again::Rewind { turns, files, conversation } => {
                self.rewound(turns, (files, conversation), id).await
            }
            Again::Redo => self.redone(id).await,
            Again::Demo => demo::run(around).await.map(|_| self.begin()),
        };
        changed.unwrap_or_else(|error| Step::refused(&error))
    }

    fn begin(&mut self) -> Step {
        self.spec.start = Start::New;
        self.said.clear();
        Step::NEW
    }

    /// What was kept may go on unseen. What was said unseen is never kept: that begins anew.
    fn hidden(&mut self, incognito: bool) -> Step {
        if !incognito {
            let told = "a new conversation begins, and it is kept; what was said before is not";
            return Step { told: Ok(told.to_owned()), ..self.begin() };
        }
        self.spec.start = Start::New;
        let told = "from here on nothing is kept; the model still knows what was said before";
        let told = if self.said.is_empty() { "nothing is kept from here on" } else { told };
        Step { told: Ok(told.to_owned()), ..Step::SAME }
    }

    fn forked(&mut self) -> Result<Step> {
        let Start::Stored { fork, .. } = &mut self.spec.start else {
            return Err(misuse("there is nothing kept that could be copied"));
        };
        *fork = true;
        Ok(Step {
            told: Ok("this is a copy; the session before stays as it is".to_owned()),
            ..Step::SAME
        })
    }

    /// A model, with its provider before a slash where that is another one.
    fn ask_model(&mut self, name: String) -> Step {
        match name.split_once('/').filter(|(before, _)| self.means_provider(before)) {
            Some((provider, model)) => {
                self.spec.overrides.provider = Some(provider.to_owned());
                self.spec.overrides.model = Some(model.to_owned());
            }
            None => self.spec.overrides.model = Some(name),
        }
        Step::SAME
    }

    fn means_provider(&self, name: &str) -> bool {
        self.providers.iter().any(|known| known == name)
    }

    async fn rewound(
        &self,
        turns: usize,
        (files, conversation): (bool, bool),
        id: Option<SessionId>,
    ) -> Result<Step> {
        let id = id.ok_or_else(|| misuse(NOTHING_KEPT))?;
        let part = match (files, conversation) {
            (true, false) => Part::Files,
            (false, true) => Part::Conversation,
            (true, true) | (false, false) => Part::Both,
        };
        let (session, to) = (Some(id.to_string()), Target::Turns(turns));
        let how = Rewind { session, to, part, dry_run: false, overwrite: true };
        let outcome = rewind::rewind(&self.project()?, &how).await?;
        Ok(Step { is_same: !conversation, shows_past: false, told: Ok(lines(outcome)) })
    }

    async fn redone(&self, id: Option<SessionId>) -> Result<Step> {
        let id = id.ok_or_else(|| misuse(NOTHING_KEPT))?;
        let outcome = redo::redo(&self.project()?, Some(id.as_str()), true).await?;
        Ok(Step { told: Ok(lines(outcome)), ..Step::SAME })
    }

    fn project(&self) -> Result<Project> {
        Ok(Project::open(self.spec.clone(), report::notices())?)
    }
}

fn stored(id: String) -> Start {
    Start::Stored { id, fork: false }
}

fn lines(outcome: Outcome) -> String {
    match outcome {
        Outcome::Done(text) => text,
        Outcome::Conflict(paths) => rewind::named(&paths),
    }
}

/// The facts of a project, as the status line takes them.
fn shown(project: &Project) -> Facts {
    let facts::Facts { folder, branch, profile, incognito, model, window, mode } =
        facts::of(project);
    Facts {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        folder,
        branch,
        profile,
        incognito,
        model,
        window,
        mode,
        ..Facts::default()
    }
}

/// What the sessions and the desk share: the session that is open now.
pub(super) type Shared = Arc<Mutex<Session>>;

pub(super) fn open(shared: &Shared) -> MutexGuard<'_, Session> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The theme of that name, else the usual one.
fn known_theme(name: &str) -> String {
    theme::names().find(|known| *known == name).unwrap_or("gnoma").to_owned()
}

/// Whether a conversation breaks off in the middle of a turn: nobody has answered yet.
pub(super) fn is_broken_off(said: &[Arc<Message>]) -> bool {
    said.last().is_some_and(|last| match last.role() {
        Role::User | Role::Tool => true,
        Role::Assistant => last.tool_calls().next().is_some(),
    })
}

const NOTHING_KEPT: &str = "nothing of this session is kept, so nothing can be taken back";

fn misuse(text: &str) -> anyhow::Error {
    HostError::usage(text).into()
}

/// The session on its way.
fn opening(session: &Session, kept: &Kept, said: Vec<Arc<Message>>) -> Opening {
    let keeping = kept.keeping(session.continued.clone());
    let read_result = kept.tool();
    let session = session.clone();
    Box::pin(async move {
        let Session { project, continued, routes: known, begun, .. } = session;
        let wanted = routing::Wanted { begun, grows: true, ..routing::Wanted::default() };
        let ready = routing::prepare(&project, &wanted).await?;
        let routes = Arc::clone(&ready.routes);
        let _is_first = known.set(Arc::clone(&routes));
        let discovery = ready.discover();
        let mut options = session::options(&project, routes)?;
        options.keeping = keeping;
        options.tools.extend(read_result);
        options.history = said;
        if let Some(id) = continued {
            options.id = id.to_string();
        }
        Ok((Engine::spawn(options), discovery))
    })
}
