//! The router in this program: the arms, what is known of them, and where scores and spending are saved.
//!
//! `gnoma-router` has the policy, and `gnoma-engine` uses it. Here settings, catalogue and servers become what the
//! two need. No remote server is contacted before the first request.

pub mod arms;
mod discovery;
mod first_arm;
mod limits;
pub mod memory;
mod misnamed;
mod owner;
pub mod quality;
pub mod roster;
mod slm;
pub mod state_file;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use gnoma_config::settings::RouterMode;
use gnoma_core::{
    ModelInfo, ModelRef, Price, bounded_file, home, ledger::Total, protocol::Environment,
    store::SessionId,
};
use gnoma_engine::{
    Routes,
    routing::{OutcomeStore, RoutingPorts},
};
use gnoma_guard::{firewall::Connection, privacy::PersistentData};
use gnoma_llm::catalogue::{self, Overlay};
use gnoma_router::{Arm, Router, RouterSettings, Tuning, rules};

pub(crate) use self::first_arm::{run_overrides, settings_with_overrides};
use self::{
    arms::ArmFactory,
    discovery::{DiscoverySources, FoundModels, KnownArms},
    memory::{OutcomeRecorder, ScoreStore},
    roster::{Roster, UnusableModel},
};
pub use self::{discovery::Discovery, first_arm::find_provider, slm::classifier_arm};
use crate::{
    Folders as _, HostError, Project, Result, branch::current_branch, clock, guard_setup,
    ledger::LateLedger, project_settings::RoutingSettings, provider_names,
    session_stores::BegunSessionId, telemetry::MeteredLedger, unused_settings,
};

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// The routes that are needed.
#[derive(Clone, Debug, Default)]
pub struct RoutesRequest {
    /// The session's id in its store, once it has been begun.
    pub begun: BegunSessionId,
    /// The seed that decides between equals; `None`: another one every time.
    pub seed: Option<u64>,
    /// Arms may come later, by [`PreparedRoutes::start_discovery`].
    pub grows: bool,
}

/// Routes, and how to look for more arms.
pub struct PreparedRoutes {
    /// The models that can be called, and how one is chosen.
    pub routes: Arc<Routes>,
    /// The model that is asked if nothing else is chosen.
    pub model: ModelRef,
    /// Models that are no arms.
    pub left: Vec<UnusableModel>,
    /// The reasons why configured servers did not list their models, each with the provider's name before it.
    pub unlisted: Vec<String>,
    workshop: DiscoverySources,
}

impl PreparedRoutes {
    /// Looks for arms on servers of this machine from now on, beside the session. `None` if there is nothing to
    /// look for.
    pub fn start_discovery(self) -> Option<Discovery> {
        if self.workshop.servers.is_empty() {
            return None;
        }
        let interval = self.workshop.maker.settings().router.discovery_interval;
        Some(Discovery::start(self.workshop, self.routes, interval))
    }

    /// Looks once, and waits for it.
    pub async fn discover_once(&mut self) {
        let lists = self.workshop.model_lists(None);
        let found = discovery::discover_models(&lists).await;
        let endpoints = &self.workshop.maker.settings().provider.endpoints;
        let configured = lists.iter().filter(|list| endpoints.contains_key(list.provider()));
        self.unlisted = configured.filter_map(|list| list.failure()).collect();
        self.workshop.apply_models(&self.routes, &found);
    }
}

/// Returns what was probably meant to set up a provider if none is set up: a variable or a file with another name.
#[must_use]
pub fn misnamed_setup(environment: &Environment) -> Option<String> {
    misnamed::find_misnamed(environment)
}

/// Refuses a model that is named for this run where its name is empty or begins like the misspelled name of a provider.
///
/// # Errors
/// The name is empty or misspelled; the error says what was probably meant.
pub(crate) fn check_model_name(project: &Project) -> Result<()> {
    owner::check_name(&project.routing.provider, &first_arm::run_overrides(&project.spec))
}

/// Today, in days since 1970-01-01 (UTC).
pub fn current_day(project: &Project) -> i32 {
    i32::try_from(project.now_ms().div_euclid(DAY_MS)).unwrap_or_default()
}

/// Records that a person rewound the last turn of a session, which says something about its arm. Ignores a failure
/// to record it. `ended_ms`: when the conversation last continued.
pub fn record_rewind(project: &Project, session: &SessionId, ended_ms: i64) {
    if project.routing.router.learn {
        let key = project_key(&project.places.project);
        drop(score_book(project).record_rewind(&key, session.as_str(), ended_ms));
    }
}

/// The project's key in pools and files.
pub(crate) fn project_key(project: &Path) -> String {
    gnoma_store::project_key(&project.display().to_string())
}

