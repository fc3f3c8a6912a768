//! Places to keep things, in memory: sessions, large results, states of files. They fail, hang and
//! die as they are told.

use std::{
    collections::HashMap,
    future,
    sync::{Arc, Mutex},
};

use gnoma_core::{
    store::{
        Checkpoints, Durability, Entry, EntryId, Hit, HoldReport, NewEntry, NewSession, Page,
        PageRequest, Parent, Record, ResultId, ResultSlice, ResultStore, SessionFacts, SessionId,
        SessionStore, StoreError, StoreErrorKind, StoreFuture,
    },
    tool::BoxFuture,
    usage::Usage,
};

use crate::lock_ignoring_poison;

/// The fate of a call to a fake store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScriptedOutcome {
    /// The call does its work.
    #[default]
    Works,
    /// The call fails and has done nothing.
    Fails(StoreErrorKind),
    /// The call fails although it has done its work.
    FailsAfter(StoreErrorKind),
    /// The call never answers and has done nothing.
    Hangs,
    /// The call never answers although it has done its work.
    HangsAfter,
    /// The call panics instead of answering.
    Panics,
}

/// The fate of the call with this number, counted from 0.
type OutcomeScript = Arc<dyn Fn(usize) -> ScriptedOutcome + Send + Sync>;

/// Counts calls and knows their fate.
#[derive(Clone, Default)]
pub(crate) struct ScriptedOutcomes {
    script: Option<OutcomeScript>,
    calls: Arc<Mutex<usize>>,
}

impl ScriptedOutcomes {
    /// The fates that `script` gives.
    pub(crate) fn from_script(
        script: impl Fn(usize) -> ScriptedOutcome + Send + Sync + 'static,
    ) -> Self {
        Self { script: Some(Arc::new(script)), ..Self::default() }
    }

    fn next(&self) -> ScriptedOutcome {
        let mut calls = lock_ignoring_poison(&self.calls);
        let nth = *calls;
        *calls += 1;
        drop(calls);
        self.script.as_ref().map_or(ScriptedOutcome::Works, |script| script(nth))
    }

    /// Does `work` as far as fate lets it.
    pub(crate) async fn perform_next<T>(
        &self,
        work: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let failure = |kind| Err(StoreError::new(kind, "it fails, as scripted"));
        match self.next() {
            ScriptedOutcome::Works => work(),
            ScriptedOutcome::Fails(kind) => failure(kind),
            ScriptedOutcome::FailsAfter(kind) => work().and_then(|_| failure(kind)),
            ScriptedOutcome::Hangs => future::pending().await,
            ScriptedOutcome::HangsAfter => {
                drop(work());
                future::pending().await
            }
            ScriptedOutcome::Panics => panic!("the place panics, as told"),
        }
    }
}

/// A session in memory.
#[derive(Default)]
struct StoredSession {
    tip: Option<EntryId>,
    held: bool,
}

#[derive(Default)]
struct StoredSessions {
    sessions: HashMap<SessionId, StoredSession>,
    /// All entries; the id is the position, counted from 1.
    entries: Vec<(Entry, Durability)>,
}

type Watcher = Arc<dyn Fn(&Record) + Send + Sync>;

/// A store in memory. It neither redacts nor repairs.
#[derive(Clone, Default)]
pub struct FakeStore {
    memory: Arc<Mutex<StoredSessions>>,
    fates: ScriptedOutcomes,
    watcher: Option<Watcher>,
}

impl FakeStore {
    /// A store whose calls of [`SessionStore::begin`], `append`, `hold` and `release` meet the fate
    /// that `script` gives them by their number, counted from 0.
    pub fn with_failures(
        script: impl Fn(usize) -> ScriptedOutcome + Send + Sync + 'static,
    ) -> Self {
        Self { fates: ScriptedOutcomes::from_script(script), ..Self::default() }
    }

    /// Showing each record to `watcher` at the moment it is stored.
    #[must_use]
    pub fn with_watcher(mut self, watcher: impl Fn(&Record) + Send + Sync + 'static) -> Self {
        self.watcher = Some(Arc::new(watcher));
        self
    }

    /// A store on these sessions that never fails: what a later process finds.
    #[must_use]
    pub fn without_failures(&self) -> Self {
        Self { memory: Arc::clone(&self.memory), ..Self::default() }
    }

