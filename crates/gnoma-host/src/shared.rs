//! The state that all sessions of a process share.

use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use gnoma_config::settings::Network;
use gnoma_core::{Provider, store::StoreError, sync::Mutex, task::box_future, tool::OpenFiles};
use gnoma_extend::hooks::HookRuns;
use gnoma_guard::firewall::Connection;
use gnoma_llm::Profile;
use gnoma_net::Http;
use gnoma_store::{
    OpenDatabase, OpenedStore, Options, Store,
    checkpoint::{self, Checkpointer, Vault},
};

use tokio::{runtime::Handle, task::JoinSet, time::timeout};

use crate::{
    Notices, clock::Clock, crate_options, driven::Driver, ledger::LateLedger,
    model_list::ModelList, telemetry::Telemetry,
};

/// Connections, providers, what is kept and what is spent, for all sessions of a process. Clones are the same.
#[derive(Clone, Default)]
pub struct ProcessResources(Arc<Resources>);

#[derive(Default)]
struct Resources {
    clock: Clock,
    /// The program that drives all sessions of the process, where one does.
    driver: Option<Arc<dyn Driver>>,
    /// The editor that all sessions of the process are seen in, if there is one.
    editor: Option<Arc<dyn OpenFiles>>,
    /// Pools of connections; one is enough unless settings want other time-outs.
    pools: Mutex<HashMap<Timeouts, Http>>,
    /// The providers that sessions use, handed out only behind a firewall.
    providers: Mutex<Vec<SharedProvider>>,
    /// The models of servers on this machine, as sessions look at them.
    lists: Mutex<Vec<Weak<ModelList>>>,
    /// The models that providers listed when a user last chose one, by the providers' names and addresses.
    listed: Mutex<HashMap<(String, String), Vec<String>>>,
    /// The ledgers that sessions use, by file.
    ledgers: Mutex<HashMap<PathBuf, Weak<LateLedger>>>,
    /// The databases of sessions, by file.
    stores: Slots<PathBuf, OpenDatabase>,
    /// Telemetry, by where it goes.
    telemetry: Mutex<Vec<Arc<Telemetry>>>,
    /// The used parts of spending caps.
    known_use: Mutex<KnownUse>,
    /// Short work of sessions that no session waits for.
    background: Mutex<JoinSet<()>>,
    /// The last runs of hooks.
    hook_runs: HookRuns,
    /// The checkpointers that save the files of workspaces.
    checkpointers: Slots<WorkspaceKey, Weak<Checkpointer>>,
}

/// The used parts of spending caps at the last look, in micro-dollars, by pool and end of the period.
pub(crate) type KnownUse = BTreeMap<(String, i64), u64>;

/// Most work that is under way in the background; more is not begun.
const MAX_BACKGROUND: usize = 32;
/// Longest time that the end of the process waits for it.
const BACKGROUND_PATIENCE: Duration = Duration::from_secs(5);

/// Each is locked while it is opened, so that nothing is opened twice.
type Slots<K, T> = Mutex<HashMap<K, Arc<Mutex<Option<T>>>>>;

/// The place of what is open under a key. Those of which nothing is open any more go.
fn slot_for_key<K: Hash + Eq, T>(
    slots: &Slots<K, T>,
    key: K,
    is_open: impl Fn(&T) -> bool,
) -> Arc<Mutex<Option<T>>> {
    let mut slots = slots.lock();
    slots.retain(|_, slot| {
        let is_used = || slot.try_lock().is_some_and(|held| held.as_ref().is_some_and(&is_open));
        Arc::strong_count(slot) > 1 || is_used()
    });
    Arc::clone(slots.entry(key).or_default())
}

/// The files of a workspace, where they are kept and how. Who wants them kept in another way has
/// another checkpointer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct WorkspaceKey {
    pub(crate) vault: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) options: checkpoint::Options,
}