/// Returns the place where scores are saved; profiles do not share them.
#[must_use]
pub fn score_book(project: &Project) -> ScoreStore {
    ScoreStore::in_folder(
        &profile_folder(project),
        &project.environment().config_dir(),
        project.notices.clone(),
    )
}

/// The ledger of the profile.
#[must_use]
pub fn profile_ledger(project: &Project) -> Arc<LateLedger> {
    let is_kept =
        guard_setup::to_privacy(project.routing.privacy).can_save(PersistentData::Learning);
    let path = ledger_file(project);
    project.shared.ledger(is_kept.then_some(path), project.notices.clone())
}

/// The ledger for removing details: that of the profile also in incognito, where sessions have one in memory.
pub(crate) fn ledger_to_clean(project: &Project) -> Arc<LateLedger> {
    project.shared.ledger(Some(ledger_file(project)), project.notices.clone())
}

/// The ledger for reading only: if nothing was counted yet, one in memory.
#[must_use]
pub fn ledger_to_look_at(project: &Project) -> Arc<LateLedger> {
    if has_ledger(project) {
        profile_ledger(project)
    } else {
        project.shared.ledger(None, project.notices.clone())
    }
}

/// The ledger for a report: opened for reading, and that of the profile also in incognito, where sessions have one in
/// memory.
pub(crate) fn ledger_to_report(project: &Project) -> LateLedger {
    let path = has_ledger(project).then(|| ledger_file(project));
    LateLedger::to_read(path, project.notices.clone())
}

fn profile_folder(project: &Project) -> PathBuf {
    let state = project.environment().state_dir();
    match &project.keeping.profile {
        Some(profile) => state.join("profiles").join(profile),
        None => state,
    }
}

/// Reports whether anything was counted yet.
#[must_use]
pub fn has_ledger(project: &Project) -> bool {
    ledger_file(project).exists()
}

fn ledger_file(project: &Project) -> PathBuf {
    profile_folder(project).join("ledger.db")
}

/// Returns the published facts about these arms, whether they can be asked or not.
pub fn published_arms<'a>(
    project: &Project,
    arms: impl Iterator<Item = &'a ModelRef>,
) -> Vec<Arc<Arm>> {
    let settings = &project.routing;
    let catalogue = load_catalogue(project);
    arms.map(|name| Arc::new(arms::known_arm(settings, &catalogue, name))).collect()
}

/// The price of a model as settings or the catalogue have it, if it is known.
pub(crate) fn price_of(project: &Project, arm: &ModelRef) -> Option<Price> {
    arms::known_arm(&project.routing, &load_catalogue(project), arm).price
}

/// The known prices of the existing arms and of those that were used.
#[must_use]
pub fn known_prices(project: &Project, totals: &[Total]) -> Vec<(ModelRef, Price)> {
    let settings = &project.routing;
    let catalogue = load_catalogue(project);
    let mut names = roster::build_roster(settings, &catalogue, current_day(project)).arms;
    names.extend(totals.iter().map(|total| total.arm.clone()));
    gnoma_core::sort::by_key(&mut names, ToString::to_string);
    names.dedup();
    let priced = |name: ModelRef| {
        let price = arms::known_arm(settings, &catalogue, &name).price?;
        Some((name, price))
    };
    names.into_iter().filter_map(priced).collect()
}

/// Models as the user corrected them; what cannot be used is reported and left out.
fn load_catalogue(project: &Project) -> Overlay {
    let Some(file) = &project.routing.router.catalogue else { return Overlay::default() };
    let environment = project.environment();
    let path = home::expand(file, environment.home().as_deref(), &environment.config_dir());
    let told = |why: &dyn std::fmt::Display| {
        let path = path.display();
        let notices = &project.notices;
        notices.warning(format_args!("`router.catalogue` is ignored: `{path}`: {why}"));
        Overlay::default()
    };
    let bytes = bounded_file::read_existing(&path, catalogue::MAX_TEXT_BYTES as u64);
    match bytes.and_then(|bytes| io::read_to_string(&*bytes)) {
        Err(error) => told(&error),
        Ok(text) => catalogue::parse_overlay(&text).unwrap_or_else(|error| told(&error)),
    }
}