    /// Returns the number of calls that had a fate.
    #[must_use]
    pub fn call_count(&self) -> usize {
        *lock_ignoring_poison(&self.fates.calls)
    }

    /// The sessions there are.
    #[must_use]
    pub fn session_ids(&self) -> Vec<SessionId> {
        let mut ids: Vec<_> = lock_ignoring_poison(&self.memory).sessions.keys().cloned().collect();
        ids.sort_unstable();
        ids
    }

    /// Reports whether the session is held.
    #[must_use]
    pub fn is_held(&self, session: &SessionId) -> bool {
        lock_ignoring_poison(&self.memory).sessions.get(session).is_some_and(|kept| kept.held)
    }

    /// The path to the tip of a session, from its start; what tombstones name is left out.
    #[must_use]
    pub fn path_to_tip(&self, session: &SessionId) -> Vec<Entry> {
        let memory = lock_ignoring_poison(&self.memory);
        let mut next = memory.sessions.get(session).and_then(|kept| kept.tip);
        let mut path = Vec::new();
        let mut hidden = Vec::new();
        while let Some(entry) = next.and_then(|id| memory.find_entry(id)) {
            if let Record::Tombstone { of } = entry.record {
                hidden.push(of);
            }
            path.push(entry.clone());
            next = entry.parent;
        }
        path.retain(|entry| !hidden.contains(&entry.id));
        path.reverse();
        path
    }

    /// Returns the durability that was asked of the latest entry.
    #[must_use]
    pub fn last_durability(&self) -> Option<Durability> {
        lock_ignoring_poison(&self.memory).entries.last().map(|(_, durability)| *durability)
    }

    fn add_entry(&self, new: NewEntry) -> Result<EntryId, StoreError> {
        let mut memory = lock_ignoring_poison(&self.memory);
        let id = EntryId(i64::try_from(memory.entries.len()).unwrap_or(i64::MAX - 1) + 1);
        let kept = memory.sessions.get_mut(&new.session).ok_or_else(unknown_session_error)?;
        let parent = match new.parent {
            Parent::Tip => kept.tip,
            Parent::Start => None,
            Parent::After(entry) => Some(entry),
        };
        kept.tip = Some(id);
        let entry = Entry { id, parent, at_ms: new.at_ms, record: new.record };
        if let Some(watcher) = &self.watcher {
            watcher(&entry.record);
        }
        memory.entries.push((entry, new.durability));
        Ok(id)
    }
}

impl StoredSessions {
    fn find_entry(&self, id: EntryId) -> Option<&Entry> {
        let at = usize::try_from(id.0).ok()?.checked_sub(1)?;
        self.entries.get(at).map(|(entry, _)| entry)
    }

    fn begin_as(&mut self, id: Option<SessionId>) -> Result<SessionId, StoreError> {
        match id {
            None => Ok(self.insert_session(None)),
            Some(id) if self.sessions.contains_key(&id) => {
                Err(StoreError::new(StoreErrorKind::Exists, "there is such a session already"))
            }
            Some(id) => {
                self.sessions.insert(id.clone(), StoredSession { tip: None, held: false });
                Ok(id)
            }
        }
    }

    fn insert_session(&mut self, tip: Option<EntryId>) -> SessionId {
        let id = SessionId::new(format!("20260101-000000-{:06x}", self.sessions.len()));
        self.sessions.insert(id.clone(), StoredSession { tip, held: false });
        id
    }

    fn session_facts(&self, id: &SessionId) -> SessionFacts {
        SessionFacts {
            id: id.clone(),
            project: "/".to_owned(),
            title: String::new(),
            created_ms: 0,
            changed_ms: 0,
            messages: 0,
            bytes: 0,
            usage: Usage::default(),
            forked_from: None,
            held_by: None,
            child: None,
        }
    }
}

fn unknown_session_error() -> StoreError {
    StoreError::new(StoreErrorKind::NotFound, "there is no such session")
}

