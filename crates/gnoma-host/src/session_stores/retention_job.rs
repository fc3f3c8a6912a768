//! Retention: what is too old or too large is deleted at the end of a run.
//!
//! Sessions in use are left alone, here and in other processes; if that cannot be determined, no checkpoint is
//! deleted. If the program ends during the job, too much is left, never too little.

use std::{collections::HashSet, sync::Arc, time::Duration};

use gnoma_config::settings::Session;
use gnoma_core::store::{
    EntryId, PageRequest, Record, SessionFacts, SessionId, SessionStore as _, StoreError,
};
use gnoma_store::{Retention, Store, checkpoint::SnapshotId};

use super::{begun_session::BegunSessionId, files::LateCheckpoints, late_opening::LateOpening};

/// The end of the program waits no longer than this for it.
const PATIENCE: Duration = Duration::from_secs(2);
/// Sessions looked at for being in use; such are among the newest.
const MAX_IN_USE: usize = 200;
/// Entries and bytes read at once.
const PAGE: PageRequest = PageRequest { tip: None, max_entries: 10_000, max_bytes: 16 << 20 };

/// The rules for the removal of old sessions; those for files are known to the vault.
pub(super) struct RetentionJob {
    retention: Retention,
    /// This run's session: its checkpoints stay, however old a clock that is ahead makes them.
    begun: BegunSessionId,
}

impl RetentionJob {
    pub(super) fn new(session: &Session, begun: BegunSessionId) -> Self {
        let millis = |age: Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let retention = Retention {
            max_age_ms: session.max_age.map(millis),
            max_sessions: usize::try_from(session.max_keep).ok(),
            max_bytes: Some(session.max_size),
        };
        Self { retention, begun }
    }

    /// Runs the job, as far as there is time. It reports no failure: the next run meets it again.
    pub(super) async fn run(
        self,
        store: Option<LateOpening<Store>>,
        files: Option<Arc<LateCheckpoints>>,
        now_ms: i64,
    ) {
        drop(tokio::time::timeout(PATIENCE, self.prune_all(store, files, now_ms)).await);
    }

    async fn prune_all(
        self,
        store: Option<LateOpening<Store>>,
        files: Option<Arc<LateCheckpoints>>,
        now_ms: i64,
    ) {
        let opened = store.as_ref().and_then(LateOpening::opened_value);
        if let Some(store) = &opened {
            // Mostly there is nothing to forget, and then nothing is written.
            drop(store.prune(self.retention, now_ms).await);
        }
        let Some(checkpointer) = files
            .and_then(|files| files.opened_checkpointer())
            .filter(|checkpointer| checkpointer.is_due())
        else {
            return;
        };
        let pinned = match (store, opened) {
            (None, _) => Ok(HashSet::new()),
            // A store that did not open tells nothing about the sessions in it.
            (Some(_), None) => return,
            (Some(_), Some(store)) => in_use(&store, self.begun.get()).await,
        };
        if let Ok(pinned) = pinned {
            drop(checkpointer.prune_to_limits(pinned).await);
        }
    }
}

/// Checkpoints of sessions that some process writes and of `own`, of those they are forks of as well.
async fn in_use(store: &Store, own: Option<&SessionId>) -> Result<HashSet<SnapshotId>, StoreError> {
    let mut pinned = HashSet::new();
    let stays = |facts: &SessionFacts| facts.held_by.is_some() || own == Some(&facts.id);
    for facts in store.list(MAX_IN_USE).await?.into_iter().filter(stays) {
        let mut tip = None;
        loop {
            tip = pin_page(store, &facts.id, tip, &mut pinned).await?;
            // Ids fall from page to page, so this ends.
            if tip.is_none() {
                break;
            }
        }
    }
    Ok(pinned)
}

/// Adds the checkpoints of a page; gives where the one before it ends.
async fn pin_page(
    store: &Store,
    session: &SessionId,
    tip: Option<EntryId>,
    pinned: &mut HashSet<SnapshotId>,
) -> Result<Option<EntryId>, StoreError> {
    let page = store.load(session.clone(), PageRequest { tip, ..PAGE }).await?;
    pinned.extend(page.entries.into_iter().filter_map(|entry| match entry.record {
        Record::Checkpoint { id } => id.parse().ok(),
        _ => None,
    }));
    Ok(page.earlier)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use gnoma_core::store::{Durability, NewEntry, NewSession, Parent};
    use gnoma_store::Options;

    use super::*;

    /// A clock that is ahead makes all checkpoints old, and a hold that is let go protects none.
    #[tokio::test]
    async fn retention_never_deletes_checkpoints_of_the_running_session() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options::new(folder.path(), "/p", Arc::new(|_, text| Cow::Borrowed(text)));
        let store = Store::open(options).unwrap().store;
        let new = NewSession::default();
        let own = store.begin(new).await.unwrap();
        let entry = NewEntry {
            session: own.clone(),
            parent: Parent::Tip,
            at_ms: 0,
            record: Record::Checkpoint { id: "0".repeat(16) },
            durability: Durability::Process,
        };
        store.append(entry).await.unwrap();
        assert!(in_use(&store, None).await.unwrap().is_empty());
        assert_eq!(in_use(&store, Some(&own)).await.unwrap().len(), 1);
    }
}