/// The routes of a session.
///
/// # Errors
/// No arm can be asked: why, and what to do.
pub async fn prepare_routes(project: &Project, wanted: &RoutesRequest) -> Result<PreparedRoutes> {
    let overrides = first_arm::run_overrides(&project.spec);
    check_model_name(project)?;
    let settings = first_arm::settings_with_overrides(&project.routing, &overrides);
    let is_pinned = first_arm::is_pinned(&overrides);
    let is_off = settings.router.mode == RouterMode::Off;
    let catalogue = load_catalogue(project);
    let mut roster = if is_off {
        Roster::default()
    } else {
        roster::build_roster(&settings, &catalogue, current_day(project))
    };
    let http = project.shared.http(&settings.network);
    let mut maker = ArmFactory::new(settings, project.shared.clone(), catalogue);
    let names = find_arm_names(project, &mut maker, &http, &mut roster, is_pinned).await?;
    let known = KnownArms::default();
    let mut workshop =
        DiscoverySources { maker, arms: names, servers: roster.to_ask, known: Arc::clone(&known) };
    let made = workshop.make_arms(&FoundModels::new());
    let Some(model) = made.first().map(|(arm, _)| arm.id.clone()) else {
        return Err(first_arm::no_arm_error(&roster.left));
    };
    if let Some(note) = owner::owner_notice(&project.routing, &overrides, &model) {
        project.notices.info(note);
    }
    let settings = router_settings(project, wanted, workshop.maker.settings(), &made);
    let settings = RouterSettings { pinned: is_pinned.then(|| model.clone()), ..settings };
    let names: Vec<ModelRef> = made.iter().map(|(arm, _)| arm.id.clone()).collect();
    // Without a search beside the session, models that a rule wants are looked for before it.
    let looks = !wanted.grows && rules::misses_arms(&settings.rules, &names);
    let has_choice = !is_pinned && (made.len() > 1 || wanted.grows || looks);
    let router = load_router(project, has_choice, &made);
    let ports = routing_ports(project, wanted, workshop.maker.settings(), &known);
    let routes = Arc::new(Routes::new(router, settings, ports));
    workshop.apply_arms(&routes, made);
    let (left, unlisted) = (roster.left, Vec::new());
    let mut ready = PreparedRoutes { routes, model, left, unlisted, workshop };
    if looks {
        ready.discover_once().await;
    }
    Ok(ready)
}

/// Reports whether a default provider is set whose first model is not known yet: its model that is turned off is
/// replaced by one of those that are known.
fn is_default_open(settings: &RoutingSettings, arms: &[ModelRef]) -> bool {
    let Some(default) = &settings.provider.default else { return false };
    let off = first_arm::turned_off(settings, default);
    let usual = first_arm::model_candidates(&settings.provider, default).next();
    !usual.is_some_and(|usual| off.contains(usual))
        || !arms.iter().any(|arm| arm.provider == *default)
}

/// The names of the arms; who was asked for, or is the configured one, first.
async fn find_arm_names(
    project: &Project,
    maker: &mut ArmFactory,
    http: &gnoma_net::Http,
    roster: &mut Roster,
    is_pinned: bool,
) -> Result<FoundModels> {
    let mut names: FoundModels = Vec::new();
    let is_first_needed =
        is_pinned || roster.arms.is_empty() || is_default_open(maker.settings(), &roster.arms);
    if is_first_needed {
        match first_arm::find_first_arm(maker, http, &project.firewall, is_pinned).await {
            Ok(first) => names.push(first),
            Err(error) => {
                let others = roster
                    .arms
                    .iter()
                    .any(|arm| maker.make_arm(arm, &ModelInfo::default()).is_ok());
                let is_set_up = maker.settings().provider.default.is_some();
                if !is_pinned && !is_set_up && !others && !roster.left.is_empty() {
                    // Something was set up, and what is wrong with it says more than how to begin.
                    return Err(first_arm::no_arm_error(&roster.left));
                }
                if is_pinned || !others {
                    let remedy =
                        error.remedy.or_else(|| misnamed::find_misnamed(project.environment()));
                    return Err(HostError { remedy, ..error });
                }
                project.notices.warning(error);
            }
        }
    }
    for arm in roster.arms.drain(..) {
        if names.iter().any(|(known, _)| *known == arm) {
            continue;
        }
        match maker.make_arm(&arm, &ModelInfo::default()) {
            Ok(_) => names.push((arm, ModelInfo::default())),
            Err(why) => {
                roster.left.push(UnusableModel { name: arm.to_string(), why: why.to_string() });
            }
        }
    }
    Ok(names)
}

/// Says of an arm whose price is not known that the settings have only a part of it.
fn half_price(arm: &Arm, settings: &RoutingSettings) -> Option<String> {
    let name = arm.id.to_string();
    let said = settings.arms.get(&name).filter(|_| arm.price.is_none())?;
    (said.input_price.is_some() || said.output_price.is_some()).then(|| {
        format!("`[[arms]] id = \"{name}\"`: a price needs both `input_price` and `output_price`")
    })
}