impl SessionStore for FakeStore {
    fn begin(&self, new: NewSession) -> StoreFuture<'_, SessionId> {
        Box::pin(self.fates.perform_next(|| lock_ignoring_poison(&self.memory).begin_as(new.id)))
    }

    fn append(&self, new: NewEntry) -> StoreFuture<'_, EntryId> {
        Box::pin(self.fates.perform_next(move || self.add_entry(new)))
    }

    /// The whole path, whatever the limits.
    fn load(&self, session: SessionId, _page: PageRequest) -> StoreFuture<'_, Page> {
        let entries = self.path_to_tip(&session);
        Box::pin(future::ready(Ok(Page { entries, earlier: None })))
    }

    fn session_facts(&self, session: SessionId) -> StoreFuture<'_, SessionFacts> {
        let memory = lock_ignoring_poison(&self.memory);
        let known = memory.sessions.contains_key(&session);
        let facts =
            if known { Ok(memory.session_facts(&session)) } else { Err(unknown_session_error()) };
        Box::pin(future::ready(facts))
    }

    fn list(&self, max: usize) -> StoreFuture<'_, Vec<SessionFacts>> {
        let memory = lock_ignoring_poison(&self.memory);
        let facts = memory.sessions.keys().take(max).map(|id| memory.session_facts(id)).collect();
        Box::pin(future::ready(Ok(facts)))
    }

    /// Finds nothing for any query.
    fn search(&self, _query: String, _max: usize) -> StoreFuture<'_, Vec<Hit>> {
        Box::pin(future::ready(Ok(Vec::new())))
    }

    fn fork(&self, _session: SessionId, at: EntryId, _at_ms: i64) -> StoreFuture<'_, SessionId> {
        let id = lock_ignoring_poison(&self.memory).insert_session(Some(at));
        Box::pin(future::ready(Ok(id)))
    }

    fn rename(&self, session: SessionId, title: String, at_ms: i64) -> StoreFuture<'_, ()> {
        let record = Record::Title { text: title };
        let durability = Durability::Process;
        let new = NewEntry { session, parent: Parent::Tip, at_ms, record, durability };
        Box::pin(future::ready(self.add_entry(new).map(|_| ())))
    }

    fn delete(&self, session: SessionId) -> StoreFuture<'_, ()> {
        let removed = lock_ignoring_poison(&self.memory).sessions.remove(&session);
        Box::pin(future::ready(removed.map(|_| ()).ok_or_else(unknown_session_error)))
    }

    fn hold_session(&self, session: SessionId, _at_ms: i64) -> StoreFuture<'_, HoldReport> {
        Box::pin(self.fates.perform_next(move || {
            let mut memory = lock_ignoring_poison(&self.memory);
            memory.sessions.get_mut(&session).ok_or_else(unknown_session_error)?.held = true;
            Ok(HoldReport::default())
        }))
    }

    fn release_session(&self, session: SessionId) -> StoreFuture<'_, ()> {
        Box::pin(self.fates.perform_next(move || {
            let mut memory = lock_ignoring_poison(&self.memory);
            memory.sessions.get_mut(&session).ok_or_else(unknown_session_error)?.held = false;
            Ok(())
        }))
    }
}

/// A result store in memory.
#[derive(Clone, Default)]
pub struct FakeResultStore {
    results: Arc<Mutex<Vec<String>>>,
    fates: ScriptedOutcomes,
}

impl FakeResultStore {
    /// A result store on which putting meets the fate that `script` gives it, by its number from 0.
    pub fn with_failures(
        script: impl Fn(usize) -> ScriptedOutcome + Send + Sync + 'static,
    ) -> Self {
        let fates = ScriptedOutcomes::from_script(script);
        Self { fates, ..Self::default() }
    }

    /// Returns the results that were put there, in order: `r1`, `r2`, …
    #[must_use]
    pub fn results(&self) -> Vec<String> {
        lock_ignoring_poison(&self.results).clone()
    }
}

impl ResultStore for FakeResultStore {
    fn save_result(&self, text: String) -> StoreFuture<'_, ResultId> {
        Box::pin(self.fates.perform_next(move || {
            let mut results = lock_ignoring_poison(&self.results);
            results.push(text);
            Ok(ResultId::new(format!("r{}", results.len())))
        }))
    }

    fn read_slice(
        &self,
        id: ResultId,
        from: u64,
        max_bytes: usize,
    ) -> StoreFuture<'_, ResultSlice> {
        let results = lock_ignoring_poison(&self.results);
        let nth = id.as_str().strip_prefix('r').and_then(|nth| nth.parse::<usize>().ok());
        let text = nth.and_then(|nth| results.get(nth.checked_sub(1)?));
        let none =
            || StoreError::new(StoreErrorKind::NotFound, format!("there is no result `{id}`"));
        let slice = text.map(|text| slice_result(text, from, max_bytes)).ok_or_else(none);
        Box::pin(future::ready(slice))
    }
}

