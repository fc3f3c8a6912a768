//! What all sessions of a process share.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use gnoma_config::Settings;
use gnoma_net::Http;

use crate::{Notices, ledger::LateLedger, wire};

/// Connections and what is spent, for all sessions of a process. Clones are the same.
#[derive(Clone, Default)]
pub struct Shared(Arc<Resources>);

#[derive(Default)]
struct Resources {
    /// Pools of connections; one is enough unless settings want other time-outs.
    pools: Mutex<HashMap<(Duration, Duration), Http>>,
    /// The ledgers that sessions use, by file.
    ledgers: Mutex<HashMap<PathBuf, Weak<LateLedger>>>,
}

impl Shared {
    /// The connection pool with the time-outs that the settings want.
    pub(crate) fn http(&self, settings: &Settings) -> Http {
        let timeouts = (settings.network.connect_timeout, settings.network.idle_timeout);
        let mut pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.entry(timeouts).or_insert_with(|| wire::http(settings)).clone()
    }

    /// The ledger in that file; one in memory is its session's own.
    pub(crate) fn ledger(&self, path: Option<PathBuf>, notices: Notices) -> Arc<LateLedger> {
        let Some(path) = path else { return Arc::new(LateLedger::new(None, notices)) };
        let mut ledgers = self.0.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = ledgers.get(&path).and_then(Weak::upgrade) {
            return open;
        }
        ledgers.retain(|_, ledger| ledger.strong_count() > 0);
        let ledger = Arc::new(LateLedger::new(Some(path.clone()), notices));
        ledgers.insert(path, Arc::downgrade(&ledger));
        ledger
    }
}
