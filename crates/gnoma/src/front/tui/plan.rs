//! What the next session is made of, and making it. What a person changes in a running one changes
//! the plan, and the next session goes on with the same conversation.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use anyhow::Result;
use gnoma_config::{Loaded, toml};
use gnoma_core::{Message, ModelRef, Role, store::SessionId};
use gnoma_engine::{Arm, Routes, session};
use gnoma_guard::firewall::Firewall;
use gnoma_tui::{desk::Found, status::Facts, wish::Again};

use super::{
    facts, itself, known_theme,
    link::{Line, Opening},
    setup,
};
use crate::{
    args::TurnArgs,
    commands, guarding,
    keeping::{Begun, Kept, Places},
    past::Past,
    report::Misuse,
    resuming::{self, Continued, Wanted},
    routing,
    surroundings::Surroundings,
    wire::{self, Start},
};

/// See the module.
#[derive(Clone)]
pub(super) struct Plan {
    args: TurnArgs,
    wanted: Option<Wanted>,
    fork: bool,
    /// A conversation that is not kept and goes on.
    said: Vec<Arc<Message>>,
    /// The names that mean a provider.
    providers: Vec<String>,
    /// Whether anything is stored, where the person has said so at the terminal: before all settings.
    incognito: Option<bool>,
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
    pub args: TurnArgs,
    pub cwd: PathBuf,
    pub loaded: Arc<Loaded>,
    pub firewall: Arc<Firewall>,
    pub places: Places,
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
    pub(super) fn id(&self) -> Option<String> {
        self.begun.get().or(self.continued.as_ref()).map(SessionId::to_string)
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

    pub(super) fn project(&self) -> String {
        self.places.project.display().to_string()
    }

    /// Whether what is said is kept.
    pub(super) fn is_kept(&self) -> bool {
        self.keeps_words() && self.loaded.settings.session.keep
    }

    /// Whether anything may be kept.
    pub(super) fn keeps_words(&self) -> bool {
        !self.loaded.settings.privacy.incognito
    }

    pub(super) fn theme(&self) -> String {
        let value = self.loaded.explain("tui.theme").map_or("", |set| set.value.as_str());
        known_theme(value.trim_matches('"'))
    }

    pub(super) fn is_set(&self, key: &str) -> bool {
        self.loaded.explain(key).is_some_and(|set| set.value == "true")
    }
}

impl Plan {
    pub(super) fn of(args: &TurnArgs) -> Self {
        let (wanted, _) = Wanted::of(args);
        Self {
            args: args.clone(),
            wanted,
            fork: args.fork,
            said: Vec::new(),
            providers: Vec::new(),
            incognito: None,
        }
    }

    /// Takes over what the session that ends has come to.
    pub(super) fn remember(&mut self, line: &Line, session: &Session) {
        self.providers = setup::named(&session.loaded.settings);
        self.said = line.said().to_vec();
        self.args.permission = line.mode().or(self.args.permission);
    }

    /// The same again: the session of that id, or the conversation that is not kept.
    pub(super) fn staying(&self, id: Option<String>) -> Self {
        Self { wanted: id.map(Wanted::Named), fork: false, ..self.clone() }
    }

    /// Makes the session. What needs a network comes later, by the line.
    pub(super) async fn session(&self, around: &Surroundings) -> Result<(Session, Line)> {
        let cwd = commands::cwd(&self.args, around)?;
        let loaded = Arc::new(self.configuration(around, &cwd)?);
        commands::refuse_whole_system(&cwd, &loaded.settings)?;
        let firewall = guarding::firewall(&loaded.settings, around)?;
        let places = Places::of(&loaded, around, &cwd);
        let continued = self.continued(&loaded, &places, &firewall, around).await?;
        let store = continued.as_ref().map(|continued| Arc::clone(&continued.past.store));
        let kept = Kept::start(&loaded, &places, &firewall, store);
        let used = continued.as_ref().map(|continued| continued.used).unwrap_or_default();
        let session = Session {
            args: self.args.clone(),
            facts: Facts {
                last_call: used.last_call,
                before: used.all,
                ..facts::of(&loaded, around, &cwd)
            },
            found: setup::found(&loaded.settings).await,
            begun: kept.begun(),
            continued: continued.as_ref().map(|continued| continued.id.clone()),
            routes: Arc::default(),
            cwd,
            loaded,
            firewall,
            places,
        };
        let said = match &continued {
            Some(continued) => continued.history.clone(),
            None => self.said.clone(),
        };
        let opening = opening(&session, &kept, said.clone(), around)?;
        let mut line = Line::new(opening, said, kept);
        if session.found.is_some() {
            // The face shows what to do about it.
            line.keep_quiet();
        }
        Ok((session, line))
    }

    fn configuration(&self, around: &Surroundings, cwd: &Path) -> Result<Loaded> {
        let Some(incognito) = self.incognito else {
            return wire::configuration(&self.args, around, cwd);
        };
        let mut sources = wire::sources(&self.args, around, cwd);
        sources.flags.push(("privacy.incognito".to_owned(), toml::Value::Boolean(incognito)));
        gnoma_config::load(&sources)
            .map_err(|error| misuse(&format!("the configuration cannot be used\n{error}")))
    }