fn slice_result(text: &str, from: u64, max_bytes: usize) -> ResultSlice {
    let total_bytes = text.len() as u64;
    let from = text.floor_char_boundary(usize::try_from(from).unwrap_or(text.len()));
    let rest = text.get(from..).unwrap_or_default();
    let most = rest.get(..rest.floor_char_boundary(max_bytes)).unwrap_or_default();
    let whole = if most.len() == rest.len() { None } else { most.rfind('\n').map(|end| end + 1) };
    let part = most.get(..whole.unwrap_or(most.len())).unwrap_or(most);
    let end = from + part.len();
    let next = (end < text.len()).then_some(end as u64);
    ResultSlice { text: part.to_owned(), next, total_bytes }
}

/// Keeps no files but the labels it was given.
#[derive(Clone, Default)]
pub struct FakeCheckpoints {
    labels: Arc<Mutex<Vec<String>>>,
    prepared: Arc<Mutex<usize>>,
    fates: ScriptedOutcomes,
    delay: std::time::Duration,
}

impl FakeCheckpoints {
    /// Keeping meets the fate that `script` gives it, by its number from 0.
    pub fn with_failures(
        script: impl Fn(usize) -> ScriptedOutcome + Send + Sync + 'static,
    ) -> Self {
        let fates = ScriptedOutcomes::from_script(script);
        Self { fates, ..Self::default() }
    }

    /// Taking this long, in tokio's time.
    #[must_use]
    pub fn with_delay(mut self, delay: std::time::Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The labels of the states that were kept, in order.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        lock_ignoring_poison(&self.labels).clone()
    }

    /// Returns how often the checkpoints were told to prepare.
    #[must_use]
    pub fn prepare_count(&self) -> usize {
        *lock_ignoring_poison(&self.prepared)
    }
}

impl Checkpoints for FakeCheckpoints {
    fn preload_workspace(&self) {
        *lock_ignoring_poison(&self.prepared) += 1;
    }

    fn save_checkpoint(&self, label: String) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(async move {
            if !self.delay.is_zero() {
                tokio::time::sleep(self.delay).await;
            }
            let note = || {
                let mut labels = lock_ignoring_poison(&self.labels);
                labels.push(label);
                Ok(format!("state{}", labels.len()))
            };
            self.fates.perform_next(note).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(session: &SessionId, text: &str, parent: Parent) -> NewEntry {
        NewEntry {
            session: session.clone(),
            parent,
            at_ms: 0,
            record: Record::Title { text: text.to_owned() },
            durability: Durability::Process,
        }
    }

    #[tokio::test]
    async fn fake_store_saves_a_message_tree_and_fails_as_scripted() {
        let fate = |nth| {
            if nth == 2 {
                ScriptedOutcome::FailsAfter(StoreErrorKind::Full)
            } else {
                ScriptedOutcome::Works
            }
        };
        let store = FakeStore::with_failures(fate);
        let session = store.begin(NewSession::default()).await.unwrap();
        let first = store.append(said(&session, "a", Parent::Tip)).await.unwrap();
        assert!(store.append(said(&session, "lost", Parent::Tip)).await.is_err());
        let after = store.append(said(&session, "b", Parent::After(first))).await.unwrap();
        let path: Vec<_> =
            store.without_failures().path_to_tip(&session).iter().map(|entry| entry.id).collect();
        assert_eq!((path, store.call_count()), (vec![first, after], 4));
    }

    #[tokio::test]
    async fn a_result_store_is_read_by_whole_lines() {
        let results = FakeResultStore::default();
        let id = results.save_result("one\ntwo\nthree".into()).await.unwrap();
        let read = results.read_slice(id.clone(), 0, 9).await.unwrap();
        assert_eq!((read.text.as_str(), read.next), ("one\ntwo\n", Some(8)));
        let rest = results.read_slice(id, 8, 9).await.unwrap();
        assert_eq!((rest.text.as_str(), rest.next, rest.total_bytes), ("three", None, 13));
    }
}