/// Converts the settings of the router, and reports what in them has no effect.
fn convert_reported(
    project: &Project,
    settings: &RoutingSettings,
    made: &[(Arm, Connection)],
) -> RouterSettings {
    let home = project.environment().home();
    let mut converted = limits::convert_settings(settings, home.as_deref());
    let names: Vec<ModelRef> = made.iter().map(|(arm, _)| arm.id.clone()).collect();
    let providers = provider_names::provider_names(&settings.provider);
    let warnings = &mut converted.said;
    warnings.extend(limits::unknown_names(&settings.router.roles, &names, &providers));
    warnings.extend(made.iter().filter_map(|(arm, _)| half_price(arm, settings)));
    warnings.extend(unused_settings::at_start(project, settings));
    if limits::ask_the_time(&converted.rules) && jiff::tz::TimeZone::try_system().is_err() {
        let unknown = "cannot find the time zone; hours in rules are read as UTC";
        warnings.push(unknown.to_owned());
    }
    warnings.iter().for_each(|warning| project.notices.warning(warning));
    converted
}

/// Returns the settings of the router in this project and folder.
fn router_settings(
    project: &Project,
    wanted: &RoutesRequest,
    settings: &RoutingSettings,
    made: &[(Arm, Connection)],
) -> RouterSettings {
    let Project { spec, places, .. } = project;
    let converted = convert_reported(project, settings, made);
    let path = |path: &Path| {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        real.to_string_lossy().into_owned()
    };
    RouterSettings {
        ground: rules::PathBase { root: path(&places.project), folder: path(&spec.folder) },
        zone: clock::local_time_zone,
        limits: converted.limits.with_run_budget(spec.overrides.budget_micro_usd),
        project: project_key(&places.project),
        seed: wanted.seed.unwrap_or_else(|| project.shared.clock().random_bits()),
        ..converted
    }
}

/// Returns the stores and the clock of the routes.
fn routing_ports(
    project: &Project,
    wanted: &RoutesRequest,
    settings: &RoutingSettings,
    known: &KnownArms,
) -> RoutingPorts {
    let Project { spec, places, shared, firewall, .. } = project;
    let clock = shared.clock().clone();
    let learns = settings.router.learn
        && guard_setup::to_privacy(settings.privacy).can_save(PersistentData::Learning);
    let memory = learns.then(|| -> Arc<dyn OutcomeStore> {
        Arc::new(OutcomeRecorder {
            book: score_book(project),
            project: project_key(&places.project),
            begun: Arc::clone(&wanted.begun),
            clock: clock.clone(),
            known: Arc::clone(known),
        })
    });
    let ledger = profile_ledger(project);
    let (branch_folder, firewall) = (spec.folder.clone(), Arc::clone(firewall));
    RoutingPorts {
        branch: Box::new(move || current_branch(&branch_folder, &firewall)),
        ledger: Some(MeteredLedger::wrap_ledger(project, Arc::clone(&ledger))),
        board: Some(ledger),
        memory,
        now_ms: Box::new(move || clock.now_ms()),
    }
}

/// Says once of each arm that its work got worse. What cannot be marked as said is said when that works again.
fn tell_worse_arms(project: &Project, book: &ScoreStore) {
    for arm in book.take_worse_arms().unwrap_or_default() {
        project.notices.warning(format_args!(
            "the work of {arm} has got worse: its last tasks failed more often than gnoma expected, so it is chosen \
             less often; `gnoma usage --by model` shows what is known of it"
        ));
    }
}

/// The router as it was left; a fresh one where there is no choice, or where nothing may be known.
fn load_router(project: &Project, has_choice: bool, made: &[(Arm, Connection)]) -> Router {
    let fresh = || Router::new(Tuning::default());
    if !has_choice
        || !guard_setup::to_privacy(project.routing.privacy).can_save(PersistentData::Learning)
    {
        return fresh();
    }
    let book = score_book(project);
    let known: Vec<_> = made.iter().map(|(arm, _)| Arc::new(arm.clone())).collect();
    let read = book.read();
    if read.as_ref().is_ok_and(|kept| !kept.worse.is_empty()) {
        tell_worse_arms(project, &book);
    }
    match read {
        Ok(kept) if project.routing.router.learn => {
            memory::restore_router(&book.import_once(kept, &known), &known)
        }
        Ok(kept) => memory::restore_router(&kept, &known),
        Err(error) => {
            let path = book.path().display();
            project.notices.warning(format_args!(
                "cannot read routing data: `{path}`: {error}; the file is unchanged"
            ));
            fresh()
        }
    }
}