    async fn continued(
        &self,
        loaded: &Loaded,
        places: &Places,
        firewall: &Arc<Firewall>,
        around: &Surroundings,
    ) -> Result<Option<Continued>> {
        let Some(wanted) = &self.wanted else { return Ok(None) };
        commands::may_continue(&loaded.settings)?;
        let past = Past::open(places.clone(), firewall)?;
        resuming::take(past, wanted, self.fork, around).await.map(Some)
    }

    /// Changes the plan. `id`: the session that has just ended.
    pub(super) async fn follow(
        &mut self,
        again: Again,
        id: Option<String>,
        around: &Surroundings,
    ) -> Step {
        *self = self.staying(id.clone());
        let changed = match again {
            Again::New => Ok(self.begin()),
            Again::Resume(id) => {
                self.wanted = Some(id.map_or(Wanted::Newest, Wanted::Named));
                Ok(Step { shows_past: true, ..Step::NEW })
            }
            Again::Fork => self.forked(),
            Again::Model(name) => Ok(self.ask_model(name)),
            Again::Provider(name) => {
                self.args.provider = Some(name);
                self.args.model = None;
                Ok(Step::SAME)
            }
            Again::Profile(name) => {
                self.args.profile = Some(name);
                Ok(self.begin())
            }
            Again::Incognito(incognito) => {
                self.args.incognito = incognito;
                self.incognito = Some(incognito);
                Ok(self.hidden(incognito))
            }
            Again::Rewind { turns, files, conversation } => {
                self.rewound(turns, (files, conversation), id.as_deref())
            }
            Again::Redo => self.redone(id.as_deref()),
            Again::Demo => commands::demo(around).await.map(|_| self.begin()),
        };
        changed.unwrap_or_else(|error| Step::refused(&error))
    }

    fn begin(&mut self) -> Step {
        self.wanted = None;
        self.said.clear();
        Step::NEW
    }

    /// What was kept may go on unseen. What was said unseen is never kept: that begins anew.
    fn hidden(&mut self, incognito: bool) -> Step {
        if !incognito {
            let told = "a new conversation begins, and it is kept; what was said before is not";
            return Step { told: Ok(told.to_owned()), ..self.begin() };
        }
        self.wanted = None;
        let told = "from here on nothing is kept; the model still knows what was said before";
        let told = if self.said.is_empty() { "nothing is kept from here on" } else { told };
        Step { told: Ok(told.to_owned()), ..Step::SAME }
    }

    fn forked(&mut self) -> Result<Step> {
        if self.wanted.is_none() {
            return Err(misuse("there is nothing kept that could be copied"));
        }
        self.fork = true;
        Ok(Step {
            told: Ok("this is a copy; the session before stays as it is".to_owned()),
            ..Step::SAME
        })
    }

    /// A model, with its provider before a slash where that is another one.
    fn ask_model(&mut self, name: String) -> Step {
        match name.split_once('/').filter(|(before, _)| self.means_provider(before)) {
            Some((provider, model)) => {
                self.args.provider = Some(provider.to_owned());
                self.args.model = Some(model.to_owned());
            }
            None => self.args.model = Some(name),
        }
        Step::SAME
    }

    fn means_provider(&self, name: &str) -> bool {
        self.providers.iter().any(|known| known == name)
    }

    fn rewound(
        &self,
        turns: usize,
        (files, conversation): (bool, bool),
        id: Option<&str>,
    ) -> Result<Step> {
        let id = id.ok_or_else(|| misuse(NOTHING_KEPT))?;
        let part = match (files, conversation) {
            (true, false) => "--files",
            (false, true) => "--conversation",
            (true, true) | (false, false) => "--both",
        };
        let told = itself::run(&self.args, &["rewind", &turns.to_string(), part, "--session", id])?;
        Ok(Step { is_same: !conversation, shows_past: false, told: Ok(told) })
    }

    fn redone(&self, id: Option<&str>) -> Result<Step> {
        let id = id.ok_or_else(|| misuse(NOTHING_KEPT))?;
        let told = itself::run(&self.args, &["redo", "--session", id])?;
        Ok(Step { told: Ok(told), ..Step::SAME })
    }
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
    Misuse(text.to_owned()).into()
}

/// The session on its way.
fn opening(
    session: &Session,
    kept: &Kept,
    said: Vec<Arc<Message>>,
    around: &Surroundings,
) -> Result<Opening> {
    let folders = commands::folders(&session.args, around)?;
    let keeping = kept.keeping(session.continued.clone());
    let shelf = kept.tool();
    let known = Arc::clone(&session.routes);
    let (session, around) = (session.clone(), around.clone());
    Ok(Box::pin(async move {
        let Session { args, cwd, loaded, firewall, continued, places, begun, .. } = session;
        let wanted = routing::Wanted {
            args: &args,
            around: &around,
            loaded: &loaded,
            firewall: &firewall,
            project: &places.project,
            begun,
            seed: None,
            grows: true,
        };
        let ready = routing::prepare(wanted).await?;
        let routes = Arc::clone(&ready.routes);
        let _is_first = known.set(Arc::clone(&routes));
        let discovery = ready.discover();
        let start = Start { cwd: &cwd, folders, routes, firewall, system: args.system };
        let mut options = wire::session(&loaded, &around, start)?;
        options.keeping = keeping;
        options.tools.extend(shelf);
        options.interactive = true;
        options.history = said;
        if let Some(id) = continued {
            options.id = id.to_string();
        }
        Ok((session::Session::spawn(options), discovery))
    }))
}
