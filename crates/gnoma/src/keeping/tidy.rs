//! Retention: what is too old or too much is forgotten at the end of a run.
//!
//! Sessions in use are left alone, here and in other processes. Whatever ends the program meanwhile
//! leaves things too many, never too few.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    os::unix::fs::OpenOptionsExt as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gnoma_config::Settings;
use gnoma_core::store::{PageRequest, Record, SessionStore as _};
use gnoma_store::{
    Retention, Store,
    checkpoint::{Limits, SnapshotId, Vault},
};

use super::{Places, files::Files, late::Late, places::limits};
use crate::clock;

/// Looking through all checkpoints takes a while: at most so often.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// The end of the program waits no longer than this for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// The file whose time says when it was done last.
const MARK: &str = "tidied";
/// Sessions looked at for being in use; such are among the newest.
const MAX_IN_USE: usize = 200;
/// Entries of each that are looked at for checkpoints, from the end.
const LATEST: PageRequest = PageRequest { tip: None, max_entries: 10_000, max_bytes: 16 << 20 };

/// What is to be forgotten, and where.
pub(super) struct Tidying {
    retention: Retention,
    limits: Limits,
    vault: PathBuf,
    options: gnoma_store::checkpoint::Options,
}

impl Tidying {
    pub(super) fn new(settings: &Settings, places: &Places) -> Self {
        let session = &settings.session;
        let millis = |age: Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        Self {
            retention: Retention {
                max_age_ms: session.max_age.map(millis),
                max_sessions: usize::try_from(session.max_keep).ok(),
                max_bytes: Some(session.max_size),
            },
            limits: limits(settings),
            vault: places.vault.clone(),
            options: places.checkpoints(settings),
        }
    }

    /// Does it, as far as there is time. Failures come again at the next run; nobody has to know.
    pub(super) async fn run(self, store: Option<Late<Store>>, files: Option<Arc<Files>>) {
        drop(tokio::time::timeout(PATIENCE, self.all(store, files)).await);
    }

    async fn all(self, store: Option<Late<Store>>, files: Option<Arc<Files>>) {
        let store = store.and_then(|store| store.now());
        if let Some(store) = &store {
            // Mostly there is nothing to forget, and then nothing is written.
            drop(store.prune(self.retention, clock::now_ms()).await);
        }
        let opened = files.is_some_and(|files| files.now().is_some());
        if opened && self.is_due() {
            let pinned = match &store {
                Some(store) => in_use(store).await,
                None => HashSet::new(),
            };
            drop(tokio::task::spawn_blocking(move || self.prune(&pinned)).await);
        }
    }

    /// Whether the last time is long ago; if so, this is a time.
    fn is_due(&self) -> bool {
        let mark = self.vault.join(MARK);
        let last = fs::metadata(&mark).and_then(|facts| facts.modified()).ok();
        let age = last.and_then(|last| SystemTime::now().duration_since(last).ok());
        // The first run of all has nothing to tidy: it only begins to count.
        let is_due = age.is_some_and(|age| age >= EVERY);
        if is_due || last.is_none() {
            // Without the mark it is done again next time, no more.
            let mut options = OpenOptions::new();
            drop(options.write(true).create(true).truncate(true).mode(0o600).open(mark));
        }
        is_due
    }

    fn prune(&self, pinned: &HashSet<SnapshotId>) {
        if let Ok(vault) = Vault::open(&self.vault, self.options.clone()) {
            drop(vault.prune(&self.limits, pinned));
        }
    }
}

/// Checkpoints of sessions that some process writes.
async fn in_use(store: &Store) -> HashSet<SnapshotId> {
    let sessions = store.list(MAX_IN_USE).await.unwrap_or_default();
    let mut pinned = HashSet::new();
    for facts in sessions.into_iter().filter(|facts| facts.held_by.is_some()) {
        let page = store.load(facts.id, LATEST).await.unwrap_or_default();
        pinned.extend(page.entries.into_iter().filter_map(|entry| match entry.record {
            Record::Checkpoint { id } => id.parse().ok(),
            _ => None,
        }));
    }
    pinned
}