/// A provider that sessions use, and how it is reached. Its key is compared in memory and never shown.
struct SharedProvider {
    profile: Profile,
    timeouts: Timeouts,
    provider: Weak<dyn Provider>,
}

/// For a connection to be made, for it to be silent, and who is trusted.
type Timeouts = (Duration, Duration, Option<PathBuf>);

fn network_timeouts(network: &Network) -> Timeouts {
    (network.connect_timeout, crate_options::silence_timeout(network), network.ca_file.clone())
}

impl ProcessResources {
    /// Creates the resources of a process with this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self(Arc::new(Resources { clock, ..Resources::default() }))
    }

    /// Creates the resources of a process whose sessions a program drives.
    #[must_use]
    pub fn with_driver(clock: Clock, driver: Arc<dyn Driver>) -> Self {
        Self(Arc::new(Resources { clock, driver: Some(driver), ..Resources::default() }))
    }

    /// Creates the resources of a process whose sessions are seen in an editor.
    #[must_use]
    pub fn in_editor(editor: Arc<dyn OpenFiles>) -> Self {
        Self(Arc::new(Resources { editor: Some(editor), ..Resources::default() }))
    }

    /// Returns the last runs of hooks, of all sessions: a session that continues with another model is a new one
    /// here.
    pub(crate) fn hook_runs(&self) -> HookRuns {
        self.0.hook_runs.clone()
    }

    /// The telemetry that is meant; it is made if there is none yet. A process has few: one for each collector.
    pub(crate) fn find_or_make_telemetry(
        &self,
        is_meant: impl Fn(&Telemetry) -> bool,
        make: impl FnOnce() -> Telemetry,
    ) -> Arc<Telemetry> {
        let mut all = self.0.telemetry.lock();
        if let Some(known) = all.iter().find(|known| is_meant(known)) {
            return Arc::clone(known);
        }
        let made = Arc::new(make());
        all.push(Arc::clone(&made));
        made
    }

    /// Sends the telemetry that was not sent yet, within a second.
    pub(crate) async fn finish_telemetry(&self) {
        let all = self.0.telemetry.lock().clone();
        futures_util::future::join_all(all.iter().map(|telemetry| telemetry.finish())).await;
    }

    /// Changes what is known of the use of spending caps.
    pub(crate) fn with_known_use<T>(&self, change: impl FnOnce(&mut KnownUse) -> T) -> T {
        change(&mut self.0.known_use.lock())
    }

    /// Does short work that no session waits for; `false` if too much is under way or the process ends.
    pub(crate) fn run_in_background(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let Ok(runtime) = Handle::try_current() else { return false };
        let mut background = self.0.background.lock();
        while background.try_join_next().is_some() {}
        let has_room = background.len() < MAX_BACKGROUND;
        if has_room {
            background.spawn_on(box_future(work), &runtime);
        }
        has_room
    }

    /// Waits for the work in the background, for a few seconds.
    pub(crate) async fn finish_background(&self) {
        let mut background = std::mem::take(&mut *self.0.background.lock());
        let ended = async { while background.join_next().await.is_some() {} };
        let _late = timeout(BACKGROUND_PATIENCE, ended).await;
    }

    /// The editor that all sessions of the process are seen in.
    pub(crate) fn editor(&self) -> Option<&Arc<dyn OpenFiles>> {
        self.0.editor.as_ref()
    }

    /// The program that drives all sessions of the process, where one does.
    pub(crate) fn driver(&self) -> Option<&Arc<dyn Driver>> {
        self.0.driver.as_ref()
    }

    /// The clock of the process.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Returns a connection to the provider: an existing one, if it is the same way with the same credentials.
    pub(crate) fn connection(&self, network: &Network, profile: Profile) -> Connection {
        let is_here = crate_options::is_own_here(&profile);
        let timeouts = network_timeouts(network);
        let http = self.http(network);
        let mut providers = self.0.providers.lock();
        providers.retain(|known| known.provider.strong_count() > 0);
        let same =
            |known: &&SharedProvider| known.timeouts == timeouts && known.profile.is_same(&profile);
        let known = providers.iter().find(same).and_then(|known| known.provider.upgrade());
        let provider = known.unwrap_or_else(|| {
            let provider = gnoma_llm::connect_provider(profile.clone(), http);
            let provider = match self.driver() {
                Some(driver) => driver.wrap_provider(provider),
                None => provider,
            };
            let weak = Arc::downgrade(&provider);
            providers.push(SharedProvider { profile, timeouts, provider: weak });
            provider
        });
        Connection::new(provider, is_here)
    }

    /// Keeps what a provider lists; nothing where it does not say.
    pub(crate) fn remember_models(&self, provider: &str, address: &str, models: Vec<String>) {
        let mut listed = self.0.listed.lock();
        listed.insert((provider.to_owned(), address.to_owned()), models);
    }

    /// Returns the models that a provider at this address listed last, if it was asked.
    pub(crate) fn remembered_models(&self, provider: &str, address: &str) -> Vec<String> {
        let listed = self.0.listed.lock();
        listed.get(&(provider.to_owned(), address.to_owned())).cloned().unwrap_or_default()
    }

    /// The connection pool with these time-outs.
    pub(crate) fn http(&self, network: &Network) -> Http {
        let mut pools = self.0.pools.lock();
        pools
            .entry(network_timeouts(network))
            .or_insert_with(|| crate_options::build_http(network))
            .clone()
    }

    /// The models of the server: one list for all who look at it in the same interval. Must be called
    /// within a runtime.
    pub(crate) fn model_list(
        &self,
        server: &Connection,
        interval: Option<Duration>,
    ) -> Arc<ModelList> {
        let mut lists = self.0.lists.lock();
        lists.retain(|list| list.strong_count() > 0);
        let mut open = lists.iter().filter_map(Weak::upgrade);
        open.find(|list| list.is_of(server, interval)).unwrap_or_else(|| {
            let list = Arc::new(ModelList::start(server.clone(), interval));
            lists.push(Arc::downgrade(&list));
            list
        })
    }

    /// A session's part of a database, which is opened once for all of them: what is redacted and held is
    /// its own. Blocks.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub(crate) fn open_store(&self, options: Options) -> Result<OpenedStore, StoreError> {
        let slot = slot_for_key(&self.0.stores, options.path(), OpenDatabase::is_open);
        let mut database = slot.lock();
        if let Some(store) = database.as_ref().and_then(|open| open.open_store(options.clone())) {
            return Ok(OpenedStore { store, rescued: None });
        }
        let opened = Store::open(options)?;
        *database = Some(opened.store.database());
        Ok(opened)
    }

    /// Returns the checkpointer that saves the files of a workspace for all sessions. Blocks.
    ///
    /// # Errors
    /// The vault cannot be opened.
    pub(crate) fn open_checkpointer(
        &self,
        of: &WorkspaceKey,
    ) -> Result<Arc<Checkpointer>, StoreError> {
        let slot = slot_for_key(&self.0.checkpointers, of.clone(), |checkpointer| {
            checkpointer.strong_count() > 0
        });
        let mut known = slot.lock();
        if let Some(checkpointer) = known.as_ref().and_then(Weak::upgrade) {
            return Ok(checkpointer);
        }
        let workspace = Vault::open(&of.vault, of.options.clone())?.open_workspace(&of.root)?;
        let checkpointer = Arc::new(Checkpointer::start(Arc::new(workspace))?);
        *known = Some(Arc::downgrade(&checkpointer));
        Ok(checkpointer)
    }

    /// The ledger in that file; one in memory is its session's own.
    pub(crate) fn ledger(&self, path: Option<PathBuf>, notices: Notices) -> Arc<LateLedger> {
        let Some(path) = path else { return Arc::new(LateLedger::new(None, notices)) };
        let mut ledgers = self.0.ledgers.lock();
        if let Some(open) = ledgers.get(&path).and_then(Weak::upgrade) {
            return open;
        }
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        let ledger = Arc::new(LateLedger::new(Some(path.clone()), notices));
        ledgers.insert(path, Arc::downgrade(&ledger));
        ledger
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use gnoma_config::Sources;
    use gnoma_core::Secret;
    use gnoma_llm::Protocol;

    use super::*;

    #[test]
    fn provider_connection_is_shared_only_with_equal_settings() {
        let nowhere = tempfile::tempdir().unwrap();
        let (config_dir, state_dir) = (nowhere.path().to_owned(), nowhere.path().to_owned());
        let sources = Sources { config_dir, state_dir, ..Sources::default() };
        let network = gnoma_config::load_settings(&sources).unwrap().settings.network;
        let profile = |name: &str, wire, url: &str, key: &str| {
            let mut profile = Profile::new(name, wire, url);
            profile.key = (!key.is_empty()).then(|| Secret::new(key.to_owned()));
            profile
        };
        let usual = || profile("mine", Protocol::OpenAi, "https://x.example/v1", "k1");
        let shared = ProcessResources::default();
        let count = || shared.0.providers.lock().len();
        let first = shared.connection(&network, usual());
        let held = [first.clone(), shared.clone().connection(&network, usual())];
        assert_eq!(count(), 1, "one for both");
        let others = [
            profile("mine", Protocol::OpenAi, "https://x.example/v1", "k2"),
            profile("mine", Protocol::OpenAi, "https://x.example/v1", ""),
            profile("mine", Protocol::OpenAi, "https://y.example/v1", "k1"),
            profile("mine", Protocol::Responses, "https://x.example/v1", "k1"),
            profile("other", Protocol::OpenAi, "https://x.example/v1", "k1"),
        ];
        let made = others.map(|profile| shared.connection(&network, profile));
        assert_eq!(count(), 1 + made.len());
        let mut slow = network.clone();
        slow.idle_timeout *= 2;
        let other_timeout = shared.connection(&slow, usual());
        assert_eq!(count(), 2 + made.len());
        drop((first, held, made, other_timeout));
        let _again = shared.connection(&network, usual());
        assert_eq!(count(), 1, "nothing is kept that nobody uses");
    }

    #[test]
    fn listed_models_are_remembered_per_provider_address() {
        let shared = ProcessResources::default();
        shared.remember_models("local", "http://a.example", vec!["one".to_owned()]);
        assert_eq!(shared.remembered_models("local", "http://a.example"), ["one"]);
        assert!(shared.remembered_models("local", "http://b.example").is_empty());
    }

    #[test]
    fn sessions_of_a_project_share_database_and_checkpointer() {
        let folder = tempfile::tempdir().unwrap();
        let below = |name: &str| folder.path().join(name);
        let options = |name: &str| {
            let project = below(name).display().to_string();
            Options::new(below("kept"), project, Arc::new(|_, text| Cow::Borrowed(text)))
        };
        let of = |snapshots| {
            let limits = checkpoint::Limits { snapshots, ..Default::default() };
            let options = checkpoint::Options { limits, ..Default::default() };
            WorkspaceKey { vault: below("vault"), root: below("work"), options }
        };
        std::fs::create_dir(below("work")).unwrap();
        let shared = ProcessResources::default();
        let open = |name| shared.open_store(options(name)).unwrap().store;
        let (one, two, other) = (open("one"), open("one"), open("other"));
        assert!(one.database() == two.database() && one.database() != other.database());
        let was = one.database();
        drop((one, two));
        assert!(open("one").database() != was, "nothing is kept open that nobody uses");

        let checkpointer = |max| shared.open_checkpointer(&of(max)).unwrap();
        let (one, two) = (checkpointer(10), checkpointer(10));
        assert!(Arc::ptr_eq(&one, &two) && !Arc::ptr_eq(&one, &checkpointer(11)));
    }
}
